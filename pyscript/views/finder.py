"""The list under a search box: what matches, one of it marked."""

from vramplan.kinds import Option
from pyscript.tree import Element, h


def finder(name: str, described: str) -> Element:
    """The search box for a list, with room for its matches; hidden until there is somebody to answer it."""
    box = h(
        "input",
        type="text",
        id=box_id(name),
        role="combobox",
        aria_autocomplete="list",
        aria_expanded="false",
        aria_controls=list_id(name),
        aria_labelledby=f"{name}-label",
        aria_describedby=described,
        autocomplete="off",
        spellcheck="false",
    )
    return h("div", box, h("div", id=list_id(name), hidden=True), class_="finder", id=finder_id(name), hidden=True)


def matches(name: str, label: str, found: tuple[Option, ...], marked: int, chosen: str) -> Element:
    """The matches; `marked` is the place of the one the keys are at."""
    return h(
        "ul",
        [
            h(
                "li",
                option.label,
                role="option",
                id=match_id(name, place),
                data_value=option.value,
                aria_selected="true" if place == marked else "false",
                data_chosen=option.value == chosen,
            )
            for place, option in enumerate(found)
        ]
        or h("li", "Nothing of that name. Bring its config.json, or choose Custom.", class_="none"),
        role="listbox" if found else None,
        aria_label=label if found else None,
    )


def finder_id(name: str) -> str:
    """Id of the box and its list together."""
    return f"{name}-finder"


def box_id(name: str) -> str:
    """Id of the search box."""
    return f"{name}-search"


def list_id(name: str) -> str:
    """Id of the place for the matches."""
    return f"{name}-matches"


def match_id(name: str, place: int) -> str:
    """Id of one match."""
    return f"{name}-match-{place}"
