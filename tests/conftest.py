"""Puts this folder on the import path for every test, those in browser/ included: they share its data and commands."""

from hypothesis import settings as hypothesis_settings
import pytest

import strategies
from vramplan.accountings.step.moments import forget
from vramplan.policy import _decided

hypothesis_settings.load_profile(strategies.PROFILE)  # no deadlines: a busy machine is no failure


@pytest.fixture
def fresh_steps():
    """Nothing remembered of steps walked before, and nothing kept of those walked with changed constants or facts."""
    forget()
    yield
    forget()
    _decided.cache_clear()
