"""The same run under each training method."""

from vramplan.accountings import estimate
from vramplan.fields import BY_NAME
from vramplan.ledger import Estimate
from vramplan.settings import Settings


def compare(settings: Settings) -> tuple[Estimate, ...]:
    """Estimates of full fine-tuning, LoRA and QLoRA with everything else held, in that order."""
    methods = [option.value for option in BY_NAME["method"].kind.options]
    return tuple(estimate(settings.replace(method=method)) for method in methods)
