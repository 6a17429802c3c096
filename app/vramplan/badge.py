"""One run as a badge: a small picture with a sentence, for a README, and the Markdown that shows it."""

from dataclasses import dataclass
from html import escape

from vramplan import words
from vramplan.catalogue import cards
from vramplan.ledger import LIKELY, NO, UNLIKELY, YES, Estimate
from vramplan.report import budget_label
from vramplan.settings import Settings
from vramplan.units import UNIT_LABELS, count_text, plain_decimal

FILE = "vramplan-badge.svg"
"""A name for the picture."""

VERBS = {YES: "fits", LIKELY: "likely fits", UNLIKELY: "is unlikely to fit", NO: "does not fit"}
"""Each verdict inside a sentence."""

COLOURS = {YES: "#146339", LIKELY: "#5b5a06", UNLIKELY: "#8c4300", NO: "#a8201a"}
"""The ground of each verdict, on which white text is read; it brings its own ground, so that it stands in light and in dark."""

MODEL_COLOUR = "#3a4641"
"""The ground of the model's name."""

HEIGHT, FONT, BASELINE, SIDE, CORNER = 22, 12, 15.5, 9, 4
"""Height, size of the text, its place, room beside it and radius of the corners, in CSS pixels."""

NARROW, WIDE = "ijlI|!.,:;'’()[] ft", "mwMW@%–—"
"""Letters that take less, and more, room than others."""

NARROW_WIDTH, USUAL_WIDTH, CAPITAL_WIDTH, WIDE_WIDTH = 0.36, 0.6, 0.69, 0.96
"""Room of a letter, in heights of the font, as in the widest of the usual fonts; a reader's own font is set to the same width."""


@dataclass(frozen=True)
class Badge:
    """What a badge says: the model, the sentence, and the verdict that colours it."""

    model: str
    text: str
    verdict: str

    @property
    def alternative(self) -> str:
        """The whole of it in words."""
        return f"{self.model}: {self.text}"


def badge(estimate: Estimate) -> Badge:
    """The badge of a run: 'Llama 3.1 8B', 'QLoRA fits 12 GiB at 2,048'."""
    settings = estimate.settings
    batch = f"{count_text(settings.micro_batch)} × " if settings.micro_batch > 1 else ""
    text = f"{_method(settings)} {VERBS[estimate.verdict]} {_memory(estimate)} at {batch}{count_text(settings.sequence_length)}"
    return Badge(settings.model_label, text, estimate.verdict)


def _method(settings: Settings) -> str:
    """What is done with the model."""
    if settings.serves:
        return f"Inference in {words.value_text('served_weights', settings.served_weights)}"
    method = words.value_text("method", settings.method)
    return "Full fine-tuning" if settings.method == "full" else method


def _memory(estimate: Estimate) -> str:
    """What it has to fit."""
    settings = estimate.settings
    if settings.budget is not None:
        one = f"{plain_decimal(settings.budget)} {UNIT_LABELS[settings.budget_unit]}"
    else:
        one = budget_label(estimate) if settings.gpu in cards() else words.value_text("gpu", settings.gpu)
    return f"{count_text(settings.sharded_over)} × {one}" if settings.divides_states and settings.sharded_over > 1 else one


def svg(made: Badge) -> str:
    """The badge as an SVG file. It needs no font, no style sheet and no other file, and is the same for the same run."""
    left, right = _width(made.model), _width(made.text)
    whole, name = left + right, escape(made.alternative)
    return "\n".join((
        f'<svg xmlns="http://www.w3.org/2000/svg" width="{whole}" height="{HEIGHT}" viewBox="0 0 {whole} {HEIGHT}" role="img" aria-label="{name}">',
        f"<title>{name}</title>",
        f'<rect width="{whole}" height="{HEIGHT}" rx="{CORNER}" fill="{COLOURS[made.verdict]}"/>',
        f'<path d="M{CORNER} 0H{left}V{HEIGHT}H{CORNER}a{CORNER} {CORNER} 0 0 1-{CORNER}-{CORNER}V{CORNER}a{CORNER} {CORNER} 0 0 1 {CORNER}-{CORNER}z" fill="{MODEL_COLOUR}"/>',
        f'<g fill="#fff" font-family="system-ui, -apple-system, Segoe UI, Roboto, Noto Sans, DejaVu Sans, sans-serif" font-size="{FONT}">',
        _text(made.model, SIDE, left - 2 * SIDE),
        _text(made.text, left + SIDE, right - 2 * SIDE),
        "</g>",
        "</svg>\n",
    ))


def markdown(made: Badge, *, link: str, file: str = FILE) -> str:
    """The badge in Markdown, leading to the run. link: its address; empty for none."""
    words_of_it = "".join(f"\\{char}" if char in "\\[]" else char for char in made.alternative)
    picture = f"![{words_of_it}]({file})"
    return f"[{picture}]({link})" if link else picture


def _width(text: str) -> int:
    """Width of a part of the badge around a text."""
    return round(FONT * sum(map(_letter, text))) + 2 * SIDE


def _letter(char: str) -> float:
    if char in NARROW:
        return NARROW_WIDTH
    return WIDE_WIDTH if char in WIDE else CAPITAL_WIDTH if char.isupper() else USUAL_WIDTH


def _text(text: str, x: int, length: int) -> str:
    return f'<text x="{x}" y="{BASELINE}" textLength="{length}" lengthAdjust="spacingAndGlyphs">{escape(text)}</text>'
