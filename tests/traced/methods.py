"""What each method does to a loaded model: train everything, add adapters, or quantise and add adapters."""

import torch
from peft import LoraConfig, get_peft_model

from . import losses
from .configurations import Configuration
from .models import DTYPES, load_base_model
from .quantized import prepare, quantise

MODULES = {
    "q": "q_proj", "k": "k_proj", "v": "v_proj", "o": "o_proj", "gate": "gate_proj", "up": "up_proj",
    "down": "down_proj", "lm_head": "lm_head", "embed": "embed_tokens",
}  # fmt: skip
FUSED_MODULES = MODULES | dict.fromkeys(("q", "k", "v"), "qkv_proj") | dict.fromkeys(("gate", "up"), "gate_up_proj")


def load_model(configuration: Configuration, num_layers: int | None = None) -> torch.nn.Module:
    """The model ready for training, as a script with transformers and peft leaves it, still without memory."""
    model = load_base_model(configuration.model, configuration.load_dtype, configuration.attention, num_layers)
    losses.install(model, configuration.loss)
    if configuration.quantization:
        quantise(model, configuration.quantization)
        prepare(model, configuration.kbit_preparation)
    if configuration.method != "full":
        model = add_adapters(model, configuration)
    return model


def add_adapters(model: torch.nn.Module, configuration: Configuration) -> torch.nn.Module:
    """peft's LoRA: adapters in fp32 (peft's default, autocast_adapter_dtype) or in the base weights' dtype."""
    names = FUSED_MODULES if model.config.model_type == "phi3" else MODULES
    lora = LoraConfig(
        r=configuration.rank,
        lora_alpha=2 * configuration.rank,
        lora_dropout=configuration.lora_dropout,
        target_modules=sorted({names[target] for target in configuration.targets.split(",")}),
        task_type="CAUSAL_LM",
    )
    model = get_peft_model(model, lora)
    for name, parameter in model.named_parameters():
        if "lora_" in name:
            parameter.data = parameter.data.to(DTYPES[configuration.adapter_dtype])
    return model
