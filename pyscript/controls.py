"""The form's controls: read what is typed, write what a link says, show what applies and what is wrong."""

from collections.abc import Iterable, Mapping

from js import document

from vramplan.catalogue import defaults
from vramplan.errors import FieldError
from vramplan.fields import BY_NAME, FIELDS, Choice, Field, range_text
from pyscript.views.form import (
    FOLDED_SECTION,
    control_id,
    error_id,
    field_id,
    is_row,
    is_shown,
    range_id,
    section_id,
)

SHOWN_FIELDS = [field for field in FIELDS if is_shown(field)]


class Controls:
    """All controls of the form, by setting name."""

    def __init__(self):
        self._boxes = {field.name: document.getElementById(field_id(field.name)) for field in SHOWN_FIELDS}
        self._inputs = {field.name: _inputs(field) for field in SHOWN_FIELDS}
        self._unlisted: dict[str, str] = {}

    def read(self) -> dict[str, str]:
        """The text of every control as it stands."""
        return {field.name: self._read(field) for field in SHOWN_FIELDS}

    def write(self, texts: Mapping[str, str], names: Iterable[str]) -> None:
        """Show these texts in the named controls."""
        for name in names:
            if name in self._inputs:
                self._write(BY_NAME[name], texts[name])

    def show_applying(self, names: set[str]) -> None:
        """Show the fields that apply and hide the others, whatever they hold."""
        for name, box in self._boxes.items():
            if box.hidden == (name in names):
                box.hidden = name not in names

    def show_ranges(self, values: Mapping[str, object]) -> None:
        """Say what each field takes: the model decides some of the limits, the unit others."""
        for field in SHOWN_FIELDS:
            if not isinstance(field.kind, Choice):
                place, text = document.getElementById(range_id(field.name)), range_text(field, values)
                if place.textContent != text:
                    place.textContent = text

    def show_errors(self, errors: tuple[FieldError, ...]) -> None:
        """Show each sentence at its field, and nothing at the others. Opens the folded section for a new one in it."""
        messages = {error.field: error.message for error in errors}
        for field in SHOWN_FIELDS:
            message = messages.get(field.name, "")
            place = document.getElementById(error_id(field.name))
            if place.textContent != message:
                place.textContent = message
                place.hidden = not message
                self._mark(field, bool(message))
                if message:
                    _unfold(field)

    def unfold(self, texts: Mapping[str, str]) -> None:
        """Open the folded section when something in it differs from the defaults: it may explain the numbers."""
        usual = defaults()
        for field in SHOWN_FIELDS:
            if texts[field.name] != usual[field.name]:
                _unfold(field)

    def focus(self, name: str) -> None:
        """Move the focus to a field's control and into view."""
        field = BY_NAME[name]
        _unfold(field)
        document.getElementById(control_id(field)).focus()

    def _read(self, field: Field) -> str:
        if not is_row(field):
            return self._inputs[field.name][0].value
        chosen = [control.value for control in self._inputs[field.name] if control.checked]
        return chosen[0] if chosen else self._unlisted.get(field.name, "")

    def _write(self, field: Field, text: str) -> None:
        controls = self._inputs[field.name]
        if is_row(field):
            self._unlisted[field.name] = text
            for control in controls:
                control.checked = control.value == text
            return
        if isinstance(field.kind, Choice):
            _offer(controls[0], field, text)
        if controls[0].value != text:
            controls[0].value = text

    def _mark(self, field: Field, wrong: bool) -> None:
        for control in self._inputs[field.name]:
            if wrong:
                control.setAttribute("aria-invalid", "true")
            else:
                control.removeAttribute("aria-invalid")
        self._boxes[field.name].classList.toggle("wrong", wrong)


def _unfold(field: Field) -> None:
    """Open the folded section if the field is in it."""
    if field.section == FOLDED_SECTION:
        document.getElementById(section_id(FOLDED_SECTION)).open = True


def _inputs(field: Field) -> list:
    if is_row(field):
        return [document.getElementById(f"{field.name}-{option.value}") for option in field.kind.options]
    return [document.getElementById(field.name)]


def _offer(control, field: Field, text: str) -> None:
    """A list shows a value that is not in it as one more line, so that what a link said stays to be seen."""
    listed = [option.value for option in field.kind.options]
    while control.options.length > len(listed):
        control.options.item(len(listed)).remove()
    if text not in listed:
        extra = document.createElement("option")
        extra.value = text
        extra.textContent = f"{text} (not available)"
        control.appendChild(extra)
