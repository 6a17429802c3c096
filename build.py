#!/usr/bin/env python3
"""Build, serve and test VRAM Plan. Needs only Python 3.11 or later; everything else it fetches itself.

    python3 build.py serve [--port N]     build dist/ and serve it on this machine
    python3 build.py build                build dist/ only
    python3 build.py test [pytest args]   build dist/ and run every test, browser tests included
    python3 build.py trace [--sample N]   trace training steps anew (PyTorch, hours; see tests/traced/README.md)
    python3 build.py bench                time the calculations and the start of the page
    python3 build.py verify [FOLDER]      check dist/, or a copy of it, against its SHA256SUMS
    python3 build.py clean                delete what the commands above made
"""

import os
import sys

ROOT = os.path.dirname(os.path.abspath(__file__))
OLDEST = (3, 11)


def main(arguments):
    """Check the command, make .venv where it is needed, and hand over to `vramplan_site` in it."""
    if arguments[:1] in (["-h"], ["--help"], ["help"]):
        print(__doc__.strip())
        return 0
    if arguments[:1] not in (["serve"], ["build"], ["test"], ["trace"], ["bench"], ["verify"], ["clean"]):
        print(__doc__.strip(), file=sys.stderr)
        return 2
    if sys.version_info < OLDEST:
        found = ".".join(str(part) for part in sys.version_info[:3])
        print("This is Python %s; run build.py with Python %d.%d or later." % ((found,) + OLDEST), file=sys.stderr)
        return 1

    sys.path.insert(0, os.path.join(ROOT, "app"))
    sys.dont_write_bytecode = True
    from vramplan_site import sums, toolchain

    try:
        if arguments[0] == "verify":
            return sums.verify(arguments[1:])
        if arguments[0] == "clean":
            return toolchain.clean()
        python = toolchain.make_venv()
        environment = dict(os.environ, PYTHONPATH=os.path.join(ROOT, "app"), PYTHONDONTWRITEBYTECODE="1")
        return toolchain.hand_over([python, "-m", "vramplan_site"] + arguments, env=environment)
    except toolchain.Failure as failure:
        print(failure, file=sys.stderr)
        return 1
    except KeyboardInterrupt:
        return 130


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
