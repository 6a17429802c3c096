"""A server that behaves like the Hub's file endpoint, for the terminal's tests and the page's.

Belongs here: answers by the name of the model. `ok/NAME` is answered by way of a redirect, as the Hub does.
"""

from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
import json
from threading import Event, Thread

CONFIG = {
    "architectures": ["Qwen2ForCausalLM"], "model_type": "qwen2", "hidden_size": 3584, "num_hidden_layers": 28, "num_attention_heads": 28,
    "num_key_value_heads": 4, "intermediate_size": 18944, "vocab_size": 152064, "tie_word_embeddings": False, "use_sliding_window": False,
}
"""Of Qwen2.5 7B: 7,615,616,512 parameters."""

TOTAL = 7_615_616_512
STATUSES = {"gated": 401, "forbidden": 403, "missing": 404, "busy": 429, "broken": 503}


class Handler(BaseHTTPRequestHandler):
    """One answer per model; `server.asked` lists the paths that were asked for, `server.release` ends slow answers."""

    def log_message(self, format, *args):
        pass

    def do_GET(self):
        self.server.asked.append(self.path)
        kind = self.path.split("/")[1]
        if kind in STATUSES:
            self._answer(STATUSES[kind], b'{"error": "Invalid username or password."}')
        elif kind == "ok":
            self._redirect(f"/api/resolve-cache{self.path.replace('/resolve/main', '')}")
        elif kind == "elsewhere":
            self._redirect(self.server.elsewhere)
        elif kind == "api":
            self._answer(200, json.dumps(CONFIG).encode())
        elif kind == "html":
            self._answer(200, b"<!doctype html><title>Sign in</title>")
        elif kind == "huge":
            self._answer(200, b"", length=10**9)
        elif kind == "cut":
            self._answer(200, json.dumps(CONFIG).encode()[:40], length=2_000)
        elif kind == "slow":
            self.server.release.wait(30)
            self._answer(200, json.dumps(CONFIG).encode())

    def _redirect(self, to):
        self.send_response(307)
        self.send_header("Location", to)
        self._allow()
        self.end_headers()

    def _answer(self, status, body, length=None):
        self.send_response(status)
        self._allow()
        self.send_header("Content-Type", "text/plain; charset=utf-8")
        self.send_header("Content-Length", str(len(body) if length is None else length))
        self.end_headers()
        try:
            self.wfile.write(body)
        except OSError:
            pass

    def _allow(self):
        self.send_header("Access-Control-Allow-Origin", "*")


@contextmanager
def hub(elsewhere="http://127.0.0.1:9/config.json"):
    """The server, running; `origin` is its address."""
    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    server.daemon_threads = True
    server.asked, server.release, server.elsewhere = [], Event(), elsewhere
    server.origin = f"http://127.0.0.1:{server.server_address[1]}"
    thread = Thread(target=server.serve_forever, daemon=True)
    thread.start()
    try:
        yield server
    finally:
        server.release.set()
        server.shutdown()
        server.server_close()
        thread.join()
