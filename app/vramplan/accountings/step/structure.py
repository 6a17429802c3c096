"""What decides which tensors a training step has, apart from how many tokens go through it."""

from dataclasses import dataclass

from vramplan.architecture import DELTA_NET, NO_MIXER, Architecture

HALF, SINGLE = 2, 4
"""Bytes per value of the 16-bit types, and of float32 (IEEE 754)."""

TRANSFORMERS, LITGPT, TORCHTUNE = "transformers", "litgpt", "torchtune"
"""Whose model code runs."""

TORCHAO_EXPANDING_BYTES = 14
"""Bytes per weight while torchao expands NF4: two halves of int64 indices (8 together), looked up (2) and scaled (2) in 16 bits,
and put together (2). Source: torchao 0.9.0, dtypes/nf4tensor.py, NF4Tensor.get_original_weight."""


CONVOLUTION_PARTS = 3
"""Parts of hidden_size that a short convolution's first map gives. Source: transformers 5.24.0, models/lfm2/modeling_lfm2.py,
Lfm2ShortConv.__init__."""


DELTA_MAPS = ("in", "gate in", "rate in", "decay in")
"""Maps into a gated delta net; an adapter on the maps in is on all of them. Source: transformers 5.24.0, models/qwen3_5/modeling_qwen3_5.py,
Qwen3_5GatedDeltaNet (in_proj_qkv, in_proj_z, in_proj_b, in_proj_a)."""


@dataclass(frozen=True)
class Sharding:
    """How the states of a run are divided over GPUs.

    ways: GPUs that one copy's states are divided over. offload: what is kept in host memory. Sizes: bytes per value of the
    parameters where they are kept; those of the structure are what its layers compute with. loaded_size: those of the checkpoint
    when it is loaded.
    """

    kind: str
    ways: int
    offload: str
    weight_size: int
    norm_size: int
    embedding_size: int
    head_size: int
    adapter_size: int
    loaded_size: int

    @property
    def is_zero(self) -> bool:
        """Whether DeepSpeed's ZeRO divides the states."""
        return self.kind.startswith("zero")

    @property
    def is_fsdp(self) -> bool:
        """Whether either form of FSDP divides the states."""
        return self.kind.startswith("fsdp")

    @property
    def divides(self) -> bool:
        """Whether anything is divided."""
        return self.is_zero or self.is_fsdp

    @property
    def divides_weights(self) -> bool:
        """Whether a GPU keeps a part of the weights only."""
        return self.is_fsdp or self.kind == "zero3"


UNDIVIDED = Sharding("none", 1, "none", 0, 0, 0, 0, 0, 0)
"""One GPU, or several that know nothing of each other's states."""


@dataclass(frozen=True)
class Structure:
    """Every choice of one run that shapes its step. Sizes are bytes per value.

    weight_size: linear weights (of the base model under adapters). norm_size, embedding_size, head_size: those weights.
    quantization: empty, or how the layers' linear weights are stored. compute_is_fp16: the 16-bit type is float16.
    targets: linear maps with an adapter; expert_targets: maps of experts with one.
    masked: attention gets a mask. one_row: the micro-batch is one sequence, where that
    matters: scores are shifted, or attention is latent. keys_in_blocks: the memory-efficient kernel
    adds up the gradients of blocks of keys. sorts_embedding: enough tokens
    for the embedding's backward to sort them first. loss_rows: tokens of one chunk of the loss, where it has chunks; loss_columns: entries of the
    vocabulary of one tile, 0 for all. offload: empty, or how checkpoints wait in host memory.
    model_code: whose model code runs. quantized_linear: whose quantised linear map. quantized_head: the output head is quantised too. lingers:
    variables of the training loop keep what the micro-batch before has left until the new loss is there. steps_in_backward: the
    optimizer steps each parameter as soon as it has its gradient, which is freed then. compiled: torch.compile has made one kernel of what lies between two matrix products.
    one_chunk: layers go through a row in chunks, and one chunk is the whole of it. head_width: what the head gives for a token. pairs: rows come in pairs. reference: what DPO compares with, else nothing.
    """

    shape: Architecture
    trains_base: bool
    weight_size: int
    norm_size: int
    embedding_size: int
    head_size: int
    autocast: bool
    adapter_size: int
    targets: frozenset[str]
    expert_targets: frozenset[str]
    rank: int
    dropout: bool
    quantization: str
    compute_is_fp16: bool
    attention: str
    masked: bool
    one_row: bool
    keys_in_blocks: bool
    sorts_embedding: bool
    checkpointing: bool
    reentrant: bool
    offload: str
    norm_kernel: str
    mlp_kernel: str
    adapter_kernel: str
    loss: str
    loss_rows: int
    loss_columns: int
    outputs_kept: bool
    head_width: int
    pairs: bool
    reference: str
    optimizer: str
    accumulates: bool
    sharding: Sharding
    model_code: str
    quantized_linear: str
    quantized_head: bool
    lingers: bool
    steps_in_backward: bool
    compiled: bool
    one_chunk: bool

    @property
    def mixes(self) -> bool:
        """Whether layers have something else in place of attention. Of a model that has both kinds, ask each kind."""
        return self.shape.mixer != NO_MIXER

    @property
    def projection_sizes(self) -> dict[str, tuple[int, int]]:
        """(in, out) widths of every linear map of a layer."""
        shape = self.shape
        hidden, query, kv, inner = shape.hidden_size, shape.query_width, shape.kv_width, self.mlp_width
        if shape.mixer == DELTA_NET:
            sizes = self._delta_sizes
        elif self.mixes:
            sizes = {"in": (hidden, CONVOLUTION_PARTS * hidden), "out": (hidden, hidden)}
        elif shape.kv_lora_rank:
            sizes = self._latent_sizes
        else:
            sizes = {"q": (hidden, query), "k": (hidden, kv), "v": (hidden, kv), "o": (query, hidden)}
        if shape.attention_gate and "q" in sizes:
            sizes["q"] = (hidden, 2 * query)
        if not inner:
            return sizes
        gate = {} if shape.plain_mlp else {"gate": (hidden, inner)}
        shared = {"shared gate": (hidden, 1)} if shape.num_experts and shape.shared_expert_gate else {}
        return sizes | gate | {"up": (hidden, inner), "down": (inner, hidden)} | shared

    @property
    def _delta_sizes(self) -> dict[str, tuple[int, int]]:
        """(in, out) widths of the maps of a gated delta net. Source: transformers 5.24.0, models/qwen3_5/modeling_qwen3_5.py,
        Qwen3_5GatedDeltaNet.__init__."""
        shape = self.shape
        hidden, keys, values, heads = shape.hidden_size, shape.mixer_key_width, shape.mixer_value_width, shape.mixer_value_heads
        into = dict(zip(DELTA_MAPS, (2 * keys + values, values, heads, heads), strict=True))
        return {name: (hidden, width) for name, width in into.items()} | {"out": (values, hidden)}

    @property
    def _latent_sizes(self) -> dict[str, tuple[int, int]]:
        """(in, out) widths of the maps of latent attention.

        Source: transformers 5.24.0, models/deepseek_v3/modeling_deepseek_v3.py, DeepseekV3Attention.__init__.
        """
        shape = self.shape
        hidden, query, rank, latent = shape.hidden_size, shape.query_width, shape.q_lora_rank, shape.kv_lora_rank
        queries = {"q_a": (hidden, rank), "q_b": (rank, query)} if rank else {"q": (hidden, query)}
        keys_and_values = shape.num_attention_heads * (shape.qk_nope_head_dim + shape.v_head_dim)
        narrow = {"kv_a": (hidden, latent + shape.qk_rope_head_dim), "kv_b": (latent, keys_and_values)}
        return queries | narrow | {"o": (shape.attended_width, hidden)}

    @property
    def mlp_width(self) -> int:
        """Inner width of the MLP that every token goes through: beside experts that of the shared ones, 0 without."""
        return self.shape.shared_expert_intermediate_size if self.shape.num_experts else self.shape.intermediate_size

    @property
    def biased_maps(self) -> tuple[str, ...]:
        """The linear maps of a layer that have a bias, if it has them."""
        shape = self.shape
        parts = (("q", "k", "v"), shape.query_biases), (("o",), shape.output_biases), (("gate", "up", "down"), shape.mlp_biases)
        return tuple(name for names, has in parts if has for name in names)

    @property
    def expert_maps(self) -> dict[str, tuple[int, int]]:
        """(in, out) widths of an expert's maps."""
        hidden, inner = self.shape.hidden_size, self.shape.expert_intermediate_size
        return {"gate and up": (hidden, 2 * inner), "down": (inner, hidden)}

    def expert_adapter(self, name: str) -> tuple[tuple[int, int], tuple[int, int]]:
        """Shapes of the pair A (r E, in) and B (out, r E) on a map of all experts; gate and up in one have twice the rank.

        Source: peft 0.21.2, tuners/lora/layer.py, ParamWrapper.update_layer; utils/transformers_weight_conversion.py,
        _convert_peft_config_moe.
        """
        width_in, width_out = self.expert_maps[name]
        rank = self.shape.num_experts * self.rank * (2 if name == "gate and up" else 1)
        return (rank, width_in), (width_out, rank)

    @property
    def keeps_quantized_inputs(self) -> bool:
        """Whether a quantised linear map keeps its input. Source: bitsandbytes 0.42.0, autograd/_functions.py, MatMul4Bit."""
        return self.quantized_linear.endswith("0.42")

    @property
    def keeps_inputs(self) -> bool:
        """Whether a linear map keeps its input as an attribute, which checkpointing cannot drop: those in 8 bits do, and old ones in 4."""
        return self.quantization == "int8" or self.keeps_quantized_inputs

    def expanded_bytes(self, values: int) -> int:
        """Bytes of a quantised weight while it is expanded. Where it was quantised from float16, it becomes that first, and then
        the type it is multiplied in.

        Source: lightning 2.6.6, fabric/plugins/precision/bitsandbytes.py, _Linear4bit.quantize; bitsandbytes 0.42.0,
        autograd/_functions.py, MatMul4Bit: dequantize_4bit(...).to(A.dtype).
        """
        if self.quantized_linear == "torchao" and not self.compiled:
            return TORCHAO_EXPANDING_BYTES * values
        through_float16 = self.quantized_linear.startswith("lightning") and not self.compute_is_fp16
        return (2 if through_float16 else 1) * HALF * values

    @property
    def fuses_heads(self) -> bool:
        """Whether query, key and value are one map: in LitGPT always, source: litgpt 0.4.0, model.py, CausalSelfAttention."""
        return self.model_code == LITGPT or (self.model_code == TRANSFORMERS and self.shape.fused_projections)

    @property
    def fuses_gate_up(self) -> bool:
        """Whether gate and up are one map."""
        fused = self.shape.fused_projections or self.shape.fused_gate_up
        return fused and self.model_code == TRANSFORMERS and not self.shape.plain_mlp

    def adapter_sizes(self, names: tuple[str, ...]) -> tuple[int, int, int]:
        """(in, inner, out) of the adapter on one linear map; inner is the rank once for every part that LitGPT adapts.

        Source: peft 0.21.2, tuners/lora/layer.py; litgpt 0.4.0, lora.py, LoRAQKVLinear.
        """
        sizes, inner = self.projection_sizes, self.rank
        if self.adapter_kernel == LITGPT:
            names = tuple(name for name in names if name in self.targets)
            inner *= len(names)
        return sizes[names[0]][0], inner, sum(sizes[name][1] for name in names)

    @property
    def projection_groups(self) -> tuple[tuple[str, ...], ...]:
        """The linear maps of a layer in the order of its forward pass; those that are one map together."""
        if self.shape.kv_lora_rank:
            heads = tuple((name,) for name in self._latent_sizes if name != "o")
        else:
            heads = (("q", "k", "v"),) if self.fuses_heads else (("q",), ("k",), ("v",))
        into = DELTA_MAPS if self.shape.mixer == DELTA_NET else ("in",)
        mixer = (*((name,) for name in into), ("out",)) if self.mixes else (*heads, ("o",))
        inner = (("gate", "up"),) if self.fuses_gate_up else (("up",),) if self.shape.plain_mlp else (("gate",), ("up",))
        return (*mixer, *inner, ("down",)) if self.mlp_width else mixer
