"""Questions people ask, with the claims they meet and the figures of the run."""

from vramplan.questions import Answered
from pyscript.tree import Element, h


def questions(found: tuple[Answered, ...]) -> Element:
    """Every question unfolds into the claim and the answer."""
    return h("div", (_question(each) for each in found), class_="questions")


def _question(each: Answered) -> Element:
    return h("details", h("summary", each.question), h("p", "Claim: ", each.claim, class_="note"), h("p", each.answer))
