"""A timeline told to people: what is alive at a frame, what was left out, and how two runs differ."""

from dataclasses import dataclass

from vramplan import report, words
from vramplan.accounts import component_bytes
from vramplan.ledger import Frame
from vramplan.timeline import Timeline
from vramplan.units import count_text, counted, gib_text

STEADY = ("base_weights", "reference", "adapters", "master_weights", "allowance", "optimizer_states", "gradients")
"""Components that stay longest, from the bottom of the stack up; the others come and go on top of them."""

ORDER = (*STEADY, *(name for name in words.COMPONENTS if name not in STEADY))
"""Every component, from the bottom of the stack up."""

MOST_ALIVE = 14
"""Rows listed at a frame at the most; what is left is summed up."""


@dataclass(frozen=True)
class LegendRow:
    """One component: its name, label, and GiB at the chosen frame."""

    name: str
    label: str
    gib: str


@dataclass(frozen=True)
class AliveRow:
    """Tensors that are alive at a frame, or a row of the ledger behind which no tensors are listed."""

    component: str
    label: str
    gib: str
    shape: str = ""
    dtype: str = ""
    count: str = ""
    why: str = ""


def no_such_frame(shown: Timeline) -> str:
    """Which frames and moments there are, in a sentence."""
    moments = "; ".join(dict.fromkeys(frame.moment for frame in shown.frames if frame.moment))
    return f"must be a frame from 1 to {count_text(len(shown.frames))}, a frame’s name, or one of: {moments}."


def amounts(shown: Timeline) -> list[dict[str, int]]:
    """Bytes by component of every frame."""
    return [dict(component_bytes(frame.terms)) for frame in shown.frames]


def legend(shown: Timeline, index: int) -> tuple[LegendRow, ...]:
    """The components the run has, from the top of the stack down, with what they hold at a frame."""
    known = {term.name for frame in shown.frames for term in frame.terms}
    here = dict(component_bytes(shown.frames[index].terms))
    return tuple(
        LegendRow(name, words.component_label(shown.estimate.accounting, name), gib_text(here[name]))
        for name in reversed(ORDER) if known & set(words.COMPONENTS[name][1])
    )


def frame_name(frame: Frame) -> str:
    """Where in the run a frame is: 'Step 2, micro-batch 1: forward, layer 12'."""
    part = words.moment_text(frame.part)
    return f"{part}: {frame.name}" if not frame.part.endswith(frame.name) else part


def reading(shown: Timeline, index: int) -> str:
    """A frame, read aloud."""
    frame = shown.frames[index]
    return f"{frame_name(frame)}, {gib_text(frame.bytes)} GiB{', the peak' if index == shown.peak_index else ''}"


def title(shown: Timeline) -> str:
    """What a drawing shows."""
    return f"Memory over a training step: {report.run_text(shown.estimate.settings)}"


def sentence(shown: Timeline) -> str:
    """The peak, when it is, and what is left below the line."""
    one = shown.estimate
    room = one.usable_bytes - shown.peak.bytes
    left = f"{words.amount_text(abs(room))} {'below' if room >= 0 else 'above'} the line" if room else "on the line"
    return f"Peak {gib_text(shown.peak.bytes)} GiB at {_inside(frame_name(shown.peak))}; {left} of {gib_text(one.usable_bytes)} GiB."


def against(shown: Timeline, other: Timeline) -> str:
    """How a second run differs at the peak, in a sentence."""
    difference = other.peak.bytes - shown.peak.bytes
    told = report.run_text(other.estimate.settings)
    if not difference:
        return f"Laid over: {told}. Its peak is the same to the byte, at {_inside(frame_name(other.peak))}."
    side = "higher" if difference > 0 else "lower"
    return (
        f"Laid over: {told}. Its peak is {gib_text(other.peak.bytes)} GiB at {_inside(frame_name(other.peak))}, "
        f"{words.amount_text(abs(difference))} {side}."
    )


def left_out(shown: Timeline) -> tuple[str, ...]:
    """What repeats and is not drawn, in sentences."""
    settings = shown.estimate.settings
    several, layers = settings.gradient_accumulation_steps, settings.architecture.num_layers
    told = ["From left to right in the order of time; widths say nothing of how long something takes."]
    if several > 1:
        later = f"micro-batches 2 to {count_text(several)}" if several > 2 else "micro-batch 2"
        told.append(f"Of {count_text(several)} micro-batches, {later} of step 1 {'are' if several > 2 else 'is'} left out; in step 2 one stands for {'them' if several > 2 else 'it'}.")
    told.append("Step 1 makes the optimizer states at its end; every later step is like step 2.")
    if layers > shown.layers_drawn:
        told.append(f"Of {count_text(layers)} layers, {count_text(shown.layers_drawn)} are drawn, evenly spread.")
    return tuple(told)


def alive(shown: Timeline, index: int, *, most: int = MOST_ALIVE) -> tuple[AliveRow, ...]:
    """What is alive at a frame, largest first: tensors, and rows of which none are listed, or not the quantised weights.

    Their bytes add up to the frame.
    """
    frame = shown.frames[index]
    behind, found = frame.inspect(), []
    for term in frame.terms:
        component = next(name for name, (_, terms) in words.COMPONENTS.items() if term.name in terms)
        listed = behind.get(term.name, ())
        rest = term.bytes - sum(each.bytes for each in listed)
        found += [(each.bytes, component, each, term.name) for each in listed]
        if rest:
            found.append((rest, component, None, term.name))
    found.sort(key=lambda each: -each[0])
    rows = [_alive(shown, *each, alone=each[3] not in behind) for each in found[:most]]
    others = found[most:]
    if others:
        total = gib_text(sum(each[0] for each in others), places=3)
        rows.append(AliveRow("", f"{counted(len(others), 'smaller row')}", total))
    return tuple(rows)


def _alive(shown: Timeline, size: int, component: str, holding, term: str, *, alone: bool) -> AliveRow:
    amount = gib_text(size, places=3)
    if holding is None:
        label = words.term_label(shown.estimate.accounting, term)
        return AliveRow(component, label if alone else f"{label}, quantised", amount)
    return AliveRow(
        component, words.moment_text(holding.name), amount, holding.shape, holding.dtype, count_text(holding.count), holding.why
    )


def _inside(name: str) -> str:
    """A frame's name inside a sentence."""
    return name[0].lower() + name[1:]
