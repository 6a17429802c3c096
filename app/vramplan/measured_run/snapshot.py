"""A memory snapshot of PyTorch: what was allocated, replayed to the true peak of the recorded time.

Source: torch 2.13.0, torch/cuda/memory.py, _snapshot (the structure), and c10/cuda/CUDACachingAllocator.cpp: `alloc` and
`free_requested` are when allocated memory grows and shrinks, with the sizes that were asked for; blocks are multiples of 512
bytes. The replay runs backwards from what is allocated at the end, so it is right wherever the recording began.
"""

from dataclasses import dataclass

from vramplan.checks import printable
from vramplan.importing.problems import ImportProblem
from vramplan.measured_run.amounts import ROUNDING, rounded_up
from vramplan.measured_run.pickled import ADVICE, plain_data

ALLOCATED = "active_allocated"
"""State of a block that a tensor uses."""

MOST_BLOCKS = 12
"""Blocks that are listed."""

LONGEST_PLACE = 96
"""Characters of a place in a program that are shown."""

PLUMBING = ("torch/", "site-packages/torch/", "<frozen", "??")
"""Parts of file names that say nothing about whose tensor it is."""


@dataclass(frozen=True)
class Block:
    """Blocks alive at the peak that were made in one place: bytes of all, how many, and the place, empty where not recorded."""

    bytes: int
    count: int
    place: str


@dataclass(frozen=True)
class Snapshot:
    """What a snapshot says of the card with the largest peak. All in bytes.

    peak: most that was allocated within the recorded time. at_end: allocated when it was saved. reserved: what the allocator
    held then. events: how many were recorded. tried, free, held: of the last allocation that failed; None where none did.
    """

    device: int
    devices: int
    peak: int
    at_end: int
    reserved: int
    events: int
    tried: int | None
    free: int | None
    held: int | None
    blocks: tuple[Block, ...]


def read_snapshot(data: bytes) -> Snapshot:
    """What a snapshot file says. Raises ImportProblem."""
    try:
        return _read(plain_data(data))
    except (KeyError, TypeError, AttributeError, IndexError):
        raise ImportProblem("not_a_snapshot", "The pickle holds plain data, but not that of a memory snapshot: segments and device_traces.", ADVICE) from None


def _read(content: dict) -> Snapshot:
    by_device: dict[int, list] = {}
    for segment in content["segments"]:
        by_device.setdefault(_amount(segment.get("device", 0)), []).append(segment)
    traces = content.get("device_traces") or []
    devices = sorted({*by_device, *(number for number, trace in enumerate(traces) if trace)})
    if not devices:
        raise ImportProblem("empty", "The snapshot holds no memory at all.", "Save it while the model is on the GPU, after a step.")
    found = [_of_device(number, by_device.get(number, []), traces[number] if number < len(traces) else [], len(devices)) for number in devices]
    return max(found, key=lambda each: each.peak)


def _of_device(number: int, segments: list, trace: list, devices: int) -> Snapshot:
    blocks = [block for segment in segments for block in segment["blocks"] if block["state"] == ALLOCATED]
    at_end = sum(_amount(block["size"]) for block in blocks)
    now, peak, place, failed = at_end, at_end, len(trace), None
    for index in range(len(trace) - 1, -1, -1):
        event = trace[index]
        action = event["action"]
        if action == "oom" and failed is None:
            failed = (_amount(event["size"]), _amount(event.get("device_free", 0)), now)
        if action == "alloc":
            now -= _size(event)
        elif action == "free_requested":
            now += _size(event)
            if now > peak:
                peak, place = now, index
    tried, free, held = failed or (None, None, None)
    alive = _alive_at(place, blocks, trace)
    reserved = sum(_amount(segment["total_size"]) for segment in segments)
    return Snapshot(number, devices, max(peak, 0), at_end, reserved, len(trace), tried, free, held, alive)


def _alive_at(place: int, blocks: list, trace: list) -> tuple[Block, ...]:
    """What was allocated before the event at `place`, by where it was made, largest first."""
    sizes = {_amount(block["address"]): _amount(block["size"]) for block in blocks if "address" in block}
    frames = {_amount(block["address"]): block.get("frames") for block in blocks if "address" in block}
    for index in range(len(trace) - 1, place - 1, -1):
        event = trace[index]
        if event["action"] == "alloc":
            sizes.pop(event["addr"], None)
            frames.pop(event["addr"], None)
        elif event["action"] == "free_requested":
            sizes[_amount(event["addr"])] = _size(event)
    for index in range(place - 1, -1, -1):
        event = trace[index]
        if event["action"] == "alloc" and event["addr"] in sizes and not frames.get(event["addr"]):
            frames[event["addr"]] = event.get("frames")
    groups: dict[str, list[int]] = {}
    for address, size in sizes.items():
        groups.setdefault(_place(frames.get(address) or []), []).append(size)
    found = sorted((Block(sum(each), len(each), where) for where, each in groups.items()), key=lambda block: -block.bytes)
    return tuple(found[:MOST_BLOCKS])


def _place(frames: list) -> str:
    """The first frame that is not of PyTorch itself: 'modeling_llama.py:172 forward'."""
    named = [frame for frame in frames if frame["filename"].endswith(".py")]
    own = [frame for frame in named if not any(part in frame["filename"] for part in PLUMBING)]
    for frame in (own or named)[:1]:
        return printable(f"{frame['filename'].rpartition('/')[2]}:{_amount(frame['line'])} {frame['name']}", LONGEST_PLACE)
    return ""


def _size(event: dict) -> int:
    """The block behind an event: what was asked for, in whole blocks."""
    return rounded_up(_amount(event["size"]), ROUNDING)


def _amount(value: object) -> int:
    if type(value) is not int or not 0 <= value < 2**64:
        raise TypeError("amount")
    return value
