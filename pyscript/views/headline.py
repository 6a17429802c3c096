"""The answer: peak, budget, headroom, and the bar of what fills the memory."""

from vramplan.chart import Stack
from vramplan.report import Fact, Headline
from pyscript.tree import Element, h, svg


def headline(told: Headline, stack: Stack) -> Element:
    """The headline card, for one valid run."""
    return h(
        "div",
        h("p", told.run, class_="run"),
        h(
            "div",
            h("p", h("span", "Estimated peak per GPU", class_="figure-label"), _amount(told.peak), class_="figure peak"),
            verdict(told.fits, told.verdict, told.budget_label),
            _pair("Budget", told.budget, "budget"),
            _pair(told.headroom_label, told.headroom, "headroom"),
            class_="figures",
        ),
        stack_bar(stack),
        h("p", told.closeness, class_="closeness") if told.closeness else None,
        class_="headline",
        data_fits="yes" if told.fits else "no",
    )


def facts(told: tuple[Fact, ...]) -> Element:
    """Counts about the run."""
    return h("dl", (_fact(fact) for fact in told), class_="facts")


def verdict(fits: bool, text: str, what: str = "") -> Element:
    """Fits or not: a sign, and words, so that colour is not needed."""
    return h(
        "p",
        sign(fits),
        h("span", text, h("span", f" {what}", class_="what") if what else None),
        class_="verdict",
        data_fits="yes" if fits else "no",
    )


def sign(fits: bool) -> Element:
    """A tick or a cross."""
    path = "M3.5 8.5l3 3 6-7" if fits else "M4 4l8 8M12 4l-8 8"
    return svg("svg", svg("path", d=path), viewbox="0 0 16 16", class_="sign", aria_hidden="true")


def stack_bar(stack: Stack) -> Element:
    """A bar of the components against the budget. The table below it says the same, so it is hidden from readers."""
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
