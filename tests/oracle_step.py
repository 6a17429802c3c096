"""A second, independent count of the step accounting: the training step run, tensor by tensor, on a framework without values.

The functions below are the forward passes of the libraries as they are written there, with the variables they have, run by
`eager.py`, which knows what each operation keeps and in which order autograd goes back. Of the package under test only `policy` is
read: what a stack does where nobody says. Sizes are arrays, with an entry for each of many models and batches that take the same path.

As the accounting has it: token ids, labels and rotary tables are there for the whole step; every row of a shifted tensor counts; a token is new to the
embedding's backward; scales of 4-bit weights are not there twice while these are expanded; biases are not copied by autocast.

Sources: transformers 5.24.0, models/llama/modeling_llama.py, integrations/sdpa_attention.py, loss/loss_utils.py, trainer.py;
peft 0.21.2, tuners/lora/layer.py and bnb.py; bitsandbytes 0.50.2, nn/modules.py, autograd/_functions.py, functional.py,
optim/optimizer.py; accelerate 1.15.0, accelerator.py, utils/operations.py; torch 2.13.0.
"""

from dataclasses import dataclass

import numpy as np

from eager import HALF, SINGLE, Machine, Parameter, call
from vramplan.policy import policy

ATTENTION, MLP = ("q", "k", "v", "o"), ("gate", "up", "down")
BYTES = {"bf16": HALF, "fp32": SINGLE}
IDS_AND_LABELS = 8 + 8  # int64
CUBLAS = 2 * (4_096 * 1_024 * 2 + 16 * 1_024 * 8)  # two handles' workspace
SORTED_FROM = 3_072  # more tokens than this are sorted by the embedding's backward


@dataclass
class Run:
    """One way through a training step: the sizes of many models and batches, in arrays, and the choices they share.

    Sizes in bytes per value: weight_size of linear maps, norm_size, rest_size of embedding and head, adapter_size.
    """

    tokens: np.ndarray
    rows: np.ndarray
    length: np.ndarray
    hidden: np.ndarray
    heads: np.ndarray
    kv_heads: np.ndarray
    head_dim: np.ndarray
    inner: np.ndarray
    vocab: np.ndarray
    rank: np.ndarray
    layers: int
    tied: bool
    query_key_norms: bool
    query_biases: bool
    method: str
    autocast: bool
    weight_size: int
    norm_size: int
    rest_size: int
    adapter_size: int
    targets: tuple
    dropout: bool
    quantization: str
    checkpointing: str
    attention: str
    loss_release: str
    optimizer: str
    accumulates: bool


def run_of(settings):
    """The run of settings that take the same path. What a stack does where nobody says is a fact, read from the package's data."""
    first, chosen = settings[0], policy(settings[0])
    shapes = [each.architecture for each in settings]

    def column(values):
        return np.array(values, np.int64)

    def dimension(name):
        return column([getattr(shape, name) for shape in shapes])

    adapters, quantized = first.method != "full", first.method == "qlora"
    base = BYTES[chosen.base_precision]
    rest = SINGLE if quantized and chosen.kbit_preparation == "all" else base
    return Run(
        tokens=column([each.micro_batch * each.sequence_length for each in settings]),
        rows=column([each.micro_batch for each in settings]),
        length=column([each.sequence_length for each in settings]),
        hidden=dimension("hidden_size"),
        heads=dimension("num_attention_heads"),
        kv_heads=dimension("num_kv_heads"),
        head_dim=dimension("head_dim"),
        inner=dimension("intermediate_size"),
        vocab=dimension("vocab_size"),
        rank=column([each.rank if adapters else 0 for each in settings]),
        layers=shapes[0].num_layers,
        tied=shapes[0].tied_embeddings,
        query_key_norms=shapes[0].query_key_norms,
        query_biases=shapes[0].query_biases,
        method=first.method,
        autocast=chosen.autocast,
        weight_size=base,
        norm_size=rest,
        rest_size=rest,
        adapter_size=BYTES[chosen.adapter_precision],
        targets={"attention": ATTENTION, "all-linear": ATTENTION + MLP}[first.adapter_targets] if adapters else (),
        dropout=adapters and first.lora_dropout > 0,
        quantization=first.quantization if quantized else "",
        checkpointing="none" if first.checkpointing == "none" else "reentrant" if chosen.reentrant else "non-reentrant",
        attention=first.attention_kernel,
        loss_release=chosen.logits_release,
        optimizer=chosen.optimizer,
        accumulates=first.gradient_accumulation_steps > 1,
    )


def peaks(settings, *, left_over=False):
    """The peak of each of some settings that take the same path, in bytes; or what is still in use after the step beside what stays for the run."""
    run = run_of(settings)
    machine = Machine(len(settings))
    stays = training_step(run, machine)
    return [int(size) for size in (machine.memory.now - stays if left_over else machine.memory.peak())]


class Model:
    """The parameters of one model, and its forward pass."""

    def __init__(self, run, machine):
        self.run, self.m = run, machine
        self.parameters, self.packed, self.mask = [], [], None
        trained, hidden = run.method == "full", run.hidden
        query, kv = run.heads * run.head_dim, run.kv_heads * run.head_dim
        self.query, self.kv = run.tokens * query, run.tokens * kv
        self.embedding = self.parameter(run.vocab, hidden, run.rest_size, trained)
        self.head = self.embedding if run.tied else self.parameter(run.vocab, hidden, run.rest_size, trained)
        self.final_norm = self.parameter(hidden, 1, run.norm_size, trained)
        self.layers = []
        shapes = {"q": (query, hidden), "k": (kv, hidden), "v": (kv, hidden), "o": (hidden, query)}
        shapes |= {"gate": (run.inner, hidden), "up": (run.inner, hidden), "down": (hidden, run.inner)}
        for _ in range(run.layers):
            layer = {name: self.linear(name, *shape, trained) for name, shape in shapes.items()}
            for name in ("input_layernorm", "post_attention_layernorm"):
                layer[name] = self.parameter(hidden, 1, run.norm_size, trained)
            if run.query_key_norms:
                layer |= {name: self.parameter(run.head_dim, 1, run.norm_size, trained) for name in ("q_norm", "k_norm")}
            self.layers.append(layer)
        machine.memory.take(sum(each.values * each.itemsize for each in self.parameters) + sum(self.packed))

    def parameter(self, rows, columns, itemsize, trained):
        made = Parameter(rows, columns, itemsize, trained)
        self.parameters.append(made)
        return made

    def linear(self, name, out, into, trained):
        """A linear map with its bias and the adapter it may have."""
        run = self.run
        found = {"out": out, "into": into}
        if run.quantization:
            self.packed.append(packed_bytes(run.quantization, out * into))
            found["weight"] = None
        else:
            found["weight"] = self.parameter(out, into, run.weight_size, trained)
        if run.query_biases and name in ("q", "k", "v"):
            found["bias"] = self.parameter(out, 1, run.rest_size, trained)
        if name in run.targets:
            found["A"] = self.parameter(run.rank, into, run.adapter_size, True)
            found["B"] = self.parameter(out, run.rank, run.adapter_size, True)
        return found

    @property
    def trained(self):
        return [each for each in self.parameters if each.node]

    # transformers, models/llama/modeling_llama.py

    def rms_norm(self, hidden_states, weight, rows):
        m, input_size = self.m, hidden_states.itemsize
        hidden_states = m.to(hidden_states, SINGLE)
        inverse = m.inverse_root_of_mean(m.square(hidden_states), rows)
        hidden_states = m.multiply_rows(hidden_states, inverse)
        return m.multiply_weight(weight, m.to(hidden_states, input_size))

    def base_linear(self, x, layer):
        if layer["weight"] is None:
            return linear4bit(self.m, x, layer, self.run)
        return self.m.linear(x, layer["weight"], self.run.tokens, layer.get("bias"))

    def projection(self, x, layer):
        """A linear map, under its adapter if it has one: peft's Linear.forward, and Linear4bit.forward over packed weights."""
        if "A" not in layer:
            return call(self.base_linear, x, layer)
        m, run = self.m, self.run
        result = call(self.base_linear, x, layer)
        size = result.itemsize
        converts = not run.quantization or not m.autocast
        if run.quantization:
            result = m.copy(result)
        if converts:
            x = m.to(x, run.adapter_size)
        output = m.scale(call(self.low_rank, call(self.low_rank, call(self.drop, x), layer["A"]), layer["B"]))
        if run.quantization:
            if converts:
                output = m.to(output, size)
            return m.add(result, output)
        result = m.add(result, output)
        del output
        return m.to(result, size)

    def drop(self, x):
        return self.m.dropout(x) if self.run.dropout else x

    def low_rank(self, x, weight):
        return self.m.linear(x, weight, self.run.tokens)

    def rotary(self, q, k):
        m, size = self.m, self.residual_size
        q_embed = m.add(m.times_table(q, size), m.times_table(m.rotate_half(q), size))
        k_embed = m.add(m.times_table(k, size), m.times_table(m.rotate_half(k), size))
        return q_embed, k_embed

    def self_attention(self, hidden_states, layer):
        m, run = self.m, self.run
        query_states = call(self.projection, hidden_states, layer["q"])
        key_states = call(self.projection, hidden_states, layer["k"])
        value_states = call(self.projection, hidden_states, layer["v"])
        if run.query_key_norms:
            query_states = call(self.rms_norm, query_states, layer["q_norm"], run.tokens * run.heads)
            key_states = call(self.rms_norm, key_states, layer["k_norm"], run.tokens * run.kv_heads)
        query_states, key_states = self.rotary(query_states, key_states)
        attention = self.eager_attention if run.attention == "eager" else self.sdpa
        attn_output = attention(query_states, key_states, value_states)
        return call(self.projection, attn_output, layer["o"])

    def repeat_kv(self, x):
        """A single head is only shown for every other: the reshape of an expanded tensor copies where its dimensions do not merge."""
        run = self.run
        if np.array_equal(run.kv_heads, run.heads):
            return x
        return self.m.expand(x, self.query) if np.all(run.kv_heads == 1) else self.m.repeat(x, self.query)

    def sdpa(self, query, key, value):
        """integrations/sdpa_attention.py, with the kernel's workspace: flash_api.cpp, mha_bwd; kernel_backward.h, workspace_size."""
        m, run = self.m, self.run
        if run.attention == "efficient-repeated":
            key, value = self.repeat_kv(key), self.repeat_kv(value)
        size = HALF if m.autocast else query.itemsize
        heads, width = run.tokens * run.heads, run.head_dim
        if run.attention == "efficient":
            rounded = -(-width // 32) * 32
            expanded = np.where(run.kv_heads != run.heads, 2 * HALF * heads * width, 0)
            workspace = SINGLE * heads * (rounded + 1) + expanded
        else:
            columns = np.where((width > 64) & (width <= 128), 128, 64)
            workspace = SINGLE * heads * (-(-width // columns) * columns + 1)
        return m.attention(m.to(query, size), m.to(key, size), m.to(value, size), sums=heads, workspace=workspace)

    def eager_attention(self, query, key, value):
        m, run = self.m, self.run
        scores = run.tokens * run.length * run.heads
        key_states, value_states = self.repeat_kv(key), self.repeat_kv(value)
        attn_weights = m.scale(self.matmul(query, key_states, scores))
        attn_weights = m.copy(attn_weights)  # + attention_mask
        attn_weights = m.to(m.softmax(m.to(attn_weights, SINGLE)), query.itemsize)
        attn_output = self.matmul(attn_weights, value_states, self.query)
        return m.copy(attn_output)

    def matmul(self, a, b, values):
        m = self.m
        if m.autocast:
            a, b = m.to(a, HALF), m.to(b, HALF)
        return m.products(a, b, values)

    def mlp(self, x, layer):
        m = self.m
        return call(self.projection, m.multiply(call(m.activate, call(self.projection, x, layer["gate"])), call(self.projection, x, layer["up"])), layer["down"])

    def decoder_layer(self, hidden_states, layer):
        m, rows = self.m, self.run.tokens
        residual = hidden_states
        hidden_states = call(self.rms_norm, hidden_states, layer["input_layernorm"], rows)
        hidden_states = call(self.self_attention, hidden_states, layer)
        hidden_states = m.add(residual, hidden_states)
        residual = hidden_states
        hidden_states = call(self.rms_norm, hidden_states, layer["post_attention_layernorm"], rows)
        hidden_states = call(self.mlp, hidden_states, layer)
        hidden_states = m.add(residual, hidden_states)
        return hidden_states

    def checkpointed(self, hidden_states, layer):
        kind, mask = self.run.checkpointing, self.mask
        if kind == "none":
            return self.decoder_layer(hidden_states, layer)

        def run_layer(argument, held=mask):  # a keyword argument of the checkpointed function, which keeps it
            return self.decoder_layer(argument, layer)

        return (self.m.checkpoint_reentrant if kind == "reentrant" else self.m.checkpoint)(run_layer, hidden_states)

    def decoder(self):
        run, m = self.run, self.m
        scratch = np.where(run.tokens > SORTED_FROM, run.tokens * (11 * SINGLE * run.hidden // 10), 0)
        inputs_embeds = m.embedding(self.embedding, run.tokens * run.hidden, scratch)
        if not self.embedding.node and run.checkpointing != "none":
            m.leaf(inputs_embeds)
        hidden_states = inputs_embeds
        self.mask = m.new(run.rows * run.length**2, HALF) if run.attention == "eager" else None
        for layer in self.layers:
            hidden_states = call(self.checkpointed, hidden_states, layer)
        self.mask = None
        m.memory.within("loss")
        hidden_states = call(self.rms_norm, hidden_states, self.final_norm, run.tokens)
        return hidden_states

    def for_causal_lm(self):
        hidden_states = self.decoder()
        logits = call(self.m.linear, hidden_states, self.head, self.run.tokens)
        if self.run.loss_release == "4.45":
            logits = self.m.to(logits, SINGLE)
        loss = self.causal_lm_loss(logits)
        return loss, logits

    def causal_lm_loss(self, logits):
        """transformers, loss/loss_utils.py, ForCausalLMLoss: from 4.49 the labels are shifted, up to 4.48 the logits; up to 4.45 in the model."""
        m, run = self.m, self.run
        logits = m.to(logits, SINGLE)
        if run.loss_release == "4.49":
            return m.nll(m.log_softmax(logits))
        shift_logits = m.contiguous(m.slice(logits), run.rows > 1)
        return m.nll(m.log_softmax(shift_logits))

    @property
    def residual_size(self):
        run = self.run
        normed = max(run.rest_size, run.norm_size)
        return normed if run.quantization else run.rest_size


def linear4bit(m, x, layer, run):
    """bitsandbytes, nn/modules.py, Linear4bit.forward: to the compute type, multiply, back."""
    input_size = x.itemsize
    x = m.to(x, HALF)
    return m.to(matmul_4bit(m, x, layer, run), input_size)


def matmul_4bit(m, x, layer, run):
    """autograd/_functions.py, MatMul4Bit: the expanded weight is there forward and backward, without the scales that are expanded first; what is
    kept is the packed weight, as an attribute, and no input."""
    values, into = layer["out"] * layer["into"], run.tokens * layer["into"]

    def back(came, kept):
        expanded = m.new(values, HALF)
        made = m.new(into, HALF)
        del expanded
        return [made]

    node = m.node(back, x)
    expanded = m.new(values, HALF)
    made = m.result(node, run.tokens * layer["out"], HALF)
    del expanded
    return made


def packed_bytes(quantization, values):
    """functional.py, quantize_4bit: half a byte per value, a scale for every 64, in 8 bits with a scale of their own for every 256. The last
    group of each is taken in part, and the sum rounded up."""
    sixteen_thousandths = {"nf4": 8_192 + 1_024, "nf4-double": 8_192 + 256 + 4}[quantization]
    return -(-values * sixteen_thousandths // 16_384)


def state_bytes(optimizer, weight, *, is_embedding):
    """Optimizer states of one parameter: torch, optim/adamw.py and sgd.py; bitsandbytes, optim/optimizer.py, init_state (8-bit states have a
    float32 scale for every 256, taken in part and rounded up; those of an embedding are in 32 bits), get_state_buffer (paged states are not
    on the device)."""
    values = weight.values
    if optimizer in ("adamw-fused", "adamw-foreach"):
        return 2 * weight.itemsize * values
    if optimizer in ("sgd", "sgd-momentum"):
        return values * (weight.itemsize if optimizer == "sgd-momentum" else 0)
    states = 1 if optimizer == "lion" else 2
    in_8_bits = (values >= 4_096) & (optimizer.endswith("8bit") and not is_embedding)
    paged = (values >= 100_000) & optimizer.startswith("paged")
    per_256 = np.where(paged, 0, np.where(in_8_bits, 256, 1_024)) + np.where(in_8_bits, SINGLE, 0)
    return -(-states * per_256 * values // 256)


def training_step(run, machine):
    """A step, with the optimizer states of the one before. Returns the bytes that stay for the whole run."""
    memory = machine.memory
    model = Model(run, machine)
    memory.take(CUBLAS)
    memory.take(run.tokens * IDS_AND_LABELS + run.length * 2 * run.head_dim * model.residual_size)
    memory.take(sum(state_bytes(run.optimizer, each, is_embedding=each is model.embedding) for each in model.trained))
    stays = memory.now.copy()
    for number in range(2 if run.accumulates else 1):
        micro_batch(model, ", later micro-batch" if number else "")
    memory.within("optimizer step")
    if run.optimizer == "adamw-foreach":  # the roots of all second moments at once
        roots = machine.new(sum(each.values * each.itemsize for each in model.trained), 1)
        del roots
    for each in model.trained:
        each.node.gradient = None
    return stays


def micro_batch(model, name):
    """trainer.py, training_step: the loss under autocast, then backward; the outputs are dropped before."""
    model.m.memory.within("forward" + name)
    model.m.backward(compute_loss(model))


def compute_loss(model):
    """The model's forward under autocast, and its outputs in float32: accelerate, utils/operations.py, convert_to_fp32."""
    m, run = model.m, model.run
    with m.under_autocast(run.autocast):
        loss, logits = model.for_causal_lm()
    if run.autocast:
        logits = m.to(logits, SINGLE)
    m.memory.within("backward")
    return loss
