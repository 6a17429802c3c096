"""What lies behind a peak: the moments of the step and the tensors alive, the other accountings, and what was assumed.

The page paints it and the terminal prints it, as with report.py.
"""

from collections.abc import Iterable
from dataclasses import dataclass

from vramplan import words
from vramplan.accountings import ACCOUNTINGS, step
from vramplan.compare import by_accounting, counted_by, peaks_by_stack
from vramplan.errors import NotExpressible
from vramplan.ledger import Estimate, Term
from vramplan.link import to_query
from vramplan.policy import Policy, policy, stack_of
from vramplan.settings import Settings
from vramplan.stacks import stacks
from vramplan.units import count_text, gib_text


@dataclass(frozen=True)
class MomentRow:
    """One moment of the step: GiB with two decimals, share of the largest, whether it is that, and bytes by component."""

    label: str
    gib: str
    share: float
    largest: bool
    amounts: dict[str, int]


@dataclass(frozen=True)
class TensorRow:
    """Tensors that are alive at the largest moment: shape in symbols, type, how many, GiB, and why they are."""

    label: str
    shape: str
    dtype: str
    count: str
    gib: str
    why: str


@dataclass(frozen=True)
class Counted:
    """The run by one accounting: peak in GiB and verdict, or the sentence that replaces them."""

    label: str
    peak: str
    verdict: str
    verdict_name: str
    reason: str
    current: bool
    query: str


@dataclass(frozen=True)
class Other:
    """The run by one accounting: peak in GiB, how much more or less that is than by the chosen one, and the terms that make the
    difference, or the sentence that says why there is no number."""

    label: str
    peak: str
    more: str
    verdict: str
    verdict_name: str
    why: str
    current: bool
    query: str


@dataclass(frozen=True)
class Beside:
    """An amount by another accounting, in GiB, and how much more or less it is than by the training step."""

    gib: str
    more: str


@dataclass(frozen=True)
class DifferenceRow:
    """One component by the training step and by every other accounting that counts the run, and why they differ where they do."""

    label: str
    step: str
    others: tuple[Beside, ...]
    why: str


@dataclass(frozen=True)
class Differences:
    """How the accountings that count the run differ: what the others are called, rows by component, and the peak."""

    labels: tuple[str, ...]
    rows: tuple[DifferenceRow, ...]
    peak: DifferenceRow


@dataclass(frozen=True)
class StackRow:
    """The peak with one training stack."""

    label: str
    peak: str
    current: bool
    query: str


@dataclass(frozen=True)
class Assumptions:
    """What the stack decided: two sentences, what of it was only read in code, and the peak with other stacks."""

    stack: str
    sentence: str
    spread: str
    unchecked: tuple[str, ...]
    stacks: tuple[StackRow, ...]


STEP = "step"
"""The accounting that the others are compared with: it knows which tensors are alive."""

WORKING_TERMS = ("active_layer", "logits")
"""Terms whose tensors come and go within a moment."""

MOST_TENSORS = 12
"""Tensors listed at the most; the rest are small."""


def moments(estimate: Estimate) -> tuple[MomentRow, ...]:
    """Every moment of the step, the largest marked; nothing for an accounting that knows only one."""
    if len(estimate.moments) == 1:
        return ()
    peak = estimate.peak_bytes
    return tuple(
        MomentRow(
            label=words.moment_text(moment.name),
            gib=gib_text(moment.bytes),
            share=moment.bytes / peak,
            largest=moment is estimate.moment,
            amounts={name: amount for name, amount in component_bytes(moment.terms) if amount},
        )
        for moment in estimate.moments
    )


def tensors(estimate: Estimate) -> tuple[TensorRow, ...]:
    """The tensors of the layer or the head that are alive at the largest moment, largest first."""
    found = [
        holding
        for name, holdings in estimate.moment.inspect().items()
        if name in WORKING_TERMS
        for holding in holdings
    ]
    return tuple(
        TensorRow(words.moment_text(each.name), each.shape, each.dtype, count_text(each.count), gib_text(each.bytes, places=3), each.why)
        for each in found[:MOST_TENSORS]
    )


def counted_by_each(settings: Settings, known: dict[str, Estimate | NotExpressible]) -> tuple[Counted, ...]:
    """The run by every accounting: its peak and verdict, or the sentence that says why it cannot count it. `known`: what has been counted already."""
    return tuple(
        _counted(name, settings, known.get(name) or counted_by(settings, name)) for name in ACCOUNTINGS
    )


def _counted(name: str, settings: Settings, counted: Estimate | NotExpressible) -> Counted:
    label, current = words.value_text("accounting", name), name == settings.accounting
    query = to_query(settings.varied(accounting=name))
    if isinstance(counted, NotExpressible):
        return Counted(label, "", "", "", counted.message, current, query)
    return Counted(label, gib_text(counted.peak_bytes), words.verdict_text(counted.verdict), counted.verdict, "", current, query)


def others(estimate: Estimate) -> tuple[Other, ...]:
    """How every accounting counts this run, and which terms make the difference from the chosen one."""
    rows = []
    for name, other in by_accounting(estimate.settings).items():
        label, current = words.value_text("accounting", name), name == estimate.accounting
        query = to_query(estimate.settings.varied(accounting=name))
        if isinstance(other, NotExpressible):
            rows.append(Other(label, "", "", "", "", other.message, current, query))
            continue
        more = "" if current else gib_text(other.peak_bytes - estimate.peak_bytes, signed=True)
        why = "" if current else terms_between(estimate, other)
        rows.append(Other(label, gib_text(other.peak_bytes), more, words.verdict_text(other.verdict), other.verdict, why, current, query))
    return tuple(rows)


NAMED_TERMS = 3
"""Terms that are named of those that make a difference, the largest first."""

SMALL_PERCENT, HUNDRED_PERCENT = 5, 100
"""Below so much of all that differs, a term is not named."""


def terms_between(chosen: Estimate, other: Estimate) -> str:
    """The terms that make the difference between two estimates of a run, largest first, from their ledgers: what the other leaves
    out, what it has on top, and what it takes as more or less."""
    by_chosen, by_other = (dict(component_bytes(each.terms)) for each in (chosen, other))
    between = {name: by_other[name] - by_chosen[name] for name in by_chosen}
    all_of_it = sum(map(abs, between.values()))
    named = sorted((name for name in between if HUNDRED_PERCENT * abs(between[name]) >= SMALL_PERCENT * all_of_it and between[name]), key=lambda name: -abs(between[name]))
    told = [_term_between(chosen.accounting if by_chosen[name] else other.accounting, name, by_chosen[name], by_other[name]) for name in named[:NAMED_TERMS]]
    sentence = "; ".join(told) or "the same, term by term"
    return f"{sentence[0].upper()}{sentence[1:]}."


def _term_between(accounting: str, name: str, by_chosen: int, by_other: int) -> str:
    label, amount = words.inside(words.component_label(accounting, name)), gib_text(by_other - by_chosen, signed=True)
    if not by_other:
        return f"nothing for {label} ({amount})"
    if not by_chosen:
        return f"{label} on top ({amount})"
    return f"{'more' if by_other > by_chosen else 'less'} for {label} ({amount})"


def uncounted_text(settings: Settings) -> str:
    """That the chosen accounting has no number for this run."""
    return f"{words.value_text('accounting', settings.accounting)}: cannot count this run"


def differences(estimate: Estimate) -> Differences | None:
    """How the other accountings differ from the training step, component by component; None where it or all others cannot count the run."""
    counted = {name: each for name, each in by_accounting(estimate.settings).items() if isinstance(each, Estimate)}
    held = counted.pop(STEP, None)
    if held is None or not counted:
        return None
    by_step = dict(component_bytes(held.terms))
    by_others = {name: dict(component_bytes(other.terms)) for name, other in counted.items()}
    rows = tuple(
        _difference(label, by_step[part], {name: amounts[part] for name, amounts in by_others.items()}, part)
        for part, (label, _) in words.COMPONENTS.items()
        if by_step[part] or any(amounts[part] for amounts in by_others.values())
    )
    peak = _difference("Peak per GPU", held.peak_bytes, {name: other.peak_bytes for name, other in counted.items()})
    return Differences(tuple(words.value_text("accounting", name) for name in counted), rows, peak)


def _difference(label: str, by_step: int, by_others: dict[str, int], part: str = "") -> DifferenceRow:
    others = tuple(Beside(gib_text(each), gib_text(each - by_step, signed=True)) for each in by_others.values())
    whys = (words.DIFFERENCES[name][part] for name, each in by_others.items() if part and each != by_step)
    return DifferenceRow(label, gib_text(by_step), others, " ".join(whys))


def component_bytes(terms: Iterable[Term]) -> Iterable[tuple[str, int]]:
    """Bytes of every component, of an empty one too."""
    by_name = {term.name: term.bytes for term in terms}
    for name, (_, parts) in words.COMPONENTS.items():
        yield name, sum(by_name.get(part, 0) for part in parts)


def assumptions(estimate: Estimate) -> Assumptions | None:
    """What was assumed because nobody said: the stack, what it decided, what of that is unchecked, and other stacks."""
    if estimate.process is None:
        return None
    settings = estimate.settings
    peaks = peaks_by_stack(settings)
    rows = tuple(
        StackRow(stacks()[name].label, gib_text(peak), name == settings.stack, to_query(settings.varied(stack=name)))
        for name, peak in peaks.items()
    )
    low, high = (gib_text(each) for each in (min(peaks.values()), max(peaks.values()))) if peaks else ("", "")
    spread = f"Across these trainers and releases the same settings take {low} to {high} GiB." if low != high else ""
    return Assumptions(stack_of(settings).label, assumed_text(estimate), spread, unchecked(estimate), rows)


def assumed_text(estimate: Estimate) -> str:
    """Which stack is assumed and what it decided, in a sentence; nothing where the accounting knows no stacks."""
    if estimate.process is None:
        return ""
    told = f"Counted as {stack_of(estimate.settings).label} runs it: {_decided_text(estimate.settings, policy(estimate.settings))}."
    more = (_why_written_out(estimate.settings), words.WITHOUT_KERNELS.get(estimate.settings.architecture.mixer, ""))
    return " ".join((told, *filter(None, more)))


def _why_written_out(settings: Settings) -> str:
    """Why scores are stored though another kernel was asked for; nothing where they are not."""
    if settings.architecture.alibi and settings.attention_kernel != "eager":
        return words.DISTANCES_ADDED
    if settings.architecture.broadcast_heads and settings.attention_kernel != "eager":
        return words.HEADS_BROADCAST
    return words.WRITTEN_OUT if step.writes_attention_out(settings) else ""


def unchecked(estimate: Estimate) -> tuple[str, ...]:
    """What the number rests on that was only read in code, not checked by a recorded run."""
    if estimate.process is None:
        return ()
    of_stack = stack_of(estimate.settings).unchecked
    facts = (words.DECISIONS[name] for name in policy(estimate.settings).assumed if name in of_stack)
    return tuple(dict.fromkeys((*facts, *estimate.unchecked)))


def unchecked_text(estimate: Estimate) -> str:
    """The same in a sentence."""
    names = unchecked(estimate)
    return f"Read in the trainer’s code, not yet checked by a recorded run: {', '.join(names)}." if names else ""


def _divided_precision(settings: Settings, decided: Policy) -> str:
    """What GPUs that divide the states make of the trained parameters; nothing where none do, or where it is what was decided."""
    if not settings.divides_states:
        return ""
    if settings.sharding.startswith("zero"):
        return "16 bits, with FP32 masters that the GPUs divide"
    keeps = settings.sharding == "fsdp2" and settings.method == "qlora"
    return "FP32 that the GPUs divide, gathered in 16 bits" if decided.autocast and not keeps else ""


def _decided_text(settings: Settings, decided: Policy) -> str:
    """The decisions that matter most, in words."""
    autocast = " under autocast" if decided.autocast else ""
    precision = f"FP32{autocast}" if decided.trainable_precision == "mixed-bf16" else "BF16"
    precision = _divided_precision(settings, decided) or precision
    loss = words.loss_text(decided.loss)
    optimizer = words.value_text("optimizer", decided.optimizer)
    told = f"trained parameters in {precision}; optimizer {optimizer}; loss: {words.inside(loss)}"
    return f"{told}; reference: {words.REFERENCES[decided.reference]}" if decided.reference else told
