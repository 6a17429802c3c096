"""What is wrong with an input, as data and as one sentence."""

from dataclasses import dataclass


@dataclass(frozen=True)
class FieldError:
    """One field that cannot be used: its setting name, and a sentence that says what must hold and what came."""

    field: str
    message: str


class SettingsError(ValueError):
    """Settings that cannot be estimated.

    `errors` holds every FieldError in the order of the fields; the text of the exception is the first sentence.
    """

    def __init__(self, errors: tuple[FieldError, ...]):
        super().__init__(errors)
        self.errors = errors

    def __str__(self) -> str:
        return self.errors[0].message


class OfOneField(ValueError):
    """Something is wrong with one setting or input: which one, and one sentence about it."""

    def __init__(self, field: str, message: str):
        super().__init__(field, message)
        self.field = field
        self.message = message

    def __str__(self) -> str:
        return self.message


class NotExpressible(OfOneField):
    """A run that an accounting has no way to count: which setting is in the way, and one sentence about it."""


class CardsError(OfOneField):
    """Cards that cannot be used: which of the inputs about them is wrong, and one sentence about it."""


class Missing(Exception):
    """Something that is installed apart from the estimator is not there: one sentence that says what, and how to get it."""


class FrameError(ValueError):
    """A point in time that a run does not have: one sentence."""
