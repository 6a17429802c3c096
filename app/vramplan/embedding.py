"""What a page in a frame and the page around it say to each other, as JSON objects. README.md documents them.

Belongs here: what is in a message, and which are read. How they travel: static/frame.mjs.
"""

from collections.abc import Iterable, Mapping
from decimal import Decimal
import json
from math import isfinite

from vramplan.fields import BY_NAME
from vramplan.ledger import Estimate
from vramplan.link import MAX_QUERY
from vramplan.settings import TOO_LARGE, format_settings

VERSION = 1
"""Of the messages; it is the value of their key `vramplan`."""

ESTIMATE, PROBLEMS, SETTINGS = "estimate", "problems", "settings"
"""Types of messages: a run is counted, a run cannot be, and from the page around: other settings."""


def estimate_message(estimate: Estimate, link: str) -> str:
    """That a run is counted: every setting as in a link, bytes of peak and budget, whether it fits, and the address of the whole page with it."""
    return _message(
        ESTIMATE, settings=format_settings(estimate.settings), peak_bytes=estimate.peak_bytes, budget_bytes=estimate.budget_bytes, fits=estimate.fits,
        link=link,
    )


def problems_message(names: Iterable[str]) -> str:
    """That there is no estimate, and which settings stand in the way."""
    return _message(PROBLEMS, fields=list(names))


def read_settings(message: str) -> Mapping[str, str] | None:
    """The texts of the settings that a message asks for, by name; None for a message of any other shape. Whether a text can be used is not checked here."""
    try:
        content = json.loads(message)
    except (ValueError, RecursionError):
        return None
    if not isinstance(content, dict) or content.keys() != {"vramplan", "type", "settings"}:
        return None
    asked = content["settings"]
    if type(content["vramplan"]) is not int or content["vramplan"] != VERSION or content["type"] != SETTINGS or not isinstance(asked, dict):
        return None
    texts = {name: _text(value) for name, value in asked.items()}
    return texts if texts and texts.keys() <= BY_NAME.keys() and None not in texts.values() else None


def _text(value: object) -> str | None:
    """A value as a link would have it; None for what no setting takes."""
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, str):
        return value if len(value) <= MAX_QUERY else None
    if isinstance(value, int):
        return str(value) if abs(value) < TOO_LARGE else None
    return f"{Decimal(repr(value)):f}" if isinstance(value, float) and isfinite(value) else None


def _message(kind: str, **content: object) -> str:
    return json.dumps({"vramplan": VERSION, "type": kind, **content}, ensure_ascii=False)
