"""Peaks and verdicts of one run over many batches at once, in numpy, which only this and the sweep need."""

import numpy

from vramplan.accountings.step.batches import Batches
from vramplan.accountings.step.surfaces import Surface
from vramplan.ledger import HUNDRED_PERCENT, LIKELY, NO, UNLIKELY, VERDICTS, YES

PART = 1 << 15
"""Batches that are worked on together: few enough for their numbers to stay in a core's cache."""

LARGEST_PERCENT = 512
"""More than any amount is multiplied by on the way to a verdict."""

PLACE = {name: place for place, name in enumerate(VERDICTS)}
"""The place of each verdict."""

LARGEST_WHOLE = 1 << 62
"""Whole numbers of 64 bits are exact up to here, with room to add two."""


def grid(run: Batches, micro_batches: numpy.ndarray, lengths: numpy.ndarray) -> tuple[numpy.ndarray, numpy.ndarray]:
    """The peak in bytes of every batch, and the place of its verdict among VERDICTS.

    micro_batches, lengths: of the same shape (n,), whole numbers, which the settings take. Peaks are int64, or Python's own whole
    numbers where 64 bits could overflow.
    """
    parts = [_part(run, micro_batches[at : at + PART], lengths[at : at + PART]) for at in range(0, len(lengths), PART)]
    return tuple(numpy.concatenate(each) for each in zip(*parts, strict=True))


def _part(run: Batches, micro_batches: numpy.ndarray, lengths: numpy.ndarray) -> tuple[numpy.ndarray, numpy.ndarray]:
    """Peaks and verdicts of some batches, region by region."""
    rows, columns = (numpy.broadcast_to(each, lengths.shape) for each in run.chunks.of(micro_batches, lengths))
    names = columns
    for turned in run.turned(micro_batches, lengths):
        names = names * (numpy.max(turned) + 1) + turned
    found = []
    for name in numpy.unique(names):
        where = numpy.flatnonzero(names == name)
        first = where[0]
        micro_batch, length = int(micro_batches[first]), int(lengths[first])
        surface = run.surface((*run.turned(micro_batch, length), int(columns[first])), micro_batch, length)
        found.append((where, *_over(surface, run, micro_batches[where], lengths[where], rows[where])))
    order = numpy.argsort(numpy.concatenate([where for where, _, _ in found]))
    peaks, verdicts = (numpy.concatenate(each)[order] for each in ([peaks for _, peaks, _ in found], [verdicts for _, _, verdicts in found]))
    return peaks, verdicts


def _over(surface: Surface, run: Batches, micro_batches: numpy.ndarray, lengths: numpy.ndarray, rows: numpy.ndarray) -> tuple[numpy.ndarray, numpy.ndarray]:
    """Peaks and verdicts over one surface; in Python's own whole numbers where 64 bits could overflow."""
    batch = tuple(numpy.broadcast_to(each, lengths.shape) for each in (*run.batch(micro_batches, lengths), rows))
    largest = surface.bound(tuple(int(each.max()) for each in batch))
    if LARGEST_PERCENT * max(largest, run.budget) > LARGEST_WHOLE:
        batch = tuple(each.astype(object) for each in batch)
    peaks = surface.peak(batch)
    sure = HUNDRED_PERCENT * peaks <= run.sure_percent * run.usable
    verdicts = numpy.where(sure, PLACE[YES], PLACE[NO])
    between = numpy.flatnonzero((peaks <= run.usable) & ~sure)
    if len(between):
        process = surface.process(peaks[between], tuple(each[between] for each in batch), context=run.settings.context_bytes)
        verdicts[between] = numpy.where(process.middle <= run.budget, PLACE[LIKELY], PLACE[UNLIKELY])
    return peaks, numpy.where(peaks > run.usable, PLACE[NO], verdicts).astype(numpy.int8)
