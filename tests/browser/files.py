"""Files that a visitor brings, as they are published."""

import json

LLAMA = json.dumps({
    "architectures": ["LlamaForCausalLM"], "model_type": "llama", "hidden_size": 4096, "intermediate_size": 14336, "num_hidden_layers": 32,
    "num_attention_heads": 32, "num_key_value_heads": 8, "vocab_size": 128256, "tie_word_embeddings": False, "rope_theta": 500000.0, "torch_dtype": "bfloat16",
})
"""Llama 3.1 8B."""

MIXTRAL = json.dumps({
    "architectures": ["MixtralForCausalLM"], "model_type": "mixtral", "hidden_size": 4096, "intermediate_size": 14336, "num_hidden_layers": 32,
    "num_attention_heads": 32, "num_key_value_heads": 8, "num_local_experts": 8, "num_experts_per_tok": 2, "vocab_size": 32000, "tie_word_embeddings": False,
})
"""Mixtral 8x7B."""

ADAPTER = json.dumps({
    "peft_type": "LORA", "r": 64, "lora_alpha": 16, "lora_dropout": 0.1, "target_modules": ["q_proj", "v_proj", "not_there"], "bias": "none",
    "base_model_name_or_path": "meta-llama/Llama-3.1-8B", "task_type": "CAUSAL_LM",
})
"""Of rank 64 on queries and values of Llama 3.1 8B: 32 · 64 · ((4096 + 4096) + (4096 + 1024)) = 27,262,976 parameters."""

UNKNOWN = json.dumps({"model_type": "brandnew", "hidden_size": 2048, "num_hidden_layers": 16, "num_attention_heads": 16, "intermediate_size": 8192, "vocab_size": 50000})
"""Of a type that no calculator knows."""
