"""The JSON document of pinned runs and the one as it is."""

from collections.abc import Sequence
from typing import Self

from pydantic import Field

from vramplan.document import Bytes, Document, Setting, settings_values
from vramplan.ledger import Estimate
from vramplan.link import to_query
from vramplan.pins import Step, TermStep, differing, steps


class TermStepDocument(Document):
    """One row of the ledger in both runs."""

    name: str
    baseline_bytes: Bytes
    bytes: Bytes
    difference_bytes: int

    @classmethod
    def of_step(cls, step: TermStep) -> Self:
        """The document of a row."""
        return cls(name=step.name, baseline_bytes=step.before, bytes=step.after, difference_bytes=step.difference)


class StepDocument(TermStepDocument):
    """One component in both runs, and the rows of the ledger that differ in it."""

    terms: list[TermStepDocument]

    @classmethod
    def of(cls, step: Step) -> Self:
        """The document of a component."""
        row = TermStepDocument.of_step(step)
        return cls(**row.model_dump(), terms=[TermStepDocument.of_step(each) for each in step.terms])


class ComparedRunDocument(Document):
    """One run, and every component of it from the baseline on."""

    settings: dict[str, Setting]
    query: str
    peak_bytes: Bytes
    headroom_bytes: int
    verdict: str
    fits: bool
    difference_bytes: int = Field(description="Peak less that of the baseline")
    steps: list[StepDocument] = Field(description="By component; the differences add up to that of the peaks")

    @classmethod
    def of(cls, run: Estimate, baseline: Estimate) -> Self:
        """The document of a run."""
        return cls(
            settings=settings_values(run.settings), query=to_query(run.settings), peak_bytes=run.peak_bytes, headroom_bytes=run.headroom_bytes,
            verdict=run.verdict, fits=run.fits, difference_bytes=run.peak_bytes - baseline.peak_bytes, steps=[StepDocument.of(each) for each in steps(baseline, run)],
        )


class PinsDocument(Document):
    """Pinned runs, the baseline first, and the run as it is, last."""

    differing: list[str] = Field(description="Settings that not all runs have in common")
    runs: list[ComparedRunDocument]

    @classmethod
    def of(cls, told: tuple[Sequence[Estimate], Estimate]) -> Self:
        """The document of pinned runs and the one as it is."""
        pinned, current = told
        runs = (*pinned, current)
        return cls(differing=list(differing([run.settings for run in runs])), runs=[ComparedRunDocument.of(run, pinned[0]) for run in runs])
