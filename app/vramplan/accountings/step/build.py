"""From the settings of a run to the structure of its step."""

from vramplan.accountings.step.head import loss_rows
from vramplan.accountings.step.structure import HALF, SINGLE, Structure
from vramplan.errors import NotExpressible
from vramplan.policy import Policy, policy, stack_of
from vramplan.settings import Settings

RMS_NORMS = ("rms", "rms-cast")
"""Norms of the decoders that fused kernels are made for. The others keep every operation as the model writes it.

Source: liger-kernel 0.8.5, transformers/monkey_patch.py, MODEL_TYPE_TO_APPLY_LIGER_FN; of the decoders with another norm
only Nemotron is there, without its norm and its MLP."""

TRANSFORMERS = "transformers"
"""The kernel that is no kernel: the operations as the model writes them."""

MATH = "math"
"""PyTorch's own attention, which no setting names: what is left where no kernel takes the inputs."""

FEWEST_SORTED_TOKENS = 3_072
"""Tokens up to which the embedding's backward adds rows one by one. Source: torch 2.13.0, ATen/native/cuda/Embedding.cu,
embedding_dense_backward_cuda."""

SIZES = {"bf16": HALF, "fp32": SINGLE}
"""Bytes per value of the two precisions."""


def structure(settings: Settings) -> Structure:
    """What decides the tensors of this run. Raises NotExpressible with the setting that cannot be counted."""
    chosen = policy(settings)
    shape = settings.architecture
    base, prepared = SIZES[chosen.base_precision], settings.method == "qlora"
    norms = SINGLE if chosen.kbit_preparation in ("all", "norms") else base
    rest = SINGLE if chosen.kbit_preparation == "all" else base
    release = {"logits": chosen.logits_release, "triton": chosen.logits_release, "chunked": chosen.chunked_release}.get(chosen.loss)
    loss = f"{chosen.loss}-{release}" if release else chosen.loss
    _must_be_countable(settings, chosen)
    fusible = shape.norm in RMS_NORMS
    tokens = settings.micro_batch * settings.sequence_length
    return Structure(
        shape=shape,
        trains_base=settings.method == "full",
        weight_size=base,
        norm_size=norms,
        embedding_size=rest,
        head_size=rest,
        autocast=chosen.autocast,
        adapter_size=SIZES[chosen.adapter_precision],
        targets=frozenset(settings.targets) if settings.trains_adapters else frozenset(),
        rank=settings.rank if settings.trains_adapters else 0,
        dropout=settings.trains_adapters and settings.lora_dropout > 0,
        quantization=settings.quantization if prepared else "",
        compute_is_fp16=settings.half_precision == "fp16",
        attention=_attention(settings, chosen),
        masked=bool(shape.sliding_window) and settings.sequence_length > shape.sliding_window,
        one_row=settings.micro_batch == 1,
        sorts_embedding=settings.method == "full" and tokens > FEWEST_SORTED_TOKENS,
        checkpointing=settings.checkpointing == "full",
        reentrant=chosen.reentrant,
        norm_kernel=chosen.norm_kernel if fusible else TRANSFORMERS,
        mlp_kernel=chosen.mlp_kernel if fusible else TRANSFORMERS,
        adapter_kernel=chosen.adapter_kernel,
        loss=loss,
        loss_rows=loss_rows(loss=loss, tokens=tokens, vocab_size=shape.vocab_size, hidden_size=shape.hidden_size),
        outputs_kept=chosen.outputs_kept,
        optimizer=chosen.optimizer,
        accumulates=settings.gradient_accumulation_steps > 1,
    )


def _must_be_countable(settings: Settings, chosen: Policy) -> None:
    """Say which setting this accounting has no tensors for."""
    if chosen.loss == "fused-linear" and "fused_linear_refused" in stack_of(settings).facts and stack_of(settings)["fused_linear_refused"]:
        raise NotExpressible("loss", f"{stack_of(settings).label} refuses Liger’s fused loss; choose another loss, or another stack.")
    if chosen.loss in ("fused-linear", "chunked", "tiled") and settings.trains_adapters and "lm_head" in settings.targets:
        raise NotExpressible("adapter_targets", "An adapter on lm_head needs the logits themselves; choose the loss “Logits kept”, or leave lm_head out.")


def _attention(settings: Settings, chosen: Policy) -> str:
    """The kernel a run ends up with. Without autocast, float32 queries rule out FlashAttention, and grouped heads the
    memory-efficient kernel, so that PyTorch's own is left. Scores that distances are added to are always written out.

    Source: torch 2.13.0, ATen/native/transformers/cuda/sdp_utils.cpp, use_flash_attention, use_mem_efficient_attention;
    transformers 5.24.0, models/bloom/modeling_bloom.py, BloomAttention.
    """
    shape = settings.architecture
    if shape.alibi:
        return "eager"
    if settings.attention_kernel == "eager":
        return "eager"
    if shape.broadcast_heads:
        return MATH
    if settings.attention_kernel != "efficient":
        return settings.attention_kernel
    if chosen.repeats_heads:
        return "efficient-repeated"
    in_float32 = chosen.base_precision == "fp32" or (settings.method == "qlora" and chosen.kbit_preparation != "none")
    grouped = shape.num_kv_heads != shape.num_attention_heads
    return MATH if in_float32 and grouped and not chosen.autocast else "efficient"
