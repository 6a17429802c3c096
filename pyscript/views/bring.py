"""Bringing a model, an adapter or a training file: where to paste, drop, choose or name it, and what it came to."""

from vramplan import brought
from vramplan.brought import Group
from vramplan.importing.imported import Imported
from vramplan.importing.problems import ImportProblem
from vramplan.training_files.tools import TOOLS, tool
from pyscript.tree import Element, h

PANEL, TEXT, FILE, HUB, RESULT, TOLD = "bring", "bring-text", "bring-file", "bring-hub", "bring-result", "bring-told"
"""Ids of the panel's parts."""


def panel(hub: str) -> Element:
    """The folded part of the form. hub: the origin that models are fetched from by name; empty for none."""
    return h(
        "details",
        h("summary", "Bring a model, an adapter or a training file"),
        h("p", f"A model’s config.json, a PEFT adapter_config.json, or a training file of {tools()}: its YAML, or the command line. Drop it anywhere on this page, choose it or paste it; it stays in your browser.", class_="hint"),
        h("label", "Paste the file", for_=TEXT, class_="label"),
        h("textarea", id=TEXT, rows=3, spellcheck="false", autocomplete="off", autocapitalize="off", placeholder='{ "model_type": … }  or  base_model: …'),
        h(
            "div",
            h("button", "Read it", type="button", class_="plain", data_action="bring-read", disabled=True),
            h("label", "Choose a file", h("input", type="file", id=FILE, accept=".json,.yaml,.yml,.sh,.txt,application/json,text/plain", class_="visually-hidden"), class_="file"),
            class_="bring-actions",
        ),
        _hub(hub) if hub else None,
        h("p", id=TOLD, role="status", class_="visually-hidden"),
        h("div", id=RESULT, tabindex=-1, role="group", aria_label="What was brought", hidden=True),
        class_="bring",
        id=PANEL,
    )


def tools() -> str:
    """The tools whose training files are read, as words."""
    labels = [tool(name).label for name in TOOLS]
    return f"{', '.join(labels[:-1])} or {labels[-1]}"


def _hub(origin: str) -> Element:
    host = origin.partition("://")[2]
    return h(
        "div",
        h("label", "Or name it on the Hugging Face Hub", for_=HUB, class_="label"),
        h("p", f"Asks {host} for its config.json, once, when you press Fetch, and nothing else.", class_="hint", id=f"{HUB}-hint"),
        h(
            "div",
            h("input", type="text", id=HUB, placeholder="Qwen/Qwen3-8B", spellcheck="false", autocomplete="off", autocapitalize="off", inputmode="url",
              data_origin=origin, aria_describedby=f"{HUB}-hint"),
            h("button", "Fetch", type="button", class_="plain", data_action="bring-fetch", disabled=True),
            class_="bring-hub",
        ),
        class_="bring-part",
    )


def waiting(what: str) -> Element:
    """While something is being fetched."""
    return h("div", h("p", what), h("progress", aria_label="Loading"), h("button", "Cancel", type="button", class_="plain", data_action="bring-cancel"), class_="brought")


def problem(found: ImportProblem, *, dense: bool) -> Element:
    """Why something could not be read, and what to do. dense: offer to read it as a dense decoder."""
    return h(
        "div",
        h("p", found.message, class_="error"),
        h("p", found.hint),
        h("button", "Read it as a dense decoder", type="button", class_="plain", data_action="bring-as-dense") if dense else None,
        class_="brought",
    )


def result(imported: Imported, source: str) -> Element:
    """What was read: counts, and every list behind them."""
    counts = h(
        "dl",
        (h("div", h("dt", each.label), h("dd", h("span", each.text, class_="fact-text"), " ", h("span", each.exact, class_="fact-exact"))) for each in brought.counts(imported)),
        class_="facts",
    )
    return h(
        "div",
        h("h3", brought.title(imported)),
        h("p", f"From {source}.", class_="note") if source else None,
        h("p", brought.sentence(imported)),
        counts,
        [_group(group) for group in brought.groups(imported)],
        class_="brought",
    )


def _group(group: Group) -> Element:
    rows = h("ul", (h("li", h("code", key) if key else None, " " if key and text else None, text) for key, text in group.rows), role="list")
    return h("details", h("summary", f"{group.title} ({len(group.rows)})"), rows, open=group.shown)
