"""How many parameters a model has, and its adapters, from dimensions and traits alone.

Symbols: H hidden_size, M width of an MLP, E experts, r rank.
"""

from vramplan.architecture import (
    Architecture,
    layer_bias_parameters,
    norms_per_layer,
    other_parameters,
    query_key_norm_parameters,
    total_parameters,
)
from vramplan.targets import ATTENTION


def base_parameters(shape: Architecture) -> int:
    """All parameters of a model: with one MLP in every layer, and what experts have more."""
    biases = {name: getattr(shape, name) for name in ("query_biases", "output_biases", "mlp_biases")}
    widths = {"hidden_size": shape.hidden_size, "query_width": shape.query_width, "kv_width": shape.kv_width}
    mlp = {"intermediate_size": shape.intermediate_size, "mlp_projections": shape.mlp_projections}
    dense = total_parameters(
        num_layers=shape.num_layers,
        **widths,
        **mlp,
        vocab_size=shape.vocab_size,
        tied_embeddings=shape.tied_embeddings,
        norms=shape.norm_vectors * norms_per_layer(extra_norms=shape.extra_norms, shared_norm=shape.shared_norm),
        query_key_norms=query_key_norm_parameters(
            head_dim=shape.head_dim,
            query_width=shape.query_width,
            kv_width=shape.kv_width,
            query_key_norms=shape.query_key_norms,
            wide_query_key_norms=shape.wide_query_key_norms,
            norm_vectors=shape.norm_vectors,
        ),
        biases=layer_bias_parameters(**widths, **mlp, **biases),
        others=other_parameters(
            hidden_size=shape.hidden_size,
            vocab_size=shape.vocab_size,
            norm_vectors=shape.norm_vectors,
            learned_positions=shape.learned_positions,
            embedding_norm=shape.embedding_norm,
            head_bias=shape.head_bias,
        ),
    )
    if shape.kv_lora_rank:
        plain = attention_parameters(hidden_size=shape.hidden_size, query_width=shape.query_width, kv_width=shape.kv_width)
        latent = latent_parameters(
            hidden_size=shape.hidden_size,
            heads=shape.num_attention_heads,
            query_rank=shape.q_lora_rank,
            latent_rank=shape.kv_lora_rank,
            still=shape.qk_nope_head_dim,
            turned=shape.qk_rope_head_dim,
            value=shape.v_head_dim,
        )
        dense += shape.num_layers * (latent - plain)
    if not shape.num_experts:
        return dense
    one_mlp = mlp_parameters(hidden_size=shape.hidden_size, width=shape.intermediate_size, maps=shape.mlp_projections)
    experts = expert_layer_parameters(
        hidden_size=shape.hidden_size,
        maps=shape.mlp_projections,
        num_experts=shape.num_experts,
        expert_width=shape.expert_intermediate_size,
        shared_width=shape.shared_expert_intermediate_size,
        shared_gate=shape.shared_expert_gate,
        selection_bias=shape.router == "sigmoid-grouped",
        biases=shape.expert_biases,
    )
    dense += shape.num_layers * shape.num_attention_heads if shape.attention_sinks else 0
    return dense + expert_layers(shape) * (experts - one_mlp)


def expert_layers(shape: Architecture) -> int:
    """Layers that have experts."""
    return shape.num_layers - shape.dense_layers if shape.num_experts else 0


def attention_parameters(*, hidden_size: int, query_width: int, kv_width: int) -> int:
    """Parameters of query (Q, H), key (U, H), value (U, H) and output (H, Q). Source: transformers 5.24.0, LlamaAttention."""
    return 2 * hidden_size * (query_width + kv_width)


def latent_parameters(*, hidden_size: int, heads: int, query_rank: int, latent_rank: int, still: int, turned: int, value: int) -> int:
    """Parameters of latent attention: queries in one map (n (still + turned), H), or in two with a norm between them; keys and values
    in two with a norm; output (H, n value).

    Source: transformers 5.24.0, models/deepseek_v3/modeling_deepseek_v3.py, DeepseekV3Attention.__init__.
    """
    queries = heads * (still + turned)
    into_queries = query_rank * (hidden_size + queries + 1) if query_rank else hidden_size * queries
    into_keys = hidden_size * (latent_rank + turned) + latent_rank * (heads * (still + value) + 1)
    return into_queries + into_keys + heads * value * hidden_size


def mlp_parameters(*, hidden_size: int, width: int, maps: int) -> int:
    """Parameters of one MLP: maps (M, H) or (H, M). Source: transformers 5.24.0, models/llama/modeling_llama.py, LlamaMLP."""
    return maps * hidden_size * width


def expert_layer_parameters(*, hidden_size: int, maps: int, num_experts: int, expert_width: int, shared_width: int, shared_gate: bool, selection_bias: bool, biases: bool) -> int:
    """Parameters in place of one MLP: router (E, H) and its bias (E), the maps of E experts, those of the shared ones, and their gate (1, H);
    with biases one for the router (E) and for what each map of an expert gives (M, M, H).

    Source: transformers 5.24.0, models/qwen2_moe/modeling_qwen2_moe.py, Qwen2MoeSparseMoeBlock; models/deepseek_v3/modeling_deepseek_v3.py,
    DeepseekV3TopkRouter; models/gpt_oss/modeling_gpt_oss.py, GptOssExperts, GptOssTopKRouter.
    """
    router = hidden_size + (1 if selection_bias else 0) + (1 + (maps - 1) * expert_width + hidden_size if biases else 0)
    routed = num_experts * (router + mlp_parameters(hidden_size=hidden_size, width=expert_width, maps=maps))
    shared = mlp_parameters(hidden_size=hidden_size, width=shared_width, maps=maps)
    return routed + shared + (hidden_size if shared_gate else 0)


def adapter_parameters(shape: Architecture, *, targets: tuple[str, ...], rank: int) -> int:
    """Parameters of a pair A (r, in) and B (out, r) on every map that is named, in every layer that has it. In a model with experts the
    names of the MLP's maps mean those of all experts, gate and up as one of twice the rank; or those of shared ones and of dense
    layers where adapters leave experts out.

    Source: Hu et al. 2021 (LoRA), section 4.1; peft 0.21.2, tuners/lora/layer.py, ParamWrapper.update_layer.
    """
    hidden, vocabulary = shape.hidden_size, shape.vocab_size
    widths = {"q": shape.query_width, "k": shape.kv_width, "v": shape.kv_width, "o": shape.query_width}
    pairs = shape.num_layers * sum(hidden + widths[name] for name in targets if name in ATTENTION)
    pairs += sum(hidden + vocabulary for name in targets if name in ("lm_head", "embed"))
    gate = () if shape.plain_mlp else ("gate",)
    maps = len([name for name in targets if name in (*gate, "up", "down")])
    if not shape.num_experts:
        return rank * (pairs + shape.num_layers * maps * (hidden + shape.intermediate_size))
    if shape.adapters_skip_experts:
        shared = hidden + shape.shared_expert_intermediate_size if shape.shared_expert_intermediate_size else 0
        dense = shape.dense_layers * (hidden + shape.intermediate_size)
        return rank * (pairs + maps * (dense + expert_layers(shape) * shared))
    inner = shape.expert_intermediate_size
    both = 2 * (hidden + 2 * inner) if {"gate", "up"} <= set(targets) else 0
    down = inner + hidden if "down" in targets else 0
    return rank * (pairs + expert_layers(shape) * shape.num_experts * (both + down))
