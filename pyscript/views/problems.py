"""What is wrong with the input, and what of a link was not used."""

from vramplan.errors import FieldError
from vramplan.fields import BY_NAME
from pyscript.tree import Element, h
from pyscript.views.form import control_id


NAMED_AFTER_FIRST = 2
"""Further fields the summary names; the rest is marked in the form, and counted here."""


def problems(errors: tuple[FieldError, ...]) -> Element:
    """The summary: the first field that is wrong, linked, and how many more there are."""
    first, *others = errors
    named, rest = others[:NAMED_AFTER_FIRST], others[NAMED_AFTER_FIRST:]
    return h(
        "div",
        h("h2", "Check training inputs"),
        _line(first),
        h("ul", (h("li", link(error)) for error in named), class_="more", role="list") if named else None,
        h("p", f"{len(rest)} more are marked in the form.", class_="note") if rest else None,
        h("p", "Results return when every input can be used.", class_="note"),
        class_="problems",
    )


def _line(error: FieldError) -> Element:
    return h("p", link(error))


def link(error: FieldError) -> Element:
    """The sentence, leading to its field."""
    return h("a", error.message, href=f"#{control_id(BY_NAME[error.field])}", data_field=error.field)


def no_values(reason: str) -> Element:
    """Why formulas show no values."""
    return h("p", f"{reason} The formulas below stand without values.", class_="note")


def beyond_the_address(left: str) -> Element:
    """What the address has no room for, in words. This tab keeps it."""
    return h(
        "div",
        h("h2", "Not in the address"),
        h("p", "This tab keeps what the address has no room for; the link opens the run without."),
        h("p", f"There is no room for {left}. A settings file holds every setting and every pinned run; drop it on the page to open it again."),
        h("button", "Save settings file", type="button", data_action="save-settings", class_="plain"),
        class_="notices",
    )


def notices(sentences: tuple[str, ...]) -> Element:
    """What of a link was not used."""
    return h(
        "div",
        h("h2", "About this link"),
        h("ul", (h("li", sentence) for sentence in sentences), role="list"),
        h("button", "Dismiss", type="button", data_action="dismiss-notices", class_="plain"),
        class_="notices",
    )
