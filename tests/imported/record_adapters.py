"""Records what PEFT itself makes of adapter_config.json files, into adapters.jsonl.

A tool for developers, run by hand in the environment of tests/traced (torch, transformers, peft), never by the tests:

    PYTHON tests/imported/record_adapters.py

Every model is built on the meta device, so nothing is allocated. Recorded: parameters that are trained, and the names of
the modules that got an adapter or a copy of their own.
"""

import hashlib
import json
from pathlib import Path
import warnings

import peft
from peft import LoraConfig, get_peft_model
import torch
import transformers
from transformers import AutoConfig, AutoModelForCausalLM

warnings.filterwarnings("ignore")
OUT = Path(__file__).with_name("adapters.jsonl")

BASES = {
    "llama": {"model_type": "llama", "hidden_size": 256, "intermediate_size": 512, "num_hidden_layers": 4, "num_attention_heads": 8,
              "num_key_value_heads": 2, "head_dim": 32, "vocab_size": 1000, "tie_word_embeddings": False},
    "llama-3.1-8b": {"model_type": "llama", "hidden_size": 4096, "intermediate_size": 14336, "num_hidden_layers": 32, "num_attention_heads": 32,
                     "num_key_value_heads": 8, "vocab_size": 128256, "tie_word_embeddings": False},
    "qwen2": {"model_type": "qwen2", "hidden_size": 256, "intermediate_size": 512, "num_hidden_layers": 12, "num_attention_heads": 8,
              "num_key_value_heads": 2, "vocab_size": 1000, "tie_word_embeddings": True},
    "phi3": {"model_type": "phi3", "hidden_size": 256, "intermediate_size": 512, "num_hidden_layers": 3, "num_attention_heads": 8,
             "num_key_value_heads": 2, "vocab_size": 1000, "pad_token_id": 0},
    "gpt2": {"model_type": "gpt2", "n_embd": 192, "n_layer": 3, "n_head": 6, "vocab_size": 1000, "n_positions": 128},
    "gpt_neox": {"model_type": "gpt_neox", "hidden_size": 256, "intermediate_size": 1024, "num_hidden_layers": 3, "num_attention_heads": 8, "vocab_size": 1000},
    "qwen3_moe": {"model_type": "qwen3_moe", "hidden_size": 128, "intermediate_size": 256, "moe_intermediate_size": 64, "num_hidden_layers": 3,
                  "num_attention_heads": 4, "num_key_value_heads": 2, "head_dim": 32, "num_experts": 8, "num_experts_per_tok": 2, "vocab_size": 1000,
                  "mlp_only_layers": [0], "decoder_sparse_step": 1},
}

QV = ["q_proj", "v_proj"]
ADAPTERS = [
    ("llama-3.1-8b", {"r": 16, "target_modules": "all-linear"}),
    ("llama-3.1-8b", {"r": 16, "target_modules": ["q_proj", "k_proj", "v_proj", "o_proj"]}),
    ("llama-3.1-8b", {"r": 64, "target_modules": QV, "modules_to_save": ["embed_tokens", "lm_head"]}),
    ("llama", {"r": 8, "target_modules": QV}),
    ("llama", {"r": 8, "target_modules": "All-Linear"}),
    ("llama", {"r": 8, "target_modules": r".*\.(q_proj|down_proj)"}),
    ("llama", {"r": 8, "target_modules": r"model\.layers\.[12]\.self_attn\.\w+_proj"}),
    ("llama", {"r": 8, "target_modules": r"(?:.*?(?:self_attn|mlp).*?(?:q_proj|up_proj).*?)|(?:\bmodel\.layers\.[\d]{1,}\.(?:mlp)\.(?:(?:down_proj)))"}),
    ("llama", {"r": 8, "target_modules": "all-linear", "exclude_modules": ["k_proj", "layers.0.mlp.up_proj"]}),
    ("llama", {"r": 8, "target_modules": "all-linear", "exclude_modules": r".*layers\.[03]\..*"}),
    ("llama", {"r": 8, "target_modules": QV, "layers_to_transform": [1, 3]}),
    ("llama", {"r": 8, "target_modules": QV, "layers_to_transform": 2, "layers_pattern": "layers"}),
    ("llama", {"r": 8, "target_modules": ["lm_head", "q_proj", "model.layers.0.mlp.up_proj"], "layers_to_transform": [1]}),
    ("llama", {"r": 8, "target_modules": [*QV, "down_proj"], "rank_pattern": {"down_proj": 32, r"layers\.1\.self_attn\.q_proj": 4}}),
    ("llama", {"r": 8, "target_modules": QV, "rank_pattern": {"model.layers.0.self_attn.v_proj": 2, "v_proj": 16}}),
    ("llama", {"r": 8, "target_modules": QV, "use_dora": True}),
    ("llama", {"r": 8, "target_modules": QV, "use_rslora": True, "lora_dropout": 0.05}),
    ("llama", {"r": 8, "target_modules": QV, "lora_bias": True}),
    ("llama", {"r": 8, "target_modules": ["embed_tokens", "q_proj"]}),
    ("llama", {"r": 8, "target_modules": ["lm_head", "q_proj"]}),
    ("llama", {"r": 8, "target_modules": "all-linear", "modules_to_save": ["lm_head"]}),
    ("llama", {"r": 8, "target_modules": "all-linear", "modules_to_save": ["norm", "down_proj"]}),
    ("llama", {"r": 8, "target_modules": [*QV, "not_there"]}),
    ("qwen2", {"r": 8, "target_modules": QV, "bias": "all"}),
    ("qwen2", {"r": 8, "target_modules": QV, "bias": "lora_only"}),
    ("qwen2", {"r": 8, "target_modules": ["layers.1.mlp.up_proj", "model.layers.11.self_attn.q_proj"]}),
    ("qwen2", {"r": 8, "target_modules": QV, "modules_to_save": ["embed_tokens"]}),
    ("phi3", {"r": 8, "target_modules": ["qkv_proj", "o_proj", "gate_up_proj"]}),
    ("phi3", {"r": 8, "target_modules": "all-linear"}),
    ("gpt2", {"r": 8, "target_modules": ["c_attn"], "fan_in_fan_out": True}),
    ("gpt2", {"r": 8, "target_modules": ["attn.c_proj", "c_fc"], "fan_in_fan_out": True}),
    ("gpt2", {"r": 8, "target_modules": "all-linear", "fan_in_fan_out": True, "use_dora": True}),
    ("gpt2", {"r": 8, "target_modules": ["c_attn"], "fan_in_fan_out": True, "bias": "all", "modules_to_save": ["ln_f"]}),
    ("gpt_neox", {"r": 8, "target_modules": ["query_key_value"]}),
    ("gpt_neox", {"r": 8, "target_modules": "all-linear"}),
    ("qwen3_moe", {"r": 8, "target_modules": ["q_proj", "o_proj"]}),
]


def record(base, given):
    """One line of the file."""
    config = dict(BASES[base])
    with torch.device("meta"):
        model = AutoModelForCausalLM.from_config(AutoConfig.for_model(**config))
        wrapped = get_peft_model(model, LoraConfig(**given))
    prefix = "base_model.model."
    matched = sorted({
        name.removeprefix(prefix) for name, module in wrapped.named_modules()
        if type(module).__name__ == "ModulesToSaveWrapper" or (hasattr(module, "lora_A") and hasattr(module, "base_layer"))
    })
    matched = [name for name in matched if ".modules_to_save" not in name]
    trainable = sum(each.numel() for each in wrapped.parameters() if each.requires_grad)
    return {
        "base": config, "adapter": {"peft_type": "LORA", **given}, "trainable": trainable, "matched": len(matched),
        "names_sha256": hashlib.sha256("\n".join(matched).encode()).hexdigest(),
        "source": f"peft {peft.__version__}, transformers {transformers.__version__}",
    }


if __name__ == "__main__":
    lines = [json.dumps(record(base, given)) for base, given in ADAPTERS]
    OUT.write_text("\n".join(lines) + "\n", encoding="utf-8")
    print(f"{len(lines)} adapters recorded")
