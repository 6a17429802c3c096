"""The part for a run of one's own: where to paste, drop or choose what was measured, and the script that measures."""

from pyscript.tree import Element, h

PART, TEXT, FILE, TOLD, READ, RESULT, WHY, SCRIPT_FOLD, SCRIPT = (
    "own-run-part", "own-run-text", "own-run-file", "own-run-told", "own-run-read", "own-run", "own-run-why", "own-run-script-fold", "own-run-script",
)
"""Ids of its parts."""

SCRIPT_TEXT = "measure-script"
"""Id of the box that holds the script."""


def panel(name: str, error: str, box: str) -> Element:
    """The part as it is built. name: the setting that holds what was measured; error, box: ids of its sentence and of the part around it."""
    return h(
        "div",
        h("label", "Paste what your run printed", for_=TEXT, class_="label"),
        h(
            "p",
            "max_memory_allocated(), memory_summary(), nvidia-smi, a whole out-of-memory message, or the line of the script below; or choose a memory "
            "snapshot. It is read in your browser and goes nowhere.",
            class_="hint",
            id=f"{TEXT}-hint",
        ),
        h("textarea", id=TEXT, rows=3, spellcheck="false", autocomplete="off", autocapitalize="off", aria_describedby=f"{TEXT}-hint {error}",
          placeholder="CUDA out of memory. Tried to allocate …"),
        h("input", type="hidden", id=name, name=name, value=""),
        h("p", class_="error", id=error, hidden=True),
        h(
            "div",
            h("button", "Read what was measured", type="button", class_="plain", data_action="own-run-read", disabled=True),
            h("label", "Choose a snapshot", h("input", type="file", id=FILE, class_="visually-hidden"), class_="file"),
            class_="bring-actions",
        ),
        h("p", id=TOLD, role="status", class_="visually-hidden"),
        h("div", id=READ, hidden=True),
        h("div", id=RESULT, tabindex=-1, role="group", aria_label="Your run against the estimate", hidden=True),
        h("div", id=WHY, role="group", aria_label="What may explain it", hidden=True),
        h(
            "details",
            h("summary", "Measure it: a script for this run"),
            h("div", id=SCRIPT, hidden=True),
            id=SCRIPT_FOLD,
        ),
        class_="own-run",
        id=box,
    )


def script(text: str, packages: tuple[str, ...]) -> Element:
    """The script, with a button that copies it."""
    needs = ", ".join(packages)
    return h(
        "div",
        h(
            "p",
            f"Run it on your GPU with {needs} as your run uses them. It takes two steps with random tokens and weights, downloads no weights, and prints "
            "one line; paste that above.",
            class_="note",
        ),
        h("label", "Script that measures this run", for_=SCRIPT_TEXT, class_="label"),
        h("textarea", text, id=SCRIPT_TEXT, readonly=True, rows=8, spellcheck="false", value=text),
        h("button", "Copy", h("span", " Script", class_="visually-hidden"), type="button", data_copy=SCRIPT_TEXT, class_="plain"),
    )


def no_script(why: str) -> Element:
    """Why there is none for this run."""
    return h("p", why, class_="note")
