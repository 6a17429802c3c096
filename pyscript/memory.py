"""What did not fit the address, kept for this tab: a reload, Back and Forward find it again."""

from collections.abc import Mapping
import json

import js
from pyodide.ffi import JsException

KEY = "vramplan"
"""Name of the one entry in the tab's session storage: the texts of each query string that had no room for them, the oldest first."""

MOST = 20
"""Query strings that are remembered; the oldest make room."""


def keep(query: str, texts: Mapping[str, str]) -> None:
    """Remember the texts that belong to a query string; nothing where the browser keeps nothing, as in some frames."""
    before = _kept()
    others = {each: kept for each, kept in before.items() if each != query}
    after = dict([*others.items(), (query, dict(texts))][-MOST:]) if texts else others
    if after != before:
        try:
            js.sessionStorage.setItem(KEY, json.dumps(after))
        except (JsException, AttributeError):
            pass


def holds_any() -> bool:
    """Whether anything is kept in this tab."""
    return bool(_kept())


def recall(query: str) -> dict[str, str]:
    """The texts that were kept for a query string, or none."""
    texts = _kept().get(query)
    return {str(name): str(text) for name, text in texts.items()} if isinstance(texts, dict) else {}


def _kept() -> dict:
    """All that is remembered."""
    try:
        kept = json.loads(js.sessionStorage.getItem(KEY) or "{}")
    except (JsException, AttributeError, ValueError, RecursionError):
        return {}
    return kept if isinstance(kept, dict) else {}
