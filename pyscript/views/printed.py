"""The run on one sheet of paper: what is shown instead of the page where it is printed."""

from vramplan.report import Answer, Change
from pyscript.tree import Child, Element, h
from pyscript.views.headline import verdict

MOST_CHANGES = 6
"""Single changes that a sheet has room for, the largest saving first."""


def sheet(run: str, settings: tuple[tuple[str, str], ...], link: str, results: Child) -> Element:
    """A run's settings, results and address. link: the whole address, or nothing where there is none."""
    return h(
        "article",
        h("h1", "VRAM Plan"),
        h("p", run, class_="sheet-run"),
        results,
        _part("Settings", h("dl", (h("div", h("dt", label), h("dd", value)) for label, value in settings), class_="sheet-settings")),
        h("p", h("span", "Open it again: "), h("a", link, href=link), class_="sheet-link") if link else None,
        class_="sheet",
    )


def results(headline: Element, others: Element, components: Element, moments: Element | None, found: tuple[Answer, ...], changes: tuple[Change, ...]) -> list[Child]:
    """The answer, what fills the memory and when, and what fits. moments: None for an accounting that knows only one."""
    return [
        headline,
        others,
        h(
            "div",
            _part("What fills the memory", components),
            h("div", _part("The step, moment by moment", moments) if moments else None, _part("What fits", _answers(found), _changes(changes))),
            class_="sheet-columns",
        ),
    ]


def _part(title: str, *children: Child) -> Element:
    return h("section", h("h2", title), children)


def _answers(found: tuple[Answer, ...]) -> Element:
    return h("dl", (h("div", h("dt", each.label), h("dd", h("strong", each.text), " ", each.sentence)) for each in found))


def _changes(changes: tuple[Change, ...]) -> Element:
    """The largest savings of a single change; what costs no memory is not among them."""
    rows = [each for each in changes if not each.current][:MOST_CHANGES]
    return h(
        "table",
        h("thead", h("tr", h("th", "One change", scope="col"), h("th", "Peak, GiB", scope="col", class_="number"), h("th", "Verdict", scope="col"))),
        h("tbody", (h("tr", h("th", each.label, scope="row"), h("td", each.peak, class_="number"), h("td", verdict(each.verdict_name, each.verdict))) for each in rows)),
    )
