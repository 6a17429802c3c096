"""A badge, as a JSON document."""

from typing import Self

from pydantic import Field

from vramplan.badge import FILE, Badge, markdown, svg
from vramplan.document import Document


class BadgeDocument(Document):
    """A run as a small picture with a sentence, and the Markdown that shows it."""

    model: str
    text: str = Field(description="The sentence, such as “QLoRA fits 12 GiB at 2,048”")
    verdict: str = Field(description="yes, likely, unlikely or no")
    file: str = Field(description="A name for the picture, which the Markdown shows")
    svg: str
    markdown: str

    @classmethod
    def of(cls, made: tuple[Badge, str]) -> Self:
        """The document of a badge and of the address that opens its run, empty for none."""
        badge, link = made
        return cls(model=badge.model, text=badge.text, verdict=badge.verdict, file=FILE, svg=svg(badge), markdown=markdown(badge, link=link))
