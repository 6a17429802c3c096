"""A timeline's drawing as pieces: areas, lines, marks and labels, each with its part in the drawing. No tags, no colours.

The page, the SVG file and the PNG file draw the same pieces in the same order.
"""

from dataclasses import dataclass

from vramplan import chronicle
from vramplan.timechart import LARGE, WIDE, Frame, Path, Span, TimeChart, layout
from vramplan.timeline import Timeline
from vramplan.units import count_text, gib_text

ROW = 15
"""Height of a row of labels under the axis, in user units."""

GAP = 6
"""Distance of a label from what it names, in user units."""

LETTER = 7.2
"""Width of a letter of a label, in user units: a little more than it has on average."""

SHORTER = {"a later micro-batch": "a later one"}
"""What a part is called where there is little room."""


@dataclass(frozen=True)
class Area:
    """An area in the colour of a component."""

    name: str
    corners: Path


@dataclass(frozen=True)
class Line:
    """A line; `role` says which: grid, part, usable, budget, over."""

    role: str
    corners: Path


@dataclass(frozen=True)
class Mark:
    """The mark of the peak: a diamond around a place."""

    role: str
    x: float
    y: float


@dataclass(frozen=True)
class Label:
    """A text; `role` says what of: tick, part, line, peak. anchor: start, middle or end."""

    role: str
    x: float
    y: float
    anchor: str
    text: str


Piece = Area | Line | Mark | Label


@dataclass(frozen=True)
class Scene:
    """A drawing: its size, its pieces from the back to the front, what it is, and the same in sentences."""

    chart: TimeChart
    pieces: tuple[Piece, ...]
    title: str
    description: str

    @property
    def frame(self) -> Frame:
        """Its size and margins."""
        return self.chart.frame


def scene(shown: Timeline, *, over: Timeline | None = None, frame: Frame = WIDE) -> Scene:
    """The drawing of a timeline, with a second run laid over it where one is given."""
    chart = layout(shown, chronicle.amounts(shown), chronicle.ORDER, over=over, frame=frame)
    pieces = (
        *_grid(chart), *(Area(band.name, band.corners) for band in chart.bands), *_parts(chart), *_lines(shown, chart),
        *(Line("over", path) for path in chart.over), *_peak(shown, chart),
    )
    told = (chronicle.sentence(shown), chronicle.against(shown, over) if over else "", *chronicle.left_out(shown))
    return Scene(chart, pieces, chronicle.title(shown), " ".join(text for text in told if text))


def for_a_file(shown: Timeline, *, over: Timeline | None = None) -> Scene:
    """The drawing at the size of a picture of its own."""
    return scene(shown, over=over, frame=LARGE)


def _grid(chart: TimeChart) -> list[Piece]:
    frame = chart.frame
    pieces: list[Piece] = [Label("tick", frame.left - GAP, frame.top - GAP, "end", "GiB")]
    for tick in chart.y_ticks:
        pieces.append(Line("grid", ((frame.left, tick.at), (frame.plot_right, tick.at))))
        if tick.at > frame.top:
            pieces.append(Label("tick", frame.left - GAP, tick.at + 4, "end", count_text(tick.value)))
    return pieces


def _parts(chart: TimeChart) -> list[Piece]:
    """Names of the parts under the axis: micro-batches, then the steps they are in, and between them the short parts."""
    pieces: list[Piece] = []
    floor, right = chart.frame.floor, chart.frame.plot_right
    steps: dict[str, list[Span]] = {}
    for span in chart.spans:
        step, _, name = span.name.partition(", ")
        pieces.append(Line("part", ((span.left, chart.frame.top), (span.left, floor + GAP))))
        if not name:
            pieces.append(Label("part", span.left, floor + 3 * ROW, "start", step))
            continue
        steps.setdefault(step, []).append(span)
        if name.startswith("optimizer"):
            pieces.append(Line("part", ((span.middle, floor), (span.middle, floor + 2 * ROW + GAP))))
            anchor = "end" if span.right >= right else "middle"
            pieces.append(Label("part", right if anchor == "end" else span.middle, floor + 3 * ROW, anchor, name))
        else:
            fits = LETTER * len(name) < span.right - span.left
            pieces.append(Label("part", span.middle, floor + ROW, "middle", name if fits else SHORTER.get(name, name)))
    for step, spans in steps.items():
        left, end = spans[0].left, spans[-1].right
        pieces.append(Label("step", round((left + end) / 2, 1), floor + 2 * ROW, "middle", step))
    return pieces


def _lines(shown: Timeline, chart: TimeChart) -> list[Piece]:
    """The memory that is usable, and the whole budget where that is more."""
    frame, one = chart.frame, shown.estimate
    usable, budget = gib_text(one.usable_bytes), gib_text(one.budget_bytes)
    pieces: list[Piece] = [Line("usable", ((frame.left, chart.usable_y), (frame.plot_right, chart.usable_y)))]
    text = f"budget {budget}"
    if one.context_bytes:
        pieces.append(Line("budget", ((frame.left, chart.budget_y), (frame.plot_right, chart.budget_y))))
        text = f"usable {usable} of {budget}"
    pieces.append(Label("line", frame.left + GAP, min(chart.usable_y, chart.budget_y) - GAP, "start", f"{text} GiB"))
    return pieces


def _peak(shown: Timeline, chart: TimeChart) -> list[Piece]:
    x, y = chart.middle(chart.peak_index), chart.tops[chart.peak_index]
    text = f"peak {gib_text(shown.peak.bytes)} GiB"
    room = 2 * GAP + len(text) * LETTER
    anchor = "end" if x + room > chart.frame.plot_right else "start"
    return [Mark("peak", x, y), Label("peak", x - 2 * GAP if anchor == "end" else x + 2 * GAP, y - GAP, anchor, text)]
