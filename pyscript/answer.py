"""The answer: its tree, from one estimate. Pure, and apart from the other panels, which are not needed to show it."""

from vramplan import accounts, chart, report
from vramplan.ledger import Estimate
from pyscript.tree import Element
from pyscript.views import headline as headline_view


def headline(estimate: Estimate, told: report.Headline | None = None) -> Element:
    """The answer; told: its words, where they are made already."""
    amounts = {name: amount for name, amount in accounts.component_bytes(estimate.terms) if amount}
    stack = chart.stack(amounts, budget=estimate.usable_bytes, longest=estimate.budget_bytes)
    return headline_view.headline(told or report.headline(estimate), stack, accounts.unchecked_text(estimate), _adjusted(estimate))


def _adjusted(estimate: Estimate) -> str:
    """Headroom with the difference of a measured run; what works that out is imported only for one."""
    if not estimate.settings.measured:
        return ""
    from vramplan import own_run

    return own_run.adjusted_text(estimate)
