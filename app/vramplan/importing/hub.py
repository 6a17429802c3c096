"""A model by its name on the Hugging Face Hub: where its config.json lies, and what the Hub's answers mean.

Nothing is fetched here: the terminal and the page each have their own way, and call these.
"""

import re

from vramplan.checks import quoted
from vramplan.importing.problems import ImportProblem

ORIGIN = "https://huggingface.co"
"""The one place a config.json is fetched from, and only when somebody asks. A build can name another, or none."""

MILLISECONDS = 1_000
"""Of a second."""

TIMEOUT_SECONDS = 20
"""How long an answer is waited for; a config.json has a few thousand bytes."""

TIMEOUT_MILLISECONDS = TIMEOUT_SECONDS * MILLISECONDS
"""The same for clocks that count milliseconds."""

FILE = "config.json"

_ID = re.compile(r"[A-Za-z0-9][\w.-]{0,95}(/[A-Za-z0-9_][\w.-]{0,95})?", re.ASCII)
"""An owner and a name, or a name alone. Source: huggingface_hub, utils/_validators.py, validate_repo_id."""

_PAGE = re.compile(r"https?://(?:www\.)?(?:huggingface\.co|hf\.co)/([^?#\s]+)")

_ORIGIN = re.compile(r"https?://[A-Za-z0-9.-]+(:[0-9]{1,5})?/?")

OWN_PAGES = ("datasets", "spaces", "docs", "blog", "papers", "collections", "models", "settings")
"""First parts of the Hub's addresses that are no owner of models."""

BY_HAND = "Download its config.json in your browser and bring the file."


def is_origin(text: str) -> bool:
    """Whether a text is a scheme and a host, as a Content-Security-Policy names them."""
    return bool(_ORIGIN.fullmatch(text))


def model_id(typed: str) -> str:
    """The id in what somebody typed: an id, or the address of a model's page. Raises ImportProblem for anything else."""
    text = typed.strip()
    page = _PAGE.fullmatch(text)
    parts = page[1].strip("/").split("/")[:2] if page else text.split("/")
    name = "/".join(parts)
    if not name:
        raise ImportProblem("no_id", "No model was named.", "Type its id, such as Qwen/Qwen3-8B.")
    if len(parts) > 2 or parts[0] in OWN_PAGES or not _ID.fullmatch(name) or ".." in name or "--" in name:
        raise ImportProblem("not_an_id", f"A model’s id is an owner and a name; got {quoted(text)}.", "Type it as on the model’s page, such as Qwen/Qwen3-8B.")
    return name


def address(name: str, origin: str = ORIGIN) -> str:
    """Where a model's config.json is fetched from."""
    return f"{origin}/{name}/resolve/main/{FILE}"


def refused(name: str, status: int) -> ImportProblem:
    """What an answer other than the file means. The Hub says 401 for what is gated, private or not there."""
    if status in (401, 403):
        return ImportProblem(
            "gated", f"The Hub does not give {name} without a login: the model is gated or private, or there is none of that name.",
            f"Check the name; if it is gated, accept its licence there. {BY_HAND}",
        )
    if status == 404:
        return ImportProblem("not_found", f"The Hub has no config.json for {name}.", "Check the name; models without one cannot be read.")
    if status == 429:
        return ImportProblem("busy", "The Hub asks for a pause: too many requests from your network.", f"Try again in a minute. {BY_HAND}")
    return ImportProblem("hub_failed", f"The Hub answered with status {status} in place of the file.", f"Try again later. {BY_HAND}")


def unreachable() -> ImportProblem:
    """No answer at all."""
    return ImportProblem("offline", "The Hub cannot be reached.", f"Check the network connection. {BY_HAND}")


def too_slow() -> ImportProblem:
    """No whole answer in time."""
    return ImportProblem("timeout", f"The Hub did not answer within {TIMEOUT_SECONDS} seconds.", f"Try again later. {BY_HAND}")


def cut_off() -> ImportProblem:
    """An answer that ended early."""
    return ImportProblem("cut_off", "The Hub’s answer ended in the middle.", f"Try again. {BY_HAND}")


def cancelled() -> ImportProblem:
    """The person who asked gave up."""
    return ImportProblem("cancelled", "The request was cancelled.", "Nothing was changed.")
