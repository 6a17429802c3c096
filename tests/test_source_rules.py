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

from oracle import PRESETS

ROOT = Path(__file__).resolve().parent.parent
CORE, PYSCRIPT, STATIC = ROOT / "app" / "vramplan", ROOT / "pyscript", ROOT / "static"


def sources(folder):
    return sorted(path for path in folder.rglob("*.py") if "__pycache__" not in path.parts)


FORMULA_FILES = [CORE / "architecture.py", *sorted(p for p in (CORE / "accountings").glob("*.py") if p.name != "__init__.py")]


def functions(path):
    return [node for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))) if isinstance(node, ast.FunctionDef)]


def formulas(path):
    """Module-level formula functions: everything but the accounting's estimate(settings) and its private helpers."""
    tree = ast.parse(path.read_text(encoding="utf-8"))
    return [node for node in tree.body if isinstance(node, ast.FunctionDef) and node.name != "estimate" and not node.name.startswith("_")]


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
def test_function_bodies_have_no_nameless_numbers_rounding_or_model_names(path):
    labels = {*PRESETS, "custom"}
    for function in functions(path):
        for node in [inner for statement in function.body for inner in ast.walk(statement)]:
            if isinstance(node, ast.Constant) and isinstance(node.value, (int, float)):
                assert node.value in (0, 1, 2), f"{function.name}, line {node.lineno}: name {node.value}"
            if isinstance(node, ast.Constant) and isinstance(node.value, str):
                assert node.value not in labels, f"{function.name}, line {node.lineno}"
            if isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and function.name != "estimate":
                assert node.func.id not in ("round", "ceil", "floor", "whole_bytes_up"), f"{function.name}, line {node.lineno}"


@pytest.mark.parametrize("path", sorted((CORE / "data").glob("*.toml")), ids=lambda path: path.name)
def test_data_entries_have_source_and_date(path):
    entries = tomllib.loads(path.read_text(encoding="utf-8"))
    assert entries
    for name, content in entries.items():
        for entry in content if isinstance(content, list) else [content]:
            assert entry.get("source", "").strip() and isinstance(entry.get("date"), date), f"{path.name}: {name}: {entry}"


def test_models_hold_dimensions_and_no_number_that_follows_from_them():
    allowed = {"label", "hidden_size", "num_layers", "num_attention_heads", "num_kv_heads", "head_dim", "intermediate_size",
               "vocab_size", "tied_embeddings", "query_key_norms", "max_sequence_length", "source", "date"}
    models = tomllib.loads((CORE / "data" / "models.toml").read_text(encoding="utf-8"))
    assert set(models) == set(PRESETS)
    assert set().union(*models.values()) <= allowed


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
        words = re.findall(r"[A-Z]?[a-z]+|[A-Z]+(?![a-z])", path.read_text(encoding="utf-8"))
        assert {word.lower() for word in words} & (domain | {word + "s" for word in domain}) == set(), path.name
