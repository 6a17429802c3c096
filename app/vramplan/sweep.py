"""A run over a grid of settings: every combination of the values that several settings take, counted."""

import csv
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, replace
from itertools import product, repeat
from math import prod
from typing import TextIO

from vramplan.accountings import at_batches, grid, usable_bytes
from vramplan.checks import complaint
from vramplan.errors import FieldError, Missing, NotExpressible, SettingsError
from vramplan.fields import BY_NAME, FIELDS
from vramplan.ledger import LIKELY, VERDICTS, YES
from vramplan.link import unused_notices
from vramplan.ranges import several
from vramplan.settings import Settings, parse
from vramplan.units import count_text

MOST_POINTS = 20_000_000
"""Points of one grid at the most."""

BATCH = ("micro_batch", "sequence_length")
"""Settings whose values are counted together, the last of them varying fastest."""


COLUMNS = ("peak_bytes", "budget_bytes", "headroom_bytes", "fits", "verdict", "field", "message")
"""What a point comes to: amounts in bytes and the verdict, or the setting that is in the way and a sentence."""

TRAINING = "training"
"""The task that every accounting counts."""

UNCOUNTED = -1
"""Stands where a point has no verdict."""


@dataclass(frozen=True)
class Point:
    """One point of a grid: its values as text in the order of the swept settings, and either what it comes to or what is in the way."""

    values: tuple[str, ...]
    peak_bytes: int | None = None
    budget_bytes: int | None = None
    headroom_bytes: int | None = None
    verdict: str = ""
    problem: FieldError | None = None

    @property
    def fits(self) -> bool:
        """Whether the verdict is yes or likely."""
        return self.verdict in (YES, LIKELY)


class Sweep:
    """A grid over settings. names: those that are swept; their values, as text, are `axes`. held: the texts of the others. Raises SettingsError where a range cannot
    be read, nothing is swept, there are too many points, or no combination is a valid run; Missing without numpy.
    """

    def __init__(self, texts: Mapping[str, str], *, version: int | None = None):
        try:
            import numpy
        except ImportError:
            raise Missing('A sweep needs numpy, which is not installed: pip install "vramplan[sweep]".') from None
        self._numpy, self._texts, self._version = numpy, texts, version
        known = {field.name: several(field, texts[field.name], texts) for field in FIELDS if field.name in texts}
        swept = {name: values for name, values in known.items() if len(values) > 1}
        self.names = (*(name for name in swept if name not in BATCH), *(name for name in BATCH if name in swept))
        self.axes = {name: swept[name] for name in self.names}
        if not swept:
            raise SettingsError((FieldError("micro_batch", "A sweep needs a setting with several values, such as 1:64, 8,16,32 or lora,qlora. Give one."),))
        self.held = {name: text for name, text in texts.items() if name not in swept}
        self.size = prod(map(len, swept.values()))
        if self.size > MOST_POINTS:
            longest = max(swept, key=lambda name: len(swept[name]))
            message = f"A sweep takes at most {count_text(MOST_POINTS)} points; these are {count_text(self.size)}. Take larger steps."
            raise SettingsError((FieldError(longest, message),))
        self.runs = self._runs()
        self.counted = self.fitting = 0

    def _runs(self) -> list[tuple[tuple[str, ...], Settings | FieldError]]:
        """Every combination of the settings beside the batch, with its run at the smallest batch, or what is wrong with it."""
        others = [name for name in self.names if name not in BATCH]
        smallest = {name: min(self.axes[name], key=int) for name in self.names if name in BATCH}
        found, wrong = [], None
        for values in product(*(self.axes[name] for name in others)):
            try:
                found.append((values, parse({**self._texts, **dict(zip(others, values, strict=True)), **smallest}, version=self._version)))
            except SettingsError as problem:
                wrong = wrong or problem
                found.append((values, problem.errors[0]))
        if not any(isinstance(run, Settings) for _, run in found):
            raise wrong
        return found

    def unused_notices(self) -> list[str]:
        """A sentence for every setting that no combination uses."""
        others = [name for name in self.names if name not in BATCH]
        left: dict[str, None] | None = None
        for values, _ in self.runs:
            said = unused_notices({**self.held, **dict(zip(others, values, strict=True))}, version=self._version)
            left = dict.fromkeys(said if left is None else (each for each in left if each in said))
            if not left:
                break
        return list(left or ())

    def planes(self) -> Iterator["Plane"]:
        """Every batch of one combination of the other settings after the other, counted."""
        for others, run in self.runs:
            batches = [self.axes.get(name) for name in BATCH]
            if isinstance(run, Settings):
                batches = [values or (str(getattr(run, name)),) for name, values in zip(BATCH, batches, strict=True)]
            micro_batches, lengths = (self._numpy.array(list(map(int, values or "0")), self._numpy.int64) for values in batches)
            yield self._plane(self._as_counted(others, run), run, self._numpy.repeat(micro_batches, len(lengths)), self._numpy.tile(lengths, len(micro_batches)))

    def _as_counted(self, others: tuple[str, ...], run: Settings | FieldError) -> tuple[str, ...]:
        """The values of a combination as they are counted: training, where an accounting counts nothing else."""
        trained = isinstance(run, Settings) and not run.serves
        names = [name for name in self.names if name not in BATCH]
        return tuple(TRAINING if name == "task" and trained else value for name, value in zip(names, others, strict=True))

    def _plane(self, others: tuple[str, ...], run: Settings | FieldError, micro_batches, lengths) -> "Plane":
        shape, numpy = lengths.shape, self._numpy
        made = Plane(others, run, micro_batches, lengths, numpy.zeros(shape, numpy.int64), numpy.full(shape, UNCOUNTED, numpy.int8), {}, {})
        if isinstance(run, FieldError):
            return made
        length = BY_NAME["sequence_length"]
        above = numpy.unique(lengths[lengths > run.max_sequence_length]).tolist()
        made.too_long.update({value: FieldError(length.name, complaint(length, str(value), {"model": run.model})) for value in above})
        counted = numpy.flatnonzero(lengths <= run.max_sequence_length)
        try:
            found = grid(run, micro_batches[counted], lengths[counted])
        except NotExpressible as reason:
            return replace(made, run=FieldError(reason.field, reason.message))
        if found is None:
            return made.one_by_one(counted.tolist(), at_batches(run))
        made.verdicts[counted] = found[1]
        peaks = made.peaks.astype(found[0].dtype)
        peaks[counted] = found[0]
        return replace(made, peaks=peaks)

    def points(self) -> Iterator[Point]:
        """Every point, in order; `counted` and `fitting` are how many of those so far could be counted, and fit."""
        self.counted = self.fitting = 0
        for plane in self.planes():
            self.counted += int((plane.verdicts != UNCOUNTED).sum())
            self.fitting += sum(int((plane.verdicts == VERDICTS.index(name)).sum()) for name in (YES, LIKELY))
            yield from plane.points(self.names)

    def write_csv(self, stream: TextIO) -> None:
        """Write every point as a line of comma-separated values, below a line of names."""
        lines = csv.writer(stream, lineterminator="\n")
        lines.writerow((*self.names, *COLUMNS))
        for p in self.points():
            field, message = (p.problem.field, p.problem.message) if p.problem else ("", "")
            fits = "" if p.problem else "true" if p.fits else "false"
            lines.writerow((*p.values, p.peak_bytes, p.budget_bytes, p.headroom_bytes, fits, p.verdict, field, message))


@dataclass(frozen=True)
class Plane:
    """Every batch of one combination of the other settings, in arrays of numpy.

    run: the combination at its smallest batch, or what keeps all of it from being counted. verdicts: places among VERDICTS, UNCOUNTED
    where a batch is not counted: for its length (too_long), or for what `problems` says of its place.
    """

    others: tuple[str, ...]
    run: Settings | FieldError
    micro_batches: object
    lengths: object
    peaks: object
    verdicts: object
    too_long: dict[int, FieldError]
    problems: dict[int, FieldError]

    def one_by_one(self, places: list[int], at: Callable[[int, int], tuple[int, str]]) -> "Plane":
        """The same, with the batches at some places counted one by one."""
        peaks = self.peaks.astype(object)  # Python's own whole numbers, which do not overflow
        for place in places:
            try:
                peaks[place], verdict = at(int(self.micro_batches[place]), int(self.lengths[place]))
            except NotExpressible as reason:
                self.problems[place] = FieldError(reason.field, reason.message)
            else:
                self.verdicts[place] = VERDICTS.index(verdict)
        return replace(self, peaks=peaks)

    def points(self, names: tuple[str, ...]) -> Iterator[Point]:
        """The points, in order; names: those of the swept settings."""
        known = isinstance(self.run, Settings)
        budget, usable = (self.run.budget_bytes, usable_bytes(self.run)) if known else (0, 0)
        batches = [each.tolist() for name, each in zip(BATCH, (self.micro_batches, self.lengths), strict=True) if name in names]
        columns = zip(self.lengths.tolist(), self.peaks.tolist(), self.verdicts.tolist(), zip(*batches, strict=True) if batches else repeat(()))
        for place, (length, peak, verdict, batch) in enumerate(columns):
            values = (*self.others, *map(str, batch))
            if verdict == UNCOUNTED:
                yield Point(values, problem=(self.too_long.get(length) or self.problems[place]) if known else self.run)
            else:
                yield Point(values, peak, budget, usable - peak, VERDICTS[verdict])
