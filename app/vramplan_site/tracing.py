"""`build.py trace`: the tracer in an environment of its own, which needs PyTorch and is never part of the tests."""

import os
import subprocess
import venv

from vramplan_site.toolchain import CACHE, ROOT, hand_over, say

FOLDER = ROOT / "tests" / "traced"
REQUIREMENTS = FOLDER / "requirements.txt"


def main(arguments: list[str]) -> int:
    """Make the environment where it is missing or stale, and run the tracer in it."""
    environment = dict(os.environ, PYTHONPATH=str(ROOT / "tests"))
    return hand_over([str(_python()), "-m", "traced", *arguments], cwd=ROOT, env=environment)


def _python():
    folder = CACHE / "trace-venv"
    python, stamp = folder / "bin" / "python", folder / "requirements.txt"
    wanted = REQUIREMENTS.read_text("utf-8")
    if not (stamp.exists() and stamp.read_text("utf-8") == wanted):
        say("Making the tracer's environment: PyTorch and its libraries, several GB where the CUDA build is taken")
        venv.create(folder, with_pip=True, clear=True)
        subprocess.run([python, "-m", "pip", "install", "--quiet", "-r", REQUIREMENTS], check=True)
        stamp.write_text(wanted, "utf-8")
    return python
