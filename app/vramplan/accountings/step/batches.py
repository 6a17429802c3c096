"""One run at any micro-batch and sequence length: their plane falls into regions, each with a structure of its own, and over each the
peak is a surface.
"""

from collections.abc import Iterator

from vramplan.accountings.step.batch import batch_of
from vramplan.accountings.step.build import LossChunks, structure, switches
from vramplan.accountings.step.surfaces import Surface, made_ready, surface_of
from vramplan.accountings.step.structure import Structure
from vramplan.accountings.step.tape import Batch
from vramplan.ledger import HUNDRED_PERCENT, sure_percent, verdict
from vramplan.settings import Settings

Region = tuple[bool, bool, bool, bool, bool, int]
"""What a batch turns on, and the columns of a tile of its loss: everything but the rows of that that a structure has of a batch."""


class Batches:
    """One run at any batch. Raises NotExpressible as its structure does, which no batch makes countable or not."""

    def __init__(self, settings: Settings):
        self.settings = settings
        self.budget, self.divided = settings.budget_bytes, settings.divides_states
        self.usable, self.sure_percent = self.budget - settings.context_bytes, sure_percent(divided=self.divided)
        self._run, self._turns = structure(settings), switches(settings)
        self.chunks = LossChunks(self._run, settings)
        self._rows = settings.rows // settings.micro_batch
        self._surfaces: dict[Region, Surface] = {}

    def at(self, micro_batch: int, length: int) -> tuple[int, str]:
        """The peak in bytes and the verdict of one batch."""
        rows, columns = self.chunks.of(micro_batch, length)
        surface = self.surface(self._region(micro_batch, length, columns), micro_batch, length)
        batch = *self.batch(micro_batch, length), rows
        peak, process = surface.peak(batch), None
        if peak <= self.usable and HUNDRED_PERCENT * peak > self.sure_percent * self.usable:
            process = surface.process(peak, batch, context=self.settings.context_bytes)
        return peak, verdict(usable=self.usable, budget=self.budget, peak=peak, process=process, divided=self.divided)

    def in_steps(self, micro_batch: int, length: int) -> Iterator[tuple[int, str] | None]:
        """The same, with None after each small step of making a surface that is new."""
        _, columns = self.chunks.of(micro_batch, length)
        if self._region(micro_batch, length, columns) not in self._surfaces:
            for _ in made_ready(self._structure(micro_batch, length)):
                yield None
        yield self.at(micro_batch, length)

    def _region(self, micro_batch: int, length: int, columns: int) -> Region:
        return (*self.turned(micro_batch, length), columns)

    def _structure(self, micro_batch: int, length: int) -> Structure:
        if (micro_batch, length) == (self.settings.micro_batch, self.settings.sequence_length):
            return self._run
        return structure(self.settings.varied(micro_batch=micro_batch, sequence_length=length))

    def batch(self, micro_batch: int, length: int) -> Batch:
        """What tensors grow with; of arrays, arrays."""
        return batch_of(self._run, self._rows * micro_batch, length)

    def turned(self, micro_batch: int, length: int) -> tuple[bool, bool, bool, bool, bool]:
        """What a batch turns on; of arrays, arrays."""
        rows, turns = self._rows * micro_batch, self._turns
        parts = (turns.masked, turns.one_row, turns.sorts_embedding, turns.offloads, turns.one_chunk)
        return tuple(part(rows, length) for part in parts)

    def surface(self, region: Region, micro_batch: int, length: int) -> Surface:
        """The surface of a region, of which one batch is given."""
        if region not in self._surfaces:
            self._surfaces[region] = surface_of(self._structure(micro_batch, length))
        return self._surfaces[region]
