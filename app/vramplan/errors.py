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
