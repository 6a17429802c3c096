"""The optimizers, as transformers' Trainer makes them (5.24.0, trainer.py, create_optimizer; trainer_optimizer.py).

The real classes run; only bitsandbytes' update kernels, which allocate nothing, are replaced by nothing.
"""

import bitsandbytes
import torch
from bitsandbytes import functional
from bitsandbytes.optim import optimizer as bitsandbytes_optimizer
from transformers.optimization import Adafactor
from transformers.trainer_pt_utils import get_parameter_names

NO_DECAY_PATTERNS = [r"bias", r"layernorm", r"rmsnorm", r"(?:^|\.)norm(?:$|\.)", r"_norm(?:$|\.)"]
"""transformers 5.24.0, trainer.py, get_decay_parameter_names."""
LEARNING_RATE = 1e-5


def parameter_groups(model: torch.nn.Module) -> list[dict]:
    decayed = set(get_parameter_names(model, [torch.nn.LayerNorm], NO_DECAY_PATTERNS))
    trainable = [(name, parameter) for name, parameter in model.named_parameters() if parameter.requires_grad]
    return [
        {"params": [p for name, p in trainable if name in decayed], "weight_decay": 0.0},
        {"params": [p for name, p in trainable if name not in decayed], "weight_decay": 0.0},
    ]


def make_optimizer(name: str, model: torch.nn.Module) -> torch.optim.Optimizer:
    groups = [group for group in parameter_groups(model) if group["params"]]
    if name.endswith("8bit"):
        keep_embeddings_in_32_bits(model)
    return FACTORIES[name](groups)


def keep_embeddings_in_32_bits(model: torch.nn.Module) -> None:
    """transformers 5.24.0, trainer.py, create_optimizer: states of embeddings stay fp32 under an 8-bit optimizer.

    The manager outlives a trace and knows parameters by their place in the groups, so it starts empty each time.
    """
    manager = bitsandbytes.optim.GlobalOptimManager.get_instance()
    manager.initialize()
    for module in model.modules():
        if isinstance(module, torch.nn.Embedding):
            manager.register_module_override(module, "weight", {"optim_bits": 32})


def install_fake_bitsandbytes() -> None:
    """Update kernels do nothing; paged states live outside the caching allocator, so they become CPU tensors.

    Source: bitsandbytes 0.50.2, optim/optimizer.py, get_state_buffer, init_state, prefetch_state; functional.py,
    get_paged (cudaMallocManaged), create_dynamic_map (256 values).
    """

    def get_paged(*shape, dtype, device):
        return torch.empty(shape, dtype=dtype, device="cpu")

    functional.get_paged = get_paged
    functional.create_dynamic_map = lambda signed=True: torch.empty(256)
    nothing = lambda *arguments, **options: None  # noqa: E731
    functional.fill = functional.prefetch_tensor = nothing
    functional.optimizer_update_32bit = functional.optimizer_update_8bit_blockwise = nothing
    bitsandbytes_optimizer.sync_gpu = nothing


def bitsandbytes_adamw(bits: int, paged: bool = False):
    return lambda groups: bitsandbytes.optim.AdamW(groups, lr=LEARNING_RATE, optim_bits=bits, is_paged=paged)


FACTORIES = {
    "adamw-foreach": lambda groups: torch.optim.AdamW(groups, lr=LEARNING_RATE, foreach=True),
    "adamw-fused": lambda groups: torch.optim.AdamW(groups, lr=LEARNING_RATE, fused=True),
    "adamw-32bit": bitsandbytes_adamw(32),
    "adamw-8bit": bitsandbytes_adamw(8),
    "paged-adamw-32bit": bitsandbytes_adamw(32, paged=True),
    "paged-adamw-8bit": bitsandbytes_adamw(8, paged=True),
    "adafactor": lambda groups: Adafactor(groups, lr=LEARNING_RATE, scale_parameter=False, relative_step=False),
    "sgd": lambda groups: torch.optim.SGD(groups, lr=LEARNING_RATE, foreach=True),
    "sgd-momentum": lambda groups: torch.optim.SGD(groups, lr=LEARNING_RATE, momentum=0.9, foreach=True),
    "lion": lambda groups: bitsandbytes.optim.Lion(groups, lr=LEARNING_RATE, optim_bits=32),
}

install_fake_bitsandbytes()
