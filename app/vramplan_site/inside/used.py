"""Runs inside Pyodide: find the standard-library modules that the start of the page needs.

ARGUMENTS: [archive of the compiled packages, names their sources import, file to write].
Needed is: what Pyodide's own start imports, what the sources import by name, and what shows up while the package is
put through its paces, failures included. The answer is the list of those files inside the standard-library zip.
It imports nothing for itself, or that would be counted too.
"""

import sys

STDLIB_ZIP = "/lib/python314.zip/"


def import_named(names: list[str]) -> None:
    """Import every standard-library and Pyodide module that the sources name, wherever in a file they do."""
    for name in names:
        root = name.split(".")[0]
        if root in sys.stdlib_module_names or root == "pyodide":
            try:
                __import__(name)
            except ModuleNotFoundError:
                pass  # `from a import b` where b is not a module


def exercise(archive: str) -> None:
    """Use the whole package, and read a zip as snapshot.py does, so that imports inside functions happen; a mistake here stops the build."""
    import traceback
    import zipfile

    from vramplan import Settings, SettingsError, compare, curve, estimate, fit
    from vramplan.link import read_query, to_query

    zipfile.ZipFile(archive).close()
    for method in ("full", "lora", "qlora"):
        settings = Settings(method=method)
        for calculate in (estimate, fit, curve, compare):
            repr(calculate(settings))
        read_query(to_query(settings))
    read_query("v=1&sequence_length=lots&nonsense=1")
    try:
        Settings(sequence_length=0)
    except SettingsError as error:
        traceback.format_exception(error)
    try:
        undefined_name  # noqa: B018, F821
    except NameError as error:
        traceback.format_exception(error)


def used_files() -> list[str]:
    """The files of all loaded modules that came from the standard-library zip, by their names in it."""
    files = (getattr(module, "__file__", None) or "" for module in list(sys.modules.values()))
    return sorted(file.removeprefix(STDLIB_ZIP) for file in files if file.startswith(STDLIB_ZIP))


def main(compiled: str, names: list[str], target: str) -> None:
    """Write the list, one file a line."""
    sys.path.insert(0, compiled)
    import_named(names)
    exercise(compiled)
    with open(target, "w", encoding="utf-8") as file:
        file.write("\n".join(used_files()))


main(*ARGUMENTS)  # noqa: F821 (given by run.mjs)
