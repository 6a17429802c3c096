"""What did not fit the address, kept for this tab: a reload finds it again."""

from collections.abc import Mapping
import json

import js
from pyodide.ffi import JsException

KEY = "vramplan"
"""Name of the one entry in the tab's session storage."""


def keep(query: str, texts: Mapping[str, str]) -> None:
    """Remember the texts that belong to a query string; nothing where the browser keeps nothing, as in some frames."""
    try:
        if texts:
            js.sessionStorage.setItem(KEY, json.dumps({"query": query, "texts": dict(texts)}))
        else:
            js.sessionStorage.removeItem(KEY)
    except (JsException, AttributeError):
        pass


def recall(query: str) -> dict[str, str]:
    """The texts that were kept for a query string, or none."""
    try:
        kept = json.loads(js.sessionStorage.getItem(KEY) or "{}")
    except (JsException, AttributeError, ValueError, RecursionError):
        return {}
    texts = kept.get("texts") if isinstance(kept, dict) and kept.get("query") == query else None
    return {str(name): str(text) for name, text in texts.items()} if isinstance(texts, dict) else {}
