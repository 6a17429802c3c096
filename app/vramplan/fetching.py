"""Files and the Hub for the terminal: what the page does with the browser's own means."""

import os
import stat
import sys
from http.client import HTTPException, IncompleteRead
from pathlib import Path
import socket
import time
from urllib.error import HTTPError, URLError
from urllib.parse import urlsplit
from urllib.request import HTTPRedirectHandler, ProxyHandler, Request, build_opener

from vramplan.checks import quoted
from vramplan.importing import hub
from vramplan.importing.problems import ImportProblem
from vramplan.importing.text import MAX_BYTES, check_size, decoded

ORIGIN_VARIABLE = "VRAMPLAN_HUB"
"""Environment variable that names another origin: a mirror, or a stand-in in tests."""

CHUNK_BYTES = 2**16


def file_text(path: str) -> str:
    """The text of a file (- is standard input), refused by its size before it is read. Raises ImportProblem."""
    if path == "-":
        return decoded(sys.stdin.buffer.read(MAX_BYTES + 1))
    try:
        facts = os.stat(path)
        if not stat.S_ISREG(facts.st_mode):
            raise ImportProblem("not_a_file", f"{quoted(path)} is not a file.", "Name the config.json itself.")
        check_size(facts.st_size)
        return decoded(Path(path).read_bytes())
    except (OSError, ValueError) as problem:
        reason = getattr(problem, "strerror", None) or "the name cannot be used"
        if isinstance(problem, ImportProblem):
            raise
        raise ImportProblem("unreadable", f"{quoted(path)} cannot be read: {reason.lower()}.", "Check the path.") from None


class _SameOrigin(HTTPRedirectHandler):
    """Redirects that stay where they were sent to."""

    def redirect_request(self, request, fp, code, message, headers, address):
        old, new = urlsplit(request.full_url), urlsplit(address)
        return super().redirect_request(request, fp, code, message, headers, address) if old[:2] == new[:2] else None


def hub_text(typed: str) -> str:
    """The config.json of a model, from the Hub. Raises ImportProblem with a sentence for every answer that is not one."""
    name = hub.model_id(typed)
    origin = os.environ.get(ORIGIN_VARIABLE, hub.ORIGIN).rstrip("/")
    request = Request(hub.address(name, origin), headers={"User-Agent": "vramplan"})
    deadline = time.monotonic() + hub.TIMEOUT_SECONDS
    try:
        with build_opener(ProxyHandler(), _SameOrigin()).open(request, timeout=hub.TIMEOUT_SECONDS) as answer:
            return decoded(_read(answer, deadline))
    except HTTPError as problem:
        raise hub.refused(name, problem.code) from None
    except (TimeoutError, socket.timeout):
        raise hub.too_slow() from None
    except (IncompleteRead, HTTPException):
        raise hub.cut_off() from None
    except URLError as problem:
        raise (hub.too_slow() if isinstance(problem.reason, TimeoutError) else hub.unreachable()) from None
    except OSError:
        raise hub.cut_off() from None


def _read(answer, deadline: float) -> bytes:
    expected = answer.headers.get("Content-Length", "")
    check_size(int(expected) if expected.isdecimal() else 0)
    data = b""
    while part := answer.read1(CHUNK_BYTES):
        data += part
        check_size(len(data))
        if time.monotonic() > deadline:
            raise hub.too_slow()
    if expected.isdecimal() and len(data) < int(expected):
        raise hub.cut_off()
    return data
