"""A list that is searched by typing: a box in front of a <select>, which keeps the value."""

from collections.abc import Callable

from js import Event, Object, document
from pyodide.ffi import to_js

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
        self._list = Region(view.list_id(field.name))
        self._found: tuple[Option, ...] = ()
        self._marked = -1
        for name, handler in (
            ("focus", lambda event: self._box.select()), ("click", lambda event: self._open("")), ("input", self._on_input),
            ("keydown", self._on_key), ("blur", lambda event: self._close()),
        ):
            listen(self._box, name, handler)
        place = document.getElementById(view.list_id(field.name))
        listen(place, "pointerdown", lambda event: event.preventDefault())  # keeps the focus in the box
        listen(place, "click", self._on_pick)
        self._select.hidden = True
        document.getElementById(view.finder_id(field.name)).hidden = False
        self.show()

    def show(self) -> None:
        """Show the label of what is chosen."""
        chosen = self._select.selectedOptions.item(0)
        self._box.value = chosen.textContent if chosen else ""

    def focus(self) -> None:
        """Move the focus to the box."""
        self._box.focus()

    def mark_wrong(self, wrong: bool) -> None:
        """Say whether the value can be used."""
        if wrong:
            self._box.setAttribute("aria-invalid", "true")
        else:
            self._box.removeAttribute("aria-invalid")

    def _on_input(self, event) -> None:
        event.stopPropagation()
        self._open(self._box.value)
        self._mark(0 if self._box.value.strip() and self._found else -1)

    def _on_key(self, event) -> None:
        opened = self._box.getAttribute("aria-expanded") == "true"
        steps = {"ArrowDown": 1, "ArrowUp": -1}
        if event.key in steps:
            event.preventDefault()
            if not opened:
                self._open("")
                return
            if self._found:
                self._mark((self._marked + steps[event.key]) % len(self._found))
        elif event.key == "Enter":
            event.preventDefault()
            if opened and 0 <= self._marked < len(self._found):
                self._choose(self._found[self._marked].value)
        elif event.key == "Escape" and opened:
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
        self._box.setAttribute("aria-expanded", "true")
        self._mark(values.index(chosen) if not text.strip() and chosen in values else -1)

    def _mark(self, place: int) -> None:
        self._marked = place
        self._list.paint(view.matches(self._field.name, self._field.label, self._found, place, self._select.value))
        if place >= 0:
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
        self._box.setAttribute("aria-expanded", "false")
        self._box.removeAttribute("aria-activedescendant")
        self.show()
