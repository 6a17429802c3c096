"""A run in another form, as a JSON document."""

from typing import Self

from pydantic import Field

from vramplan.document import Document
from vramplan.exporting.export import Export
from vramplan.link import to_query


class LostDocument(Document):
    """A setting that the file does not say."""

    setting: str
    why: str


class ExportDocument(Document):
    """A file of a tool, or a summary, that a run comes to."""

    to: str = Field(description="The tool, or markdown")
    file: str = Field(description="A name for it")
    text: str
    lost: list[LostDocument] = Field(description="Settings that the file does not say")
    means: str | None = Field(description="The run that the file gives when it is read, as a query; null of a summary")

    @classmethod
    def of(cls, made: Export) -> Self:
        """The document of an export."""
        lost = [LostDocument(setting=each.setting, why=each.why) for each in made.lost]
        return cls(to=made.to, file=made.file, text=made.text, lost=lost, means=to_query(made.means) if made.means else None)
