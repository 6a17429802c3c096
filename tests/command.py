"""The command `vramplan` as a process: what the tests of the terminal share.

Belongs here: running it and taking its output apart. Not here: assertions on what it says.
"""

from functools import cache
import json
import os
from pathlib import Path
import subprocess
import sys
from tempfile import TemporaryDirectory

APP = Path(__file__).resolve().parent.parent / "app"
COMPILED = TemporaryDirectory(prefix="vramplan-compiled-")  # every process would compile all modules anew, where the run of the tests keeps none
ENVIRONMENT = {
    **{name: text for name, text in os.environ.items() if name != "PYTHONDONTWRITEBYTECODE"},
    "PYTHONPATH": str(APP), "PYTHONPYCACHEPREFIX": COMPILED.name, "PYTHONIOENCODING": "utf-8", "COLUMNS": "100", "NO_COLOR": "1",
}


@cache
def run(*arguments):
    command = [sys.executable, "-m", "vramplan", *arguments]
    done = subprocess.run(command, capture_output=True, env=ENVIRONMENT, timeout=60)
    done.out, done.err = done.stdout.decode(), done.stderr.decode()
    assert "Traceback" not in done.err
    return done


def flags(typed):
    return [part for name, text in typed.items() for part in (f"--{name.replace('_', '-')}", text)]


def printed_json(*arguments):
    done = run(*arguments, "--json")
    assert done.err == ""
    return json.loads(done.out)
