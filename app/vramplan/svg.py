"""A scene as an SVG file that needs nothing else: title, description, legend, light and dark."""

from dataclasses import dataclass
from html import escape

from vramplan import chronicle
from vramplan.language import told
from vramplan.scene import ROW, Area, Label, Line, Mark, Path, Piece, Scene
from vramplan.timeline import Timeline

LIGHT = {
    "base_weights": "#2b5597", "reference": "#2f8f9d", "adapters": "#3f8fd6", "master_weights": "#6a4fb0", "gradients": "#8f76d6", "optimizer_states": "#c660a9",
    "activations": "#c9691a", "kv_cache": "#2f7d8c", "logits": "#b08400", "dequantization": "#8c6a49", "allowance": "#78857f",
    "surface": "#ffffff", "ink": "#16201c", "quiet": "#54625c", "line": "#d5dcd9", "over": "#a8201a",
}
"""Colours of the components and of the rest on a light ground, as on the page."""

DARK = {
    "base_weights": "#5b93e0", "reference": "#5fc3cf", "adapters": "#9fcbf2", "master_weights": "#8f78d8", "gradients": "#b9a7ec", "optimizer_states": "#d97fc0",
    "activations": "#e8944a", "kv_cache": "#6cc3d3", "logits": "#e9c75c", "dequantization": "#b08d68", "allowance": "#7d8984",
    "surface": "#171e1c", "ink": "#e6edea", "quiet": "#a4b3ad", "line": "#2f3a37", "over": "#ff9d94",
}
"""The same on a dark ground."""

PEAK_SIZE = 5
"""Half the width of the peak's mark, in user units."""

LEGEND_WIDTH, LEGEND_ROW, KEY = 230, 19, 11
"""Room of one entry of the legend, its height, and the size of its key, in user units."""

STYLE = """
text { font: 13px system-ui, -apple-system, "Segoe UI", Roboto, "Noto Sans", "DejaVu Sans", sans-serif; fill: var(--quiet); font-variant-numeric: tabular-nums; }
.ground { fill: var(--surface); }
.title { font-size: 17px; font-weight: 600; fill: var(--ink); }
.told, .label-line, .label-peak, .legend { fill: var(--ink); }
.label-line, .label-peak { font-weight: 600; paint-order: stroke; stroke: var(--surface); stroke-width: 4px; }
.area { stroke: var(--surface); stroke-width: .4; }
.grid { stroke: var(--line); }
.part { stroke: var(--quiet); stroke-width: .75; stroke-dasharray: 1 3; }
.usable { stroke: var(--ink); stroke-width: 1.5; stroke-dasharray: 6 4; }
.budget { stroke: var(--quiet); stroke-dasharray: 2 3; }
.over { fill: none; stroke: var(--surface); stroke-width: 4; }
.over-line { fill: none; stroke: var(--over); stroke-width: 1.75; }
.peak { fill: var(--ink); stroke: var(--surface); stroke-width: 1.5; }
"""
"""How the pieces look; their colours are variables that follow the reader's choice of light or dark."""


@dataclass(frozen=True)
class Sheet:
    """What a file has around the drawing: texts, the legend's keys, how far down the drawing starts, and its whole height."""

    top: int
    height: int
    texts: tuple[Label, ...]
    keys: tuple[Mark, ...]


def sheet(drawn: Scene, shown: Timeline, over: Timeline | None = None) -> Sheet:
    """Title and sentences on top, below the drawing the legend with what each component holds at the peak, and remarks."""
    sentences = [chronicle.sentence(shown), *([chronicle.against(shown, over)] if over else [])]
    top = ROW * (len(sentences) + 2)
    texts = [Label("title", ROW, 2 * ROW - 4, "start", drawn.title)]
    texts += [Label("told", ROW, ROW * (number + 3), "start", text) for number, text in enumerate(sentences)]
    entries = [(entry.name, f"{entry.label} {entry.gib}") for entry in chronicle.legend(shown, shown.peak_index)]
    entries += [("over", "the run laid over")] if over else []
    per_row = max(1, (drawn.frame.width - 2 * ROW) // LEGEND_WIDTH)
    y, keys = top + drawn.frame.height + ROW, []
    for number, (role, text) in enumerate(entries):
        x, row = ROW + LEGEND_WIDTH * (number % per_row), y + LEGEND_ROW * (number // per_row)
        keys.append(Mark(role, x, row))
        texts.append(Label("legend", x + ROW + 2, row, "start", text))
    y = keys[-1].y + ROW // 2
    for remark in ("The legend gives GiB at the peak.", *chronicle.left_out(shown)):
        y += LEGEND_ROW
        texts.append(Label("note", ROW, y, "start", remark))
    return Sheet(top, round(y) + ROW, tuple(texts), tuple(keys))


def svg(drawn: Scene, shown: Timeline, over: Timeline | None = None) -> str:
    """The scene as a file, in the language in use."""
    planned, width = sheet(drawn, shown, over), drawn.frame.width
    return "\n".join((
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width} {planned.height}" width="{width}" height="{planned.height}" '
        'role="img" aria-labelledby="title description">',
        f'<title id="title">{escape(told(drawn.title))}</title>',
        f'<desc id="description">{escape(told(drawn.description))}</desc>',
        f"<style>:root {{ color-scheme: light dark; {_variables(LIGHT)} }}\n@media (prefers-color-scheme: dark) {{ :root {{ {_variables(DARK)} }} }}{STYLE}{_areas()}</style>",
        f'<rect class="ground" width="{width}" height="{planned.height}"/>',
        f'<g transform="translate(0 {planned.top})">',
        *(_piece(piece) for piece in drawn.pieces),
        "</g>",
        *(_key(key) for key in planned.keys),
        *(_text(text, text.role) for text in planned.texts),
        "</svg>\n",
    ))


def _variables(colours: dict[str, str]) -> str:
    return " ".join(f"--{name}: {colour};" for name, colour in colours.items())


def _areas() -> str:
    return " ".join(f".area-{name} {{ fill: var(--{name}); }}" for name in chronicle.ORDER)


def _piece(piece: Piece) -> str:
    match piece:
        case Area():
            return f'<path class="area area-{piece.name}" d="{path(piece.corners)}z"/>'
        case Line(role="over"):
            d = path(piece.corners)
            return f'<path class="over" d="{d}"/><path class="over-line" d="{d}"/>'
        case Line():
            return f'<path class="{piece.role}" d="{path(piece.corners)}"/>'
        case Mark():
            return f'<path class="{piece.role}" d="{diamond(piece)}"/>'
        case Label():
            return _text(piece, f"label-{piece.role}")


def path(corners: Path) -> str:
    """Corners as the data of an SVG path: steps along and up, as they nearly all are."""
    (x, y), *others = corners
    parts = [f"M{x:g} {y:g}"]
    for next_x, next_y in others:
        if next_y == y:
            parts.append(f"H{next_x:g}")
        elif next_x == x:
            parts.append(f"V{next_y:g}")
        else:
            parts.append(f"L{next_x:g} {next_y:g}")
        x, y = next_x, next_y
    return "".join(parts)


def diamond(mark: Mark, size: int = PEAK_SIZE) -> str:
    """A diamond around a place."""
    return f"M{mark.x:g} {mark.y - size:g}l{size} {size} {-size} {size} {-size} {-size}z"


def _text(label: Label, role: str) -> str:
    return f'<text class="{role}" x="{label.x:g}" y="{label.y:g}" text-anchor="{label.anchor}">{escape(told(label.text))}</text>'


def _key(key: Mark) -> str:
    if key.role == "over":
        return f'<path class="over-line" d="M{key.x:g} {key.y - KEY / 2 + 1:g}h{KEY}"/>'
    return f'<rect class="area-{key.role}" x="{key.x:g}" y="{key.y - KEY + 1:g}" width="{KEY}" height="{KEY}" rx="2"/>'
