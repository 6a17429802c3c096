"""The commands of build.py, run by the Python of .venv."""

import argparse
import os
from pathlib import Path
import sys

from vramplan.importing.hub import ORIGIN, is_origin
from vramplan_site import bench, server, toolchain, tracing
from vramplan_site.site import build_site


def main(arguments: list[str]) -> int:
    """Carry out one command."""
    command, rest = arguments[0], arguments[1:]
    if command == "trace":
        return tracing.main(rest)
    parser = argparse.ArgumentParser(prog=f"build.py {command}")
    if command in ("serve", "build"):
        hub = parser.add_mutually_exclusive_group()
        hub.add_argument("--hub", type=origin, default=ORIGIN, metavar="ORIGIN", help="where models are fetched from by name (default %(default)s)")
        hub.add_argument("--no-hub", dest="hub", action="store_const", const="", help="a page that fetches nothing from anywhere")
    if command == "serve":
        parser.add_argument("--port", type=port_number, default=server.PORT, help="first port to try")
        options = parser.parse_args(rest)
        build_site(options.hub)
        return server.serve(options.port)
    if command == "build":
        build_site(parser.parse_args(rest).hub)
        return 0
    if command == "bench":
        parser.parse_args(rest)
        build_site()
        return bench.main()
    build_site()
    return run_tests(rest)


def port_number(text: str) -> int:
    """A port as typed."""
    if text.isdecimal() and 1 <= int(text) <= 65535:
        return int(text)
    raise argparse.ArgumentTypeError(f"must be a number from 1 to 65535, not {text!r}")


def origin(text: str) -> str:
    """A scheme and a host, as a Content-Security-Policy names them."""
    if is_origin(text):
        return text.rstrip("/")
    raise argparse.ArgumentTypeError(f"must be a scheme and a host, such as {ORIGIN}, not {text!r}")


IN_PARALLEL = ("-n", "2", "--dist", "worksteal")
"""pytest-xdist: two processes, each with a run of neighbouring tests, since a browser tab is shared by the tests of a file."""


def run_tests(arguments: list[str]) -> int:
    """Run pytest, with a Chromium and a Firefox for the browser tests, and return its exit code."""
    toolchain.axe_path()
    node, _ = toolchain.node_tools()
    found = {"VRAMPLAN_CHROMIUM": toolchain.chromium(), "VRAMPLAN_FIREFOX": toolchain.firefox()}
    path = os.pathsep.join([str(Path(node).parent), os.environ["PATH"]])
    environment = {**os.environ, "PATH": path, **{name: browser for name, browser in found.items() if browser}}
    return toolchain.hand_over([sys.executable, "-m", "pytest", *IN_PARALLEL, *arguments], cwd=toolchain.ROOT, env=environment)


if __name__ == "__main__":
    try:
        sys.exit(main(sys.argv[1:]))
    except toolchain.Failure as failure:
        print(failure, file=sys.stderr)
        sys.exit(1)
    except KeyboardInterrupt:
        sys.exit(130)
