"""The shape of a dense decoder and the parameters that follow from it.

Symbols: H hidden_size, L num_layers, n num_attention_heads, k num_kv_heads, d head_dim, Q = n d query_width,
U = k d kv_width, M intermediate_size, V vocab_size, r rank.
"""

from dataclasses import dataclass

ATTENTION_PROJECTIONS = 4
"""Linear maps of one attention block: query, key, value, output."""

MLP_PROJECTIONS = 3
"""Linear maps of one gated MLP: gate, up, down."""


NORMS_WITH_EXTRA = 4
"""Norms of width H in one layer that also has a norm after attention and one after the MLP."""


@dataclass(frozen=True)
class Architecture:
    """Dimensions and traits of a dense decoder with gated MLP and RMSNorm.

    query_key_norms: a norm on each query and key head. extra_norms: two more norms per layer, after attention and MLP,
    with weights applied in float32. query_biases: biases on query, key and value. fused_projections: query, key and
    value are one linear map, gate and up another. scaled_embeddings: they are multiplied by a number. attention_softcap, logit_softcap: scores or logits go through a tanh.
    sliding_window: tokens that some layers look back, 0 where every layer sees everything.
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

    @property
    def query_width(self) -> int:
        """Q: width of all query heads together."""
        return self.num_attention_heads * self.head_dim

    @property
    def kv_width(self) -> int:
        """U: width of all key (or value) heads together."""
        return self.num_kv_heads * self.head_dim


def linear_parameters(
    *, num_layers: int, hidden_size: int, query_width: int, kv_width: int, intermediate_size: int
) -> int:
    """Parameters of the dense linear maps in all layers: the ones a 4-bit base quantizes.

    Shapes per layer: query (Q, H), key (U, H), value (U, H), output (H, Q), gate (M, H), up (M, H), down (H, M).
    Source: planning formula, D. Not counted: embeddings, output head, norms.
    """
    query_and_output = 2 * hidden_size * query_width
    key_and_value = 2 * hidden_size * kv_width
    mlp = MLP_PROJECTIONS * hidden_size * intermediate_size
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


def norms_per_layer(*, extra_norms: bool) -> int:
    """Norms of width H in one layer: before attention and MLP, and with `extra_norms` also after each.

    Source: planning formula, L 2H; transformers 5.24.0, models/gemma2/modeling_gemma2.py, Gemma2DecoderLayer.
    """
    return NORMS_WITH_EXTRA if extra_norms else 2


def layer_bias_parameters(*, query_width: int, kv_width: int, query_biases: bool) -> int:
    """Bias values of one layer: query (Q), key (U) and value (U), or none.

    Source: transformers 5.24.0, models/qwen2/modeling_qwen2.py, Qwen2Attention.
    """
    return query_width + 2 * kv_width if query_biases else 0


def small_parameters(
    *, num_layers: int, hidden_size: int, head_dim: int, norms: int, biases: int, query_key_norms: bool
) -> int:
    """Parameters of the norm weights and biases: `norms` (H) per layer, query and key (d) where the model has them,
    `biases` per layer, and the final norm (H).

    Source: planning formula, L(2H + 2 epsilon d) + H, for two norms and no biases.
    """
    query_and_key = 2 * head_dim if query_key_norms else 0
    return num_layers * (norms * hidden_size + query_and_key + biases) + hidden_size


def total_parameters(
    *,
    num_layers: int,
    hidden_size: int,
    query_width: int,
    kv_width: int,
    intermediate_size: int,
    vocab_size: int,
    head_dim: int,
    tied_embeddings: bool,
    query_key_norms: bool,
    norms: int,
    biases: int,
) -> int:
    """All parameters of the base model: linear maps, embeddings, norms and biases. Source: planning formula, P."""
    return (
        linear_parameters(
            num_layers=num_layers,
            hidden_size=hidden_size,
            query_width=query_width,
            kv_width=kv_width,
            intermediate_size=intermediate_size,
        )
        + embedding_parameters(vocab_size=vocab_size, hidden_size=hidden_size, tied_embeddings=tied_embeddings)
        + small_parameters(
            num_layers=num_layers,
            hidden_size=hidden_size,
            head_dim=head_dim,
            norms=norms,
            biases=biases,
            query_key_norms=query_key_norms,
        )
    )


def adapted_projections(*, mlp_targets: bool) -> int:
    """How many projections of a layer get an adapter: those of attention, and with `mlp_targets` those of the MLP.

    Source: planning formula, p.
    """
    return ATTENTION_PROJECTIONS + (MLP_PROJECTIONS if mlp_targets else 0)


def adapter_parameters(
    *,
    rank: int,
    num_layers: int,
    hidden_size: int,
    query_width: int,
    kv_width: int,
    intermediate_size: int,
    mlp_targets: bool,
) -> int:
    """Parameters of the low-rank pairs A (r, in) and B (out, r) on every targeted projection of every layer.

    Shapes: query and output in + out = H + Q; key and value H + U; with `mlp_targets` also gate, up, down H + M.
    Source: Hu et al. 2021 (LoRA), section 4.1; planning formula, R.
    """
    attention = 2 * (hidden_size + query_width) + 2 * (hidden_size + kv_width)
    mlp = MLP_PROJECTIONS * (hidden_size + intermediate_size) if mlp_targets else 0
    return rank * num_layers * (attention + mlp)
