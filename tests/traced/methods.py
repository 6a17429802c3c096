"""What each method does to a loaded model: train everything, add adapters, or quantise and add adapters."""

import torch
from peft import LoraConfig, get_peft_model

from . import layers, losses
from .configurations import Configuration
from .models import DTYPES, load_base_model
from .preferences import install_head
from .quantized import prepare, quantise

MODULES = {
    "q": "q_proj", "k": "k_proj", "v": "v_proj", "o": "o_proj", "gate": "gate_proj", "up": "up_proj",
    "down": "down_proj", "lm_head": "lm_head", "embed": "embed_tokens",
    "q_a": "q_a_proj", "q_b": "q_b_proj", "kv_a": "kv_a_proj_with_mqa", "kv_b": "kv_b_proj",
}  # fmt: skip
ONE_QKV = dict.fromkeys(("q", "k", "v"), "query_key_value")
GATE_AND_UP = dict.fromkeys(("gate", "up"), "gate_up_proj")
H_TO_4H = {"up": "dense_h_to_4h", "down": "dense_4h_to_h"}
OTHER_MODULES = {
    "phi3": dict.fromkeys(("q", "k", "v"), "qkv_proj") | GATE_AND_UP,
    "glm4": GATE_AND_UP,
    "gpt2": dict.fromkeys(("q", "k", "v"), "c_attn") | {"o": "attn.c_proj", "up": "c_fc", "down": "mlp.c_proj"},
    "gpt_neox": ONE_QKV | H_TO_4H | {"o": "attention.dense"},
    "bloom": ONE_QKV | H_TO_4H | {"o": "self_attention.dense"},
    "falcon": ONE_QKV | H_TO_4H | {"o": "self_attention.dense"},
    "gptj": {"o": "out_proj", "up": "fc_in", "down": "fc_out"},
    "opt": {"o": "out_proj", "up": "fc1", "down": "fc2"},
    "phi": {"o": "dense", "up": "fc1", "down": "fc2"},
    "starcoder2": {"up": "c_fc", "down": "c_proj"},
    "lfm2": {"o": "self_attn.out_proj", "gate": "w1", "up": "w3", "down": "w2", "in": "in_proj", "out": "conv.out_proj"},
    "qwen3_5_text": {"in": "in_proj_qkv in_proj_z in_proj_b in_proj_a", "out": "linear_attn.out_proj"},
    "mixtral": {"gate": "w1", "up": "w3", "down": "w2"},
}
"""What an architecture calls its linear maps where that is not Llama's word. A plain MLP has no gate."""


def load_model(configuration: Configuration, num_layers: int | None = None) -> torch.nn.Module:
    """The model ready for training, as a script with transformers and peft leaves it, still without memory."""
    model = load_base_model(
        configuration.model, configuration.load_dtype, configuration.attention, num_layers, scores=configuration.objective == "reward"
    )
    if configuration.objective == "dpo":
        install_head(model, configuration.loss)
    elif configuration.objective == "sft":
        losses.install(model, configuration.loss)
    layers.install(model, configuration.kernels)
    if configuration.quantization:
        quantise(model, configuration.quantization)
        prepare(model, configuration.kbit_preparation)
    if configuration.method != "full":
        model = add_adapters(model, configuration)
        layers.install_for_adapters(model, configuration.kernels)
    return model


def load_reference(configuration: Configuration, num_layers: int | None = None) -> torch.nn.Module | None:
    """The second model that DPO compares with, loaded as the first and never trained, where it is one of its own.

    Source: trl 1.16.0, trainer/dpo_trainer.py: loaded again, its parameters left as from_pretrained leaves them.
    """
    if configuration.reference != "copy":
        return None
    model = load_base_model(configuration.model, configuration.load_dtype, configuration.attention, num_layers)
    install_head(model, configuration.loss)
    if configuration.quantization:
        quantise(model, configuration.quantization)
    return model


def add_adapters(model: torch.nn.Module, configuration: Configuration) -> torch.nn.Module:
    """peft's LoRA: adapters in fp32 (peft's default, autocast_adapter_dtype) or in the base weights' dtype."""
    names = MODULES | OTHER_MODULES.get(model.config.model_type, {})
    lora = LoraConfig(
        r=configuration.rank,
        lora_alpha=2 * configuration.rank,
        lora_dropout=configuration.lora_dropout,
        target_modules=sorted({name for target in configuration.targets.split(",") for name in names[target].split()}),
        task_type="SEQ_CLS" if configuration.objective == "reward" else "CAUSAL_LM",
    )
    model = get_peft_model(model, lora)
    for name, parameter in model.named_parameters():
        if "lora_" in name or (parameter.requires_grad and configuration.quantization):
            parameter.data = parameter.data.to(DTYPES[configuration.adapter_dtype])
    return model
