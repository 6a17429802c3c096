"""Files and the Hub for the terminal: what the page does with the browser's own means."""

from collections.abc import Callable
import os
import stat
import sys
from http.client import HTTPException
from pathlib import Path
import time
from urllib.error import HTTPError, URLError
from urllib.parse import urlsplit
from urllib.request import HTTPRedirectHandler, Request, build_opener

from vramplan.checks import quoted
from vramplan.importing import hub
from vramplan.importing.problems import ImportProblem
from vramplan.importing.text import MAX_BYTES, check_announced, check_size, decoded

ORIGIN_VARIABLE = "VRAMPLAN_HUB"
"""Environment variable that names another origin: a mirror, or a stand-in in tests."""

CHUNK_BYTES = 2**16
"""Bytes of an answer that are read at once."""


def file_text(path: str) -> str:
    """The text of a file (- is standard input), refused by its size before it is read. Raises ImportProblem."""
    return decoded(file_bytes(path, MAX_BYTES, check_size))


def file_bytes(path: str, most: int, check: Callable[[int], None] = lambda size: None) -> bytes:
    """The bytes of a file (- is standard input), at most one more than `most`; `check` may refuse its size before. Raises ImportProblem."""
    if path == "-":
        return sys.stdin.buffer.read(most + 1)
    try:
        facts = os.stat(path)
        if stat.S_ISREG(facts.st_mode):
            check(facts.st_size)
        with Path(path).open("rb") as file:
            return file.read(most + 1)
    except ImportProblem:
        raise
    except IsADirectoryError:
        raise ImportProblem("not_a_file", f"{quoted(path)} is a folder.", "Name the file in it.") from None
    except (OSError, ValueError) as problem:
        reason = getattr(problem, "strerror", None) or "the name cannot be used"
        raise ImportProblem("unreadable", f"{quoted(path)} cannot be read: {reason.lower()}.", "Check the path.") from None


class _SameOrigin(HTTPRedirectHandler):
    """Redirects that stay where they were sent to."""

    def redirect_request(self, request, fp, code, message, headers, address):
        old, new = urlsplit(request.full_url), urlsplit(address)
        return super().redirect_request(request, fp, code, message, headers, address) if old[:2] == new[:2] else None


def hub_text(typed: str) -> str:
    """The config.json of a model, from the Hub. Raises ImportProblem with a sentence for every answer that is not one."""
    name = hub.model_id(typed)
    request = Request(hub.address(name, _origin()), headers={"User-Agent": "vramplan"})
    deadline = time.monotonic() + hub.TIMEOUT_SECONDS
    try:
        with build_opener(_SameOrigin()).open(request, timeout=hub.TIMEOUT_SECONDS) as answer:
            return decoded(_read(answer, deadline))
    except ImportProblem:
        raise
    except HTTPError as problem:
        raise hub.refused(name, problem.code) from None
    except TimeoutError:
        raise hub.too_slow() from None
    except URLError as problem:
        raise (hub.too_slow() if isinstance(problem.reason, TimeoutError) else hub.unreachable()) from None
    except (HTTPException, OSError, ValueError):
        raise hub.cut_off() from None


def _origin() -> str:
    """Where models are fetched from."""
    origin = os.environ.get(ORIGIN_VARIABLE) or hub.ORIGIN
    if not hub.is_origin(origin):
        raise ImportProblem("not_an_origin", f"{ORIGIN_VARIABLE} must be a scheme and a host; got {quoted(origin)}.", f"Leave it out, or set one such as {hub.ORIGIN}.")
    return origin.rstrip("/")


def _read(answer, deadline: float) -> bytes:
    expected = answer.headers.get("Content-Length", "")
    check_announced(expected)
    data = bytearray()
    while part := answer.read1(CHUNK_BYTES):
        data += part
        check_size(len(data))
        if time.monotonic() > deadline:
            raise hub.too_slow()
    if expected.isdecimal() and len(data) < int(expected):
        raise hub.cut_off()
    return bytes(data)
