"""A scene as a PNG file, twice as fine as its user units. Needs Pillow, which only this needs: pip install "vramplan[png]"."""

from io import BytesIO

from vramplan.errors import Missing
from vramplan.scene import ROW, Area, Label, Line, Mark, Path, Piece, Scene
from vramplan.svg import KEY, LIGHT, PEAK_SIZE, Sheet, sheet
from vramplan.timeline import Timeline

SCALE = 2
"""Pixels per user unit."""

TEXT, TITLE = 13, 17
"""Heights of text, in user units, as in the SVG."""

DASHES = {"usable": (6, 4), "budget": (2, 3), "part": (1, 3)}
"""Lines that are dashed: lengths of dash and gap, in user units."""

COLOURS = {"grid": "line", "usable": "ink", "budget": "quiet", "part": "quiet", "over": "over", "line": "ink", "peak": "ink"}
"""The colour of each line and label that is not quiet text."""

ANCHORS = {"start": "ls", "middle": "ms", "end": "rs"}
"""Pillow's names: left, middle or right of the base line."""


def png(drawn: Scene, shown: Timeline, over: Timeline | None = None) -> bytes:
    """The scene as a file, on a light ground. Raises Missing where Pillow is not installed."""
    try:
        from PIL import Image, ImageDraw, ImageFont
    except ImportError:
        raise Missing('A PNG needs Pillow, which is not installed: pip install "vramplan[png]", or write an SVG.') from None
    planned = sheet(drawn, shown, over)
    image = Image.new("RGB", (drawn.frame.width * SCALE, planned.height * SCALE), LIGHT["surface"])
    pen = _Pen(ImageDraw.Draw(image), {size: ImageFont.load_default(size * SCALE) for size in (TEXT, TITLE)})
    for text in planned.texts:
        pen.text(text, LIGHT["ink" if text.role in ("title", "told", "legend") else "quiet"], TITLE if text.role == "title" else TEXT)
    pen.shift = planned.top
    for piece in drawn.pieces:
        pen.piece(piece)
    pen.shift = 0
    pen.keys(planned)
    content = BytesIO()
    image.save(content, "PNG", optimize=True)
    return content.getvalue()


class _Pen:
    """Draws pieces at their scale, shifted down by so many user units."""

    def __init__(self, draw, fonts):
        self.draw, self.fonts, self.shift = draw, fonts, 0

    def piece(self, piece: Piece) -> None:
        """Draw one piece."""
        match piece:
            case Area():
                self.draw.polygon(self._scaled(piece.corners), fill=LIGHT[piece.name])
            case Line(role="over"):
                self.draw.line(self._scaled(piece.corners), fill=LIGHT["surface"], width=3 * SCALE)
                self.draw.line(self._scaled(piece.corners), fill=LIGHT["over"], width=SCALE * 2)
            case Line():
                self._line(piece)
            case Mark():
                around = ((0, -PEAK_SIZE), (PEAK_SIZE, 0), (0, PEAK_SIZE), (-PEAK_SIZE, 0))
                self.draw.polygon(self._scaled(tuple((piece.x + x, piece.y + y) for x, y in around)), fill=LIGHT["ink"], outline=LIGHT["surface"])
            case Label():
                self.text(piece, LIGHT[COLOURS.get(piece.role, "quiet")], TEXT)

    def text(self, label: Label, colour: str, size: int) -> None:
        """Write a text, with a margin in the colour of the ground."""
        place = self._scaled(((label.x, label.y),))[0]
        text = label.text.replace("×", "x")  # Pillow's own font has no multiplication sign
        self.draw.text(
            place, text, fill=colour, font=self.fonts[size], anchor=ANCHORS[label.anchor], stroke_width=SCALE if label.role in ("line", "peak") else 0,
            stroke_fill=LIGHT["surface"],
        )

    def keys(self, planned: Sheet) -> None:
        """Draw the keys of the legend."""
        for key in planned.keys:
            (left, top), (right, bottom) = self._scaled(((key.x, key.y - KEY + 1), (key.x + KEY, key.y + 1)))
            if key.role == "over":
                self.draw.line((left, (top + bottom) / 2, right, (top + bottom) / 2), fill=LIGHT["over"], width=SCALE * 2)
            else:
                self.draw.rectangle((left, top, right, bottom), fill=LIGHT[key.role])

    def _line(self, line: Line) -> None:
        """A straight line, dashed where its role is."""
        colour, on_off = LIGHT[COLOURS[line.role]], DASHES.get(line.role)
        if not on_off:
            self.draw.line(self._scaled(line.corners), fill=colour, width=SCALE // 2)
            return
        (x, y), (end_x, end_y) = line.corners
        length, at = max(end_x - x, end_y - y), 0.0
        while at < length:
            to = min(at + on_off[0], length)
            ends = ((x + at, y), (x + to, y)) if end_y == y else ((x, y + at), (x, y + to))
            self.draw.line(self._scaled(ends), fill=colour, width=SCALE if line.role == "usable" else SCALE // 2)
            at += sum(on_off)

    def _scaled(self, corners: Path) -> list[tuple[float, float]]:
        return [(x * SCALE, (y + self.shift) * SCALE) for x, y in corners]
