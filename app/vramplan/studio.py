"""What Unsloth Studio's document records, beside what its formulas come to here: its reference table and its measured runs."""

from dataclasses import dataclass

from vramplan.accountings import estimate
from vramplan.accountings.unsloth import OwnName, own_names
from vramplan.data import table
from vramplan.fields import BY_NAME
from vramplan.settings import Settings
from vramplan.units import gib_text

TEXT_FLOOR, TABLE_FLOOR, NO_FLOOR = "0.15", "0.2", "0"
"""The floor by its text, by the columns of its table, and before there were floors. Source: Unsloth Studio, VRAM estimation for
training (March 2026), section 6, reference table, note under the validation."""

TABLE_RUN = {"micro_batch": 2, "sequence_length": 2048, "rank": 16, "optimizer": "adamw-8bit"}
"""What every row of its reference table is made with. Source: its heading."""

SAME = {"accounting": "unsloth", "unsloth_revision": "2026-03", "checkpointing": "offloaded"}
"""What all its recorded rows share: gradient_checkpointing is unsloth. Source: heading of the reference table."""

TABLE_SENTENCE = (
    "Its text says that gradients and activations are at least 15 % of the weights. The columns of its table are 20 %: with a floor of 0.20 "
    "all eight totals come out, with the text’s 0.15 six of them are smaller."
)
"""How its table and its text differ."""

VALIDATION_SENTENCE = (
    "Six runs of Llama-3.2-1B that its authors measured with nvidia-smi, three of them with the same reading, and what they had estimated "
    "before there were floors. Where a row does not say, micro-batch 2 and 2,048 tokens are taken. The formulas give the estimates of full "
    "fine-tuning; those of the adapter runs do not follow from them. Nothing here is fitted to these numbers."
)
"""What its validation is, and how much of it follows from its formulas."""


@dataclass(frozen=True)
class TableRow:
    """One row of its reference table, in GiB: the total as printed, and with both floors."""

    row: str
    printed: str
    with_table_floor: str
    with_text_floor: str


@dataclass(frozen=True)
class ValidationRow:
    """One of its measured runs, in GiB: its estimate as printed, by its formulas without floors, and what it measured."""

    row: str
    printed: str
    computed: str
    measured: str


def table_rows() -> tuple[TableRow, ...]:
    """The reference table, beside the same rows computed with the floor of its columns and with that of its text."""
    return tuple(
        TableRow(entry["row"], entry["total"], *(_total(TABLE_RUN, entry, floor, places=1) for floor in (TABLE_FLOOR, TEXT_FLOOR)))
        for entry in table("unsloth_studio")["table"]
    )


def validation_rows() -> tuple[ValidationRow, ...]:
    """The measured runs, beside the same runs computed without floors."""
    return tuple(
        ValidationRow(entry["row"], entry["estimated"], _total({}, entry, NO_FLOOR, places=2), entry["nvidia_smi"])
        for entry in table("unsloth_studio")["validation"]
    )


def settings_of(entry: dict, floor: str) -> Settings:
    """The run of one recorded row with a floor."""
    given = {name: value for name, value in entry.items() if name in BY_NAME}
    return Settings(**SAME, **given, floor_fraction=floor)


def _total(run: dict, entry: dict, floor: str, *, places: int) -> str:
    return gib_text(estimate(settings_of(run | entry, floor)).peak_bytes, places=places)


def names(settings: Settings) -> tuple[tuple[str, OwnName], ...]:
    """The run as its own inputs have it, each beside what the setting is called here."""
    return tuple((BY_NAME[each.field].label, each) for each in own_names(settings))
