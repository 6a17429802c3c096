"""What is wrong with the input, and what of a link was not used."""

from vramplan.errors import FieldError
from vramplan.fields import BY_NAME
from pyscript.tree import Element, h
from pyscript.views.form import control_id


def problems(errors: tuple[FieldError, ...]) -> Element:
    """The summary: the first field that is wrong, linked, and how many more there are."""
    first, *others = errors
    return h(
        "div",
        h("h2", "Check training inputs"),
        _line(first),
        h("ul", (h("li", _link(error)) for error in others), class_="more", role="list") if others else None,
        h("p", "Results return when every input can be used.", class_="note"),
        class_="problems",
    )


def _line(error: FieldError) -> Element:
    return h("p", _link(error))


def _link(error: FieldError) -> Element:
    return h("a", error.message, href=f"#{control_id(BY_NAME[error.field])}", data_field=error.field)


def notices(sentences: tuple[str, ...]) -> Element:
    """What of a link was not used."""
    return h(
        "div",
        h("h2", "About this link"),
        h("ul", (h("li", sentence) for sentence in sentences), role="list"),
        h("button", "Dismiss", type="button", data_action="dismiss-notices", class_="plain"),
        class_="notices",
    )
