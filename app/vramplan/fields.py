"""The one table of settings: what each may be, how it is named to people, and when it applies.

Parsing, checking, the form, the flags and the keys of a link all come from this table.
"""

from collections.abc import Mapping
from dataclasses import replace

from vramplan.catalogue import CUSTOM, cards, gpu_classes, presets
from vramplan.constants import FIXED_ALLOWANCE_BYTES
from vramplan.kinds import (
    INFERENCE,
    Choice,
    ExactDecimal,
    Field,
    Kind,
    Layers,
    Measured,
    Option,
    Targets,
    WholeNumber,
    counting_as_unsloth,
    counting_by_rules,
    counting_steps,
    planning,
    serving,
    with_a_choice_of_precision,
    with_a_kernel,
    with_a_reference,
    with_adapters,
    with_cross_entropy,
    with_custom_budget,
    with_custom_model,
    with_divided_states,
    with_named_card,
    with_offload,
    with_quantized_base,
    with_sharding,
    with_step_adapters,
    with_step_quantized_base,
    while_training,
)
from vramplan.stacks import stacks
from vramplan.targets import EVERYTHING
from vramplan.units import GIB, UNIT_LABELS, gib_text

MAX_CUSTOM_SEQUENCE_LENGTH = 131_072
"""Longest sequence a custom decoder is estimated for, in tokens: that of the Llama presets."""

MAX_LAYERS = 1_024
"""Most layers of a custom decoder."""

MAX_EXPERTS = 4_096
"""Most experts of one layer."""

MAX_INTERMEDIATE = 1_048_576
"""Widest MLP or expert."""

MAX_HEAD_DIM = 4_096
"""Widest head."""

MAX_LATENT_RANK = 1_048_576
"""Widest tensor that queries, or keys and values, come out of under latent attention."""

MAX_TAPS = 64
"""Most tokens that a convolution in place of attention looks at."""

MAX_LEARNED_POSITIONS = 1_048_576
"""Most rows of a learned position table."""

MIN_BUDGET_GIB, MAX_BUDGET_GIB = 1, 2_048
"""Accepted custom budget per GPU, in GiB."""

MAX_SHARDED_OVER = 1_024
"""Most GPUs that one copy may be divided over."""


SECTIONS = {
    "model": "Base model",
    "method": "Training",
    "gpu": "Hardware",
    "batch": "Batch and sequence",
    "memory": "Memory savers",
    "advanced": "Advanced",
}
"""Groups of settings, in the order they are shown."""


def _model_options() -> tuple[Option, ...]:
    known = tuple(Option(preset.name, preset.label) for preset in presets().values())
    return known + (Option(CUSTOM, "Custom decoder"),)


def _gpu_options() -> tuple[Option, ...]:
    classes = (
        Option(gpu.name, f"{gpu.capacity_gib} GiB", "e.g. " + ", ".join(gpu.cards)) for gpu in gpu_classes().values()
    )
    reported = (
        Option(card.name, card.label, f"{gib_text(card.total_bytes)} GiB {'lent to the GPU' if card.unified else 'reported'}") for card in cards().values()
    )
    return (*classes, *reported, Option(CUSTOM, "Custom budget"))


def _stack_options() -> tuple[Option, ...]:
    return tuple(Option(stack.name, stack.label) for stack in stacks().values())


def _dimension(name: str, maximum: int, label: str, hint: str) -> Field:
    kind = WholeNumber(1, maximum)
    return Field(name, kind, label, hint, "model", applies=with_custom_model, governed_by="model", condition="only with model=custom")


def _trait(name: str, label: str, hint: str, kind: Kind | None = None) -> Field:
    return Field(name, kind or YES_NO, label, hint, "model", applies=with_custom_model, governed_by="model", condition="only with model=custom")


def _step_field(
    name: str, kind: Kind, label: str, hint: str, section: str, applies=counting_steps, condition: str = "", governed_by: str = "accounting"
) -> Field:
    """A field that only the step accounting reads; its value is kept for comparisons while another accounting is chosen."""
    condition = condition or "only with accounting=step"
    return Field(name, kind, label, hint, section, applies=applies, governed_by=governed_by, condition=condition, kept=True)


AS_THE_STACK = Option("stack", "As the stack", "what the trainer does by itself")
"""The choice to leave a setting to the training stack."""

YES_NO = Choice((Option("true", "Yes"), Option("false", "No")))

NORMS = Choice(
    (
        Option("rms", "RMSNorm", "as in Llama; after blocks, as in Gemma"),
        Option("rms-cast", "RMSNorm, cast first", "with norms after blocks, as in GLM 4 and EXAONE 4"),
        Option("layer", "LayerNorm", "weight and bias"),
        Option("layer-half", "LayerNorm in 16 bits", "as in Nemotron"),
        Option("layer-no-bias", "LayerNorm, no bias", "written out, as in Cohere"),
        Option("layer-plain", "LayerNorm, no weight", "as in OLMo 1"),
    )
)

ROUTERS = Choice(
    (
        Option("softmax", "Softmax", "as in Qwen3 and OLMoE"),
        Option("softmax-float32", "Softmax, weights in FP32", "as in Mixtral"),
        Option("softmax-of-chosen", "Softmax of the chosen", "as in gpt-oss"),
        Option("softmax-of-chosen-float32", "Softmax of the chosen, in FP32", "as in Granite MoE"),
        Option("softmax-scaled", "Softmax, scaled", "map in FP32, as in DeepSeek-V2-Lite"),
        Option("softmax-grouped", "Softmax in groups", "map in FP32, as in DeepSeek-V2"),
        Option("sigmoid-grouped", "Sigmoid with a selection bias", "map in FP32, as in DeepSeek-V3"),
    )
)

ROTATIONS = Choice(
    (
        Option("halves", "Halves of a head", "as in Llama and MiniCPM3"),
        Option("pairs", "Pairs of values", "rope_interleave, as in DeepSeek-V3"),
        Option("complex", "Complex numbers", "as in DeepSeek-V2"),
    )
)

MIXERS = Choice(
    (
        Option("none", "Nothing", "all layers have attention"),
        Option("short-convolution", "Short convolution", "as in LFM2"),
        Option("gated-delta-net", "Gated delta net", "as in Qwen3.5"),
    )
)

ACTIVATIONS = Choice(
    (
        Option("fused", "One operation", "silu, gelu, gelu_pytorch_tanh"),
        Option("gelu-new", "GELU, written out", "gelu_new, as in GPT-2, GPT-J and Phi-2"),
        Option("relu", "ReLU", "as in OPT"),
        Option("relu-squared", "ReLU, squared", "relu2, as in Nemotron"),
    )
)

_TABLE: tuple[Field, ...] = (
    Field(
        "accounting",
        Choice(
            (
                Option("step", "Training step", "follows every tensor"),
                Option("planning", "Planning formula", "a sum of rules"),
                Option("unsloth", "Unsloth Studio", "its documented estimate"),
                Option("rules", "Byte rules", "bytes per parameter, ZeRO, inference"),
            )
        ),
        "Accounting",
        "The way memory is counted.",
        "method",
    ),
    _step_field("stack", Choice(_stack_options()), "Training stack", "Trainer and release; it decides what is not set below.", "method"),
    Field(
        "unsloth_revision",
        Choice((Option("2026-03", "March 2026", "its document"), Option("2026-08", "August 2026", "its code, as read then"))),
        "Revision of Unsloth Studio",
        "Its code has moved on since its document was written.",
        "method",
        applies=counting_as_unsloth,
        governed_by="accounting",
        condition="only with accounting=unsloth",
        kept=True,
    ),
    Field(
        "task",
        Choice((Option("training", "Training"), Option(INFERENCE, "Inference", "weights and key/value cache"))),
        "Task",
        "Whether the model is trained, or serves sequences on the same GPU.",
        "method",
        applies=counting_by_rules,
        governed_by="accounting",
        condition="only with accounting=rules",
        kept=True,
    ),
    Field(
        "served_weights",
        Choice(
            (
                Option("bf16", "16-bit", "BF16 or FP16"),
                Option("fp32", "FP32"),
                Option("fp8", "FP8"),
                Option("int8", "INT8"),
                Option("int4", "4-bit", "INT4 or NF4, scales left out"),
            )
        ),
        "Weights served in",
        "Type of the weights while the model answers.",
        "method",
        applies=serving,
        governed_by="task",
        condition="only with accounting=rules and task=inference",
        kept=True,
    ),
    Field(
        "kv_cache",
        Choice((Option("16-bit", "16-bit"), Option("8-bit", "8-bit", "FP8"))),
        "Key/value cache",
        "Type of the keys and values kept of every token.",
        "method",
        applies=serving,
        governed_by="task",
        condition="only with accounting=rules and task=inference",
        kept=True,
    ),
    Field("model", Choice(_model_options()), "Model", "Type to find a preset, or choose Custom for your own dimensions.", "model"),
    _dimension("hidden_size", 1_048_576, "Hidden size", "Width of the residual stream: hidden_size in config.json."),
    _dimension("num_layers", MAX_LAYERS, "Layers", "Decoder blocks: num_hidden_layers."),
    _dimension("num_attention_heads", 4_096, "Attention heads", "Query heads: num_attention_heads."),
    _dimension("num_kv_heads", 4_096, "Key/value heads", "num_key_value_heads; must divide the attention heads."),
    _dimension("head_dim", MAX_HEAD_DIM, "Head dimension", "Width of one head; not always hidden size ÷ heads."),
    _dimension("intermediate_size", MAX_INTERMEDIATE, "Intermediate size", "Inner width of the MLP: intermediate_size."),
    _dimension("vocab_size", 4_194_304, "Vocabulary size", "Rows of the embedding table: vocab_size."),
    Field(
        "tied_embeddings",
        YES_NO,
        "Tied embeddings",
        "Yes if the output head is the embedding table itself: tie_word_embeddings.",
        "model",
        applies=with_custom_model,
        governed_by="model",
        condition="only with model=custom",
    ),
    _trait("query_key_norms", "Query/key norms", "An RMSNorm on each query and key head, as in Qwen3."),
    _trait("extra_norms", "Four norms per layer", "Norms after attention and MLP too, as in Gemma 2 and 3."),
    _trait("query_biases", "Query, key, value biases", "As in Qwen2.5: attention_bias."),
    _trait("fused_projections", "Fused projections", "One qkv and one gate_up map, as in Phi-3."),
    _trait("scaled_embeddings", "Scaled embeddings", "Embeddings times a number, as in Gemma and Granite."),
    _trait("attention_softcap", "Attention soft-cap", "attn_logit_softcapping, as in Gemma 2."),
    _trait("logit_softcap", "Logit soft-cap", "final_logit_softcapping, as in Gemma 2."),
    _trait(
        "sliding_window",
        "Sliding window",
        "Tokens that layers look back: sliding_window; 0 where all see everything.",
        WholeNumber(0, MAX_CUSTOM_SEQUENCE_LENGTH, "tokens"),
    ),
    _trait("plain_mlp", "Plain MLP", "Two maps, up and down, without a gate, as in GPT-2, Falcon and Nemotron."),
    _trait("norm", "Kind of norm", "What every norm of the model is.", NORMS),
    _trait("parallel_blocks", "Parallel attention and MLP", "Both read the layer’s input, as in GPT-NeoX, GPT-J, Phi-2, Falcon and Cohere."),
    _trait("shared_norm", "One norm per layer", "It serves attention and MLP, as in GPT-J, Phi-2, Falcon 7B and Cohere."),
    _trait("norms_after", "Norms after the blocks", "After attention and MLP instead of before, as in OLMo 2 and EXAONE 4."),
    _trait("wide_query_key_norms", "Norms over all heads", "One over all query heads and one over all key heads, as in OLMo 2."),
    _trait("output_biases", "Output bias of attention", "As in GPT-2, GPT-NeoX, OPT and Phi-2."),
    _trait("mlp_biases", "MLP biases", "On every map of the MLP: mlp_bias."),
    _trait("head_bias", "Bias of the output head", "As in GPT-J and Phi-2."),
    _trait(
        "learned_positions",
        "Learned positions",
        "Rows of a table of positions, as in GPT-2 and OPT; 0 with rotary positions.",
        WholeNumber(0, MAX_LEARNED_POSITIONS, "rows"),
    ),
    _trait("embedding_norm", "Norm after the embedding", "As in BLOOM."),
    _trait("fused_gate_up", "Fused gate and up", "One gate_up map, but separate query, key and value, as in GLM."),
    _trait("activation", "Activation", "What stands between the maps of the MLP: hidden_act.", ACTIVATIONS),
    _trait("scaled_residual", "Scaled residual", "Outputs of attention and MLP times a number, as in Granite and MiniCPM."),
    _trait("residual_dropout", "Residual dropout", "Dropout on the outputs of attention and MLP, as in GPT-2 and OPT: resid_pdrop, dropout."),
    _trait("embedding_dropout", "Embedding dropout", "As in GPT-2: embd_pdrop."),
    _trait("partial_rotary", "Rotary on part of a head", "partial_rotary_factor below 1, as in GPT-NeoX, Phi-2, StableLM, GLM 4 and Nemotron; not in GPT-J."),
    _trait("alibi", "Alibi", "Distances added to the scores, which are written out, as in BLOOM and MPT."),
    _trait("broadcast_heads", "Broadcast key/value head", "One for all query heads, which no fused kernel takes, as in Falcon 7B."),
    _trait(
        "sliding_window_pattern",
        "Full attention every",
        "Every so many-th layer sees everything: 6 in Gemma 3, 2 in Gemma 2; 0 where none does.",
        WholeNumber(0, MAX_LAYERS, "layers"),
    ),
    _trait(
        "num_experts", "Experts", "MLPs among which a router shares out the tokens: num_experts, num_local_experts; 0 for one MLP.",
        WholeNumber(0, MAX_EXPERTS, "experts"),
    ),
    _trait("experts_per_token", "Experts per token", "num_experts_per_tok.", WholeNumber(0, MAX_EXPERTS, "experts")),
    _trait("expert_intermediate_size", "Intermediate size of an expert", "moe_intermediate_size.", WholeNumber(0, MAX_INTERMEDIATE)),
    _trait(
        "shared_expert_intermediate_size", "Intermediate size of shared experts", "Of all of them together; 0 where there are none.",
        WholeNumber(0, MAX_INTERMEDIATE),
    ),
    _trait("shared_expert_gate", "Gate on shared experts", "As in Qwen1.5-MoE."),
    _trait("dense_layers", "Dense first layers", "Layers before the first with experts: first_k_dense_replace.", WholeNumber(0, MAX_LAYERS - 1, "layers")),
    _trait("router", "Router", "How the weights of a token’s experts come about.", ROUTERS),
    _trait("adapters_skip_experts", "Adapters leave experts out", "Those on gate, up and down go to shared experts and dense layers: as PEFT does in gpt-oss and Qwen1.5-MoE."),
    _trait(
        "q_lora_rank", "Rank of the queries", "Width of what queries come out of under latent attention (MLA): q_lora_rank; 0 for one map.",
        WholeNumber(0, MAX_LATENT_RANK),
    ),
    _trait(
        "kv_lora_rank", "Rank of keys and values", "Width of what both come out of under latent attention (MLA): kv_lora_rank; 0 without it.",
        WholeNumber(0, MAX_LATENT_RANK),
    ),
    _trait("qk_nope_head_dim", "Head without rotary positions", "Values of a query or key head that are not turned: qk_nope_head_dim.", WholeNumber(0, MAX_HEAD_DIM // 2)),
    _trait("qk_rope_head_dim", "Head with rotary positions", "Values of a query or key head that are turned: qk_rope_head_dim.", WholeNumber(0, MAX_HEAD_DIM // 2)),
    _trait("v_head_dim", "Value head", "Width of one value head under latent attention: v_head_dim.", WholeNumber(0, MAX_HEAD_DIM)),
    _trait("rotary", "Rotary positions", "How latent attention turns its rotary part.", ROTATIONS),
    _trait("mixer", "In place of attention", "What layers have that are not listed below.", MIXERS),
    _trait("attention_layers", "Layers with attention", "By their numbers, the first is 0: full_attn_idxs.", Layers(MAX_LAYERS)),
    _trait("mixer_kernel", "Taps of the convolution", "Tokens it looks at: conv_L_cache, linear_conv_kernel_dim.", WholeNumber(0, MAX_TAPS, "tokens")),
    _trait("mixer_key_heads", "Key heads of the delta net", "linear_num_key_heads; must divide its value heads.", WholeNumber(0, 4_096)),
    _trait("mixer_value_heads", "Value heads of the delta net", "linear_num_value_heads.", WholeNumber(0, 4_096)),
    _trait("mixer_key_dim", "Key head of the delta net", "Width of one query or key head: linear_key_head_dim.", WholeNumber(0, MAX_HEAD_DIM)),
    _trait("mixer_value_dim", "Value head of the delta net", "Width of one value head: linear_value_head_dim.", WholeNumber(0, MAX_HEAD_DIM)),
    _trait("attention_gate", "Gate on attention", "From the map of the queries, twice as wide, as in Qwen3.5; norms as there."),
    _trait("expert_biases", "Biases of experts", "On the router too; gate and up lie in turn and are clamped, as in gpt-oss."),
    _trait("attention_sinks", "Attention sinks", "A learned number beside each head’s scores, which are written out, as in gpt-oss."),
    _step_field(
        "objective",
        Choice(
            (
                Option("sft", "Next token", "SFT: cross-entropy"),
                Option("dpo", "DPO", "pairs, compared with a reference model"),
                Option("reward", "Reward model", "pairs, one score a row"),
                Option("grpo", "GRPO", "generates text: not counted"),
                Option("ppo", "PPO", "generates text: not counted"),
            )
        ),
        "Objective",
        "What is learned. DPO and reward models are TRL’s; each pair is two rows.",
        "method",
    ),
    _step_field(
        "reference",
        Choice(
            (
                AS_THE_STACK,
                Option("copy", "A second model", "frozen, beside the trained one: ref_model"),
                Option("shared", "Adapters switched off", "the base model is the reference"),
                Option("precomputed", "Precomputed", "precompute_ref_log_probs: none at the step"),
            )
        ),
        "Reference",
        "What DPO compares the trained model with.",
        "method",
        with_a_reference,
        "only with accounting=step and objective=dpo",
        "objective",
    ),
    Field(
        "method",
        Choice(
            (
                Option("full", "Full", "all weights"),
                Option("lora", "LoRA", "adapters, 16-bit base"),
                Option("qlora", "QLoRA", "adapters, quantised base"),
                Option("pretraining", "Pre-training", "all weights, from scratch, in FP32"),
            )
        ),
        "Training method",
        "What is trained, and how the frozen base is stored.",
        "method",
    ),
    Field(
        "rank",
        WholeNumber(1, 256),
        "Adapter rank",
        "Inner width r of each adapter pair.",
        "method",
        applies=with_adapters,
        governed_by="method",
        condition="only with method=lora or method=qlora",
        kept=True,
    ),
    Field(
        "adapter_targets",
        Targets(
            (
                Option("attention", "Attention only", "q, k, v, o"),
                Option("all-linear", "All linear", "q, k, v, o, gate, up, down"),
            ),
            EVERYTHING,
        ),
        "Adapter targets",
        "Projections that get an adapter; in and out are those of layers without attention.",
        "method",
        applies=with_adapters,
        governed_by="method",
        condition="only with method=lora or method=qlora",
        kept=True,
    ),
    _step_field(
        "quantization",
        Choice(
            (
                Option("nf4-double", "NF4, double quantisation", "bitsandbytes 4-bit"),
                Option("nf4", "NF4", "bitsandbytes 4-bit, plain scales"),
                Option("int8", "LLM.int8()", "bitsandbytes 8-bit"),
                Option("gptq", "GPTQ 4-bit", "groups of 128"),
                Option("gptq-ungrouped", "GPTQ 4-bit, ungrouped", "group_size −1"),
                Option("awq", "AWQ 4-bit", "groups of 128"),
            )
        ),
        "Base quantisation",
        "How the frozen linear weights are stored.",
        "method",
        with_quantized_base,
        "only with accounting=step, accounting=unsloth or accounting=rules, and method=qlora",
    ),
    _step_field(
        "kbit_preparation",
        Choice(
            (
                AS_THE_STACK,
                Option("all", "Everything to FP32", "prepare_model_for_kbit_training"),
                Option("norms", "Norms to FP32", "embedding and head stay 16-bit"),
                Option("none", "None", "everything stays 16-bit"),
            )
        ),
        "Preparation of the quantised model",
        "Types of what is not quantised: norms, embedding, head.",
        "advanced",
        with_step_quantized_base,
        "only with accounting=step and method=qlora",
    ),
    _step_field(
        "base_precision",
        Choice((AS_THE_STACK, Option("bf16", "16-bit", "dtype=bfloat16"), Option("fp32", "FP32", "dtype=float32"))),
        "Base weights loaded in",
        "Type of the frozen weights; with a quantised base, of what is not quantised.",
        "advanced",
        with_step_adapters,
        "only with accounting=step and method=lora or method=qlora",
    ),
    _step_field(
        "lora_dropout",
        ExactDecimal("0", "0.99"),
        "Adapter dropout",
        "Above 0, every adapter keeps a mask and a copy of its input: lora_dropout.",
        "advanced",
        with_step_adapters,
        "only with accounting=step and method=lora or method=qlora",
    ),
    Field(
        "gpu",
        Choice(_gpu_options()),
        "GPU",
        "A memory class, a card with what its driver reports, or your own number.",
        "gpu",
    ),
    Field(
        "budget",
        ExactDecimal(str(MIN_BUDGET_GIB), str(MAX_BUDGET_GIB), unit_field="budget_unit"),
        "Budget per GPU",
        "Memory you can use on each card.",
        "gpu",
        applies=with_custom_budget,
        governed_by="gpu",
        condition="only with gpu=custom",
    ),
    Field(
        "budget_unit",
        Choice((Option("gib", UNIT_LABELS["gib"], "2³⁰ bytes"), Option("gb", UNIT_LABELS["gb"], "10⁹ bytes"))),
        "Budget unit",
        "Changing the unit keeps the bytes.",
        "gpu",
        applies=with_custom_budget,
        governed_by="gpu",
        condition="only with gpu=custom",
    ),
    Field(
        "replicas",
        WholeNumber(1, 128, "GPUs"),
        "GPU replicas",
        "Data-parallel copies; what each GPU holds depends on the sharding.",
        "gpu",
    ),
    _step_field(
        "sharding",
        Choice(
            (
                Option("none", "None", "each copy on one GPU"),
                Option("ddp", "DDP", "gradients averaged in buckets, nothing divided"),
                Option("zero1", "ZeRO-1", "DeepSpeed: optimizer states divided"),
                Option("zero2", "ZeRO-2", "DeepSpeed: gradients too"),
                Option("zero3", "ZeRO-3", "DeepSpeed: weights too"),
                Option("fsdp1", "FSDP", "FullyShardedDataParallel, full_shard"),
                Option("fsdp2", "FSDP2", "fully_shard, fsdp_version 2"),
            )
        ),
        "Sharding",
        "What is divided between the GPUs of one copy.",
        "gpu",
        with_sharding,
        "only with accounting=step or accounting=rules",
    ),
    Field(
        "sharded_over",
        WholeNumber(1, MAX_SHARDED_OVER, "GPUs"),
        "GPUs per copy",
        "What one copy is divided over; each of them runs its own micro-batch. All GPUs: this times the replicas.",
        "gpu",
        applies=with_divided_states,
        governed_by="sharding",
        condition="only with accounting=step or accounting=rules, and sharding=zero1, zero2, zero3, fsdp1 or fsdp2",
        kept=True,
    ),
    Field(
        "offload",
        Choice(
            (
                Option("none", "None", "everything on the GPU"),
                Option("optimizer", "Optimizer only", "ZeRO: states and gradients in host memory"),
                Option("optimizer-and-parameters", "Optimizer and parameters", "ZeRO-3 and FSDP: weights too"),
            )
        ),
        "Offload to host memory",
        "What waits in the memory of the machine between uses.",
        "gpu",
        applies=with_offload,
        governed_by="sharding",
        condition="only with accounting=step and sharding=zero1, zero2, zero3, fsdp1 or fsdp2",
        kept=True,
    ),
    Field(
        "other_processes",
        ExactDecimal("0", str(MAX_BUDGET_GIB), "GiB"),
        "Used by other processes",
        "What nvidia-smi shows as used before your run starts; its output can be pasted.",
        "gpu",
        applies=with_named_card,
        governed_by="gpu",
        condition="only with a card chosen by name",
    ),
    Field(
        "sequence_length",
        WholeNumber(1, MAX_CUSTOM_SEQUENCE_LENGTH, "tokens", model_caps=True),
        "Sequence length",
        "Tokens in one row of a batch, padding included.",
        "batch",
    ),
    Field(
        "micro_batch",
        WholeNumber(1, 1_024, "sequences"),
        "Micro-batch per GPU",
        "Sequences in one forward pass, or pairs for DPO and reward models: per_device_train_batch_size.",
        "batch",
    ),
    Field(
        "gradient_accumulation_steps",
        WholeNumber(1, 1_024, "steps"),
        "Gradient accumulation steps",
        "Micro-batches per optimizer update. Gradients stay from one to the next.",
        "advanced",
    ),
    Field(
        "trainable_precision",
        Choice(
            (
                AS_THE_STACK,
                Option("mixed-bf16", "Mixed BF16", "FP32 master weights and gradients"),
                Option("pure-bf16", "Pure BF16", "BF16 gradients, no master weights"),
            )
        ),
        "Trainable precision",
        "Which copies exist of each trained weight and its gradient.",
        "advanced",
        applies=with_a_choice_of_precision,
        governed_by="method",
        condition="not with accounting=unsloth or method=pretraining",
        kept=True,
    ),
    Field(
        "optimizer",
        Choice(
            (
                Option("adamw", "AdamW", "as the stack implements it"),
                Option("adamw-foreach", "AdamW, foreach", "adamw_torch"),
                Option("adamw-fused", "AdamW, fused", "adamw_torch_fused"),
                Option("adamw-fp32-states", "AdamW, FP32 states", "bitsandbytes 32-bit, also on BF16 weights"),
                Option("adamw-8bit", "8-bit AdamW", "8-bit moments"),
                Option("paged-adamw-32bit", "Paged AdamW, 32-bit", "moments may leave the GPU"),
                Option("paged-adamw-8bit", "Paged AdamW, 8-bit", "moments may leave the GPU"),
                Option("adafactor", "Adafactor", "row and column moments"),
                Option("sgd", "SGD", "no states"),
                Option("sgd-momentum", "SGD with momentum", "one state"),
                Option("lion", "Lion", "one FP32 state"),
            )
        ),
        "Optimizer",
        "Which states are kept for each trained weight.",
        "advanced",
    ),
    _step_field(
        "optimizer_step",
        Choice(
            (
                AS_THE_STACK,
                Option("after", "After the backward pass", "all gradients are kept until then"),
                Option("in-backward", "During the backward pass", "each gradient is used and freed at once"),
            )
        ),
        "Optimizer steps",
        "optimizer_in_bwd: True steps each parameter as soon as it has its gradient; it needs accumulation 1.",
        "advanced",
    ),
    _step_field(
        "loss",
        Choice(
            (
                AS_THE_STACK,
                Option("logits", "Logits kept", "the model’s own cross-entropy"),
                Option("triton", "Triton, in place", "logits kept, gradient written over them"),
                Option("fused-linear", "Fused linear (Liger)", "use_liger_kernel, its loss alone"),
                Option("chunked", "Chunked", "TRL chunked_nll: 256 tokens at a time"),
                Option("tiled", "Tiled", "TRL from 1.15: tiles of the scores"),
                Option("split", "Split", "LitGPT, torchtune: a list of chunks of logits"),
                Option("unsloth", "Fused linear (Unsloth)", "rows at a time, of labelled tokens"),
                Option("cut", "Cut cross-entropy", "no scores outside the kernel"),
            )
        ),
        "Loss",
        "How cross-entropy is computed; often the peak.",
        "memory",
        with_cross_entropy,
        "only with accounting=step and another objective than reward",
        "objective",
    ),
    _step_field(
        "layer_kernels",
        Choice(
            (
                AS_THE_STACK,
                Option("plain", "The model’s own", "norms and MLP as transformers writes them"),
                Option("liger", "Liger", "use_liger_kernel: RMSNorm, SwiGLU or GeGLU, and rotary positions"),
            )
        ),
        "Kernels of the layers",
        "Liger’s keep less of each layer for the backward pass; its loss is a setting of its own.",
        "memory",
    ),
    Field(
        "checkpointing",
        Choice(
            (
                Option("full", "On", "keep layer inputs, recompute the rest"),
                Option("offloaded", "On, offloaded", "layer inputs wait in host memory"),
                Option("none", "Off", "keep everything"),
            )
        ),
        "Gradient checkpointing",
        "Saves activations at the price of a second forward pass.",
        "memory",
    ),
    Field(
        "attention_kernel",
        Choice(
            (
                Option("efficient", "Memory-efficient", "FlashAttention, SDPA: no score matrix is stored"),
                Option("efficient-repeated", "Efficient, heads repeated", "SDPA before Ampere, or with a mask"),
                Option("eager", "Eager", "stores scores for every pair of tokens"),
            )
        ),
        "Attention kernel",
        "What the run really uses, not what was asked for.",
        "memory",
        applies=with_a_kernel,
        governed_by="accounting",
        condition="not with accounting=unsloth and unsloth_revision=2026-03",
        kept=True,
    ),
    _step_field(
        "checkpoint_kind",
        Choice(
            (
                AS_THE_STACK,
                Option("non-reentrant", "Non-reentrant", "newer"),
                Option("reentrant", "Reentrant", "older"),
            )
        ),
        "Kind of checkpointing",
        "use_reentrant: True is the reentrant form, which runs a layer to its end again.",
        "advanced",
    ),
    _step_field(
        "autocast",
        Choice((AS_THE_STACK, Option("on", "On", "bf16=True or fp16=True"), Option("off", "Off", "types as loaded"))),
        "Autocast",
        "Whether products run in 16 bits whatever the type of their inputs.",
        "advanced",
        with_sharding,
        "only with accounting=step or accounting=rules",
    ),
    _step_field(
        "torch_compile",
        Choice((Option("off", "Off"), Option("on", "On", "compile: True, layers and loss"))),
        "torch.compile",
        "Counted for torchtune alone: what was several operations keeps its inputs, and the loss no float32 scores.",
        "advanced",
    ),
    _step_field(
        "half_precision",
        Choice((Option("bf16", "BF16"), Option("fp16", "FP16"))),
        "16-bit type",
        "FP16 on cards before Ampere; only eager attention differs.",
        "advanced",
    ),
    Field(
        "activation_multiplier",
        ExactDecimal("0.25", "4"),
        "Activation multiplier",
        "Scales saved and active activations, not the logits. Set it from a measured run.",
        "advanced",
        applies=planning,
        governed_by="accounting",
        condition="only with accounting=planning",
        kept=True,
    ),
    Field(
        "extra_allowance",
        ExactDecimal("0", "128", "GiB"),
        "Extra allowance",
        f"On top of the fixed {FIXED_ALLOWANCE_BYTES // GIB} GiB, for whatever else your measured runs show.",
        "advanced",
        applies=planning,
        governed_by="accounting",
        condition="only with accounting=planning",
        kept=True,
    ),
    Field(
        "floor_fraction",
        ExactDecimal("0", "1"),
        "Floor of gradients and activations",
        "The least they are taken to be, as a share of the weights. Unsloth Studio’s text says 0.15; its table is made with 0.20.",
        "advanced",
        applies=counting_as_unsloth,
        governed_by="accounting",
        condition="only with accounting=unsloth",
        kept=True,
    ),
    _step_field("measured", Measured(), "Your own run", "What was measured of a run with these settings: amounts in bytes.", "advanced"),
)

ABOUT_THE_MODEL_OR_THE_CARD = ("accounting", "task", "served_weights", "kv_cache", "gpu", "budget", "budget_unit", "other_processes", "sequence_length", "micro_batch")
"""Settings outside the section of the model that a model has also while it answers; the others are about training alone."""


def _for_its_task(field: Field) -> Field:
    """The field as it is, or hidden while the model answers."""
    if field.section == "model" or field.name in ABOUT_THE_MODEL_OR_THE_CARD:
        return field
    condition = field.condition or "not with task=inference"
    return replace(field, applies=while_training(field.applies), governed_by=field.governed_by or "task", condition=condition, kept=True)


FIELDS: tuple[Field, ...] = tuple(map(_for_its_task, _TABLE))

BY_NAME = {field.name: field for field in FIELDS}


def applying(values: Mapping[str, object]) -> set[str]:
    """Names of the fields that apply, given the values chosen."""
    return {field.name for field in FIELDS if field.applies(values)}


def label_of(name: str, value: str) -> str:
    """What one choice of a setting is called."""
    return next(option.label for option in BY_NAME[name].kind.options if option.value == value)
