"""The formulas shown to people, evaluated: each gives what the estimate and the independent oracle count.

Belongs here: data/formulas_planning.toml, data/formulas_unsloth.toml and data/formulas_rules.toml as mathematics, in exact fractions. How a formula looks on the page: browser tests.
"""

import ast
from fractions import Fraction
from functools import cache
from math import floor
from pathlib import Path
import random
import tomllib

import pytest

from configurations import PLANNING, RULES, UNSLOTH, random_configurations
import oracle
import oracle_unsloth
from unsloth_configurations import unsloth_configuration
from vramplan import estimate
from vramplan.accountings.rules import choices as rules_choices
from vramplan.accountings.unsloth import choices as unsloth_choices
from vramplan.settings import parse

DATA = Path(__file__).parent.parent / "app/vramplan/data"
FORMULAS = tomllib.loads((DATA / "formulas_planning.toml").read_text(encoding="utf-8"))
STEPS = FORMULAS["step"]
SYMBOLS = set(FORMULAS["symbols"]) - {"source", "date"}
CONFIGURATIONS = [PLANNING, {**PLANNING, "method": "full"}, {**PLANNING, "method": "lora"}, *random_configurations(200, seed=7)]
COUNTED = oracle.ledger(CONFIGURATIONS)
TABLE = oracle.columns(CONFIGURATIONS)
SMALL = oracle.small_parameters(TABLE)


class Exact(ast.NodeTransformer):
    """Makes every number of an expression an exact fraction, so that / loses nothing."""

    def visit_Constant(self, node):
        return ast.Call(ast.Name("Fraction", ast.Load()), [node], [])


@cache
def compiled(expression):
    tree = ast.fix_missing_locations(Exact().visit(ast.parse(expression, mode="eval")))
    return compile(tree, expression, "eval")


def inputs(index):
    """The symbols that no formula defines, from the settings alone."""
    typed, row = CONFIGURATIONS[index], {name: column[index] for name, column in TABLE.items()}
    return {
        "H": row["hidden_size"], "L": row["num_layers"], "n": row["num_attention_heads"], "k": row["num_kv_heads"],
        "d": row["head_dim"], "M": row["intermediate_size"], "V": row["vocab_size"], "t": 1 if row["tied"] else 2,
        **{letter: counts[index] for letter, counts in SMALL.items()}, "r": row["rank"], "B": row["micro_batch"], "S": row["sequence_length"],
        "G": int(typed["gradient_accumulation_steps"]), "N": int(typed["replicas"]), "E": row["extra_allowance"],
        "alpha": row["activation_multiplier"], "C": Fraction(row["budget_bytes"], 2**30),
    }


def holding(step, typed):
    """The cases of a step that hold for a configuration. The formula knows two AdamWs, whether scores are stored, and
    whether all weights are trained."""
    known = {"adamw-foreach": "adamw", "adamw-fused": "adamw", "adamw-fp32-states": "adamw", "efficient-repeated": "efficient"}
    typed = {name: known.get(text, text) for name, text in typed.items()}
    if typed["method"] == "pretraining":
        typed |= {"method": "full", "trainable_precision": "mixed-bf16"}
    return [case for case in step["case"] if all(typed[name] in allowed for name, allowed in case.get("when", {}).items())]


def evaluated(index):
    """Every symbol with its value, formula by formula in reading order."""
    values = inputs(index)
    for step in STEPS:
        (case,) = holding(step, CONFIGURATIONS[index])
        names = {"__builtins__": {}, "Fraction": Fraction, "max": max}
        values[step["symbol"]] = eval(compiled(case["expression"]), names, values)
    return values


def test_every_symbol_is_explained_and_every_explanation_is_used():
    trees = [ast.parse(case["expression"]) for step in STEPS for case in step["case"]]
    used = {node.id for tree in trees for node in ast.walk(tree) if isinstance(node, ast.Name)}
    defined = {step["symbol"] for step in STEPS}
    assert SYMBOLS == (used | defined) - {"max"}
    assert defined | set(inputs(0)) == SYMBOLS


def test_exactly_one_case_of_each_formula_holds():
    for typed in CONFIGURATIONS:
        for step in STEPS:
            assert len(holding(step, typed)) == 1, (step["symbol"], typed)


@pytest.mark.parametrize(
    ("symbol", "terms", "roundings"),
    [
        ("W", ("base_weights", "adapters"), 1),
        ("T", ("master_weights", "gradients", "optimizer_states"), 0),
        ("X", ("saved_activations", "active_layer", "adapter_activations"), 3),
        ("Z", ("logits",), 0),
        ("J", ("dequantization",), 0),
    ],
)
def test_formulas_give_the_terms_but_for_the_rounding(symbol, terms, roundings):
    for index in range(len(CONFIGURATIONS)):
        rounded_up = sum(COUNTED["terms"][name][index] for name in terms) - evaluated(index)[symbol]
        assert rounded_up == 0 or 0 < rounded_up < roundings


def test_formulas_give_the_peak_and_the_counts():
    for index, typed in enumerate(CONFIGURATIONS):
        values = evaluated(index)
        assert 0 <= Fraction(COUNTED["peak"][index], 2**30) - values["peak"] < Fraction(5, 2**30)
        assert values["headroom"] == values["C"] - values["peak"]
        assert (values["P"], values["P_t"]) == (COUNTED["total"][index], COUNTED["trainable"][index])
        assert values["batch"] == int(typed["gradient_accumulation_steps"]) * int(typed["micro_batch"]) * int(typed["replicas"])


def test_the_values_filled_into_the_formulas_are_those_of_the_estimate():
    for index, typed in enumerate(CONFIGURATIONS):
        shown, values = estimate(parse(typed)).quantities, evaluated(index)
        assert set(shown) <= SYMBOLS and len(shown) > 20
        assert {name: value for name, value in shown.items() if value != values[name]} == {}


UNSLOTH_FORMULAS = tomllib.loads((DATA / "formulas_unsloth.toml").read_text(encoding="utf-8"))
OWN_INPUTS = {"Q", "K", "A", "F", "D", "N", "W", "R", "P_t", "O", "G_0", "X_m", "X_d", "Y", "X_0", "G", "X"}
GENERATOR = random.Random(8)
UNSLOTH_RUNS = [{**UNSLOTH, **unsloth_configuration(GENERATOR)} for _ in range(300)]
UNSLOTH_COUNTED = oracle_unsloth.ledger(UNSLOTH_RUNS)


def unsloth_evaluated(typed):
    """Every symbol of Unsloth Studio's estimate by its formulas, from its inputs alone, and the estimate itself."""
    one = estimate(parse(typed))
    values = {name: value for name, value in one.quantities.items() if name not in OWN_INPUTS}
    values["C"] = Fraction(one.budget_bytes, 2**30)
    chosen = unsloth_choices(parse(typed))
    for step in UNSLOTH_FORMULAS["step"]:
        (case,) = [case for case in step["case"] if all(chosen[name] in allowed for name, allowed in case.get("when", {}).items())]
        names = {"__builtins__": {}, "Fraction": Fraction, "max": max, "min": min, "floor": floor}
        values[step["symbol"]] = eval(compiled(case["expression"]), names, values)
    return one, values


def test_the_formulas_of_unsloth_studio_give_its_estimate_and_the_oracle():
    for index, typed in enumerate(UNSLOTH_RUNS):
        one, values = unsloth_evaluated(typed)
        assert {name: value for name, value in one.quantities.items() if value != values[name]} == {}
        assert 0 <= Fraction(UNSLOTH_COUNTED["peak"][index], 2**30) - values["peak"] < Fraction(5, 2**30)
        assert values["headroom"] == values["C"] - values["peak"]


def test_every_symbol_of_unsloth_studio_is_explained_and_used():
    trees = [ast.parse(case["expression"]) for step in UNSLOTH_FORMULAS["step"] for case in step["case"]]
    used = {node.id for tree in trees for node in ast.walk(tree) if isinstance(node, ast.Name)} - {"max", "min", "floor"}
    defined = {step["symbol"] for step in UNSLOTH_FORMULAS["step"]}
    assert set(UNSLOTH_FORMULAS["symbols"]) - {"source", "date"} == used | defined
    assert OWN_INPUTS == defined - {"peak", "headroom"}
    assert {"revision", "layers", "mixed", "attention", "trained"} <= {name for step in UNSLOTH_FORMULAS["step"] for case in step["case"] for name in case.get("when", {})}


RULES_FORMULAS = tomllib.loads((DATA / "formulas_rules.toml").read_text(encoding="utf-8"))
RULES_RUNS = [{**RULES, **typed} for typed in random_configurations(300, seed=11, accounting="rules")]
DEFINED_BY_RULES = {step["symbol"] for step in RULES_FORMULAS["step"]}


def test_the_formulas_of_the_byte_rules_give_their_estimate():
    for typed in RULES_RUNS:
        settings = parse(typed)
        one, chosen = estimate(settings), rules_choices(settings)
        values = {name: Fraction(value) for name, value in one.quantities.items() if name not in DEFINED_BY_RULES} | {"C": Fraction(one.budget_bytes, 2**30)}
        for step in RULES_FORMULAS["step"]:
            (case,) = [case for case in step["case"] if all(chosen[name] in allowed for name, allowed in case.get("when", {}).items())]
            values[step["symbol"]] = eval(compiled(case["expression"]), {"__builtins__": {}, "Fraction": Fraction}, values)
        assert {name: value for name, value in one.quantities.items() if value != values[name]} == {}
        assert 0 <= Fraction(one.peak_bytes, 2**30) - values["peak"] < Fraction(len(one.terms), 2**30)
        assert values["headroom"] == values["C"] - values["peak"]


def test_every_symbol_of_the_byte_rules_is_explained_and_used():
    trees = [ast.parse(case["expression"]) for step in RULES_FORMULAS["step"] for case in step["case"]]
    used = {node.id for tree in trees for node in ast.walk(tree) if isinstance(node, ast.Name)}
    assert set(RULES_FORMULAS["symbols"]) - {"source", "date"} == used | DEFINED_BY_RULES
