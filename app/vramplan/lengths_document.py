"""The JSON document of a data set’s token lengths against a run."""

from typing import Self

from pydantic import Field

from vramplan.document import Bytes, Document, Setting, settings_values
from vramplan.importing.length_files import LengthFile
from vramplan.length_fit import Batches, LengthFit, Mark
from vramplan.lengthchart import Bar, layout


class MarkDocument(Document):
    """A percentile of the lengths, or the longest, and the run with that sequence length; null where the model ends before it."""

    name: str = Field(description="p50, p95, p99 or max")
    tokens: int
    longer_samples: int
    peak_bytes: Bytes | None
    headroom_bytes: int | None
    fits: bool | None

    @classmethod
    def of(cls, mark: Mark) -> Self:
        """The document of a percentile."""
        at = mark.point
        return cls(
            name=mark.name, tokens=mark.tokens, longer_samples=mark.longer,
            peak_bytes=at and at.peak_bytes, headroom_bytes=at and at.headroom_bytes, fits=at and at.fits,
        )


class BatchesDocument(Document):
    """One way to make batches."""

    how: str = Field(description="cut: samples cut at the sequence length, padded to the longest of the batch; uncut: padded alike; packed: one behind the other in rows")
    rows: int
    padding_share: float | None = Field(description="Of all tokens in batches, on average; null where it is not counted")
    too_large_probability: float = Field(description="That a random micro-batch does not fit")

    @classmethod
    def of(cls, batches: Batches) -> Self:
        """The document of a way to make batches."""
        return cls(how=batches.how, rows=batches.rows, padding_share=batches.padding, too_large_probability=float(batches.too_large))


class BarDocument(Document):
    """Samples from one length to another, both included."""

    shortest: int
    longest: int
    samples: int

    @classmethod
    def of(cls, bar: Bar) -> Self:
        """The document of a bar."""
        return cls(shortest=bar.low, longest=bar.high, samples=bar.samples)


class LengthsDocument(Document):
    """A data set’s token lengths against one run."""

    settings: dict[str, Setting]
    column: str = Field(description="The column or key that was read; empty for a plain list")
    columns: list[str] = Field(description="Those that hold whole numbers")
    samples: int
    tokens: int
    percentiles: list[MarkDocument] = Field(description="By the nearest-rank method")
    longest_fitting: int | None = Field(description="The longest sequence that fits at the micro-batch; null when none does")
    at_cap: bool = Field(description="Whether the search ended there, at the longest sequence the model is estimated for")
    too_long_samples: int = Field(description="Samples that are longer than that")
    cut_samples: int = Field(description="Samples that are longer than the sequence length")
    batches: list[BatchesDocument]
    histogram: list[BarDocument]

    @classmethod
    def of(cls, told: tuple[LengthFile, LengthFit]) -> Self:
        """The document of a file against a run."""
        read, found = told
        lengths, settings = found.lengths, found.estimate.settings
        return cls(
            settings=settings_values(settings),
            column=read.column,
            columns=list(read.choices),
            samples=lengths.samples,
            tokens=lengths.tokens,
            percentiles=[MarkDocument.of(mark) for mark in found.marks],
            longest_fitting=found.limit.value,
            at_cap=found.limit.at_cap,
            too_long_samples=found.too_long,
            cut_samples=lengths.over(settings.sequence_length),
            batches=[BatchesDocument.of(each) for each in found.batches],
            histogram=[BarDocument.of(bar) for bar in layout(found).bars],
        )
