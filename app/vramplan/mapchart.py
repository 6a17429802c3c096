"""Where everything in the map of what fits goes, in the user units of its drawing. No words, no colours."""

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import groupby

from vramplan.chart import DIGIT_WIDTH, LABEL_GAP, Frame, Tick
from vramplan.fitmap import Cell, FitMap
from vramplan.ledger import NO, YES
from vramplan.units import count_text

WIDE, NARROW = Frame(640, 300), Frame(330, 260)
"""Drawings for a column of results and for a phone."""

LABEL_HEIGHT = 14
"""Height that the label of a row needs."""

AMPLE, EASY, CLOSE, OVER, FAR = "ample", "easy", "close", "over", "far"
"""Bands of headroom beside the verdicts that are likely or unlikely: half of what is usable or more, a quarter or more, less; too
little by up to as much as is usable, and by more."""

HALF, QUARTER = 2, 4
"""What usable memory is divided by for the lower ends of the first two bands."""

Box = tuple[float, float, float, float]
"""Left, top, right and bottom of a rectangle."""

Edge = tuple[float, float, float, float]
"""A straight line from one place to another: x and y of both."""


@dataclass(frozen=True)
class Band:
    """Everything of one kind in the map, as rectangles."""

    name: str
    boxes: tuple[Box, ...]


@dataclass(frozen=True)
class MapChart:
    """The map, laid out: lengths to the right, micro-batches upwards, every doubling equally wide. xs, ys: where columns and rows begin,
    and where the last one ends. budget: the line between cells with headroom and cells without. current: the middle of the run as it is.
    """

    frame: Frame
    made: FitMap
    xs: tuple[float, ...]
    ys: tuple[float, ...]
    bands: tuple[Band, ...]
    budget: tuple[Edge, ...]
    current: tuple[float, float]
    x_ticks: tuple[Tick, ...]
    y_ticks: tuple[Tick, ...]

    def box(self, row: int, column: int) -> Box:
        """Where a cell is."""
        return self.xs[column], self.ys[row + 1], self.xs[column + 1], self.ys[row]

    def cell(self, row: int, column: int) -> Cell:
        """The cell of a row and a column."""
        return self.made.cells[row][column]

    def moved(self, at: tuple[int, int], rows: int, columns: int) -> tuple[int, int]:
        """The row and the column so many rows and columns on, as far as the map goes."""
        row, column = at
        return min(max(row + rows, 0), len(self.ys) - 2), min(max(column + columns, 0), len(self.xs) - 2)

    def cell_at(self, x: float, y: float) -> tuple[int, int]:
        """The row and the column of the cell nearest to a place in the drawing."""
        return sum(edge >= y for edge in self.ys[1:-1]), sum(edge <= x for edge in self.xs[1:-1])


def layout(made: FitMap, *, frame: Frame = WIDE) -> MapChart:
    """Lay out the map."""
    columns, rows = len(made.lengths), len(made.micro_batches)
    xs = tuple(round(frame.left + (frame.plot_right - frame.left) * column / columns, 1) for column in range(columns + 1))
    ys = tuple(round(frame.floor - (frame.floor - frame.top) * row / rows, 1) for row in range(rows + 1))
    row, column = made.current
    return MapChart(
        frame, made, xs, ys, _bands(made, xs, ys), _budget(made, xs, ys), (_middle(xs, column), _middle(ys, row)),
        _ticks(made.lengths, xs, DIGIT_WIDTH * len(count_text(made.lengths[-1])) + LABEL_GAP), _ticks(made.micro_batches, ys, LABEL_HEIGHT),
    )


def band(cell: Cell, usable: int) -> str:
    """The band of a cell: a verdict that is open, else by headroom."""
    if cell.verdict not in (YES, NO):
        return cell.verdict
    if cell.verdict == NO:
        return OVER if cell.peak_bytes <= 2 * usable else FAR
    return AMPLE if HALF * cell.headroom_bytes >= usable else EASY if QUARTER * cell.headroom_bytes >= usable else CLOSE


def _bands(made: FitMap, xs: Sequence[float], ys: Sequence[float]) -> tuple[Band, ...]:
    """Cells of one band that lie beside each other, as one rectangle each."""
    found: dict[str, list[Box]] = {}
    for row, cells in enumerate(made.cells):
        column = 0
        for name, group in groupby(band(cell, made.usable_bytes) for cell in cells):
            end = column + len(list(group))
            found.setdefault(name, []).append((xs[column], ys[row + 1], xs[end], ys[row]))
            column = end
    return tuple(Band(name, tuple(boxes)) for name, boxes in found.items())


def _budget(made: FitMap, xs: Sequence[float], ys: Sequence[float]) -> tuple[Edge, ...]:
    """The edges between neighbours of which one has headroom, and the other has none."""
    within = [[cell.headroom_bytes >= 0 for cell in cells] for cells in made.cells]
    rows, columns = len(within), len(xs) - 1
    upright = [(xs[c], ys[r], xs[c], ys[r + 1]) for r in range(rows) for c in range(1, columns) if within[r][c] != within[r][c - 1]]
    level = [(xs[c], ys[r], xs[c + 1], ys[r]) for r in range(1, rows) for c in range(columns) if within[r][c] != within[r - 1][c]]
    return (*upright, *level)


def _ticks(values: Sequence[int], edges: Sequence[float], room: float) -> tuple[Tick, ...]:
    """Powers of two, each at the middle of its cell: the last, and those before it that are far enough from the next one."""
    shown: list[Tick] = []
    for place in reversed([place for place, value in enumerate(values) if not value & (value - 1)]):
        at = _middle(edges, place)
        if not shown or abs(shown[-1].at - at) >= room:
            shown.append(Tick(at, values[place]))
    return tuple(reversed(shown))


def _middle(edges: Sequence[float], place: int) -> float:
    """The middle of a row or a column."""
    return round((edges[place] + edges[place + 1]) / 2, 1)
