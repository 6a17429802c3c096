"""Real transformers models of real dimensions, with fake weights on the imaginary CUDA device."""

import tomllib
from pathlib import Path

import torch
from transformers import AutoConfig, AutoModelForCausalLM, AutoModelForSequenceClassification, PreTrainedModel
from transformers.initialization import no_init_weights
from transformers.models.falcon.modeling_falcon import FalconAttention

SHAPES = tomllib.loads(Path(__file__).with_name("shapes.toml").read_text())
DTYPES = {"bf16": torch.bfloat16, "fp32": torch.float32}
ACTIVATIONS = {"silu": "silu", "gelu": "gelu_pytorch_tanh"}
ATTENTION = {"flash": "sdpa", "expanded": "sdpa", "eager": "eager"}
LONGEST_SEQUENCE = 131072


def config_options(shape: dict) -> dict:
    """Constructor arguments of the model's configuration class."""
    activation = ACTIVATIONS[shape.get("activation", "silu")]
    options = {
        "vocab_size": shape["vocab_size"],
        "hidden_size": shape["hidden_size"],
        "intermediate_size": shape["intermediate_size"],
        "num_hidden_layers": shape["num_layers"],
        "num_attention_heads": shape["num_attention_heads"],
        "num_key_value_heads": shape["num_kv_heads"],
        "head_dim": shape["head_dim"],
        "tie_word_embeddings": shape["tied_embeddings"],
        "hidden_act": activation,
        "hidden_activation": activation,
        "max_position_embeddings": LONGEST_SEQUENCE,
        "sliding_window": shape.get("sliding_window"),
        "pad_token_id": None,
    }
    options |= trait_options(shape) | {name: None if value == "none" else value for name, value in shape.get("options", {}).items()}
    return {name: value for name, value in options.items() if name not in shape.get("derived", ())}


def trait_options(shape: dict) -> dict:
    """Arguments that only some architectures have."""
    options: dict = {}
    if shape["model_type"] == "phi3":
        options["original_max_position_embeddings"] = LONGEST_SEQUENCE
    if "partial_rotary_factor" in shape:
        options["partial_rotary_factor"] = shape["partial_rotary_factor"]
    if "attention_softcap" in shape:
        options["attn_logit_softcapping"] = shape["attention_softcap"]
        options["final_logit_softcapping"] = shape["logit_softcap"]
    multipliers = ("embedding_multiplier", "attention_multiplier", "residual_multiplier", "logits_scaling")
    return options | {name: shape[name] for name in multipliers if name in shape}


def split_heads(self, fused: torch.Tensor) -> tuple[torch.Tensor, ...]:
    """Falcon's query, key and value of one fused map, for one key head: a list as an index would become a real CUDA tensor.

    Source: transformers 5.24.0, models/falcon/modeling_falcon.py, FalconAttention._split_heads.
    """
    heads = fused.view(*fused.shape[:2], self.num_heads + 2, self.head_dim)
    one = torch.empty(1, dtype=torch.int64, device="cuda")
    return heads[..., :-2, :], heads[..., one, :], heads[..., one, :]


FalconAttention._split_heads = split_heads


def load_base_model(
    model: str, load_dtype: str, attention: str, num_layers: int | None = None, *, scores: bool = False
) -> PreTrainedModel:
    """The model as from_pretrained(dtype=...) leaves it, still without memory (device `meta`); `scores`: one score a row."""
    shape = SHAPES[model]
    options = config_options(shape)
    if num_layers:
        options["num_hidden_layers"] = num_layers
    config = AutoConfig.for_model(shape["model_type"], **options)
    config.use_cache = False
    if scores:
        config.num_labels, config.pad_token_id = 1, 0
    kind = AutoModelForSequenceClassification if scores else AutoModelForCausalLM
    with torch.device("meta"), no_init_weights():
        base = kind.from_config(config, dtype=DTYPES[load_dtype], attn_implementation=ATTENTION[attention])
    base.tie_weights()
    return base


def place_on_device(module: torch.nn.Module) -> None:
    """Give every parameter and buffer a fake twin on the device; shared ones stay one. Under FakeTensorMode."""
    twins: dict[int, torch.Tensor] = {}
    for child in module.modules():
        for name, parameter in list(child._parameters.items()):
            if parameter is not None:
                child._parameters[name] = twins.setdefault(id(parameter), twin(parameter))
        for name, buffer in list(child._buffers.items()):
            if buffer is not None:
                child._buffers[name] = twins.setdefault(id(buffer), blank(buffer))


def twin(parameter: torch.nn.Parameter) -> torch.nn.Parameter:
    copy = torch.nn.Parameter(blank(parameter), parameter.requires_grad)
    copy.__dict__.update(parameter.__dict__)
    return copy


def blank(tensor: torch.Tensor) -> torch.Tensor:
    return torch.empty(tensor.shape, dtype=tensor.dtype, device="cuda")
