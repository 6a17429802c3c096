"""A paste or a file about a run, read: what was measured, and sentences on what was taken for what."""

from collections.abc import Mapping
from dataclasses import dataclass, replace

from vramplan.checks import quoted
from vramplan.importing.problems import ImportProblem
from vramplan.measured_run import messages
from vramplan.measured_run.record import MAX_DIGITS, Record
from vramplan.measured_run.snapshot import Block, read_snapshot
from vramplan.nvidia_smi import read_processes, read_used
from vramplan.units import MIB, count_text, gib_text

MAX_TEXT = 4 * 2**20
"""Characters of a text that are read."""

PICKLE = 0x80
"""First byte of a pickle of protocol 2 or later."""

WHAT = (
    "Paste the line of “Measure it”, a number of torch.cuda.max_memory_allocated(), torch.cuda.memory_summary(), nvidia-smi output or an "
    "out-of-memory message; or choose a snapshot file."
)
"""What can be read."""


@dataclass(frozen=True)
class Reading:
    """What was read: its source in words, the record, sentences about it, and the largest blocks where a snapshot has them."""

    source: str
    record: Record
    told: tuple[str, ...] = ()
    blocks: tuple[Block, ...] = ()


def read_file(data: bytes) -> Reading:
    """A file: a snapshot, or text. Raises ImportProblem."""
    if data[:1] == bytes([PICKLE]):
        return _of_snapshot(data)
    if len(data) > MAX_TEXT:
        raise _too_large(len(data))
    for encoding in ("utf-8-sig", "utf-16") if data[:2] not in (b"\xff\xfe", b"\xfe\xff") else ("utf-16",):
        try:
            return read_text(data.decode(encoding))
        except UnicodeDecodeError:
            continue
    raise ImportProblem("not_text", "The file is neither text nor a memory snapshot.", WHAT)


def read_text(text: str) -> Reading:
    """A paste. Raises ImportProblem with one sentence for a text without amounts of memory."""
    if len(text) > MAX_TEXT:
        raise _too_large(len(text))
    if not text.strip():
        raise ImportProblem("empty", "There is nothing in it.", WHAT)
    line = messages.one_line(text)
    own = messages.own_line(line)
    failures = messages.failures(line)
    if failures:
        return _of_failures(failures, (own or {}).get("settings", ""))
    if own is not None:
        return _of_line(own)
    summaries = messages.summaries(line)
    if summaries:
        return _of_devices("torch.cuda.memory_summary()", summaries)
    statistics = messages.statistics(line)
    if statistics:
        return Reading("torch.cuda.memory_stats()", _checked(statistics))
    return _of_nvidia_smi(text) or _of_amounts(line)


def _of_snapshot(data: bytes) -> Reading:
    found = read_snapshot(data)
    told = [f"{count_text(found.events)} recorded events, replayed: at most {gib_text(found.peak)} GiB were allocated, {gib_text(found.at_end)} GiB when it was saved."]
    if not found.events:
        told = ["Nothing was recorded before it was saved (torch.cuda.memory._record_memory_history()), so this is what was allocated then, not the peak."]
    if found.devices > 1:
        told.append(f"Of {found.devices} cards, card {found.device} is taken: it has the largest peak.")
    if found.tried is not None:
        told.append("An allocation failed while it was recorded.")
        record = Record(held=max(found.held, 0), tried=found.tried, free=found.free)
    else:
        record = Record(allocated=found.peak)
    return Reading("a memory snapshot", _checked(record), tuple(told), found.blocks)


def _of_failures(failures: list[Record], settings: str) -> Reading:
    told = [f"{len(failures)} different messages are in it; the first one is taken."] if len(failures) > 1 else []
    record = failures[0]
    if record.held is None:
        told.append("What was allocated when it failed is not in it; paste the whole message.")
    return Reading("an out-of-memory message", replace(_checked(record), settings=_fingerprint(settings)), tuple(told))


def _of_line(values: Mapping[str, str]) -> Reading:
    amounts = {name: int(text) for name in ("allocated", "reserved", "process") if _is_amount(text := values.get(name, "")) and int(text)}
    if not amounts:
        raise ImportProblem("no_gpu", "The script measured nothing: it ran without a GPU.", "Run it where torch.cuda.is_available() is True.")
    known = [f"{label} {quoted(values[name])}" for name, label in (("gpu", "on"), ("torch", "torch"), ("transformers", "transformers")) if values.get(name)]
    told = (f"Measured {', '.join(known)}.",) if known else ()
    return Reading("the line of “Measure it”", replace(Record(**amounts), settings=_fingerprint(values.get("settings", ""))), told)


def _of_devices(source: str, records: Mapping[int, Record]) -> Reading:
    device, record = max(records.items(), key=lambda each: each[1].allocated)
    told = (f"Of {len(records)} cards, card {device} is taken: it has the largest peak.",) if len(records) > 1 else ()
    return Reading(source, _checked(record), told)


def _of_nvidia_smi(text: str) -> Reading | None:
    """What a process uses; else what its card does. One amount alone says too little to be of nvidia-smi."""
    processes = read_processes(text)
    if processes:
        more = f", the largest of {len(processes)} that compute" if len(processes) > 1 else ""
        return Reading("nvidia-smi", _checked(Record(process=processes[0] * MIB)), (f"{count_text(processes[0])} MiB of a process{more}.",))
    used = read_used(text)
    if used is None or messages.single_amounts(messages.one_line(text))[0].get("allocated") == used.mib * MIB:
        return None
    of = f"the fullest of {used.cards} cards" if used.cards > 1 else "the card"
    told = f"{count_text(used.mib)} MiB in use on {of}; it lists no process that computes, so what others use of it is in there too."
    return Reading("nvidia-smi", _checked(Record(process=used.mib * MIB)), (told,))


def _of_amounts(line: str) -> Reading:
    if messages.SAYS_FAILED.search(line):
        raise ImportProblem(
            "no_amounts", "This run ran out of memory, but the message has no amounts.",
            "Paste the whole message, with “Tried to allocate”; messages of cuBLAS and the driver have none.",
        )
    found, units, bare = messages.single_amounts(line)
    if not found:
        raise ImportProblem("no_amounts", f"There is no amount of memory in it; it starts with {quoted(line)}.", WHAT)
    told = [f"{unit} is read as a power of ten; write {unit[0]}iB for a power of 1,024." for unit in sorted(units)]
    if bare:
        told.append("Taken as torch.cuda.max_memory_allocated(); write “reserved” or “process” before it if it is that.")
    return Reading("an amount", _checked(Record(**found)), tuple(told))


def _checked(record: Record) -> Record:
    """The record, if every amount in it can be one of a card's memory."""
    amounts = [value for value in vars(record).values() if isinstance(value, int)]
    if any(not _is_amount(str(value)) for value in amounts) or not max(amounts, default=0):
        raise ImportProblem("out_of_range", "The amounts in it are none that a GPU's memory can have.", WHAT)
    return record


def _is_amount(text: str) -> bool:
    return text.isdecimal() and text.isascii() and len(text) <= MAX_DIGITS


def _fingerprint(text: str) -> str:
    """Which settings were measured, if the text says so."""
    return text if len(text) == len("00000000") and set(text) <= set("0123456789abcdef") else ""


def _too_large(size: int) -> ImportProblem:
    return ImportProblem("too_large", f"The text has {count_text(size)} characters; at most {count_text(MAX_TEXT)} are read.", WHAT)
