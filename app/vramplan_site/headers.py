"""What a page of the site may do, and what a careful host sends with its files: one account for the page's own tag and for every host."""

import re

TRUSTED = ("service-worker", "unpacker")
"""The policies of Trusted Types there may be; static/boot.mjs and static/early.js make them, and each gives the address of one worker alone."""

FIXED_NAME = re.compile(r"-[0-9a-f]{12}\.\w+$|/wheels-[0-9a-f]{12}/|/pyodide-[\d.]+/")
"""Paths that hold a version or a hash of the content: what they name never changes."""

KEPT_FOR_GOOD = "public, max-age=31536000, immutable"
"""How long what never changes is kept: a year."""

ASKED_ANEW = "no-cache"
"""Everything else is kept, too, but asked for at every visit: pages, the service worker, and what has a name for good."""


def policy(hub: str) -> str:
    """The Content-Security-Policy: nothing from anywhere but the site itself, and requests to the Hub where the build has one.

    hub: an origin, or nothing. WebAssembly is compiled, text is never run as a script, and no markup is made of text. Pictures may be
    data: the saved drawing is made from one. Frames are of the page itself: the Share dialog shows what it offers. frame-ancestors is not in it: any page may show this one, and a tag could not forbid it.
    """
    connect = f"'self' {hub}".strip()
    return "; ".join((
        "default-src 'none'",
        "script-src 'self' 'wasm-unsafe-eval'",
        "style-src 'self'",
        "img-src 'self' data:",
        "font-src 'self'",
        f"connect-src {connect}",
        "frame-src 'self'",
        "worker-src 'self'",
        "base-uri 'none'",
        "form-action 'none'",
        "require-trusted-types-for 'script'",
        f"trusted-types {' '.join(TRUSTED)}",
    ))


def for_every_file(hub: str) -> dict[str, str]:
    """The headers that go with every file, by name.

    A page in a sandboxed frame has no origin and fetches its own parts as a stranger: it needs them allowed to everybody.
    """
    return {
        "Content-Security-Policy": policy(hub),
        "X-Content-Type-Options": "nosniff",
        "Referrer-Policy": "no-referrer",
        "Permissions-Policy": "camera=(), geolocation=(), microphone=()",
        "Access-Control-Allow-Origin": "*",
    }


def caching(path: str) -> str:
    """How long a file may be kept without asking. path: within the site, from its first slash on."""
    return KEPT_FOR_GOOD if FIXED_NAME.search(path) else ASKED_ANEW
