"""The form: one control for every setting, from the table of fields."""

from collections.abc import Iterable, Mapping

from vramplan.catalogue import TRAITS
from vramplan.fields import FIELDS, SECTIONS
from vramplan.kinds import Choice, ExactDecimal, Field, Layers, Measured, Option, Targets
from vramplan.limits import range_text
from vramplan.words import option_groups
from pyscript.tree import Child, Element, h
from pyscript.views import bring, own_run
from pyscript.views.finder import box_id, finder

LISTED_FROM = 5
"""Choices with at least this many options become a list to choose from; fewer are shown side by side."""

SEARCHED_FROM = 60
"""Lists with at least this many options are searched by typing."""

ADVANCED, TRAITS_FOLD = "advanced", "traits"
"""Parts of the form that open on demand: a section, and what few custom decoders have."""

MODEL = "model"
"""The section that models can be brought into."""

FOLD_LABELS = {TRAITS_FOLD: "What else it has"}
"""Titles of folded parts inside a section."""

SHOWN_LAST = ("stack", "accounting")
"""Fields that follow the others of their section, though what they say decides which of those apply."""

YES_AND_NO = ("true", "false")
"""Values of a choice that is a yes or a no."""

OWN_LIST = "list"
"""Stands for 'named one by one' in a row of named sets; never a value itself."""


def form(texts: Mapping[str, str], applying: set[str], *, hub: str) -> list[Element]:
    """Every section of the form, filled in. Fields outside `applying` are there but hidden. hub: where models are fetched from."""
    extra = {MODEL: bring.panel(hub)}
    return [_section(section, label, texts, applying, extra.get(section)) for section, label in SECTIONS.items()]


def field_id(name: str) -> str:
    """Id of the box around one field."""
    return f"field-{name}"


def section_id(section: str) -> str:
    """Id of one section, or of a folded part."""
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


def option_id(name: str, value: str) -> str:
    """Id of one button of a row."""
    return f"{name}-{value}"


def control_id(field: Field) -> str:
    """Id of the control that gets the focus when the field is wrong."""
    if is_searched(field):
        return box_id(field.name)
    if is_measured(field):
        return own_run.TEXT
    return option_id(field.name, field.kind.options[0].value) if is_row(field) else field.name


def is_row(field: Field) -> bool:
    """Whether the field is a row of radio buttons and nothing else."""
    return isinstance(field.kind, Choice) and len(field.kind.options) < LISTED_FROM


def is_searched(field: Field) -> bool:
    """Whether the field is a list that is long enough to be searched by typing."""
    return isinstance(field.kind, Choice) and len(field.kind.options) >= SEARCHED_FROM


def is_targets(field: Field) -> bool:
    """Whether the field is a row of named sets, with a box to name the parts one by one."""
    return isinstance(field.kind, Targets)


def is_typed(field: Field) -> bool:
    """Whether the field is typed into a box, beside which stands what it takes."""
    return not isinstance(field.kind, Choice | Targets | Measured)


def is_measured(field: Field) -> bool:
    """Whether the field is what was measured of a run, which has a part of the page to itself."""
    return isinstance(field.kind, Measured)


def own_run_panel() -> Element:
    """That part of the page."""
    name = next(field.name for field in FIELDS if is_measured(field))
    return own_run.panel(name, error_id(name), field_id(name))


def is_shown(field: Field) -> bool:
    """Whether there is anything to choose."""
    return not isinstance(field.kind, Choice) or len(field.kind.options) > 1


def fold_of(field: Field) -> str:
    """The folded part a field is in; empty for a field that is always in sight."""
    return TRAITS_FOLD if field.name in TRAITS else ADVANCED if field.section == ADVANCED and not is_measured(field) else ""


def named_set(field: Field, text: str) -> str:
    """The button of a row of sets that stands for a text."""
    return text if text in field.kind.values else OWN_LIST


def _section(section: str, label: str, texts: Mapping[str, str], applying: set[str], extra: Element | None) -> Element:
    fields = [field for field in FIELDS if field.section == section and is_shown(field) and not is_measured(field)]
    fields.sort(key=lambda field: SHOWN_LAST.index(field.name) if field.name in SHOWN_LAST else -1)
    first, *others = _fields(fields, section, texts, applying)
    inside = [first, extra, *others, *_folded(fields, section, texts, applying)]
    title = section_title_id(section)
    if section == ADVANCED:
        summary = h("summary", h("h2", label, id=title), class_="section-title")
        group = h("div", inside, role="group", aria_labelledby=title)
        return h("details", summary, group, class_="section", id=section_id(section))
    heading = h("h2", label, id=title, class_="section-title")
    return h("div", heading, inside, role="group", aria_labelledby=title, class_="section", id=section_id(section))


def _fields(fields: list[Field], section: str, texts: Mapping[str, str], applying: set[str]) -> Iterable[Element]:
    """The fields of a section that are in no folded part of it."""
    return (_field(field, texts, field.name in applying) for field in fields if fold_of(field) in ("", section))


def _folded(fields: list[Field], section: str, texts: Mapping[str, str], applying: set[str]) -> Iterable[Element]:
    """The folded parts of a section."""
    for fold, label in FOLD_LABELS.items():
        inside = [_field(field, texts, field.name in applying) for field in fields if fold_of(field) == fold]
        if inside and fold != section:
            yield h("details", h("summary", label), inside, class_="fold", id=section_id(fold))


def _field(field: Field, texts: Mapping[str, str], applies: bool) -> Element:
    text = texts[field.name]
    described = f"{hint_id(field.name)} {error_id(field.name)}"
    hint = h("p", field.hint, class_="hint", id=hint_id(field.name))
    error = h("p", class_="error", id=error_id(field.name), hidden=True)
    box = {"class_": "field", "id": field_id(field.name), "hidden": not applies}
    if is_yes_or_no(field):
        return _switch(field, text, hint, error, box, described)
    if is_row(field) or is_targets(field):
        legend = h("legend", field.label, class_="label")
        own = _own_list(field, text) if is_targets(field) else None
        return h("fieldset", legend, hint, _row(field, text), own, error, **box, aria_describedby=described)
    label = h("label", field.label, for_=control_id(field), class_="label", id=f"{field.name}-label")
    if isinstance(field.kind, Choice):
        searched = finder(field.name, described) if is_searched(field) else None
        return h("div", label, hint, _list(field, text, described), searched, error, **box)
    return h("div", h("div", label, hint, class_="about"), _box(field, texts, described), error, **box | {"class_": "field line"})


def is_yes_or_no(field: Field) -> bool:
    """Whether the field is a yes or a no."""
    return isinstance(field.kind, Choice) and field.kind.values == YES_AND_NO


def _switch(field: Field, text: str, hint: Element, error: Element, box: dict, described: str) -> Element:
    """A yes or a no, in one line with its label."""
    label = h("p", field.label, class_="label", id=f"{field.name}-label")
    return h(
        "div",
        h("div", label, hint, class_="about"),
        _row(field, text),
        error,
        **box | {"class_": "field line"},
        role="group",
        aria_labelledby=f"{field.name}-label",
        aria_describedby=described,
    )


def _row(field: Field, text: str) -> Element:
    options = [_radio(field.name, option, option.value == text) for option in field.kind.options]
    if is_targets(field):
        chosen = named_set(field, text)
        options = [_radio(field.name, option, option.value == chosen) for option in (*field.kind.options, Option(OWN_LIST, "A list", "your choice"))]
    return h("div", options, class_="row")


def _radio(name: str, option: Option, checked: bool) -> Element:
    return h(
        "label",
        h("input", type="radio", name=name, id=option_id(name, option.value), value=option.value, checked=checked),
        h("span", h("span", option.label, class_="choice-label"), _choice_hint(option.hint), class_="choice"),
    )


def _choice_hint(hint: str) -> Element | None:
    return h("span", hint, class_="choice-hint") if hint else None


def _own_list(field: Field, text: str) -> Element:
    """The box for parts named one by one, in sight while it is what counts."""
    own = named_set(field, text) == OWN_LIST
    parts = f"Any of {', '.join(field.kind.parts)}, with commas between."
    box = h(
        "input",
        type="text",
        id=field.name,
        name=field.name,
        value=text if own else "",
        inputmode="text",
        autocomplete="off",
        autocapitalize="off",
        spellcheck="false",
        aria_label=f"{field.label}, one by one",
        aria_describedby=f"{range_id(field.name)} {error_id(field.name)}",
    )
    return h("div", box, h("p", parts, class_="range", id=range_id(field.name)), class_="own", id=option_id(field.name, "own"), hidden=not own)


def _list(field: Field, text: str, described: str) -> Element:
    return h(
        "select",
        (_group(label, options, text) for label, options in option_groups(field.name)),
        id=field.name,
        name=field.name,
        aria_labelledby=f"{field.name}-label",
        aria_describedby=described,
        autocomplete="off",
    )


def _group(label: str, options: tuple[Option, ...], text: str) -> Child:
    listed = [
        h("option", _option_text(option.label, option.hint), value=option.value, selected=option.value == text)
        for option in options
    ]
    return h("optgroup", listed, label=label) if label else listed


def _option_text(label: str, hint: str) -> str:
    return f"{label}, {hint}" if hint else label


def _box(field: Field, texts: Mapping[str, str], described: str) -> Element:
    box = h(
        "input",
        type="text",
        id=field.name,
        name=field.name,
        value=texts[field.name],
        inputmode="text" if isinstance(field.kind, ExactDecimal | Layers) else "numeric",
        autocomplete="off",
        spellcheck="false",
        aria_describedby=f"{described} {range_id(field.name)}",
    )
    return h("div", box, h("p", range_text(field, texts), class_="range", id=range_id(field.name)), class_="box")
