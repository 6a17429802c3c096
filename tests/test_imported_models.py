"""Models read from their config.json, against what their own classes count.

Belongs here: every line of imported/models.jsonl, and that families.toml and blocks.toml say nothing that is not so or not
used. How a file is read when something is wrong with it: test_importing.py. How the lines came about: imported/record.py.
"""

from dataclasses import asdict
from datetime import date
from functools import cache
import hashlib
import json
from pathlib import Path

import pytest

from vramplan import estimate
from vramplan.architecture import Architecture
from vramplan.catalogue import presets
from vramplan.data import table
from vramplan.importing.expressions import names
from vramplan.importing.families import class_names, families
from vramplan.importing.inventory import EMBEDDING, LINEAR, OTHER, concrete
from vramplan.importing.model import read_model
from vramplan.settings import parse

LINES = [json.loads(line) for line in (Path(__file__).parent / "imported" / "models.jsonl").read_text(encoding="utf-8").splitlines()]
by_line = pytest.mark.parametrize("line", LINES, ids=[line["id"] for line in LINES])
by_family = pytest.mark.parametrize("family", families().values(), ids=list(families()))

UNUSED_FACTS = {"path", "role"}  # texts; everything else of a module is an expression


@cache
def read(number):
    return read_model(LINES[number]["config"])


def model_of(line):
    return read(LINES.index(line))


@by_line
def test_parameters_are_those_that_its_class_counts(line):
    found = model_of(line).inventory
    assert found.total == line["total"]
    assert line.get("active") in (None, found.active)


@by_line
def test_linear_maps_and_tables_have_the_names_of_its_class(line):
    named = sorted(name for name, module in concrete(model_of(line).inventory.modules) if module.kind in (LINEAR, EMBEDDING))
    assert len(named) == len(set(named))
    if "linears" in line:
        assert len(named) == line["linears"]
        assert hashlib.sha256("\n".join(named).encode()).hexdigest() == line["names_sha256"]
    else:
        assert line["source"].startswith("by hand: ")


@by_line
def test_published_parameters_are_the_same(line):
    assert line.get("published") in (None, line["total"])


COUNTABLE = [line for line in LINES if model_of(line).dimensions]


@pytest.mark.parametrize("line", COUNTABLE, ids=[line["id"] for line in COUNTABLE])
def test_a_custom_decoder_with_its_dimensions_has_as_many_parameters(line):
    texts = {name: str(value).lower() if isinstance(value, bool) else str(value) for name, value in model_of(line).dimensions.items()}
    settings = parse({"model": "custom", **texts, "sequence_length": "64"})
    assert estimate(settings).parameters.total == line["total"]


PRESETS = {facts["repository"]: name for name, facts in table("models").items() if "repository" in facts}
ALSO_PRESETS = [line for line in LINES if line["id"] in PRESETS]


@pytest.mark.parametrize("line", ALSO_PRESETS, ids=[line["id"] for line in ALSO_PRESETS])
def test_a_preset_and_its_file_describe_the_same_decoder(line):
    preset = presets()[PRESETS[line["id"]]]
    assert asdict(Architecture(**model_of(line).dimensions)) == asdict(preset.architecture)


@pytest.mark.parametrize("name, norms", (
    ("tiiuae/falcon-7b", {"input_layernorm"}), ("tiiuae/falcon-rw-1b", {"input_layernorm", "post_attention_layernorm"}), ("tiiuae/falcon-40b", {"ln_attn", "ln_mlp"}),
    ("tiiuae/falcon-11B", {"input_layernorm"}),
))
def test_falcon_calls_its_norms_by_how_many_stand_beside_each_other(name, norms):
    """As in transformers 5.24.0, models/falcon, FalconDecoderLayer; an adapter may name them to be trained whole."""
    found = model_of(next(line for line in LINES if line["id"] == name)).inventory
    assert {module.path.rpartition(".")[2] for module in found.modules if module.path.startswith("transformer.h.0.") and module.kind == OTHER} == norms


def test_there_are_lines_enough():
    published = [line for line in LINES if not line["id"].startswith("synthetic-")]
    assert len({line["id"] for line in LINES}) == len(LINES)
    assert len(published) >= 90
    assert len({line["config"]["model_type"] for line in published}) >= 60
    assert len(COUNTABLE) >= 90 and len(ALSO_PRESETS) >= 60


def test_every_family_has_a_line_and_every_other_is_the_same_as_one():
    seen = {model_of(line).family.name for line in LINES}
    assert seen == set(table("families"))
    assert {family.name for family in families().values()} == seen


def test_every_entry_says_what_it_is_and_where_that_is_written():
    for name, entry in table("families").items():
        assert entry["label"].strip() and entry["source"].strip() and isinstance(entry["date"], date), name
    for name, entry in table("blocks").items():
        assert entry["source"].strip() and isinstance(entry["date"], date), name
        assert entry["modules"], name


def test_a_class_or_a_model_type_belongs_to_one_family():
    entries = table("families")
    others = [other for entry in entries.values() for other in entry.get("types", ())]
    classes = [name for entry in entries.values() for name in entry.get("classes", ())]
    assert len(set(others)) == len(others) and not set(others) & set(entries)
    assert len(set(classes)) == len(classes) == len(class_names())


@by_family
def test_expressions_name_values_that_the_family_has(family):
    known = {value.name for value in family.values}
    here = known | {"i"}
    for name, expression in family.per_layer.items():
        assert names(expression) <= here, name
        here = here | {name}
    for entries, around in ((family.outside, known), (family.layer, here)):
        for entry in entries:
            for fact, expression in {**entry.facts, "when": entry.when}.items():
                assert fact in UNUSED_FACTS or names(expression) <= around, (entry.facts["path"], fact)
    for expression in (*family.traits.values(), *(each.when for each in family.uncounted)):
        assert names(expression) <= known, expression
    for value in family.values:
        for taken in (value.default, value.null):
            assert not isinstance(taken, str) or names(taken) <= known, value.name


@by_family
def test_traits_and_dimensions_are_those_of_the_architecture(family):
    assert set(family.traits) <= set(Architecture.__dataclass_fields__)
    assert all(each.what.strip() and not each.what.endswith(".") for each in family.uncounted)


def test_every_block_is_used_and_every_name_it_is_given_stands_for_something():
    used = {part if isinstance(part, str) else part["block"] for entry in table("families").values() for key in ("layer", "outside") for part in entry.get(key, ())}
    assert used == set(table("blocks"))
    for name, entry in table("families").items():
        paths = [module["path"] for block in table("blocks").values() for module in block["modules"]]
        assert [given for given in entry.get("names", ()) if not any(given in path for path in paths)] == [], name
