"""Runs inside Pyodide: let micropip resolve packages from a folder of wheels, and write the frozen lock.

ARGUMENTS: [folder of wheels, packages to install with the modules they are imported as, lock file to write]. Nothing is fetched from anywhere else.
"""

import importlib
import json
import sys
from pathlib import Path


async def freeze(folder: str, packages: dict[str, str], target: str) -> None:
    """Install from the folder by micropip, then keep what it froze."""
    wheels = sorted(Path(folder).glob("*.whl"))
    (tool,) = [wheel for wheel in wheels if wheel.name.startswith("micropip-")]
    sys.path.append(str(tool))
    import micropip

    known = [f"{wheel.name.split('-')[0]} @ emfs:{wheel}" for wheel in wheels if wheel != tool]
    await micropip.install(list(packages), index_urls=[], constraints=known)
    for module in packages.values():
        importlib.import_module(module)
    lock = json.loads(micropip.freeze())
    if missing := packages.keys() - lock["packages"].keys():
        raise SystemExit(f"micropip froze {sorted(lock['packages'])}, without {sorted(missing)}")
    Path(target).write_text(json.dumps(lock, indent=1), "utf-8")


await freeze(*ARGUMENTS)  # noqa: F704, F821 (run.mjs runs this file with top-level await)
