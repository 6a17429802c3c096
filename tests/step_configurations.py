"""Random settings for the step accounting's oracle, as programs: settings that take the same path through a step, and differ in sizes.

Belongs here: data and its generation, as strings the way a person types them. Not here: formulas, assertions.

Covered: decoders of Llama's kind (grouped, single or equal key heads; tied or not; with or without query and key norms, biases on query,
key and value) on one GPU, two to four layers of them, trained on the next token by Transformers' Trainer 4.43 to 5; full training, LoRA and QLoRA in NF4;
every precision, autocast on or off; no checkpoints, reentrant ones or others; FlashAttention's kernel, the memory-efficient one, written-out scores; every
optimizer but Adafactor; one micro-batch or several.
Left out: float32 norms in a 16-bit quantised model (the first layer, whose input alone is in 16 bits, is counted like the others); one layer (a
frozen model's first layer is counted like the others when it goes backward); FlashAttention without autocast, which float32 rules out; Adafactor, 8-bit and GPTQ
bases; other stacks' kernels and losses; other kinds of layers, windows, experts; several GPUs.
"""

CHOICES = {
    "stack": ("trainer-5", "trainer-4.54", "trainer-4.49", "trainer-4.46", "trainer-4.45"),
    "method": ("full", "lora", "qlora"),
    "checkpointing": ("none", "full"),
    "checkpoint_kind": ("stack", "reentrant", "non-reentrant"),
    "attention_kernel": ("efficient", "efficient-repeated", "eager"),
    "num_layers": ("2", "3", "4"),
    "tied_embeddings": ("true", "false"),
    "query_key_norms": ("true", "false"),
    "query_biases": ("true", "false"),
    "adapter_targets": ("attention", "all-linear"),
    "lora_dropout": ("0", "0.1"),
    "quantization": ("nf4", "nf4-double"),
    "kbit_preparation": ("stack", "all", "none"),
    "trainable_precision": ("stack", "mixed-bf16", "pure-bf16"),
    "base_precision": ("stack", "bf16", "fp32"),
    "autocast": ("stack", "off"),
    "optimizer": ("adamw", "adamw-foreach", "adamw-fused", "adamw-fp32-states", "adamw-8bit", "paged-adamw-32bit", "paged-adamw-8bit", "sgd",
                  "sgd-momentum", "lion"),
    "gradient_accumulation_steps": ("1", "2", "8"),
}
"""What settles a program, with its options; and beside them how key heads are shared."""

KEY_HEADS = ("grouped", "single", "equal")

SIZES = {
    "head_dim": (32, 64, 80, 96, 128, 256),
    "hidden_size": range(64, 4_097, 32),
    "intermediate_size": range(64, 12_801, 32),
    "vocab_size": (512, 32_000, 50_304, 128_256),
    "rank": (1, 8, 16, 64),
    "micro_batch": (1, 1, 2, 3, 4, 8, 16, 64),
    "sequence_length": (128, 256, 512, 1_000, 2_048, 4_096),
}
"""Sizes that are drawn for each setting of a program."""

OF_A_MODEL = ("head_dim", "hidden_size", "intermediate_size", "vocab_size", "rank")


def program(generator):
    """The choices of one program, and how its key heads are shared."""
    chosen = {name: generator.choice(options) for name, options in CHOICES.items()}
    if chosen["attention_kernel"] == "efficient" and chosen["autocast"] == "off":
        chosen["attention_kernel"] = "efficient-repeated"
    shared = generator.choice(KEY_HEADS if chosen["attention_kernel"] != "eager" else ("grouped", "equal"))
    return chosen, shared


def settings_of(generator, chosen, shared, *, models, batches):
    """Settings of one program: some models, each in some batches."""
    found = []
    for _ in range(models):
        kv_heads = 1 if shared == "single" else generator.choice((2, 4, 8))
        heads = kv_heads * (1 if shared == "equal" else generator.choice((2, 3, 4)))
        sizes = {name: generator.choice(SIZES[name]) for name in OF_A_MODEL} | {"num_kv_heads": kv_heads, "num_attention_heads": heads}
        for _ in range(batches):
            batch = {name: generator.choice(SIZES[name]) for name in ("micro_batch", "sequence_length")}
            numbers = {name: str(value) for name, value in (sizes | batch).items()}
            found.append({"accounting": "step", "model": "custom", **chosen, **numbers})
    return found
