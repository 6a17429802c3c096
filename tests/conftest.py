"""Puts this folder on the import path for every test, those in browser/ included: they share its data and commands."""

import pytest

from vramplan.accountings.step.moments import forget
from vramplan.policy import _decided


@pytest.fixture
def fresh_steps():
    """Nothing remembered of steps walked before, and nothing kept of those walked with changed constants or facts."""
    forget()
    yield
    forget()
    _decided.cache_clear()
