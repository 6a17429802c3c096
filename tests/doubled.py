"""A constant of the step accounting doubled, to see whether recorded runs notice."""

import importlib

from vramplan.accountings.step.moments import forget


def before_and_doubled(constant, errors, monkeypatch):
    """What `errors()` gives with the constant as it is, and with twice that."""
    before = errors()
    forget()
    module = importlib.import_module(constant.module)
    monkeypatch.setattr(module, constant.name, 2 * getattr(module, constant.name))
    return before, errors()
