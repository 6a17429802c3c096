"""The named ways to count. All take the same Settings and return the same Estimate."""

from collections.abc import Callable

from vramplan.accountings import planning
from vramplan.ledger import Estimate
from vramplan.settings import Settings

ACCOUNTINGS: dict[str, Callable[[Settings], Estimate]] = {"planning": planning.estimate}
"""Every accounting by its name in settings."""


def estimate(settings: Settings) -> Estimate:
    """Estimated peak memory per GPU of one fine-tuning run, counted the way `settings.accounting` names."""
    return ACCOUNTINGS[settings.accounting](settings)
