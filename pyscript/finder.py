"""A list that is searched by typing: a box in front of a <select>, which keeps the value."""

from collections.abc import Callable

from js import Event, Object, document
from pyodide.ffi import to_js

from vramplan import language
from vramplan.finding import FIRST, NONE, next_place
from vramplan.kinds import Field, Option
from pyscript.dom import Region
from pyscript.events import listen
from pyscript.views import finder as view


class Finder:
    """Arrow keys move in the matches, Enter takes one, Escape or leaving the box keeps what was chosen before."""

    def __init__(self, field: Field, matching: Callable[[str], tuple[Option, ...]]):
        self._field = field
        self._matching = matching
        self._select = document.getElementById(field.name)
        self._box = document.getElementById(view.box_id(field.name))
        self._list = Region(view.place_id(field.name))
        self._told = document.getElementById(view.told_id(field.name))
        self._found: tuple[Option, ...] = ()
        self._marked = NONE
        self._opened = False
        for name, handler in (
            ("focus", lambda event: self._box.select()), ("click", self._on_click), ("input", self._on_input), ("keydown", self._on_key),
            ("blur", lambda event: self._close()),
        ):
            listen(self._box, name, handler)
        place = document.getElementById(view.place_id(field.name))
        listen(place, "mousedown", lambda event: event.preventDefault())  # keeps the focus in the box
        listen(place, "click", self._on_pick)
        self._select.hidden = True
        document.getElementById(view.finder_id(field.name)).hidden = False
        self.show()

    def show(self) -> None:
        """Show the label of what is chosen."""
        chosen = self._select.selectedOptions.item(0)
        self._box.value = chosen.textContent if chosen else ""

    def mark_wrong(self, wrong: bool) -> None:
        """Say whether the value can be used."""
        if wrong:
            self._box.setAttribute("aria-invalid", "true")
        else:
            self._box.removeAttribute("aria-invalid")

    def _on_click(self, event) -> None:
        if not self._opened:
            self._open("")

    def _on_input(self, event) -> None:
        event.stopPropagation()
        self._open(self._box.value)
        self._told.textContent = language.told(view.told(self._found))
        if self._box.value.strip() and self._found:
            self._mark(FIRST)

    def _on_key(self, event) -> None:
        if event.key in ("ArrowDown", "ArrowUp"):
            event.preventDefault()
            if not self._opened:
                self._open("")
            elif self._found:
                self._mark(next_place(self._marked, len(self._found), back=event.key == "ArrowUp"))
        elif event.key == "Enter":
            event.preventDefault()
            if self._opened and self._marked != NONE:
                self._choose(self._found[self._marked].value)
        elif event.key == "Escape" and self._opened:
            event.preventDefault()
            self._close()

    def _on_pick(self, event) -> None:
        picked = event.target.closest("[data-value]")
        if picked:
            self._choose(picked.dataset.value)

    def _open(self, text: str) -> None:
        self._found = self._matching(text)
        values = [option.value for option in self._found]
        chosen = self._select.value
        self._opened = True
        self._box.setAttribute("aria-expanded", "true" if self._found else "false")
        self._mark(values.index(chosen) if not text.strip() and chosen in values else NONE)

    def _mark(self, place: int) -> None:
        self._marked = place
        self._list.paint(view.matches(self._field.name, self._field.label, self._found, place, self._select.value))
        if place != NONE:
            name = view.match_id(self._field.name, place)
            self._box.setAttribute("aria-activedescendant", name)
            document.getElementById(name).scrollIntoView(to_js({"block": "nearest"}, dict_converter=Object.fromEntries))
        else:
            self._box.removeAttribute("aria-activedescendant")

    def _choose(self, value: str) -> None:
        self._select.value = value
        self._close()
        self._box.select()
        bubbling = to_js({"bubbles": True}, dict_converter=Object.fromEntries)
        self._select.dispatchEvent(Event.new("input", bubbling))
        self._select.dispatchEvent(Event.new("change", bubbling))

    def _close(self) -> None:
        self._list.hide()
        self._opened = False
        self._marked = NONE
        self._told.textContent = ""
        self._box.setAttribute("aria-expanded", "false")
        self._box.removeAttribute("aria-activedescendant")
        self.show()
