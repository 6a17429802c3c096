"""The CSV files: one row per configuration, and the largest tensors at its peak. Rows are appended as they come; those of other
stacks' kernels, checkpoints and losses have a file to themselves."""

import csv
from dataclasses import fields
from pathlib import Path

from .configurations import Configuration

FOLDER = Path(__file__).parent
TRACED = FOLDER / "traced.csv"
KERNELS = FOLDER / "kernels.csv"
BREAKDOWN = FOLDER / "breakdown.csv"
SETTINGS = [field.name for field in fields(Configuration)]
OF_FILE = {TRACED: [name for name in SETTINGS if name != "kernels"], KERNELS: SETTINGS}
RESULTS = [
    "parameters", "trainable_parameters", "weights", "optimizer_states", "forward", "loss_forward", "reference_forward",
    "loss_backward", "backward_last", "backward_first", "backward_max", "backward_end", "clip", "optimizer_step",
    "second_micro_batch", "peak", "peak_moment", "saved_per_layer", "versions", "seconds",
]  # fmt: skip
BREAKDOWN_COLUMNS = ["id", "moment", "operation", "shape", "dtype", "count", "bytes"]


def append(path: Path, columns: list[str], rows: list[dict]) -> None:
    """Add rows to a file, with the header first if the file is new."""
    new = not path.exists()
    with path.open("a", newline="") as file:
        writer = csv.DictWriter(file, columns, lineterminator="\n")
        if new:
            writer.writeheader()
        writer.writerows(rows)


def of_another_stack(row: dict) -> bool:
    """Whether a row has kernels, checkpoints or a loss that other stacks than transformers' and TRL's bring."""
    return row["kernels"] != "plain" or row["checkpointing"] not in ("full", "none") or row["loss"].startswith(("unsloth", "cut"))


def save(row: dict, breakdown: list[dict]) -> None:
    path = KERNELS if of_another_stack(row) else TRACED
    append(path, OF_FILE[path] + RESULTS, [{name: row[name] for name in OF_FILE[path] + RESULTS}])
    append(BREAKDOWN, BREAKDOWN_COLUMNS, breakdown)


def forget(identifiers: set[str]) -> None:
    """Drop the rows of these configurations from every file. Not while another process appends to them."""
    for path, columns in (*((path, names + RESULTS) for path, names in OF_FILE.items()), (BREAKDOWN, BREAKDOWN_COLUMNS)):
        if not path.exists():
            continue
        with path.open(newline="") as file:
            kept = [row for row in csv.DictReader(file) if row["id"] not in identifiers]
        path.unlink()
        append(path, columns, kept)


def recorded() -> dict[str, dict[str, str]]:
    """Every recorded row by its id."""
    found: dict[str, dict[str, str]] = {}
    for path in filter(Path.exists, OF_FILE):
        with path.open(newline="") as file:
            found |= {row["id"]: row for row in csv.DictReader(file)}
    return found
