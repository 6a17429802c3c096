"""A timeline drawn with block characters, or with letters where a terminal has no blocks."""

from bisect import bisect_right

from vramplan import chronicle
from vramplan.chart import memory_ticks
from vramplan.tables import columns, headline
from vramplan.timechart import edges_of
from vramplan.timeline import Timeline
from vramplan.units import GIB, count_text, gib_text

EVERY = 10_000
"""Rows of a table that leaves nothing out: more than a frame can have."""

HEIGHT = 18
"""Lines of the drawing."""

NARROWEST, WIDEST = 40, 160
"""Characters the drawing takes at the least and at the most, whatever the terminal says."""

BLOCKS = {
    "base_weights": "█", "reference": "▤", "adapters": "▓", "master_weights": "▞", "allowance": "▄", "optimizer_states": "▒", "gradients": "░",
    "activations": "╫", "kv_cache": "◇", "logits": "◆", "dequantization": "▚",
}
"""The character of each component."""

LETTERS = {
    "base_weights": "W", "reference": "R", "adapters": "a", "master_weights": "M", "allowance": "i", "optimizer_states": "O", "gradients": "g",
    "activations": "A", "kv_cache": "K", "logits": "L", "dequantization": "d",
}
"""The same without blocks."""

OVER, PEAK, LINE, AXIS = ("•", "▼", "─", "│"), ("▼", "v"), ("─", "-"), ("│", "|")
"""Marks, with blocks and without: total of the run laid over, peak, usable memory, axis."""


def can_print(encoding: str | None) -> bool:
    """Whether a stream with this encoding has every block character."""
    try:
        "".join((*BLOCKS.values(), OVER[0], PEAK[0], LINE[0], AXIS[0])).encode(encoding or "ascii")
    except UnicodeEncodeError:
        return False
    return True


def page(shown: Timeline, *, width: int, over: Timeline | None = None, ascii_only: bool = False) -> str:
    """Headline, what the drawing shows in sentences, the drawing, its legend, what was left out, and the moments."""
    told = [chronicle.sentence(shown), *([chronicle.against(shown, over)] if over else [])]
    return "\n\n".join((
        headline(shown.estimate),
        "\n".join(told),
        drawing(shown, width=width, over=over, ascii_only=ascii_only),
        legend(shown, over=over, ascii_only=ascii_only),
        "\n".join(chronicle.left_out(shown)),
    ))


def alive_table(shown: Timeline, index: int) -> str:
    """What is alive at a frame: every row, largest first."""
    rows = [(row.label, row.gib, row.shape, row.dtype, row.count, row.why) for row in chronicle.alive(shown, index, most=EVERY)]
    total = ("Together", gib_text(shown.frames[index].bytes, places=3), "", "", "", "")
    table = columns([("Alive", "GiB", "Shape", "Type", "Count", "Why"), *rows, total], left=(0, 2, 3, 5))
    return f"{chronicle.reading(shown, index)} (frame {index + 1} of {len(shown.frames)})\n\n{table}"


def drawing(shown: Timeline, *, width: int, over: Timeline | None = None, ascii_only: bool = False) -> str:
    """The stacked drawing with its axis, lines, peak and parts, `width` characters wide, and the legend below."""
    plain = int(ascii_only)
    fill = LETTERS if ascii_only else BLOCKS
    marks = {"over": "o" if ascii_only else OVER[0], "peak": PEAK[plain], "line": LINE[plain], "axis": AXIS[plain]}
    one = shown.estimate
    scale = memory_ticks(max(shown.peak.bytes, one.usable_bytes, over.peak.bytes if over else 0))
    top = scale[-1] * GIB
    ticks = {_row(gib * GIB, top): count_text(gib) for gib in scale if gib}
    margin = len(count_text(scale[-1])) + 2
    width = max(NARROWEST, min(WIDEST, width)) - margin
    places = _places(shown, width)
    amounts = chronicle.amounts(shown)
    grid = [[" "] * width for _ in range(HEIGHT)]
    usable = _row(one.usable_bytes, top)
    for column, indices in enumerate(places):
        index = max(indices, key=lambda each: shown.frames[each].bytes)
        for row in range(HEIGHT):
            grid[row][column] = _cell(amounts[index], row, top, fill) or (marks["line"] if row == usable else " ")
        if over:
            total = _over_at(shown, over, indices)
            if total is not None:
                grid[_row(total, top)][column] = marks["over"]
    peak_column = next(column for column, indices in enumerate(places) if shown.peak_index in indices)
    above = _row(shown.peak.bytes, top) + 1
    if above < HEIGHT:
        grid[above][peak_column] = marks["peak"]
    lines = [f"{ticks.get(row, ''):>{margin - 2}} {marks['axis']}{''.join(grid[row])}".rstrip() for row in reversed(range(HEIGHT))]
    return "\n".join((*lines, *_parts(shown, places, margin, marks["axis"])))


def legend(shown: Timeline, *, over: Timeline | None = None, ascii_only: bool = False) -> str:
    """What the characters stand for, from the top of the stack down, with GiB at the peak."""
    fill = LETTERS if ascii_only else BLOCKS
    rows = [("", "At the peak", "GiB")]
    rows += [(fill[entry.name], entry.label, entry.gib) for entry in chronicle.legend(shown, shown.peak_index)]
    rows.append((PEAK[ascii_only], "Peak", gib_text(shown.peak.bytes)))
    rows.append((LINE[ascii_only], "Usable memory", gib_text(shown.estimate.usable_bytes)))
    if over:
        rows.append(("o" if ascii_only else OVER[0], "Peak of the run laid over", gib_text(over.peak.bytes)))
    return columns(rows, left=(0, 1))


def _places(shown: Timeline, width: int) -> list[list[int]]:
    """The frames of each column: those whose middle lies in it, or the one it lies in. A column shows the largest."""
    edges = edges_of(shown, 0, width)
    places: list[list[int]] = [[] for _ in range(width)]
    for index, (left, right) in enumerate(zip(edges, edges[1:], strict=False)):
        places[min(width - 1, int((left + right) / 2))].append(index)
    return [found or [min(bisect_right(edges, column), len(shown.frames)) - 1] for column, found in enumerate(places)]


def _row(amount: int, top: int) -> int:
    """The line from below in which an amount ends."""
    return min(HEIGHT - 1, max(0, -(-amount * HEIGHT // top) - 1))


def _cell(amounts: dict[str, int], row: int, top: int, fill: dict[str, str]) -> str:
    """The character of the component that holds most of this line's share of the memory; none above the stack's last line."""
    low, high = row * top // HEIGHT, (row + 1) * top // HEIGHT
    best, most, below = "", 0, 0
    for name in chronicle.ORDER:
        part = min(high, below + amounts[name]) - max(low, below)
        below += amounts[name]
        if part > most:
            best, most = fill[name], part
    return best


def _over_at(shown: Timeline, over: Timeline, indices: list[int]) -> int | None:
    """The largest total of the second run in these frames of the first, each phase stretched to the same one here."""
    theirs = {phase.name: phase for phase in over.phases}
    found = []
    for phase in shown.phases:
        there = theirs.get(phase.name)
        inside = [index for index in indices if phase.start <= index < phase.end]
        if there and inside:
            scale = (there.end - there.start) / (phase.end - phase.start)
            first = there.start + int((inside[0] - phase.start) * scale)
            last = max(first + 1, there.start + int((inside[-1] + 1 - phase.start) * scale))
            found += [frame.bytes for frame in over.frames[first:last]]
    return max(found, default=None)


def _parts(shown: Timeline, places: list[list[int]], margin: int, axis: str) -> list[str]:
    """Under the axis: where each part starts, numbered, and the names of the numbers."""
    marks = [" "] * len(places)
    names = []
    for number, part in enumerate(shown.parts, start=1):
        column = next(column for column, indices in enumerate(places) if indices[-1] >= part.start)
        marks[column] = str(number)
        names.append(f"{number} {part.name}")
    return [" " * (margin - 1) + axis + "".join(marks).rstrip(), "", "  " + " · ".join(names)]
