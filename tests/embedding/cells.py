"""Runs the code cells of a notebook and writes what a notebook would show below each, as one HTML page.

    python cells.py notebook.ipynb ADDRESS > page.html

It is IPython that runs them and its display formatter that chooses what is shown, as in Jupyter. ADDRESS is that of the calculator.
"""

from contextlib import redirect_stdout
from io import StringIO
import json
import sys

from IPython.core.interactiveshell import InteractiveShell

EXAMPLE = "https://example.org/vram/"


def main(path: str, address: str) -> None:
    """Run every cell, and print the page."""
    shell = InteractiveShell.instance()
    with open(path, encoding="utf-8") as stream:
        cells = [cell for cell in json.load(stream)["cells"] if cell["cell_type"] == "code"]
    parts = []
    for cell in cells:
        with redirect_stdout(StringIO()):
            done = shell.run_cell("".join(cell["source"]).replace(EXAMPLE, address))
        done.raise_error()
        data, _ = shell.display_formatter.format(done.result)
        parts.append(f'<div class="output">{data["text/html"]}</div>')
    print("<!doctype html><meta charset=\"utf-8\"><title>Notebook</title><link rel=\"icon\" href=\"data:,\">", *parts, sep="\n")


if __name__ == "__main__":
    main(*sys.argv[1:])
