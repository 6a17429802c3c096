"""What a model, an adapter or a training file came to."""

from vramplan import brought
from vramplan.brought import Group
from vramplan.importing.imported import Imported
from vramplan.importing.problems import ImportProblem
from pyscript.tree import Element, h


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
