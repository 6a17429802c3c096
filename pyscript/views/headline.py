"""The answer: peak, budget, headroom, the bar of what fills the memory, and the same run by every accounting."""

from vramplan.chart import Stack
from vramplan.accounts import Counted
from vramplan.report import Fact, Headline
from pyscript.tree import Element, h, svg

SIGNS = {
    "yes": "M3.5 8.5l3 3 6-7",
    "likely": "M2.5 6.5q2.75-3 5.5 0t5.5 0M2.5 11q2.75-3 5.5 0t5.5 0",
    "unlikely": "M8 2.5v7.5M8 13v.5",
    "no": "M4 4l8 8M12 4l-8 8",
}
"""A tick, two waves, an exclamation mark and a cross: verdicts differ in shape, not only in colour."""


def headline(told: Headline, stack: Stack, caveat: str, adjusted: str = "") -> Element:
    """The headline card, for one valid run. adjusted: headroom with the difference of a measured run, in a sentence."""
    return h(
        "div",
        h("p", told.run, class_="run"),
        h(
            "div",
            h("p", h("span", "Estimated peak per GPU", class_="figure-label"), _amount(told.peak), class_="figure peak"),
            verdict(told.verdict_name, told.verdict, told.budget_label),
            _pair("Budget", told.budget, "budget"),
            _pair(told.headroom_label, told.headroom, "headroom"),
            class_="figures",
        ),
        stack_bar(stack),
        h("p", told.line, class_="line-note") if told.line else None,
        h("p", told.closeness, class_="closeness") if told.closeness else None,
        h("p", adjusted, " ", h("a", "Your own run", href="#own-run-part"), class_="adjusted") if adjusted else None,
        _caveat(caveat) if caveat else None,
        class_="headline",
        data_verdict=told.verdict_name,
    )


def _caveat(text: str) -> Element:
    """What was only read in code; in full where there is room, else that there is such a thing."""
    short = h("span", "Some of this is only read in code.", class_="narrow-only", aria_hidden="true")
    return h("p", h("span", text, class_="in-full"), short, " ", _to_assumptions(), class_="caveat")


def _to_assumptions() -> Element:
    return h("a", "What is assumed", href="#assumptions-part")


def uncounted(run: str, title: str, reason: Element) -> Element:
    """The headline of a run that the chosen accounting cannot count: the sentence instead of a number."""
    return h(
        "div",
        h("p", run, class_="run"),
        h("h2", title),
        h("p", reason, class_="reason"),
        class_="headline uncounted",
    )


def accountings(counted: tuple[Counted, ...]) -> Element:
    """The run by every accounting, side by side, the chosen one marked; each opens the run counted that way."""
    return h("ul", (_accounting(each) for each in counted), class_="accountings", role="list", aria_label="By accounting")


def _accounting(each: Counted) -> Element:
    chosen = h("span", " (chosen)", class_="visually-hidden") if each.current else None
    name = h("span", h("span", class_="dot", aria_hidden="true"), each.label, chosen, class_="accounting-name")
    if each.reason:
        told = h("span", "no number" if each.current else each.reason, class_="accounting-reason")
    else:
        told = h("span", h("strong", each.peak), h("span", " GiB", class_="gib"), _mark(each), class_="accounting-told")
    current = "true" if each.current else None
    return h("li", h("a", name, " ", told, href=f"?{each.query}", data_open=True, aria_current=current))


def _mark(each: Counted) -> Element:
    return h("span", " ", sign(each.verdict_name), h("span", each.verdict), class_="verdict", data_verdict=each.verdict_name)


def about(told: Headline, assumed: str, facts: tuple[Fact, ...]) -> Element:
    """What the number is, what comes on top of it, what is assumed, and counts about the run."""
    return h(
        "div",
        h("p", told.counted),
        h("p", told.beside) if told.beside else None,
        h("p", assumed, " ", _to_assumptions()) if assumed else None,
        h("dl", (_fact(fact) for fact in facts), class_="facts"),
        class_="about-number",
    )


def verdict(name: str, text: str, what: str = "") -> Element:
    """The verdict: a sign, and words, so that colour is not needed."""
    return h(
        "p",
        sign(name),
        h("span", text, h("span", f" {what}", class_="what") if what else None),
        class_="verdict",
        data_verdict=name,
    )


def sign(name: str) -> Element:
    """The sign of a verdict."""
    return svg("svg", svg("path", d=SIGNS[name]), viewbox="0 0 16 16", class_="sign", aria_hidden="true")


def stack_bar(stack: Stack) -> Element:
    """A bar of the components against the budget. A table nearby says the same, so it is hidden from readers."""
    return svg(
        "svg",
        svg("rect", x=0, y=6, width=stack.width, height=20, class_="stack-room"),
        (
            svg("rect", x=part.start, y=6, width=part.width, height=20, class_="part", data_part=part.name)
            for part in stack.parts
        ),
        svg("line", x1=stack.budget_at, x2=stack.budget_at, y1=0, y2=32, class_="stack-budget"),
        viewbox=f"0 0 {stack.width} 32",
        preserveAspectRatio="none",
        class_="stack",
        aria_hidden="true",
    )


def _amount(text: str) -> Element:
    return h("span", h("strong", text), h("span", " GiB", class_="gib"), class_="amount")


def _pair(label: str, text: str, name: str) -> Element:
    return h("p", h("span", label, class_="figure-label"), _amount(text), class_=f"figure {name}")


def _fact(fact: Fact) -> Element:
    return h(
        "div",
        h("dt", fact.label),
        h("dd", h("span", fact.text, class_="fact-text"), h("span", f" {fact.exact}", class_="fact-exact")),
    )
