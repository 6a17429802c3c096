"""What every JSON document is made of: exactly the keys its model names, settings as values, whole bytes."""

from decimal import Decimal
from typing import Annotated

from pydantic import BaseModel, ConfigDict, Field, PlainSerializer

from vramplan import units
from vramplan.fields import FIELDS
from vramplan.settings import Settings

Setting = bool | int | Annotated[Decimal, PlainSerializer(units.plain_decimal, return_type=str)] | str
"""A setting's value: yes/no, whole number, choice, or an exact decimal, which is written as a string."""

Bytes = Annotated[int, Field(description="Whole bytes")]


class Document(BaseModel):
    """A document with exactly the keys its model names."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    def to_json(self) -> str:
        """The document as indented JSON text."""
        return self.model_dump_json(indent=2)


def settings_values(settings: Settings) -> dict[str, Setting]:
    """Every setting that applies, by name."""
    values = {field.name: getattr(settings, field.name) for field in FIELDS}
    known = {name: value for name, value in values.items() if value is not None}
    return known | ({"gpu": int(settings.gpu)} if settings.gpu.isdecimal() else {})
