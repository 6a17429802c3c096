"""The form's controls: read what is typed, write what a link says, show what applies and what is wrong."""

from collections.abc import Iterable, Mapping

from js import document

from vramplan.catalogue import defaults
from vramplan.errors import FieldError
from vramplan.fields import BY_NAME, FIELDS
from vramplan.finding import matching_models
from vramplan.kinds import Choice, Field
from vramplan.language import told
from vramplan.limits import range_text
from vramplan.targets import named_parts
from pyscript.finder import Finder
from pyscript.views.form import (
    OWN_LIST,
    control_id,
    error_id,
    field_id,
    fold_of,
    hint_id,
    is_row,
    is_searched,
    is_shown,
    is_targets,
    is_typed,
    named_set,
    option_id,
    range_id,
    section_id,
)

FINDERS = {"model": matching_models}
"""How the lists that are searched by typing find their matches."""

SHOWN_FIELDS = [field for field in FIELDS if is_shown(field)]


class Controls:
    """All controls of the form, by setting name."""

    def __init__(self):
        self._boxes = {field.name: document.getElementById(field_id(field.name)) for field in SHOWN_FIELDS}
        self._inputs = {field.name: _inputs(field) for field in SHOWN_FIELDS}
        self._finders = {field.name: Finder(field, FINDERS[field.name]) for field in SHOWN_FIELDS if is_searched(field)}
        self._unlisted: dict[str, str] = {}
        self._messages: dict[str, str] = {}
        self._held: dict[str, str] = {}
        self._applying: set[str] = set()
        for field in filter(is_targets, SHOWN_FIELDS):
            self.offer_own_list(field.name)

    def read(self) -> dict[str, str]:
        """The text of every control as it stands."""
        return {field.name: self.read_one(field.name) for field in SHOWN_FIELDS}

    def read_one(self, name: str) -> str:
        """The text of one control as it stands."""
        return self._held[name] if name in self._held else self._read(BY_NAME[name])

    def write(self, texts: Mapping[str, str], names: Iterable[str]) -> None:
        """Show these texts in the named controls."""
        for name in names:
            if name in self._inputs and name not in self._held:
                self._write(BY_NAME[name], texts[name])

    def hold(self, names: Iterable[str], why: str) -> None:
        """Keep these settings as they are: nothing typed or written changes them from now on. why: what is said at each."""
        for field in SHOWN_FIELDS:
            if field.name in names:
                self._held[field.name] = self._read(field)
                self._boxes[field.name].dataset.held = ""
                hint = document.getElementById(hint_id(field.name))
                if hint:
                    hint.textContent = told(why)
                for control in (*self._inputs[field.name], document.getElementById(control_id(field))):
                    control.disabled = True

    def show_applying(self, names: set[str]) -> None:
        """Show the fields that apply and hide the others, whatever they hold."""
        if names == self._applying:
            return
        self._applying = names
        for name, box in self._boxes.items():
            if box.hidden == (name in names):
                box.hidden = name not in names

    def show_ranges(self, values: Mapping[str, object]) -> None:
        """Say what each field takes: the model decides some of the limits, the unit others."""
        for field in SHOWN_FIELDS:
            if is_typed(field):
                place, text = document.getElementById(range_id(field.name)), told(range_text(field, values))
                if place.textContent != text:
                    place.textContent = text

    def show_errors(self, errors: tuple[FieldError, ...]) -> None:
        """Show each sentence at its field, and nothing at the others. Opens the folded part for a new one in it."""
        messages = {error.field: error.message for error in errors}
        if messages == self._messages:
            return
        self._messages = messages
        for field in SHOWN_FIELDS:
            message = told(messages.get(field.name, ""))
            place = document.getElementById(error_id(field.name))
            if place.textContent != message:
                place.textContent = message
                place.hidden = not message
                self._mark(field, bool(message))
                if message:
                    _unfold(field)

    def unfold(self, texts: Mapping[str, str]) -> None:
        """Open the folded parts in which one of these texts differs from its default: it may explain the numbers."""
        usual = defaults()
        for name, text in texts.items():
            if text != usual[name]:
                _unfold(BY_NAME[name])

    def offer_own_list(self, name: str) -> None:
        """Show the box for a list while a list is chosen; an empty one starts from the set chosen before."""
        *sets, _, box = self._inputs[name]
        place, own = document.getElementById(option_id(name, "own")), self._is_own_list(name)
        if own and place.hidden and not box.value:
            box.value = ",".join(named_parts(self._unlisted.get(name) or sets[-1].value))
        place.hidden = not own
        if not own:
            self._unlisted[name] = self._read(BY_NAME[name])

    def focus(self, name: str) -> None:
        """Move the focus to a field's control and into view."""
        field = BY_NAME[name]
        _unfold(field)
        named = is_targets(field) and not self._is_own_list(name)
        document.getElementById(option_id(name, self._read(field)) if named else control_id(field)).focus()

    def _is_own_list(self, name: str) -> bool:
        return document.getElementById(option_id(name, OWN_LIST)).checked

    def _read(self, field: Field) -> str:
        controls = self._inputs[field.name]
        if is_targets(field):
            *buttons, box = controls
            chosen = next((control.value for control in buttons if control.checked), OWN_LIST)
            return box.value if chosen == OWN_LIST else chosen
        if not is_row(field):
            return controls[0].value
        chosen = [control.value for control in controls if control.checked]
        return chosen[0] if chosen else self._unlisted.get(field.name, "")

    def _write(self, field: Field, text: str) -> None:
        controls = self._inputs[field.name]
        if is_targets(field):
            self._write_targets(field, text)
            return
        if is_row(field):
            self._unlisted[field.name] = text
            _check(controls, text)
            return
        if isinstance(field.kind, Choice):
            _offer(controls[0], field, text)
        if controls[0].value != text:
            controls[0].value = text
        if field.name in self._finders:
            self._finders[field.name].show()

    def _write_targets(self, field: Field, text: str) -> None:
        """A named set is a button, with an empty box; any other text is a list, right or wrong."""
        *buttons, box = self._inputs[field.name]
        chosen = named_set(field, text)
        _check(buttons, chosen)
        own = text if chosen == OWN_LIST else ""
        if box.value != own:
            box.value = own
        document.getElementById(option_id(field.name, "own")).hidden = chosen != OWN_LIST
        self._unlisted[field.name] = "" if chosen == OWN_LIST else chosen

    def _mark(self, field: Field, wrong: bool) -> None:
        for control in self._inputs[field.name]:
            if wrong:
                control.setAttribute("aria-invalid", "true")
            else:
                control.removeAttribute("aria-invalid")
        if field.name in self._finders:
            self._finders[field.name].mark_wrong(wrong)
        self._boxes[field.name].classList.toggle("wrong", wrong)


def _check(buttons: list, value: str) -> None:
    """Check the button with this value, and no other."""
    for button in buttons:
        button.checked = button.value == value


def _unfold(field: Field) -> None:
    """Open the folded part the field is in."""
    if fold_of(field):
        document.getElementById(section_id(fold_of(field))).open = True


def _inputs(field: Field) -> list:
    """The elements that hold a field's text: buttons of a row, and the box where there is one, last."""
    values = field.kind.values if is_row(field) or is_targets(field) else ()
    names = [*values, OWN_LIST] if is_targets(field) else values
    buttons = [document.getElementById(option_id(field.name, value)) for value in names]
    return buttons if is_row(field) else [*buttons, document.getElementById(field.name)]


def _offer(control, field: Field, text: str) -> None:
    """A list shows a value that is not in it as one more line, so that what a link said stays to be seen."""
    listed = field.kind.values
    while control.options.length > len(listed):
        control.options.item(len(listed)).remove()
    if text not in listed:
        extra = document.createElement("option")
        extra.value = text
        extra.textContent = told(f"{text} (not available)")
        control.appendChild(extra)
