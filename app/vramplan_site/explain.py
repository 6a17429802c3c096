"""The parts of the page that explain: the steps of the calculation, the symbols, worked examples, references."""

from vramplan import report
from vramplan.accountings import estimate
from vramplan.calculation import BYTES, Case, Step, applying_cases, steps, symbol_meanings, value_texts
from vramplan.data import table
from vramplan.ledger import LIKELY, NO, SURE_PERCENT, UNLIKELY, YES, Estimate
from vramplan.link import to_query
from vramplan.settings import parse
from vramplan.words import verdict_text
from vramplan_site import mathml
from pyscript.tree import Child, Element, h
from pyscript.views.headline import verdict

SYMBOLS_WITH_VALUES_ONLY = ("peak", "headroom", "batch")
"""Results that the table of symbols leaves to their own steps."""


PHONE_WIDTH = 20
"""Characters of a formula that surely fit on a narrow screen; wider ones scroll."""


def calculation(opening: Estimate) -> list[Element]:
    """Every step of an accounting with its formula, its values and its source, then the symbols."""
    texts, name = value_texts(opening), opening.accounting
    applying = applying_cases(opening.settings, name)
    return [
        h("p", "Dimensions: ", h("span", texts["dimensions-source"], data_value="dimensions-source"), ".", class_="note"),
        h("ol", (_step(step, texts, applying) for step in steps(name)), class_="steps", role="list"),
        h("details", h("summary", "Symbols and their values now"), _symbols(name, texts)),
    ]


def _step(step: Step, texts: dict[str, str], applying: set[str]) -> Element:
    return h(
        "li",
        h(
            "div",
            h("h4", step.title, " ", h("span", mathml.inline(step.symbol), f", {step.unit}" if step.unit else None, class_="quiet")),
            h("p", step.text),
            h("p", "Source: ", _source(step), ".", class_="source"),
        ),
        h("div", (_case(step, case, texts, case.id in applying) for case in step.cases), class_="cases"),
    )


def _source(step: Step) -> Element | str:
    """Where a formula comes from, linked to the list of references where it is one of them."""
    if not step.reference:
        return step.source
    if step.reference not in table("references"):
        raise ValueError(f"formula {step.symbol} cites {step.reference}, which is not in references.toml")
    return h("a", step.source, href=f"#{reference_id(step.reference)}")


def reference_id(name: str) -> str:
    """Id of one entry of the list of references."""
    return f"reference-{name}"


def _case(step: Step, case: Case, texts: dict[str, str], applies: bool) -> Element:
    return h(
        "div",
        h("p", case.label, class_="case-label") if case.label else None,
        _scrolling(mathml.formula(step.symbol, case.expression), "The formula", class_="formula"),
        h("div", _filled(case, texts), _result(step, texts), class_="filled", hidden=not applies),
        class_="case",
        id=case.id,
        data_applies="yes" if applies else "no",
    )


def _filled(case: Case, texts: dict[str, str]) -> Element | None:
    """The values put in."""
    if case.expression.isidentifier() or case.expression.isdecimal():
        return None  # the result says the same
    parts = ([part, " "] for part in mathml.filled(case.expression, texts))
    return _scrolling(parts, "The formula with its values", class_="values")


def _scrolling(content: Child, label: str, *, class_: str) -> Element:
    """A line of mathematics. Where it may be wider than a phone it scrolls, and the keyboard must reach it to do so."""
    line = h("div", content, class_=class_)
    if max(len(mathml.text_of(part)) for part in line.children) <= PHONE_WIDTH:
        return line
    return h("div", line.children, class_=class_, tabindex=0, role="group", aria_label=label)


def _result(step: Step, texts: dict[str, str]) -> Element:
    value = h("strong", texts[step.symbol], data_value=step.symbol)
    name = f"{step.symbol}-gib"
    gib = [" (", h("span", texts[name], data_value=name), " GiB)"] if step.unit == BYTES else None
    return h("p", "= ", value, f" {step.unit}" if step.unit else None, gib, class_="outcome")


def _symbols(accounting: str, texts: dict[str, str]) -> Element:
    rows = (
        h(
            "tr",
            h("td", mathml.inline(name)),
            h("th", meaning, scope="row"),
            h("td", h("span", texts[name], data_value=name), class_="number"),
        )
        for name, meaning in symbol_meanings(accounting).items()
        if name not in SYMBOLS_WITH_VALUES_ONLY
    )
    head = h("tr", h("th", "Symbol", scope="col"), h("th", "Meaning", scope="col"), h("th", "Now", scope="col", class_="number"))
    return h("table", h("caption", "Symbols and their values now", class_="visually-hidden"), h("thead", head), h("tbody", rows), class_="symbols")


def verdicts() -> list[Element]:
    """What each verdict means, with its sign."""
    surely = f"{SURE_PERCENT} %"
    meanings = {
        NO: "More is allocated than the budget less the CUDA context. Nothing gives that back.",
        YES: f"At most {surely} of that is allocated. No recorded run that ran out of memory was estimated to allocate so little.",
        LIKELY: "Between the two, and the middle of the band for the process is within the budget.",
        UNLIKELY: "Between the two, and the middle of that band is above the budget: the allocator would have to give back most of what it keeps.",
    }
    return [
        each
        for name, meaning in meanings.items()
        for each in (h("dt", verdict(name, verdict_text(name))), h("dd", meaning))
    ]


def examples() -> Element:
    """Worked examples, each with its computed result and a link that opens it."""
    return h("ul", (_example(entry) for entry in table("examples")["example"]), class_="examples", role="list")


def _example(entry: dict) -> Element:
    current = estimate(parse(entry["settings"]))
    return h(
        "li",
        h("h3", entry["title"]),
        h("p", entry["text"]),
        h("p", report.headline(current).sentence, class_="result"),
        h("p", h("a", "Open this run", h("span", f": {entry['title']}", class_="visually-hidden"), href=f"?{to_query(current.settings)}", data_open=True)),
    )


def references() -> Element:
    """What the estimate rests on, linked."""
    return h(
        "ul",
        (
            h("li", h("a", entry["title"], href=entry["url"], target="_blank", rel="noopener"), f". {entry['by']}.", id=reference_id(name))
            for name, entry in table("references").items()
        ),
        class_="references",
    )
