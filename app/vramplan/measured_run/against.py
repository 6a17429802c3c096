"""What was measured against what is estimated: allocated against the peak, reserved and process against their bands.

A difference is added to an estimate, openly, and never enters its ledger.
"""

import zlib
from dataclasses import dataclass, replace
from urllib.parse import urlencode

from vramplan.catalogue import defaults
from vramplan.fields import applying
from vramplan.ledger import Band, Estimate
from vramplan.measured_run.amounts import least_asked
from vramplan.measured_run.record import PEAKS, Record, format_record, parse_record
from vramplan.settings import Settings, format_settings

BESIDE_THE_STEP = (
    "accounting", "gpu", "budget", "budget_unit", "other_processes", "replicas", "activation_multiplier", "extra_allowance", "measured",
)
"""Settings that change nothing in what a training step holds on one card."""

FINGERPRINT_VERSION = 2
"""Version of the defaults that a fingerprint leaves out; one for good, or the fingerprints of old links would change."""


@dataclass(frozen=True)
class Compared:
    """One measured amount and its estimate: least and most, the same for a peak. difference: measured less the nearest of them."""

    kind: str
    measured: int
    low: int
    high: int

    @property
    def difference(self) -> int:
        """Bytes by which the measured amount lies above the most or, negative, below the least; 0 between them."""
        return self.measured - min(max(self.measured, self.low), self.high)


def fingerprint(settings: Settings) -> str:
    """Eight digits that stand for the settings which shape the step: to notice that they have changed, for nothing else."""
    usual = defaults(FINGERPRINT_VERSION)
    names = applying(vars(settings)) - set(BESIDE_THE_STEP)
    changed = sorted((name, text) for name, text in format_settings(settings).items() if name in names and text != usual[name])
    return f"{zlib.crc32(urlencode(changed).encode()):08x}"


def record_of(settings: Settings) -> Record | None:
    """What the settings say was measured."""
    return parse_record(settings.measured) if settings.measured else None


def is_of(record: Record, settings: Settings) -> bool:
    """Whether these settings were measured, as far as anybody said."""
    return record.settings in ("", fingerprint(settings))


def compared(estimate: Estimate, record: Record) -> tuple[Compared, ...]:
    """Every peak that was measured, against the estimate; nothing for an accounting that counts the process in its rows."""
    if estimate.reserved is None:
        return ()
    peak = estimate.peak_bytes
    bands = {"allocated": Band(peak, peak), "reserved": estimate.reserved, "process": estimate.process}
    measured = [(name, getattr(record, name)) for name in PEAKS]
    return tuple(Compared(name, amount, bands[name].low, bands[name].high) for name, amount in measured if amount is not None)


def least_needed(record: Record) -> int | None:
    """Bytes that were allocated at least, had the allocation that failed succeeded; None where the message does not say."""
    return None if record.held is None or record.tried is None else record.held + least_asked(record.tried)


def measured_difference(estimate: Estimate, record: Record) -> int | None:
    """Measured less estimated, of the amount that says most; for a run that failed at least so much; None where nothing is known.

    Where other settings were measured, what the record says the difference was then.
    """
    if not is_of(record, estimate.settings):
        return record.over
    found = compared(estimate, record)
    if found:
        return found[0].difference
    needed = least_needed(record)
    if needed is None or estimate.reserved is None or needed <= estimate.peak_bytes:
        return None
    return needed - estimate.peak_bytes


def attached(record: Record, estimate: Estimate) -> Record:
    """The record as it stands in the link: with its difference and the settings it is of, unless it says that others were measured."""
    if not is_of(record, estimate.settings):
        return record
    plain = replace(record, over=None, settings="")
    return replace(plain, over=measured_difference(estimate, plain), settings=fingerprint(estimate.settings))


def with_record(settings: Settings, record: Record) -> Settings:
    """The same run with a measurement."""
    return settings.varied(measured=format_record(record))


def adjusted_headroom(estimate: Estimate) -> int | None:
    """Headroom with the difference of the measured run; None where nothing was measured."""
    record = record_of(estimate.settings)
    difference = measured_difference(estimate, record) if record else None
    return None if difference is None else estimate.headroom_bytes - difference
