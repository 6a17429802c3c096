"""What each kind of file never contains, read from the source itself.

Belongs here: rules on the text of formula modules, data files, report, page, boot script and markup. Who imports whom:
test_architecture_rules.py.
"""

import ast
from datetime import date
from html.parser import HTMLParser
from pathlib import Path
import re
import tomllib

import pytest

from configurations import DIMENSION_KEYS, TRAIT_KEYS

ROOT = Path(__file__).resolve().parent.parent
CORE, PYSCRIPT, STATIC = ROOT / "app" / "vramplan", ROOT / "pyscript", ROOT / "static"


def sources(folder):
    return sorted(path for path in folder.rglob("*.py") if "__pycache__" not in path.parts)


FORMULA_FILES = [CORE / "architecture.py", CORE / "accountings" / "planning.py", CORE / "accountings" / "rules" / "formulas.py", CORE / "accountings" / "unsloth" / "formulas.py", CORE / "accountings" / "step" / "sharding.py"]
STEP = CORE / "accountings" / "step"
MODELS = tomllib.loads((CORE / "data" / "models.toml").read_text(encoding="utf-8"))
STEP_FILES = sources(STEP)
COUNTING_FILES = [*FORMULA_FILES, *STEP_FILES, *sources(CORE / "accountings" / "unsloth"), *sources(CORE / "accountings" / "rules"), CORE / "parameters.py"]
ENTRIES = {"estimate", "frames", "at_batches", "peak_bytes", "fits", "choices"}  # what every accounting offers; these take Settings
NAMELESS = (0, 1, 2)


def parsed(path):
    return ast.parse(path.read_text(encoding="utf-8"))


def functions(path):
    return [node for node in ast.walk(parsed(path)) if isinstance(node, ast.FunctionDef)]


def public(path):
    """Module-level functions without a leading underscore."""
    return [node for node in parsed(path).body if isinstance(node, ast.FunctionDef) and not node.name.startswith("_")]


def formulas(path):
    """Formula functions: everything but what the accounting offers and its private helpers."""
    return [node for node in public(path) if node.name not in ENTRIES]


def numbers(node):
    """(value, line) of every number that is written out and is not as plain as 0, 1 or 2."""
    found = ((inner.value, inner.lineno) for inner in ast.walk(node) if isinstance(inner, ast.Constant))
    return [(value, line) for value, line in found if isinstance(value, int | float) and value not in NAMELESS]


def is_docstring(node):
    return isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant) and isinstance(node.value.value, str)


@pytest.mark.parametrize("path", FORMULA_FILES, ids=lambda path: path.name)
def test_formula_functions_take_keyword_only_plain_numbers_without_defaults(path):
    assert len(formulas(path)) >= 2
    for function in formulas(path):
        arguments = function.args
        assert not (arguments.args or arguments.posonlyargs or arguments.vararg or arguments.kwarg), function.name
        assert arguments.kwonlyargs and not any(arguments.kw_defaults), function.name
        assert {ast.unparse(a.annotation) for a in arguments.kwonlyargs} <= {"int", "bool", "Decimal", "Fraction"}, function.name


@pytest.mark.parametrize("path", FORMULA_FILES, ids=lambda path: path.name)
def test_formula_functions_say_what_they_count_and_where_it_comes_from(path):
    for function in formulas(path):
        assert "Source:" in (ast.get_docstring(function) or ""), function.name


@pytest.mark.parametrize("path", FORMULA_FILES, ids=lambda path: path.name)
def test_formula_functions_have_no_nameless_numbers_and_no_rounding(path):
    for function in functions(path):
        for statement in function.body:
            assert numbers(statement) == [], function.name
            called = {n.func.id for n in ast.walk(statement) if isinstance(n, ast.Call) and isinstance(n.func, ast.Name)}
            assert function.name == "estimate" or called & {"round", "ceil", "floor", "whole_bytes_up"} == set(), function.name


@pytest.mark.parametrize("path", COUNTING_FILES, ids=lambda path: path.name)
def test_no_accounting_knows_a_model_by_name(path):
    assert {node.value for node in ast.walk(parsed(path)) if isinstance(node, ast.Constant)} & {*MODELS, "custom"} == set()


@pytest.mark.parametrize("path", STEP_FILES, ids=lambda path: path.name)
def test_numbers_of_the_step_have_a_name_and_an_explanation(path):
    """A number other than 0, 1 and 2 stands in a module-level assignment with a docstring, and nowhere else."""
    body = parsed(path).body
    for node, following in zip(body, [*body[1:], None], strict=True):
        if isinstance(node, ast.Assign | ast.AnnAssign):
            assert not numbers(node) or is_docstring(following), f"line {node.lineno}: explain {ast.unparse(node)}"
        else:
            assert numbers(node) == [], f"name these numbers: (value, line) {numbers(node)}"


# Sums over what others count: nothing in a library corresponds to them.
SUMS = {"quantized_bytes", "weight_bytes", "adapter_bytes", "state_bytes", "parameters", "trained_parameters", "trained_weights",
        "states_bytes", "scratch_bytes"}


@pytest.mark.parametrize("name", ["operations", "kernels", "fused_adapters", "layer", "scores", "litgpt", "torchtune", "head", "unsloth_rows", "state", "host", "sharding"])
def test_what_the_step_counts_says_which_library_does_so(name):
    """In the docstring of each function, or once for a module that follows one place from top to bottom."""
    path = STEP / f"{name}.py"
    counting = [function for function in public(path) if function.name not in SUMS]
    assert counting
    if "Source" not in (ast.get_docstring(parsed(path)) or ""):
        assert [f.name for f in counting if "Source" not in (ast.get_docstring(f) or "")] == []
    assert [f.name for f in public(path) if not ast.get_docstring(f)] == []


def test_every_loss_quantisation_and_optimizer_says_which_library_does_so():
    losses = [f for f in functions(STEP / "head.py") if any(ast.unparse(n).startswith("tape.add('loss'") for n in f.body)]
    quantisations = [f for f in functions(CORE / "quantized.py") if {"values", "inputs"} <= {a.arg for a in f.args.kwonlyargs}]
    optimizers = [f for f in functions(STEP / "state.py") if {"optimizer", "weight"} <= {a.arg for a in f.args.args}]
    assert (len(losses), len(quantisations), len(optimizers)) == (8, 6, 1)
    assert [f.name for f in (*losses, *quantisations, *optimizers) if "Source" not in ast.get_docstring(f)] == []


def test_operations_are_written_on_a_tape():
    for function in public(STEP / "operations.py"):
        names = [argument.arg for argument in function.args.args]
        assert names[0] == "tape" and ("run" not in names or names[1] == "run"), function.name
        assert ast.unparse(function.returns) == "Tensor", function.name


def test_only_the_way_into_the_step_takes_settings_apart():
    apart = {path.name for path in STEP_FILES if "Settings" in {node.id for node in ast.walk(parsed(path)) if isinstance(node, ast.Name)}}
    assert apart == {"__init__.py", "batches.py", "build.py"}


@pytest.mark.parametrize("path", sorted((CORE / "data").glob("*.toml")), ids=lambda path: path.name)
def test_data_entries_have_source_and_date(path):
    entries = tomllib.loads(path.read_text(encoding="utf-8"))
    assert entries
    for name, content in entries.items():
        for entry in content if isinstance(content, list) else [content]:
            assert entry.get("source", "").strip() and isinstance(entry.get("date"), date), f"{path.name}: {name}: {entry}"


def test_models_hold_dimensions_and_no_number_that_follows_from_them():
    required = {"label", "family", "repository", *DIMENSION_KEYS, "max_sequence_length", "source", "date"}
    for name, entry in MODELS.items():
        assert required <= set(entry) <= {*required, *TRAIT_KEYS}, name
        assert all(entry[trait] for trait in TRAIT_KEYS if trait in entry), f"{name}: a trait that is absent is left out"


def test_a_model_names_the_file_its_dimensions_are_from():
    for name, entry in MODELS.items():
        assert re.fullmatch(r"[\w.-]+/[\w.-]+", entry["repository"]) and re.fullmatch(r"[a-z0-9_]+", entry["family"]), name
        assert entry["source"].split(";")[0] == f"config.json of {entry['repository']}", name
    for key in ("label", "repository"):
        assert len({entry[key] for entry in MODELS.values()}) == len(MODELS), key


def strings(path):
    constants = [n.value for n in ast.walk(ast.parse(path.read_text(encoding="utf-8"))) if isinstance(n, ast.Constant)]
    return [value for value in constants if isinstance(value, str)]


def test_the_report_has_no_tags_and_no_colours():
    assert [text for text in strings(CORE / "report.py") if re.search(r"</?[a-z]+[ >/]|#[0-9a-fA-F]{3,8}\b|rgb\(", text)] == []


@pytest.mark.parametrize("sink", ["innerHTML", "outerHTML", "insertAdjacentHTML", "document.write", "eval(", "exec("])
def test_the_page_builds_nodes_and_never_parses_markup(sink):
    assert sources(PYSCRIPT)
    assert [path.name for path in sources(PYSCRIPT) if sink in path.read_text(encoding="utf-8")] == []


class InlineCode(HTMLParser):
    """Collects what a strict content security policy would block."""

    def __init__(self):
        super().__init__()
        self.found, self.tags = [], []

    def handle_starttag(self, tag, attrs):
        self.tags.append(tag)
        names = dict(attrs)
        if tag == "style" or (tag == "script" and "src" not in names):
            self.found.append(tag)
        self.found += [name for name in names if name == "style" or name.startswith("on")]
        self.found += [value for value in names.values() if (value or "").strip().lower().startswith("javascript:")]


def test_index_html_is_markup_only():
    text = (ROOT / "index.html").read_text(encoding="utf-8")
    parser = InlineCode()
    parser.feed(text)
    assert {"html", "head", "body"} <= set(parser.tags)
    assert parser.found == []
    assert not re.search(r"llama|qwen|\b24 GiB|\b2,?048\b", text, re.IGNORECASE)


def test_boot_scripts_know_nothing_of_the_domain():
    scripts = sorted(STATIC.glob("*.mjs"))
    assert scripts
    domain = {"model", "gpu", "vram", "rank", "lora", "sequence", "memory"}
    for path in scripts:
        text = re.sub(r"zstd\.memory|notify_memory_growth", "", path.read_text(encoding="utf-8"))  # WebAssembly's own word
        words = re.findall(r"[A-Z]?[a-z]+|[A-Z]+(?![a-z])", text)
        assert {word.lower() for word in words} & (domain | {word + "s" for word in domain}) == set(), path.name


def test_every_module_of_tests_has_a_name_of_its_own():
    names = [path.name for path in (ROOT / "tests").rglob("test_*.py")]
    assert len(names) == len(set(names)), "pytest imports modules by their names alone"
