"""The list under a search box: what matches, one of it marked."""

from vramplan.kinds import Option
from vramplan.units import counted
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
    told = h("p", id=told_id(name), role="status", class_="visually-hidden")
    return h("div", box, h("div", id=place_id(name), hidden=True), told, class_="finder", id=finder_id(name), hidden=True)


def matches(name: str, label: str, found: tuple[Option, ...], marked: int, chosen: str) -> Element:
    """The matches; `marked` is the place of the one the keys are at."""
    options = [
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
    nothing = None if found else h("p", NOTHING, class_="none")
    return h("div", h("ul", options, role="listbox", id=list_id(name), aria_label=label, hidden=not found), nothing)


NOTHING = "Nothing of that name. Bring its config.json, or choose Custom."


def told(found: tuple[Option, ...]) -> str:
    """What a screen reader hears of the matches."""
    return counted(len(found), "match", "matches") if found else NOTHING


def told_id(name: str) -> str:
    """Id of what is said about the matches."""
    return f"{name}-told"


def place_id(name: str) -> str:
    """Id of the place for the list."""
    return f"{name}-place"


def finder_id(name: str) -> str:
    """Id of the box and its list together."""
    return f"{name}-finder"


def box_id(name: str) -> str:
    """Id of the search box."""
    return f"{name}-search"


def list_id(name: str) -> str:
    """Id of the matches."""
    return f"{name}-matches"


def match_id(name: str, place: int) -> str:
    """Id of one match."""
    return f"{name}-match-{place}"
