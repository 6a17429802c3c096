"""The shape of a dense decoder and the parameters that follow from it.

Symbols: H hidden_size, L num_layers, n num_attention_heads, k num_kv_heads, d head_dim, Q = n d query_width,
U = k d kv_width, M intermediate_size, V vocab_size, r rank.
"""

from dataclasses import dataclass

ATTENTION_PROJECTIONS = 4
"""Linear maps of one attention block: query, key, value, output."""

MLP_PROJECTIONS = 3
"""Linear maps of one gated MLP: gate, up, down."""

PLAIN_MLP_PROJECTIONS = 2
"""Linear maps of one plain MLP: up, down."""

NORMS_WITH_EXTRA = 4
"""Norms of width H in one layer that also has a norm after attention and one after the MLP."""

NORM_VECTORS = {"rms": 1, "rms-cast": 1, "layer": 2, "layer-half": 2, "layer-no-bias": 1, "layer-plain": 0}
"""Vectors of parameters of one norm: its weight, and its bias. Source: transformers 5.24.0, LlamaRMSNorm, Glm4RMSNorm; torch
2.13.0, nn.LayerNorm; transformers 5.24.0, NemotronLayerNorm1P, CohereLayerNorm, OlmoLayerNorm."""


NO_MIXER, SHORT_CONVOLUTION, DELTA_NET = "none", "short-convolution", "gated-delta-net"
"""What layers have in place of attention: nothing, for all have attention, a convolution over a few tokens, or a gated delta net."""

NO_LAYERS = "none"
"""A list of layers without any."""


@dataclass(frozen=True)
class Architecture:
    """Dimensions and traits of a dense decoder; without any trait it is one like Llama.

    query_key_norms: a norm on each query and key head. wide_query_key_norms: one over all query heads together, and one over
    all key heads. extra_norms: two more norms per layer, after attention and MLP. norms_after: the two norms come after
    attention and MLP, not before. norm: the kind of every norm, see NORM_VECTORS. shared_norm: one norm per layer serves
    attention and MLP. embedding_norm: a norm right after the embedding.

    query_biases: biases on query, key and value. output_biases, mlp_biases, head_bias: on attention's output, on every map of
    the MLP, on the output head. fused_projections: query, key and value are one linear map, gate and up another.
    fused_gate_up: only gate and up are one. plain_mlp: two maps, up and down, no gate. activation: what stands between the
    maps of the MLP. parallel_blocks: attention and MLP both read the layer's input and are added together.

    scaled_embeddings, scaled_residual: embeddings, or outputs of attention and MLP, are multiplied by a number.
    embedding_dropout, residual_dropout: values of these are dropped in training. attention_softcap, logit_softcap: scores or
    logits go through a tanh.

    sliding_window: tokens that layers look back, 0 where every layer sees everything. sliding_window_pattern: every so many-th
    layer sees everything all the same, 0 where none does.

    num_experts: MLPs of expert_intermediate_size among which a router shares out the tokens, 0 where there is one MLP; each token
    goes to experts_per_token of them, and to shared experts of shared_expert_intermediate_size together. shared_expert_gate: what
    these make is multiplied by a gate. dense_layers: so many first layers have one MLP of intermediate_size instead. router: how
    the experts' weights come about. adapters_skip_experts: adapters on gate, up and down are on shared experts and dense layers. learned_positions: rows of a table
    of positions, in place of rotary ones. partial_rotary: rotary positions turn a part of each head. alibi: distances are
    added to attention's scores, in place of rotary positions. broadcast_heads: the only key and value head goes into attention
    as it is, for all query heads, which no fused kernel takes.

    kv_lora_rank: keys and values come out of one narrow tensor of that width (multi-head latent attention), 0 where they do not.
    q_lora_rank: queries do too, 0 where they are one map. qk_nope_head_dim, qk_rope_head_dim: values of a query or key head without
    and with rotary positions, head_dim together; v_head_dim: those of a value head. rotary: how the rotary part is turned.

    mixer: what layers have in place of attention; attention_layers: those that have attention all the same, by their numbers from 0.
    mixer_kernel: tokens that its convolution looks at. mixer_key_heads, mixer_value_heads, mixer_key_dim, mixer_value_dim: heads of a
    gated delta net and their widths. attention_gate: what attention gives is multiplied by a gate, which comes out of the queries' map.

    expert_biases: the router and the maps of experts have biases, and gate and up, whose values lie in turn, are clamped. attention_sinks:
    a learned number for each head takes part in attention's softmax, which is written out; rotary positions turn both halves of a head by
    themselves, and norms apply their weight in float32.
    """

    hidden_size: int
    num_layers: int
    num_attention_heads: int
    num_kv_heads: int
    head_dim: int
    intermediate_size: int
    vocab_size: int
    tied_embeddings: bool
    query_key_norms: bool = False
    extra_norms: bool = False
    query_biases: bool = False
    fused_projections: bool = False
    scaled_embeddings: bool = False
    attention_softcap: bool = False
    logit_softcap: bool = False
    sliding_window: int = 0
    plain_mlp: bool = False
    norm: str = "rms"
    parallel_blocks: bool = False
    shared_norm: bool = False
    norms_after: bool = False
    wide_query_key_norms: bool = False
    output_biases: bool = False
    mlp_biases: bool = False
    head_bias: bool = False
    learned_positions: int = 0
    embedding_norm: bool = False
    fused_gate_up: bool = False
    activation: str = "fused"
    scaled_residual: bool = False
    residual_dropout: bool = False
    embedding_dropout: bool = False
    partial_rotary: bool = False
    alibi: bool = False
    broadcast_heads: bool = False
    sliding_window_pattern: int = 0
    num_experts: int = 0
    experts_per_token: int = 0
    expert_intermediate_size: int = 0
    shared_expert_intermediate_size: int = 0
    shared_expert_gate: bool = False
    dense_layers: int = 0
    router: str = "softmax"
    adapters_skip_experts: bool = False
    q_lora_rank: int = 0
    kv_lora_rank: int = 0
    qk_nope_head_dim: int = 0
    qk_rope_head_dim: int = 0
    v_head_dim: int = 0
    rotary: str = "halves"
    mixer: str = NO_MIXER
    attention_layers: str = NO_LAYERS
    mixer_kernel: int = 0
    mixer_key_heads: int = 0
    mixer_value_heads: int = 0
    mixer_key_dim: int = 0
    mixer_value_dim: int = 0
    attention_gate: bool = False
    expert_biases: bool = False
    attention_sinks: bool = False

    @property
    def query_width(self) -> int:
        """Q: width of all query heads together."""
        return self.num_attention_heads * self.head_dim

    @property
    def kv_width(self) -> int:
        """U: width of all key (or value) heads together."""
        return self.num_kv_heads * self.head_dim

    @property
    def value_dim(self) -> int:
        """Width of one value head."""
        return self.v_head_dim or self.head_dim

    @property
    def attended_width(self) -> int:
        """Width of what all heads of attention give together."""
        return self.num_attention_heads * self.value_dim

    @property
    def mixer_key_width(self) -> int:
        """Width of all query heads, or of all key heads, of a gated delta net together."""
        return self.mixer_key_heads * self.mixer_key_dim

    @property
    def mixer_value_width(self) -> int:
        """Width of all its value heads together."""
        return self.mixer_value_heads * self.mixer_value_dim

    @property
    def attending_layers(self) -> frozenset[int]:
        """Numbers of the layers with attention in a model whose others have something else."""
        return frozenset() if self.attention_layers == NO_LAYERS else frozenset(map(int, self.attention_layers.split(",")))

    @property
    def mlp_projections(self) -> int:
        """Linear maps of one MLP."""
        return PLAIN_MLP_PROJECTIONS if self.plain_mlp else MLP_PROJECTIONS

    @property
    def weighs_in_float32(self) -> bool:
        """Whether an RMSNorm applies its weight before it goes back to the type that came in."""
        return self.norm == "rms" and (self.extra_norms or self.norms_after or self.attention_gate or self.attention_sinks)

    @property
    def norm_vectors(self) -> int:
        """Vectors of parameters of one norm."""
        return NORM_VECTORS[self.norm]


def linear_parameters(
    *, num_layers: int, hidden_size: int, query_width: int, kv_width: int, intermediate_size: int, mlp_projections: int
) -> int:
    """Parameters of the dense linear maps in all layers: the ones a 4-bit base quantizes.

    Shapes per layer: query (Q, H), key (U, H), value (U, H), output (H, Q), gate (M, H) unless the MLP is plain, up (M, H),
    down (H, M). Source: planning formula, D. Not counted: embeddings, output head, norms, biases.
    """
    query_and_output = 2 * hidden_size * query_width
    key_and_value = 2 * hidden_size * kv_width
    mlp = mlp_projections * hidden_size * intermediate_size
    return num_layers * (query_and_output + key_and_value + mlp)


def embedding_matrices(*, tied_embeddings: bool) -> int:
    """How many (V, H) matrices the model stores: the token embedding, and the output head unless it is tied to it.

    Source: planning formula, t.
    """
    return 1 if tied_embeddings else 2


def embedding_parameters(*, vocab_size: int, hidden_size: int, tied_embeddings: bool) -> int:
    """Parameters of the token embedding (V, H) and, unless tied to it, the output head (V, H).

    Source: planning formula, t V H.
    """
    return embedding_matrices(tied_embeddings=tied_embeddings) * vocab_size * hidden_size


def norms_per_layer(*, extra_norms: bool, shared_norm: bool) -> int:
    """Norms of width H in one layer: one for attention and one for the MLP, or one that both share, and with `extra_norms`
    also one after each.

    Source: planning formula, L 2H; transformers 5.24.0, models/gemma2/modeling_gemma2.py, Gemma2DecoderLayer;
    models/phi/modeling_phi.py, PhiDecoderLayer.
    """
    if shared_norm:
        return 1
    return NORMS_WITH_EXTRA if extra_norms else 2


def query_key_norm_parameters(
    *, head_dim: int, query_width: int, kv_width: int, query_key_norms: bool, wide_query_key_norms: bool, norm_vectors: int
) -> int:
    """Parameters of the norms on queries and keys in one layer: two of width d, or one over all query heads (Q) and one over
    all key heads (U), or none.

    Source: planning formula, 2 epsilon d; transformers 5.24.0, models/olmo2/modeling_olmo2.py, Olmo2Attention.
    """
    of_heads = 2 * head_dim if query_key_norms else 0
    over_all = query_width + kv_width if wide_query_key_norms else 0
    return norm_vectors * (of_heads + over_all)


def layer_bias_parameters(
    *,
    hidden_size: int,
    query_width: int,
    kv_width: int,
    intermediate_size: int,
    mlp_projections: int,
    query_biases: bool,
    output_biases: bool,
    mlp_biases: bool,
) -> int:
    """Bias values of one layer: query (Q), key (U) and value (U); attention's output (H); gate (M) unless the MLP is plain,
    up (M) and down (H).

    Source: transformers 5.24.0, models/qwen2/modeling_qwen2.py, Qwen2Attention; models/gpt_neox/modeling_gpt_neox.py.
    """
    query_key_value = query_width + 2 * kv_width if query_biases else 0
    output = hidden_size if output_biases else 0
    mlp = (mlp_projections - 1) * intermediate_size + hidden_size if mlp_biases else 0
    return query_key_value + output + mlp


def other_parameters(
    *, hidden_size: int, vocab_size: int, norm_vectors: int, learned_positions: int, embedding_norm: bool, head_bias: bool
) -> int:
    """Parameters beside the layers and the (V, H) matrices: final norm and norm of the embedding (H for each vector), table of
    positions (rows, H), bias of the head (V).

    Source: planning formula, + H; transformers 5.24.0, models/gpt2/modeling_gpt2.py (wpe), models/bloom/modeling_bloom.py
    (word_embeddings_layernorm), models/gptj/modeling_gptj.py (lm_head).
    """
    norms = 2 if embedding_norm else 1
    return (norms * norm_vectors + learned_positions) * hidden_size + (vocab_size if head_bias else 0)


def total_parameters(
    *,
    num_layers: int,
    hidden_size: int,
    query_width: int,
    kv_width: int,
    intermediate_size: int,
    vocab_size: int,
    tied_embeddings: bool,
    mlp_projections: int,
    norms: int,
    query_key_norms: int,
    biases: int,
    others: int,
) -> int:
    """All parameters of the base model: linear maps, embeddings, and in each layer `norms` vectors (H), `query_key_norms` and
    `biases` values, and `others` beside the layers. Source: planning formula, P."""
    linear = linear_parameters(
        num_layers=num_layers,
        hidden_size=hidden_size,
        query_width=query_width,
        kv_width=kv_width,
        intermediate_size=intermediate_size,
        mlp_projections=mlp_projections,
    )
    embeddings = embedding_parameters(vocab_size=vocab_size, hidden_size=hidden_size, tied_embeddings=tied_embeddings)
    return linear + embeddings + num_layers * (norms * hidden_size + query_key_norms + biases) + others


def adapted_projections(*, mlp_targets: bool, mlp_projections: int) -> int:
    """How many projections of a layer get an adapter: those of attention, and with `mlp_targets` those of the MLP.

    Source: planning formula, p.
    """
    return ATTENTION_PROJECTIONS + (mlp_projections if mlp_targets else 0)


def adapter_parameters(
    *,
    rank: int,
    num_layers: int,
    hidden_size: int,
    query_width: int,
    kv_width: int,
    intermediate_size: int,
    mlp_projections: int,
    mlp_targets: bool,
) -> int:
    """Parameters of the low-rank pairs A (r, in) and B (out, r) on every targeted projection of every layer.

    Shapes: query and output in + out = H + Q; key and value H + U; with `mlp_targets` also each map of the MLP H + M.
    Source: Hu et al. 2021 (LoRA), section 4.1; planning formula, R.
    """
    attention = 2 * (hidden_size + query_width) + 2 * (hidden_size + kv_width)
    mlp = mlp_projections * (hidden_size + intermediate_size) if mlp_targets else 0
    return rank * num_layers * (attention + mlp)
