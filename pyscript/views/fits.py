"""What fits: the searches, the single changes and the methods. Every row is a link that opens that run."""

from vramplan.report import MAXIMA_NOTE, Answer, Change
from pyscript.tree import Element, h
from pyscript.views.headline import verdict


def maxima(found: tuple[Answer, ...]) -> Element:
    """The searches as tiles, with the note that they do not combine."""
    return h(
        "div",
        h("ul", (_tile(each) for each in found), class_="tiles", role="list"),
        h("p", MAXIMA_NOTE, class_="note"),
    )


def _tile(found: Answer) -> Element:
    link = found.query and h("a", "Use this", h("span", f": {found.label} {found.text}", class_="visually-hidden"), **_to(found.query))
    return h(
        "li",
        h("h3", found.label),
        h("p", h("strong", found.text), class_="tile-value"),
        h("p", found.sentence, class_="tile-text"),
        link or None,
        class_="tile",
    )


def changes(rows: tuple[Change, ...], caption: str, first: str) -> Element:
    """Runs that differ from the current one, as a table."""
    return h(
        "table",
        h("caption", caption, class_="visually-hidden"),
        h(
            "thead",
            h(
                "tr",
                h("th", first, scope="col"),
                h("th", "Peak, GiB", scope="col", class_="number"),
                h("th", "Against now", scope="col", class_="number wide-only"),
                h("th", "Headroom, GiB", scope="col", class_="number wide-only"),
                h("th", "Verdict", scope="col"),
            ),
        ),
        h("tbody", (_row(row) for row in rows)),
        class_="changes",
    )


def _row(row: Change) -> Element:
    name = h("a", row.label, **_to(row.query))
    now = h("span", "now", class_="badge") if row.current else None
    cost = h("span", row.cost, class_="cost") if row.cost else None
    return h(
        "tr",
        h("th", name, now, cost, h("span", row.difference, class_="narrow-only"), scope="row"),
        h("td", row.peak, class_="number"),
        h("td", row.difference, class_="number quiet wide-only"),
        h("td", row.headroom, class_="number wide-only"),
        h("td", verdict(row.verdict_name, row.verdict)),
        aria_current="true" if row.current else None,
    )


def _to(query: str) -> dict[str, str]:
    return {"href": f"?{query}", "data_open": True}
