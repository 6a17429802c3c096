"""The form: one control for every setting, from the table of fields."""

from collections.abc import Mapping

from vramplan.fields import FIELDS, SECTIONS, Choice, ExactDecimal, Field, range_text
from pyscript.tree import Element, h

LISTED_FROM = 5
"""Choices with at least this many options become a list to choose from; fewer are shown side by side."""

FOLDED_SECTION = "advanced"
"""The section that opens on demand."""


def form(texts: Mapping[str, str], applying: set[str]) -> list[Element]:
    """Every section of the form, filled in. Fields outside `applying` are there but hidden."""
    return [_section(section, label, texts, applying) for section, label in SECTIONS.items()]


def field_id(name: str) -> str:
    """Id of the box around one field."""
    return f"field-{name}"


def section_id(section: str) -> str:
    """Id of one section."""
    return f"section-{section}"


def section_title_id(section: str) -> str:
    """Id of a section's heading."""
    return f"section-{section}-title"


def hint_id(name: str) -> str:
    """Id of a field's hint."""
    return f"{name}-hint"


def error_id(name: str) -> str:
    """Id of a field's error."""
    return f"{name}-error"


def range_id(name: str) -> str:
    """Id of the text that gives a field's range."""
    return f"{name}-range"


def control_id(field: Field) -> str:
    """Id of the control that gets the focus when the field is wrong."""
    return f"{field.name}-{field.kind.options[0].value}" if is_row(field) else field.name


def is_row(field: Field) -> bool:
    """Whether the field is a row of radio buttons."""
    return isinstance(field.kind, Choice) and len(field.kind.options) < LISTED_FROM


def is_shown(field: Field) -> bool:
    """Whether there is anything to choose."""
    return not isinstance(field.kind, Choice) or len(field.kind.options) > 1


def _section(section: str, label: str, texts: Mapping[str, str], applying: set[str]) -> Element:
    fields = [
        _field(field, texts, field.name in applying)
        for field in FIELDS
        if field.section == section and is_shown(field)
    ]
    title = section_title_id(section)
    if section == FOLDED_SECTION:
        summary = h("summary", h("h2", label, id=title), class_="section-title")
        group = h("div", fields, role="group", aria_labelledby=title)
        return h("details", summary, group, class_="section", id=section_id(section))
    heading = h("h2", label, id=title, class_="section-title")
    return h("div", heading, fields, role="group", aria_labelledby=title, class_="section", id=section_id(section))


def _field(field: Field, texts: Mapping[str, str], applies: bool) -> Element:
    text = texts[field.name]
    described = f"{hint_id(field.name)} {error_id(field.name)}"
    hint = h("p", field.hint, class_="hint", id=hint_id(field.name))
    error = h("p", class_="error", id=error_id(field.name), hidden=True)
    box = {"class_": "field", "id": field_id(field.name), "hidden": not applies}
    if is_row(field):
        legend = h("legend", field.label, class_="label")
        return h("fieldset", legend, hint, _row(field, text), error, **box, aria_describedby=described)
    label = h("label", field.label, for_=field.name, class_="label")
    control = _list(field, text, described) if isinstance(field.kind, Choice) else _box(field, texts, described)
    if isinstance(field.kind, Choice):
        return h("div", label, hint, control, error, **box)
    return h("div", h("div", label, hint, class_="about"), control, error, **box | {"class_": "field line"})


def _row(field: Field, text: str) -> Element:
    return h(
        "div",
        (
            h(
                "label",
                h(
                    "input",
                    type="radio",
                    name=field.name,
                    id=f"{field.name}-{option.value}",
                    value=option.value,
                    checked=option.value == text,
                ),
                h("span", h("span", option.label, class_="choice-label"), _choice_hint(option.hint), class_="choice"),
            )
            for option in field.kind.options
        ),
        class_="row",
    )


def _choice_hint(hint: str) -> Element | None:
    return h("span", hint, class_="choice-hint") if hint else None


def _list(field: Field, text: str, described: str) -> Element:
    options = (
        h("option", _option_text(option.label, option.hint), value=option.value, selected=option.value == text)
        for option in field.kind.options
    )
    return h("select", options, id=field.name, name=field.name, aria_describedby=described, autocomplete="off")


def _option_text(label: str, hint: str) -> str:
    return f"{label}, {hint}" if hint else label


def _box(field: Field, texts: Mapping[str, str], described: str) -> Element:
    box = h(
        "input",
        type="text",
        id=field.name,
        name=field.name,
        value=texts[field.name],
        inputmode="text" if isinstance(field.kind, ExactDecimal) else "numeric",
        autocomplete="off",
        spellcheck="false",
        aria_describedby=f"{described} {range_id(field.name)}",
    )
    return h("div", box, h("p", range_text(field, texts), class_="range", id=range_id(field.name)), class_="box")
