"""Checks of the tracer itself. They need the tracer's environment, not the project's."""

import functools
from collections.abc import Callable

import torch
from peft import LoraConfig, get_peft_model
from torch._subclasses.fake_tensor import FakeTensorMode
from torch.profiler import ProfilerActivity, profile
from transformers import LlamaConfig, LlamaForCausalLM

from .analysis import peaks
from .configurations import Configuration
from .models import SHAPES, load_base_model
from .tracing import trace
from .tracker import ALLOCATION_GRANULARITY, AllocationTracker, unshared_counts

PUBLISHED_PARAMETERS = {
    "llama-3.2-1b": 1_235_814_400,
    "llama-3.1-8b": 8_030_261_248,
    "llama-2-7b": 6_738_415_616,
    "mistral-7b-v0.3": 7_248_023_552,
    "qwen2.5-0.5b": 494_032_768,
    "qwen2.5-1.5b": 1_543_714_304,
    "qwen2.5-7b": 7_615_616_512,
    "qwen3-0.6b": 596_049_920,
    "qwen3-1.7b": 1_720_574_976,
    "qwen3-8b": 8_190_735_360,
    "gemma-2-2b": 2_614_341_888,
    "gemma-3-1b": 999_885_952,
    "phi-3.5-mini": 3_821_079_552,
    "phi-4-mini": 3_836_021_760,
    "smollm2-135m": 134_515_008,
    "smollm2-360m": 361_821_120,
    "smollm2-1.7b": 1_711_376_384,
    "granite-3-2b": 2_533_531_648,
    "gpt2": 124_439_808,
    "pythia-410m": 405_334_016,
    "gpt-j-6b": 6_050_882_784,
    "phi-1.5": 1_418_270_720,
    "opt-1.3b": 1_315_758_080,
    "bloom-560m": 559_214_592,
    "falcon-7b": 6_921_720_704,
    "stablelm-2-1.6b": 1_644_515_328,
    "starcoder2-3b": 3_030_371_328,
    "aya-23-8b": 8_028_033_024,
    "olmo-1b": 1_176_764_416,
    "olmo2-1b": 1_484_916_736,
    "glm4-9b": 9_400_279_040,
    "minitron-4b": 4_190_509_056,
}
"""Elements in each repository's safetensors files (tied heads once, no buffers), as the model hub or the model card shows
them; of GPT-J, OPT and Minitron, for which neither does, as counted in their class from the published config.json."""

TOLERANCE = 0.001


def check_parameter_counts() -> None:
    """Every shape in shapes.toml gives the published number of parameters."""
    for name in SHAPES:
        model = load_base_model(name, "bf16", "eager")
        count = sum(parameter.numel() for parameter in model.parameters())
        assert count == PUBLISHED_PARAMETERS[name], f"{name}: {count:,} is not {PUBLISHED_PARAMETERS[name]:,}"


def check_unshared_counts() -> None:
    """Fake CUDA tensors and real CPU tensors are counted alike, so the profiler check below speaks for both."""
    with FakeTensorMode():
        fake = unshared_counts("cuda")
    assert fake == unshared_counts("cpu") != (0, 0), fake


def check_by_hand() -> None:
    """A layer of Llama 3.2 1B, pure bf16 full fine-tuning, no checkpointing: the bytes each layer keeps.

    Per token 16H + 4Q + 4KV + 8M + 4A + 8: each of two norms keeps its fp32 input and its bf16 normalised value (6H)
    and feeds a linear layer (2H); q and k after the rotation, v, the attention output (2Q + 4KV + 2Q) and 4 per head
    for the log-sum-exp; gate, its silu, up and their product (8M); two fp32 reciprocal roots. Plus two random states
    of 512 bytes.
    """
    tokens, hidden, query, key_value, intermediate, heads = 1024, 2048, 2048, 512, 8192, 32
    per_token = 16 * hidden + 4 * query + 4 * key_value + 8 * intermediate + 4 * heads + 8
    configuration = Configuration("", "llama-3.2-1b", "full", checkpointing="none", sequence_length=tokens)
    row, _ = trace(configuration, num_layers=3)
    expected = tokens * per_token + 2 * ALLOCATION_GRANULARITY
    assert row["saved_per_layer"] == expected, (row["saved_per_layer"], expected)


def tiny_model(kind: str) -> torch.nn.Module:
    """A real three-layer Llama on the CPU: fp32 and tied; or bf16 with checkpointing and peft adapters."""
    config = LlamaConfig(
        vocab_size=4000, hidden_size=256, intermediate_size=704, num_hidden_layers=3, num_attention_heads=4,
        num_key_value_heads=2, attn_implementation="eager", use_cache=False, tie_word_embeddings=kind == "tied",
    )  # fmt: skip
    model = LlamaForCausalLM(config).train()
    if kind == "adapters":
        model = get_peft_model(model.to(torch.bfloat16), LoraConfig(r=8, target_modules="all-linear"))
        model.gradient_checkpointing_enable({"use_reentrant": False})
    return model


def one_step(model: torch.nn.Module, optimizer: torch.optim.Optimizer, ids: torch.Tensor) -> None:
    """Two micro-batches under autocast, then the update."""
    for _ in range(2):
        with torch.autocast("cpu", dtype=torch.bfloat16):
            loss = model(input_ids=ids, labels=ids)["loss"]
        loss.backward()
        del loss
    optimizer.step()
    optimizer.zero_grad()


def profiled_rise(run: Callable[[], None], before: list[torch.Tensor]) -> int:
    """Highest rise of CPU memory during `run`, from torch.profiler's allocation events (no dispatch mode involved)."""
    with profile(activities=[ProfilerActivity.CPU], profile_memory=True) as record:
        run()
    level = highest = 0
    for event in sorted(allocations(record.profiler.kineto_results.experimental_event_tree()), key=lambda e: e[0]):
        level += event[1]
        highest = max(highest, level)
    return highest


def allocations(nodes) -> list[tuple[int, int]]:
    """(time, bytes) of every allocation and release in the profiler's event tree."""
    found = []
    for node in nodes:
        size = getattr(node.extra_fields, "alloc_size", None)
        if size is not None:
            found.append((node.start_time_ns, size))
        found += allocations(node.children)
    return found


def check_against_profiler() -> None:
    """The tracker on real CPU tensors against torch.profiler without it, in the second step of a real small Llama.

    The tracker rounds to 512 bytes and the CPU allocator does not, so the rounding is switched off here.
    """
    for kind in ("untied", "tied", "adapters"):
        compare_with_profiler(kind)


def compare_with_profiler(kind: str) -> None:
    ids = torch.randint(0, 4000, (2, 256))
    rises = []
    for measure in (profiled_rise, tracked_rise):
        model = tiny_model(kind)
        optimizer = torch.optim.AdamW(model.parameters(), foreach=True)
        one_step(model, optimizer, ids)
        states = [value for state in optimizer.state.values() for value in state.values()]
        rises.append(measure(functools.partial(one_step, model, optimizer, ids), [*model.parameters(), *states, ids]))
    difference = (rises[1] - rises[0]) / rises[0]
    print(f"        {kind}: profiler {rises[0]:,}, tracker {rises[1]:,} ({difference:+.4%})")
    assert abs(difference) <= TOLERANCE


def tracked_rise(run: Callable[[], None], before: list[torch.Tensor]) -> int:
    """Highest rise of memory during `run` as the tracker sees it, without rounding; `before` exists already."""
    tracker = AllocationTracker(device="cpu", granularity=1)
    tracker.start("run/0/0")
    tracker.track("before", before)
    resident = tracker.current
    with tracker:
        run()
    return max(peaks(tracker.events).values()) - resident


def check_short_first_step() -> None:
    """Two full steps give the same row as the shortened first step that the record is made with."""
    configuration = Configuration(
        "", "smollm2-135m", "full", load_dtype="fp32", optimizer="adamw-foreach", gradient_accumulation_steps=2
    )
    short, _ = trace(configuration, num_layers=3)
    full, _ = trace(configuration, num_layers=3, two_full_steps=True)
    different = {name for name in full if full[name] != short[name]} - {"seconds"}
    assert not different, {name: (short[name], full[name]) for name in different}


CHECKS = [check_parameter_counts, check_unshared_counts, check_by_hand, check_short_first_step, check_against_profiler]


def run_checks() -> int:
    """Run every check; returns the number that failed."""
    failures = 0
    for check in CHECKS:
        try:
            check()
            print(f"ok      {check.__name__}", flush=True)
        except AssertionError as error:
            failures += 1
            print(f"failed  {check.__name__}: {error}", flush=True)
    return failures
