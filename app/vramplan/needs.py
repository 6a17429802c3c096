"""What hardware a run needs, told to people: classes by method and length, rules of thumb, links between GPUs, host memory."""

from dataclasses import dataclass
from math import ceil

from vramplan import words
from vramplan.accounts import component_bytes
from vramplan.claims import ABOVE, WITHIN, Held, held
from vramplan.compare import compared
from vramplan.constants import BF16_BYTES
from vramplan.hardware import NONE, SEVERAL, Interconnect, Needed, bounds, contexts, grid, interconnects
from vramplan.ledger import Estimate
from vramplan.link import to_query
from vramplan.settings import Settings
from vramplan.units import GB, count_text, gib_text, short_count_text

KINDS = {
    "consumer": "consumer card",
    "datacenter": "datacenter GPU",
    "several": "GPUs of one node",
    "nodes": "several nodes",
    "none": "no number of GPUs",
}
"""What each kind of hardware is called."""

NAMED_PARTS = 3
"""Components of a peak that are named where it lies outside a range."""

HOST_TENTHS, TENTHS = (15, 20), 10
"""Host memory as a rule of thumb, in tenths of the bytes of the unquantised weights: 1.5 to 2 times. Source: Model training VRAM
estimator, questions and answers."""


@dataclass(frozen=True)
class Cell:
    """What a run needs, in a few words, what divides it, and the link that opens it; empty where it cannot be counted."""

    text: str
    how: str
    kind: str
    peak: str
    query: str


@dataclass(frozen=True)
class NeedRow:
    """One training method: what it needs at each sequence length."""

    label: str
    cells: tuple[Cell, ...]


@dataclass(frozen=True)
class ClaimRow:
    """One rule of thumb: what it is about, its range and what is computed in GB, where that lies, and why where it lies outside."""

    label: str
    said: str
    computed: str
    place: str
    why: str
    assumes: str
    source: str
    query: str


def need_rows(settings: Settings) -> tuple[tuple[str, ...], tuple[NeedRow, ...]]:
    """Sequence lengths, and for each method what it needs at each of them; the GPU that is chosen does not matter."""
    varied = compared(settings)
    found = tuple(row for row in grid(settings) if any(row))
    rows = tuple(
        NeedRow(words.value_text(varied, getattr(next(cell for cell in row if cell).settings, varied)), tuple(_cell(cell) for cell in row)) for row in found
    )
    lengths = tuple(count_text(length) for length in contexts(settings)) if rows else ()
    return lengths, rows


def _cell(cell: Needed | None) -> Cell:
    if cell is None:
        return Cell("not counted", "", "", "", "")
    _, node_gpus, node_class = bounds()
    peak = f"{gib_text(cell.peak_bytes)} GiB on one GPU"
    if cell.kind == NONE:
        text, kind = ("no single GPU",) * 2 if cell.settings.serves else (f"no number of {node_class} GiB GPUs", KINDS[NONE])
        return Cell(text, "", kind, peak, to_query(cell.settings))
    size = f"{cell.gib} GiB"
    if cell.gpus == 1:
        text = f"{size} {KINDS[cell.kind]}"
    elif cell.kind == SEVERAL:
        text = f"{cell.gpus} × {size}, one node"
    else:
        text = f"{cell.gpus} × {size}, {ceil(cell.gpus / node_gpus)} nodes"
    how = words.value_text("sharding", cell.sharding) if cell.gpus > 1 else ""
    return Cell(text, how, KINDS[cell.kind], peak, to_query(_on(cell)))


def _on(cell: Needed) -> Settings:
    """The run on the hardware it needs."""
    if cell.gpus == 1:
        return cell.settings.varied(gpu=str(cell.gib))
    return cell.settings.varied(gpu=str(cell.gib), sharding=cell.sharding, sharded_over=cell.gpus)


def need_sentence(settings: Settings) -> str:
    """What the classes mean."""
    consumer_gib, node_gpus, node_class = bounds()
    beyond = (
        "a model that answers is not divided over several GPUs here." if settings.serves else
        f"beyond the largest single GPU the states are divided (FSDP2 or ZeRO-3) over GPUs of {node_class} GiB, {node_gpus} to a node."
    )
    return f"The smallest hardware on which {settings.model_label} fits with every other setting held. Consumer cards end at {consumer_gib} GiB; {beyond}"


def claim_rows(accounting: str) -> tuple[ClaimRow, ...]:
    """Every rule of thumb beside what an accounting computes."""
    return tuple(_claim_row(each) for each in held(accounting))


def _claim_row(each: Held) -> ClaimRow:
    claim, peak = each.claim, each.estimate.peak_bytes
    said = f"{claim.low:,}–{claim.high:,}" if 0 < claim.low < claim.high else f"{claim.high:,}"
    place = {WITHIN: "within", ABOVE: "above"}.get(each.place, "below")
    return ClaimRow(
        label=claim.what,
        said=said if claim.low else f"up to {said}",
        computed=gb_text(peak),
        place=place,
        why="" if each.place == WITHIN else _why(each.estimate),
        assumes=claim.assumes,
        source=claim.source,
        query=to_query(claim.settings.varied(accounting=each.estimate.accounting)),
    )


def _why(estimate: Estimate) -> str:
    """What a peak outside a range is made of, largest first."""
    parts = sorted(component_bytes(estimate.terms), key=lambda part: -part[1])[:NAMED_PARTS]
    told = ", ".join(f"{words.inside(words.component_label(estimate.accounting, name))} {gb_text(amount)}" for name, amount in parts if amount)
    return f"{estimate.settings.model_label} has {short_count_text(estimate.parameters.total)} parameters; at the peak: {told} GB."


def gb_text(amount: int) -> str:
    """Bytes in GB (10^9), to one decimal; what is less than a tenth of one, to three."""
    return f"{amount / GB:.3f}" if 0 < TENTHS * amount < GB else f"{amount / GB:,.1f}"


def link_rows() -> tuple[tuple[str, str, str], ...]:
    """Every interconnect: name, speed, and where it is found."""
    return tuple((each.name, _speed(each), each.seen) for each in interconnects())


def _speed(each: Interconnect) -> str:
    return f"{count_text(each.gb_per_second)} GB/s {each.direction}"


LINKS_SENTENCE = (
    "Dividing states moves gradients once per step, and weights again for ZeRO-3 and FSDP: PCIe slows that, but can carry it. Tensor parallelism adds up"
    " partial results twice in every layer and pass, so it wants NVLink. Pipeline parallelism passes on one layer’s output at each cut, which PCIe can carry."
    " Neither of the two is counted here."
)
"""What interconnects mean for ways to use several GPUs."""


def host_guidance(estimate: Estimate) -> str:
    """Host memory as a rule of thumb: 1.5 to 2 times the weights as they are before quantisation."""
    weights = BF16_BYTES * estimate.parameters.total
    low, high = (gb_text(tenths * weights // TENTHS) for tenths in HOST_TENTHS)
    return f"As a rule of thumb the machine should have {low} to {high} GB of its own memory: 1.5 to 2 times the weights before quantisation, for loading and data."
