"""Serves dist/ on this machine, for looking at it and for the tests."""

import functools
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

from vramplan_site.headers import caching
from vramplan_site.toolchain import DIST, Failure, say

HOST = "127.0.0.1"
PORT = 8000
PORTS_TRIED = 20


class SiteHandler(SimpleHTTPRequestHandler):
    """Files of dist/ with the headers a careful host would send; the site needs none of them."""

    protocol_version = "HTTP/1.1"
    extensions_map = {
        **SimpleHTTPRequestHandler.extensions_map,
        ".mjs": "text/javascript", ".js": "text/javascript", ".wasm": "application/wasm", ".svg": "image/svg+xml",
        ".whl": "application/zip", ".webmanifest": "application/manifest+json",
    }

    def end_headers(self):
        """Cache what cannot change, and let a page in a sandboxed frame fetch its parts."""
        self.send_header("Cache-Control", caching(self.path.partition("?")[0]))
        self.send_header("Access-Control-Allow-Origin", "*")
        super().end_headers()

    def log_message(self, format, *args):
        """Keep the terminal for the link; only failed requests are worth a line."""

    def log_error(self, format, *args):
        """One line for a request that failed."""
        say(f"  {self.path}: {format % args}")


def open_server(port: int = PORT, *, folder: Path = DIST) -> ThreadingHTTPServer:
    """A server for a folder on the wanted port, or on the next free one."""
    handler = functools.partial(SiteHandler, directory=str(folder))
    for candidate in range(port, min(port + PORTS_TRIED, 65536)):
        try:
            return ThreadingHTTPServer((HOST, candidate), handler)
        except OSError:
            continue
    raise Failure(f"No free port from {port} on; choose another with --port.")


def serve(port: int) -> int:
    """Serve until Ctrl-C."""
    with open_server(port) as server:
        found = server.server_address[1]
        if found != port:
            say(f"Port {port} is taken; using {found}.")
        say(f"VRAM Plan is at http://{HOST}:{found}/ (stop with Ctrl-C)")
        try:
            server.serve_forever()
        except KeyboardInterrupt:
            say("\nStopped.")
    return 0
