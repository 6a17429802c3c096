"""What PyTorch prints of its memory: messages of runs that ran out, summaries, statistics, and single amounts.

Every expression has bounded repeats, so none can take long on a text of any kind. Amounts in the same text are read in the
order PyTorch prints them. Sources: torch 1.4 to 2.13, c10/cuda/CUDACachingAllocator.cpp (messages); torch/cuda/memory.py,
memory_summary and memory_stats.
"""

import re

from vramplan.measured_run.amounts import BINARY, NUMBER, UNIT, in_bytes
from vramplan.measured_run.record import PEAKS, Record

_AMOUNT = rf"({NUMBER}) ?({UNIT})"
_OUT = r"(?:CUDA|HIP|XPU) out of memory\."
_OLD = re.compile(
    rf"{_OUT} Tried to allocate {_AMOUNT} \(GPU (\d{{1,4}}); {_AMOUNT} total capacity; {_AMOUNT} already allocated; {_AMOUNT} free; "
    rf"(?:{_AMOUNT} allowed; )?{_AMOUNT} (?:reserved in total by PyTorch|cached)"
)
_NEW = re.compile(rf"{_OUT} Tried to allocate {_AMOUNT}\. GPU (\d{{1,4}}) has a total capaci?ty of {_AMOUNT} of which {_AMOUNT} is free\.")
_ALLOCATED = re.compile(rf"Of the allocated memory {_AMOUNT} is allocated by PyTorch")
_UNALLOCATED = re.compile(rf"{_AMOUNT} is reserved by PyTorch but unallocated")
_PROCESS = re.compile(rf"(?:this process|Process \d{{1,10}}) has {_AMOUNT} memory in use")

MESSAGE_LENGTH = 2_000
"""Characters after the start of a message that belong to it."""

SAYS_FAILED = re.compile(r"out of memory|OutOfMemoryError|CUBLAS_STATUS_ALLOC_FAILED|cudaErrorMemoryAllocation", re.IGNORECASE)
"""How a run that ran out of memory shows, whatever else it says."""


def one_line(text: str) -> str:
    """The text with every white space one blank, as messages wrap in notebooks and terminals."""
    return " ".join(text.split())


def failures(text: str) -> list[Record]:
    """Every message of a run that ran out of memory in a text of one line, in order; equal ones once."""
    found = [(match.start(), _old(match)) for match in _OLD.finditer(text)]
    found += [(match.start(), _new(match, text[match.end() : match.end() + MESSAGE_LENGTH])) for match in _NEW.finditer(text)]
    return list(dict.fromkeys(record for _, record in sorted(found, key=lambda each: each[0])))


def _old(match: re.Match) -> Record:
    tried, total, held, free, pool = (_group(match, number) for number in (1, 4, 6, 8, 12))
    return Record(held=held, tried=tried, free=free, total=total, pool=pool)


def _new(match: re.Match, rest: str) -> Record:
    rest = rest.partition(" out of memory. Tried")[0]
    tried, total, free = (_group(match, number) for number in (1, 4, 6))
    allocated, unallocated = _ALLOCATED.search(rest), _UNALLOCATED.search(rest)
    held = _group(allocated, 1) if allocated else None
    pool = held + _group(unallocated, 1) if held is not None and unallocated else None
    processes = [in_bytes(*found) for found in _PROCESS.findall(rest)]
    enough = [size for size in processes if size >= (pool or 0)] or processes
    return Record(held=held, tried=tried, free=free, total=total, pool=pool, taken=min(enough) if enough else None)


def _group(match: re.Match, number: int) -> int:
    return in_bytes(match[number], match[number + 1])


_SUMMARY = re.compile(r"memory summary, device ID (\d{1,4})")
_SUMMARY_ROW = re.compile(r"\| {0,2}(Allocated memory|GPU reserved memory) {0,12}\| {0,8}\d{1,12} {1,3}[KMGTP]?i?B {0,3}\| {0,8}(\d{1,12}) {1,3}([KMGTP]?)i?B {0,3}\|")
_ROWS = {"Allocated memory": "allocated", "GPU reserved memory": "reserved"}
_POWERS = ("", "K", "M", "G", "T", "P")


def summaries(text: str) -> dict[int, Record]:
    """The peaks of every device whose memory_summary() is in a text of one line; its units are powers of 1,024 whatever their name."""
    found: dict[int, Record] = {}
    starts = [*_SUMMARY.finditer(text)]
    ends = [*(match.start() for match in starts[1:]), len(text)]
    for match, end in zip(starts, ends):
        part = text[match.end() : end]
        peaks = {}
        for name, number, letter in _SUMMARY_ROW.findall(part):
            peaks.setdefault(_ROWS[name], int(number) * BINARY["kib"] ** _POWERS.index(letter))
        if peaks.get("allocated"):
            found[int(match[1])] = Record(**peaks)
    return found


_FLAT = re.compile(r"[\"'](allocated_bytes|reserved_bytes)\.all\.peak[\"'] ?[:,] ?(\d{1,14})\b")
_NESTED = re.compile(r"[\"'](allocated_bytes|reserved_bytes)[\"'] ?: ?\{ ?[\"']all[\"'] ?: ?\{[^{}]{0,400}?[\"']peak[\"'] ?: ?(\d{1,14})\b")


def statistics(text: str) -> Record | None:
    """The peaks of memory_stats(), as JSON or as Python prints it."""
    found = {name.removesuffix("_bytes"): int(number) for pattern in (_NESTED, _FLAT) for name, number in pattern.findall(text)}
    return Record(**found) if found.get("allocated") else None


_LINE = re.compile(r"vramplan-measured v1((?: [a-z]{1,12}=(?:\"[^\"]{0,80}\"|[^\s\"]{0,80})){1,16})")
_PAIR = re.compile(r" ([a-z]{1,12})=(?:\"([^\"]{0,80})\"|([^\s\"]{0,80}))")


def own_line(text: str) -> dict[str, str] | None:
    """The names and values of the last line that the script under “Measure it” printed, in a text of one line."""
    lines = _LINE.findall(text)
    return {name: quoted or plain for name, quoted, plain in _PAIR.findall(lines[-1])} if lines else None


_LABELS = (
    ("reserved", re.compile(rf"reserved[^\d\n]{{0,40}}?({NUMBER})(?: ?({UNIT})\b)?", re.IGNORECASE)),
    ("process", re.compile(rf"(?:process|nvidia-smi)[^\d\n]{{0,40}}?({NUMBER})(?: ?({UNIT})\b)?", re.IGNORECASE)),
    ("allocated", re.compile(rf"allocated[^\d\n]{{0,40}}?({NUMBER})(?: ?({UNIT})\b)?", re.IGNORECASE)),
    ("allocated", re.compile(rf"peak[^\d\n]{{0,40}}?({NUMBER})(?: ?({UNIT})\b)?", re.IGNORECASE)),
)
_ALONE = re.compile(rf" ?({NUMBER}) ?({UNIT})? ?")

FEWEST_BYTES = 2**20
"""Amounts without a unit are bytes, as max_memory_allocated() gives them; a smaller one was meant in another unit."""


def single_amounts(text: str) -> tuple[dict[str, int], set[str], bool]:
    """Amounts with what they are: their bytes by name of the peak, the decimal units they came in, and whether nothing said what it is.

    A number of few bytes without a unit is left out.
    """
    plain = text.replace(",", "").replace("_", " ")
    alone = _ALONE.fullmatch(plain)
    pairs = [("allocated", alone)] if alone else [(name, pattern.search(plain)) for name, pattern in _LABELS]
    found, units = {}, set()
    for name, match in pairs:
        amount = _amount(match) if match else None
        if amount is not None and name not in found and amount not in found.values():
            found[name] = amount
            units |= {match[2]} if match[2] and match[2].lower() not in BINARY else set()
    return {name: found[name] for name in PEAKS if name in found}, units, bool(alone)


def _amount(match: re.Match) -> int | None:
    if match[2]:
        return in_bytes(match[1], match[2])
    return int(match[1]) if match[1].isdecimal() and int(match[1]) >= FEWEST_BYTES else None
