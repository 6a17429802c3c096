"""From the settings of a run to the structure of its step."""

from dataclasses import replace

from vramplan.accountings.step import state
from vramplan.accountings.step.delta_net import CHUNK
from vramplan.accountings.step.head import SHIFTING, loss_rows
from vramplan.accountings.step.host import EACH, STAGED
from vramplan.accountings.step.structure import DELTA_MAPS, HALF, LITGPT, SINGLE, TORCHTUNE, TRANSFORMERS, UNDIVIDED, Sharding, Structure
from vramplan.accountings.step.unsloth_rows import SMALL_CARD_BYTES, rows_and_columns, rows_by_free_memory
from vramplan.accountings.step.whole import most
from vramplan.architecture import DELTA_NET, NO_MIXER, Architecture
from vramplan.errors import NotExpressible
from vramplan.fields import BY_NAME
from vramplan.policy import AS_THE_STACK, Policy, policy, stack_of
from vramplan.settings import Settings
from vramplan.stacks import stacks
from vramplan.targets import ATTENTION, LATENT, MIXER, NAMED, attention_maps
from vramplan.units import MIB

RMS_NORMS = ("rms", "rms-cast")
"""Norms of the decoders that fused kernels are made for. The others keep every operation as the model writes it.

Source: liger-kernel 0.8.5, transformers/monkey_patch.py, MODEL_TYPE_TO_APPLY_LIGER_FN; of the decoders with another norm
only Nemotron is there, without its norm and its MLP."""

MATH = "math"
"""PyTorch's own attention, which no setting names: what is left where no kernel takes the inputs."""

OWN_LOSSES = {
    LITGPT: {"full": ("logits",), "lora": ("split",), "qlora": ("split",)},
    TORCHTUNE: dict.fromkeys(("full", "lora", "qlora"), ("logits", "split")),
}
"""The losses of model code that brings its own, by method. Source: litgpt 0.4.0, finetune/full.py and finetune/lora.py, fit;
torchtune 0.6.1, recipes/configs."""

COMPILED = "compiled"
"""A kernel that torch.compile makes: it keeps the inputs of what it fuses, and those of matrix products that need them.

Source: torch 2.13.0, _functorch/partitioners.py, min_cut_rematerialization_partition: pointwise operations are run again, what
a matrix product reads is kept."""

IN_BACKWARD = "in-backward"
"""The optimizer steps each parameter as soon as it has its gradient. A stack that does so by itself does not where gradients
accumulate. Source: torchtune 0.6.1, recipes/full_finetune_single_device.py, optimizer_in_bwd."""

FEWEST_SORTED_TOKENS = 3_072
"""Tokens up to which the embedding's backward adds rows one by one. Source: torch 2.13.0, ATen/native/cuda/Embedding.cu,
embedding_dense_backward_cuda."""

SMALLEST_OFFLOADED_BYTES = 2 * MIB
"""Bytes up to which Unsloth leaves a checkpoint on the GPU. Source: unsloth_zoo 2026.10.9 and 2025.11.1, gradient_checkpointing.py, MINIMUM_SIZE."""

SHORTEST_OFFLOADED_ROW = 512
"""Tokens of a row from which Unsloth moves checkpoints. Source: unsloth 2026.10.9, models/_utils.py, apply_unsloth_gradient_checkpointing."""

UNSLOTH, UNSLOTH_BY_FREE_MEMORY = "unsloth", "unsloth-2025.11"
"""Losses whose chunks depend on the GPU, and the one where that is on the memory that is free."""

WIDEST_IN_REGISTERS = 128
"""Widest head whose gradients need no room of their own in the memory-efficient kernel. Source: torch 2.13.0,
ATen/native/transformers/cuda/mem_eff_attention/kernel_backward.h (kOutputInRF)."""

SIZES = {"bf16": HALF, "fp32": SINGLE}
"""Bytes per value of the two precisions."""


def structure(settings: Settings) -> Structure:
    """What decides the tensors of this run. Raises NotExpressible with the setting that cannot be counted."""
    _must_not_generate(settings)
    chosen = policy(settings)
    pairs, scores = settings.trains_on_pairs, settings.objective == "reward"
    shape = _as_coded(settings.architecture, chosen)
    shape = _without_dropout(shape) if pairs else shape
    shape = _with_scores(shape) if scores else shape
    prepared = settings.method == "qlora"
    loaded = _loaded_sizes(settings, chosen)
    sizes, autocast, sharding = _divided(settings, chosen, loaded)
    releases = {"logits": chosen.logits_release, "triton": chosen.logits_release, "chunked": chosen.chunked_release}
    release = (releases | {"split": chosen.split_release, "unsloth": chosen.unsloth_release}).get(chosen.loss)
    loss = f"{chosen.loss}-{release}" if release else chosen.loss
    compiled = settings.torch_compile == "on"
    if compiled and loss == "split-torchtune":
        loss = f"{loss}-{COMPILED}"
    _must_be_countable(settings, chosen)
    targets, on_experts = _targets(settings)
    attention = _attention(settings, shape, chosen)
    fusible = shape.norm in RMS_NORMS
    turns = Switches(settings, chosen, shape)
    batch = settings.rows, settings.sequence_length
    offload = chosen.checkpoint_offload if turns.offloads(*batch) else ""
    run = Structure(
        shape=shape,
        trains_base=settings.trains_base,
        **sizes,
        autocast=autocast,
        targets=targets,
        expert_targets=on_experts,
        rank=settings.rank if settings.trains_adapters else 0,
        dropout=settings.trains_adapters and settings.lora_dropout > 0 and not pairs,
        quantization=settings.quantization if prepared else "",
        compute_is_fp16=settings.half_precision == "fp16",
        attention=attention,
        masked=turns.masked(*batch),
        one_row=turns.one_row(*batch) and (loss in SHIFTING or shape.kv_lora_rank > 0),
        keys_in_blocks=_keys_in_blocks(shape, attention),
        sorts_embedding=turns.sorts_embedding(*batch),
        checkpointing=settings.checkpointing != "none",
        reentrant=chosen.reentrant or bool(offload),
        offload=offload,
        norm_kernel=COMPILED if compiled else chosen.norm_kernel if fusible else TRANSFORMERS,
        mlp_kernel=COMPILED if compiled else chosen.mlp_kernel if fusible else TRANSFORMERS,
        adapter_kernel=chosen.adapter_kernel,
        loss=loss,
        loss_rows=0,
        loss_columns=0,
        outputs_kept=chosen.outputs_kept,
        head_width=SCORES_PER_ROW if scores else shape.vocab_size,
        pairs=pairs,
        reference=chosen.reference,
        optimizer=chosen.optimizer,
        accumulates=settings.gradient_accumulation_steps > 1,
        sharding=sharding,
        model_code=chosen.model_code,
        quantized_linear=chosen.quantized_linear if prepared else "",
        quantized_head=prepared and chosen.quantized_head,
        lingers=chosen.lingers,
        compiled=compiled,
        one_chunk=turns.one_chunk(*batch),
        steps_in_backward=chosen.optimizer_step == IN_BACKWARD and settings.gradient_accumulation_steps == 1,
    )
    rows, columns = LossChunks(run, settings).of(settings.micro_batch, settings.sequence_length)
    return replace(run, loss_rows=rows, loss_columns=columns) if rows else run


class Switches:
    """Choices of a structure that turn on the batch: each is what it is of rows and a length, or of arrays of them place by place.

    Beside them only the chunks of the loss depend on the batch.
    """

    def __init__(self, settings: Settings, chosen: Policy, shape: Architecture):
        self.trains_base, self.window, self.hidden_size = settings.trains_base, shape.sliding_window, shape.hidden_size
        self.offload = chosen.checkpoint_offload if settings.checkpointing == "offloaded" else ""
        self.in_chunks = shape.mixer == DELTA_NET

    def masked(self, rows: int, length: int) -> bool:
        """Whether attention gets a mask: some rows are longer than the window."""
        return (length > self.window) & bool(self.window)

    def one_row(self, rows: int, length: int) -> bool:
        """Whether one row goes through the model alone."""
        return rows == 1

    def one_chunk(self, rows: int, length: int) -> bool:
        """Whether a row is one chunk, where layers go through it in chunks."""
        return (length <= CHUNK) & self.in_chunks

    def sorts_embedding(self, rows: int, length: int) -> bool:
        """Whether there are enough tokens for the embedding's backward to sort them."""
        return (rows * length > FEWEST_SORTED_TOKENS) & self.trains_base

    def offloads(self, rows: int, length: int) -> bool:
        """Whether checkpoints wait in host memory: not where nobody asked, or a stack does not for short rows or small ones.

        Source: unsloth_zoo 2026.10.9, gradient_checkpointing.py, UnslothCheckpointFunction.forward (MINIMUM_SIZE); unsloth 2026.10.9,
        models/_utils.py, apply_unsloth_gradient_checkpointing.
        """
        large = HALF * rows * length * self.hidden_size > SMALLEST_OFFLOADED_BYTES
        long = (length >= SHORTEST_OFFLOADED_ROW) | (self.offload != STAGED)
        return (large & long | (self.offload == EACH)) & bool(self.offload)


def switches(settings: Settings) -> Switches:
    """The switches of a run."""
    chosen = policy(settings)
    shape = _as_coded(settings.architecture, chosen)
    return Switches(settings, chosen, shape)


def _keys_in_blocks(shape: Architecture, attention: str) -> bool:
    """Whether the memory-efficient kernel adds up the gradients of blocks of keys; counted for latent attention, which it usually takes."""
    return bool(shape.kv_lora_rank) and attention == "efficient-repeated" and max(shape.head_dim, shape.value_dim) > WIDEST_IN_REGISTERS


class LossChunks:
    """The rows and columns of scores that the loss of one run holds at a time, for whole numbers of a batch or arrays of them.

    run: the structure but for these. Unsloth's depend on the GPU; every token is taken as labelled there but the last of a row.
    """

    def __init__(self, run: Structure, settings: Settings):
        self._run, self._budget, self._rows = run, settings.budget_bytes, settings.rows // settings.micro_batch
        self._free = self._free_bytes(settings) if run.loss == UNSLOTH_BY_FREE_MEMORY else 0

    def of(self, micro_batch: int, length: int) -> tuple[int, int]:
        """(rows, columns) in one batch, 0 where they are all."""
        run, sequences = self._run, self._rows * micro_batch
        tokens, vocab_size, hidden_size = sequences * length, run.shape.vocab_size, run.shape.hidden_size
        if run.loss == UNSLOTH_BY_FREE_MEMORY:
            checkpoints = run.shape.num_layers * run.embedding_size * hidden_size * tokens if run.checkpointing else 0
            return rows_by_free_memory(tokens=tokens, vocab_size=vocab_size, free_bytes=most(self._free - checkpoints, 0)), 0
        if run.loss.startswith(UNSLOTH):
            return rows_and_columns(
                tokens=most(tokens - micro_batch, 1),
                vocab_size=vocab_size,
                hidden_size=hidden_size,
                tiles=not run.trains_base and not run.compute_is_fp16,
                small_card=self._budget <= SMALL_CARD_BYTES,
            )
        return loss_rows(loss=run.loss, tokens=tokens, sequences=sequences, vocab_size=vocab_size, hidden_size=hidden_size), 0

    def _free_bytes(self, settings: Settings) -> int:
        """Memory that is free at the first loss of a run but for checkpoints, before there are optimizer states: the usable budget, less
        the weights. What the allocator holds beyond them is not known, and not taken off."""
        usable = settings.budget_bytes - settings.context_bytes
        return usable - state.weight_bytes(self._run) - state.adapter_bytes(self._run)


def _as_coded(shape: Architecture, chosen: Policy) -> Architecture:
    """The model as the stack's own code has it. LitGPT never ties the head to the embedding when it fine-tunes, has every
    activation in one operation and no dropout in the model, and calls heads grouped where there are fewer keys.

    Source: litgpt 0.4.0, model.py, GPT, GptNeoxMLP, CausalSelfAttention; finetune/lora.py and full.py (tie_embeddings is refused).
    """
    if chosen.model_code != LITGPT:
        return shape
    activation = "fused" if shape.activation == "gelu-new" else shape.activation
    return replace(
        shape, tied_embeddings=False, activation=activation, embedding_dropout=False, residual_dropout=False, broadcast_heads=False
    )


def _loaded_sizes(settings: Settings, chosen: Policy) -> dict[str, int]:
    """Bytes per value of each kind of parameter as the stack loads and prepares it.

    A base of packed weights that FSDP flattens is never prepared: one flat parameter has one type. Source: torch 2.13.0,
    distributed/fsdp/_flat_param.py, _validate_tensors_to_flatten; transformers 5.24.0, docs/source/en/fsdp.md.
    """
    base = SIZES[chosen.base_precision]
    preparation = "none" if settings.divides_states and settings.sharding == "fsdp1" else chosen.kbit_preparation
    norms = SINGLE if preparation in ("all", "norms") else base
    rest = SINGLE if preparation == "all" else base
    if chosen.rest_precision == "fp32":
        norms = rest = SINGLE
    adapters = SIZES[chosen.adapter_precision]
    return {"weight_size": base, "norm_size": norms, "embedding_size": rest, "head_size": rest, "adapter_size": adapters}


def _divided(settings: Settings, chosen: Policy, loaded: dict[str, int]) -> tuple[dict[str, int], bool, Sharding]:
    """The types the layers compute with, whether autocast runs, and how the states are divided.

    ZeRO makes every parameter 16 bits and needs no autocast. FSDP under mixed precision gathers 16 bits of whatever is kept,
    and what is trained is kept in float32, but for the adapters of a quantised base under FSDP2.
    Source: DeepSpeed 0.19.8, runtime/engine.py, _configure_distributed_model; accelerate 1.15.0, accelerator.py, prepare_model,
    utils/fsdp_utils.py, fsdp2_prepare_model.
    """
    checkpoint = loaded["weight_size"]
    if settings.sharding == "ddp":
        several = replace(UNDIVIDED, kind="ddp", loaded_size=checkpoint)
        return loaded, chosen.autocast, several if settings.replicas > 1 else UNDIVIDED
    if not settings.divides_states:
        return loaded, chosen.autocast, UNDIVIDED
    place = settings.sharding, settings.sharded_over, settings.offload
    half = dict.fromkeys(loaded, HALF)
    if settings.sharding.startswith("zero"):
        return half, False, Sharding(*place, **half, loaded_size=checkpoint)
    if not chosen.autocast:
        return loaded, False, Sharding(*place, **loaded, loaded_size=checkpoint)
    if settings.trains_base:
        return half, True, Sharding(*place, **dict.fromkeys(loaded, SINGLE), loaded_size=checkpoint)
    stays = settings.sharding == "fsdp2" and settings.method == "qlora"
    kept = loaded if stays else loaded | {"adapter_size": SINGLE}
    return half, True, Sharding(*place, **kept, loaded_size=checkpoint)


SCORES_PER_ROW = 1
"""Labels of a reward model. Source: trl 1.16.0, trainer/reward_trainer.py, num_labels=1."""


def _without_dropout(shape: Architecture) -> Architecture:
    """A decoder as trainers on pairs run it. Source: trl 1.0.0 to 1.16.0, trainer/dpo_config.py and reward_config.py:
    disable_dropout is on; trainer/utils.py, disable_dropout_in_model."""
    return replace(shape, residual_dropout=False, embedding_dropout=False)


def _with_scores(shape: Architecture) -> Architecture:
    """A decoder whose head gives one score and is a weight of its own. Source: transformers 5.24.0, modeling_layers.py,
    GenericForSequenceClassification."""
    return replace(shape, tied_embeddings=False, head_bias=False, logit_softcap=False)


def _must_not_generate(settings: Settings) -> None:
    """Say what is missing for objectives that generate text."""
    if settings.objective in GENERATING:
        raise NotExpressible("objective", GENERATING[settings.objective])


GENERATING = {
    "grpo": "GRPO is not counted: it generates text between its steps, and nothing here follows the key/value cache or the vLLM engine"
    " beside the trainer, nor the log-probabilities kept of each answer. Choose DPO, a reward model or next-token training.",
    "ppo": "PPO is not counted: it generates text between its steps and holds a value model and a reward model as well, and nothing here"
    " follows these, nor the key/value cache. Choose DPO, a reward model or next-token training.",
}
"""Why an objective has no number. Source: trl 1.16.0, trainer/grpo_trainer.py, experimental/ppo/ppo_trainer.py."""


def _must_train_on_pairs(settings: Settings, chosen: Policy) -> None:
    """Say why this stack, reference or loss has no step on pairs."""
    stack = stack_of(settings)
    if stack["pair_loss"] == "none":
        names = ", ".join(each.label for each in stacks().values() if each["pair_loss"] != "none")
        raise NotExpressible("stack", f"{stack.label} has no step on pairs that is counted; choose one of {names}.")
    if settings.divides_states:
        label = _label("sharding", settings.sharding)
        raise NotExpressible("sharding", f"DPO and reward models are not counted under {label}; choose DDP, with a whole copy on every GPU.")
    if chosen.reference == "shared" and settings.trains_base:
        raise NotExpressible("reference", "Full fine-tuning has no adapters to switch off; choose a second model or precomputed log-probabilities.")
    if settings.objective == "dpo" and settings.loss not in (AS_THE_STACK, stack["pair_loss"]):
        raise NotExpressible("loss", _other_loss(settings))
    if chosen.loss.startswith("logits-dpo") and not chosen.autocast:
        raise NotExpressible("autocast", "DPO before TRL 1.15 is counted under autocast only; choose On, or “TRL 1.15 and later”.")
    if settings.trains_adapters and "lm_head" in settings.targets:
        why = "A reward model has no lm_head" if settings.objective == "reward" else "DPO on an adapted lm_head is not counted, and TRL refuses it from 1.15 on"
        raise NotExpressible("adapter_targets", f"{why}; leave lm_head out.")


def _other_loss(settings: Settings) -> str:
    """Why a loss that somebody chose is not DPO's. Source: liger-kernel 0.8.5, chunked_loss/fused_linear_preference.py (compiled)."""
    stack, label = stack_of(settings), _label("loss", settings.loss)
    if settings.loss != "fused-linear":
        return f"{stack.label} does not compute DPO with the loss “{label}”; choose “As the stack”."
    if stack["fused_linear_refused"]:
        return f"{stack.label} refuses Liger’s fused loss; choose “As the stack”, or another stack."
    return "Liger’s DPO loss runs as one compiled graph, which is not counted; choose the loss “As the stack”."


def _must_be_countable(settings: Settings, chosen: Policy) -> None:
    """Say which setting this accounting has no tensors for."""
    if settings.method == "pretraining":
        _must_start_from_nothing(settings, chosen)
    if settings.architecture.mixer != NO_MIXER:
        _mixers_must_be_countable(settings, chosen)
    if settings.architecture.num_experts:
        _experts_must_be_countable(settings, chosen)
    _targets_must_be_there(settings)
    if settings.architecture.kv_lora_rank:
        _latent_attention_must_be_countable(settings, chosen)
    if settings.trains_on_pairs:
        _must_train_on_pairs(settings, chosen)
    if chosen.loss == "fused-linear" and "fused_linear_refused" in stack_of(settings).facts and stack_of(settings)["fused_linear_refused"]:
        raise NotExpressible("loss", f"{stack_of(settings).label} refuses Liger’s fused loss; choose another loss, or another stack.")
    if settings.optimizer_step == IN_BACKWARD and settings.gradient_accumulation_steps > 1:
        raise NotExpressible("gradient_accumulation_steps", "An optimizer that steps during the backward pass keeps no gradients; choose 1.")
    if settings.optimizer_step == IN_BACKWARD and settings.divides_states:
        raise NotExpressible("optimizer_step", "With divided states the optimizer steps after the backward pass; choose that, or no sharding.")
    if settings.torch_compile == "on" and chosen.model_code != TORCHTUNE:
        raise NotExpressible("torch_compile", f"What torch.compile keeps is not counted for {stack_of(settings).label}; leave it off, or choose torchtune.")
    own = OWN_LOSSES.get(chosen.model_code, {}).get(settings.method)
    label = stack_of(settings).label
    if own and chosen.loss not in own:
        raise NotExpressible("loss", f"{label} has losses of its own; leave the loss to the stack, or choose another stack.")
    if not own and chosen.loss == "split":
        raise NotExpressible("loss", f"{label} does not keep logits in a list of chunks; choose another loss, or another stack.")
    if own and settings.method == "qlora" and not settings.quantization.startswith("nf4"):
        raise NotExpressible("quantization", f"{label} is counted with NF4 alone; choose that, or another stack.")
    if own and settings.divides_states:
        raise NotExpressible("sharding", f"{label} is counted on one GPU or as copies; choose no sharding, or another stack.")
    if own and settings.layer_kernels != "stack":
        raise NotExpressible("layer_kernels", f"{label} has kernels of its own; leave them to the stack, or choose another stack.")
    if chosen.model_code == TORCHTUNE and settings.trains_adapters and "lm_head" in settings.targets:
        raise NotExpressible("adapter_targets", f"An adapter on the head of {label} is not counted; leave lm_head out, or choose another stack.")
    if own and settings.trains_adapters and "embed" in settings.targets:
        raise NotExpressible("adapter_targets", f"{label} puts no adapter on the embedding; leave embed out, or choose another stack.")
    if chosen.loss in ("fused-linear", "chunked", "tiled", "unsloth", "cut") and settings.trains_adapters and "lm_head" in settings.targets:
        raise NotExpressible("adapter_targets", "An adapter on lm_head needs the logits themselves; choose the loss “Logits kept”, or leave lm_head out.")
    if settings.divides_states:
        _must_divide(settings, chosen)


def _must_start_from_nothing(settings: Settings, chosen: Policy) -> None:
    """Say what does not train a model from scratch, or is not counted when it does."""
    if settings.trains_on_pairs:
        raise NotExpressible("objective", "A model is not trained from scratch on pairs; choose next-token training, or full fine-tuning.")
    if chosen.model_code != TRANSFORMERS or chosen.adapter_kernel.startswith("unsloth"):
        raise NotExpressible("stack", f"Pre-training is counted with Transformers’ own models, not as {stack_of(settings).label} does; choose another stack, or full fine-tuning.")


def _must_divide(settings: Settings, chosen: Policy) -> None:
    """Say what a kind of sharding does not run with, or what is not counted with it."""
    kind, label = settings.sharding, _label("sharding", settings.sharding)
    if settings.offload == "optimizer" and kind.startswith("fsdp"):
        raise NotExpressible("offload", f"{label} moves parameters, gradients and optimizer states together; choose “Optimizer and parameters”, or no offload.")
    if settings.offload == "optimizer-and-parameters" and kind in ("zero1", "zero2"):
        raise NotExpressible("offload", f"{label} keeps every weight on the GPU; choose “Optimizer only”, or ZeRO-3.")
    if settings.offload != "none" and not chosen.optimizer.startswith("adamw-f"):
        raise NotExpressible("optimizer", "With offload the optimizer runs on the host, where this one does not; choose AdamW.")
    if chosen.optimizer == "adafactor":
        raise NotExpressible("optimizer", f"{label} gives Adafactor pieces without rows and columns, which is not counted; choose another optimizer.")
    if kind == "fsdp2" and chosen.optimizer not in ("adamw-foreach", "adamw-fused", "sgd", "sgd-momentum"):
        raise NotExpressible("optimizer", "Optimizers of bitsandbytes take no parameters that FSDP2 has divided; choose AdamW or SGD.")
    if settings.method == "qlora" and kind in ("zero3", "fsdp1", "fsdp2") and settings.quantization not in ("nf4", "nf4-double"):
        raise NotExpressible("quantization", f"{label} divides weights of bitsandbytes in 4 bits only; choose NF4.")
    if settings.method == "qlora" and kind == "fsdp1" and settings.kbit_preparation in ("all", "norms"):
        raise NotExpressible("kbit_preparation", "FSDP flattens a layer into one type, so nothing in it may become FP32; choose “None”.")


def _label(name: str, value: str) -> str:
    return next(option.label for option in BY_NAME[name].kind.options if option.value == value)


def _mixers_must_be_countable(settings: Settings, chosen: Policy) -> None:
    """Say what is not counted where some layers have something else in place of attention."""
    label = stack_of(settings).label
    if stack_of(settings)["experts"] != "grouped" or chosen.model_code != TRANSFORMERS or chosen.adapter_kernel != "peft":
        raise NotExpressible("stack", f"Layers without attention are counted as transformers 5 runs them, not as {label} does; choose another stack.")
    if settings.trains_on_pairs:
        raise NotExpressible("objective", "DPO and reward models are not counted for models with layers without attention; choose next-token training.")
    if settings.divides_states:
        kind = _label("sharding", settings.sharding)
        raise NotExpressible("sharding", f"Layers without attention are not counted where GPUs divide the states, as {kind} does; choose DDP, or none.")
    if {chosen.norm_kernel, chosen.mlp_kernel} != {TRANSFORMERS}:
        raise NotExpressible("layer_kernels", "Liger’s kernels are not counted for models with layers without attention; choose the model’s own layers.")
    if settings.half_precision == "fp16":
        raise NotExpressible("half_precision", "A convolution in FP16 is cuDNN’s, whose workspace is not counted; choose BF16.")
    if settings.quantization in NO_EXPERTS_IN and settings.method == "qlora":
        raise NotExpressible("quantization", "Files quantised by GPTQ or AWQ are not counted for models with layers without attention; choose NF4 or LLM.int8().")


def _experts_must_be_countable(settings: Settings, chosen: Policy) -> None:
    """Say what is not counted together with experts."""
    others = chosen.model_code != TRANSFORMERS or chosen.adapter_kernel != "peft"
    if stack_of(settings)["experts"] != "grouped" or others:
        raise NotExpressible("stack", f"Experts are counted as transformers 5 runs them, not as {stack_of(settings).label} does; choose another stack.")
    if settings.trains_on_pairs:
        raise NotExpressible("objective", "DPO and reward models are not counted for models with experts; choose next-token training.")
    if settings.divides_states:
        raise NotExpressible("sharding", f"Experts are not counted where GPUs divide the states, as {_label('sharding', settings.sharding)} does; choose DDP, or none.")
    if settings.architecture.attention_sinks and settings.half_precision == "fp16":
        raise NotExpressible("half_precision", "A model with attention sinks keeps its norms in FP32 when it is loaded in FP16, which is not counted; choose BF16.")
    if settings.architecture.attention_sinks and {chosen.norm_kernel, chosen.mlp_kernel} != {TRANSFORMERS}:
        raise NotExpressible("layer_kernels", "Liger’s kernels are not counted with attention sinks; choose the model’s own layers.")
    if chosen.mlp_kernel != "transformers":
        raise NotExpressible("layer_kernels", "Liger’s kernels for experts are not counted; choose the model’s own layers.")
    if settings.quantization in NO_EXPERTS_IN and settings.method == "qlora":
        raise NotExpressible("quantization", "Files quantised by GPTQ or AWQ are not counted for models with experts; choose NF4 or LLM.int8().")


def _latent_attention_must_be_countable(settings: Settings, chosen: Policy) -> None:
    """Say what is not counted together with latent attention."""
    others = chosen.model_code != TRANSFORMERS or chosen.adapter_kernel != "peft"
    if stack_of(settings)["experts"] != "grouped" or others:
        raise NotExpressible("stack", f"Latent attention (MLA) is counted as transformers 5 runs it, not as {stack_of(settings).label} does; choose another stack.")
    if settings.divides_states:
        raise NotExpressible("sharding", f"Latent attention (MLA) is not counted where GPUs divide the states, as {_label('sharding', settings.sharding)} does; choose DDP, or none.")
    if chosen.norm_kernel != "transformers" or chosen.mlp_kernel != "transformers":
        raise NotExpressible("layer_kernels", "Liger’s kernels for latent attention (MLA) are not counted; choose the model’s own layers.")
    if settings.objective == "reward":
        raise NotExpressible("objective", "Reward models are not counted with latent attention (MLA); choose another objective.")


def _targets_must_be_there(settings: Settings) -> None:
    """Say which adapted map of attention the model does not have."""
    shape = settings.architecture
    if not settings.trains_adapters or settings.adapter_targets in NAMED:
        return
    has = attention_maps(q_lora_rank=shape.q_lora_rank, kv_lora_rank=shape.kv_lora_rank)
    if missing := [name for name in settings.targets if name in (*ATTENTION, *LATENT) and name not in has]:
        raise NotExpressible("adapter_targets", f"The model’s attention has the maps {', '.join(has)}, no {missing[0]}; name those, or choose “Attention only”.")
    if missing := [name for name in settings.targets if name in MIXER and shape.mixer == NO_MIXER]:
        raise NotExpressible("adapter_targets", f"Every layer of this model has attention, so there is no map {missing[0]} of anything else; leave it out.")


NO_EXPERTS_IN = ("gptq", "gptq-ungrouped", "awq")
"""Quantisations whose files quantise experts too, one by one."""

MLP, GATE_AND_UP = frozenset(("gate", "up", "down")), frozenset(("gate", "up"))
"""Maps of an MLP; two of them are one weight in experts."""


def _targets(settings: Settings) -> tuple[frozenset[str], frozenset[str]]:
    """Linear maps that get an adapter, and maps of experts that do. In a model with experts the names of the MLP's maps mean
    those of experts, and shared ones and the first layers' MLPs get none; for some it is the other way round.

    Source: peft 0.21.2, utils/transformers_weight_conversion.py, _convert_peft_config_moe; tuners/lora/layer.py, ParamWrapper.
    """
    targets = frozenset(settings.targets) if settings.trains_adapters else frozenset()
    shape = settings.architecture
    if shape.mixer == DELTA_NET and "in" in targets:
        targets |= frozenset(DELTA_MAPS)
    if shape.adapters_skip_experts and not shape.shared_expert_intermediate_size and not shape.dense_layers:
        return _beside_experts(targets), frozenset()
    if not shape.num_experts or shape.adapters_skip_experts or targets.isdisjoint(MLP):
        return targets, frozenset()
    if targets & GATE_AND_UP and not GATE_AND_UP <= targets:
        raise NotExpressible("adapter_targets", "Experts have gate and up in one weight, which PEFT adapts as a whole; name both, or neither.")
    if settings.lora_dropout > 0:
        raise NotExpressible("lora_dropout", "PEFT refuses dropout on adapters of experts; choose 0, or leave gate, up and down out of the targets.")
    names = {"gate and up": GATE_AND_UP, "down": frozenset(("down",))}
    return targets - MLP, frozenset(name for name, parts in names.items() if parts <= targets)


def _beside_experts(targets: frozenset[str]) -> frozenset[str]:
    """Targets in a model whose only MLPs are experts that PEFT finds no maps in: those names are passed over.

    Source: peft 0.21.2, tuners/tuners_utils.py, inject_adapter: names that match nothing are an error only where none does.
    """
    if targets and targets <= MLP:
        raise NotExpressible("adapter_targets", "PEFT finds no maps of this model’s experts, which are parameters, and target_parameters is not counted; name maps of attention.")
    return targets - MLP


def _attention(settings: Settings, shape: Architecture, chosen: Policy) -> str:
    """The kernel a run ends up with. Without autocast, float32 queries rule out FlashAttention, and grouped heads the
    memory-efficient kernel, so that PyTorch's own is left; value heads of another width than query heads rule out FlashAttention. Scores that distances are added to, or sinks stand beside, are always written out.

    Source: torch 2.13.0, ATen/native/transformers/cuda/sdp_utils.cpp, use_flash_attention, use_mem_efficient_attention;
    transformers 5.24.0, models/bloom/modeling_bloom.py, BloomAttention; litgpt 0.5.13, model.py, CausalSelfAttention (soft-cap).
    """
    if shape.alibi or shape.attention_sinks or settings.attention_kernel == "eager":
        return "eager"
    if shape.attention_softcap and chosen.model_code != TRANSFORMERS:
        return "eager"
    if shape.broadcast_heads:
        return MATH
    if settings.attention_kernel != "efficient":
        return settings.attention_kernel
    if shape.value_dim != shape.head_dim:
        return "efficient-repeated"
    if chosen.repeats_heads:
        return "efficient-repeated"
    in_float32 = chosen.base_precision == "fp32" or (settings.method == "qlora" and chosen.kbit_preparation != "none")
    grouped = shape.num_kv_heads != shape.num_attention_heads
    return MATH if in_float32 and grouped and not chosen.autocast else "efficient"
