"""Who may import whom, read from the source itself.

Belongs here: arrows between modules. The order below is the one place that says which module stands on which. What the
files contain: test_source_rules.py.
"""

import ast
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parent.parent
APP, PYSCRIPT = ROOT / "app", ROOT / "pyscript"
CORE, SITE = APP / "vramplan", APP / "vramplan_site"

# A module may import the modules of earlier rungs only; modules on one rung do not know each other.
RUNGS = (
    {"units", "errors", "data", "in_steps", "lengths", "measured_run", "measured_run.record"},
    {"constants", "language", "nvidia_smi", "placement"},
    {"free_memory"},
    {"architecture", "quantized", "stacks"},
    {"targets"},
    {"catalogue", "parameters"},
    {"kinds"},
    {"fields"},
    {"limits"},
    {"checks"},
    {"settings"},
    {"link", "policy"},
    {"ledger", "view"},
    {"embedding"},
    {"accountings.step.structure", "accountings.step.tape", "accountings.step.sharding", "accountings.step.whole"},
    {"accountings.step.kernels", "accountings.step.host", "accountings.step.remembered", "accountings.step.unsloth_rows"},
    {"accountings.step.operations", "accountings.step.layers"},
    {"accountings.step.fused_adapters", "accountings.step.confidence"},
    {"accountings.step.experts", "accountings.step.latent", "accountings.step.short_convolution", "accountings.step.sinks"},
    {"accountings.step.delta_net"},
    {"accountings.step.batch", "accountings.step.layer", "accountings.step.scores"},
    {"accountings.step.litgpt", "accountings.step.torchtune"},
    {"accountings.step.head", "accountings.step.state"},
    {"accountings.step.walks", "accountings.step.shares"},
    {"accountings.step.moments"},
    {"accountings.step.bands", "accountings.step.build", "accountings.step.describe"},
    {"accountings.step.frames", "accountings.step.placing", "accountings.step.surfaces"},
    {"accountings.step.batches"},
    {"accountings.step.arrays"},
    {"accountings.unsloth.formulas", "accountings.unsloth.names", "accountings.rules.formulas"},
    {"accountings.planning", "accountings.rules", "accountings.step", "accountings.unsloth"},
    {"accountings"},
    {"importing.problems", "finding", "measured_run.amounts"},
    {"measured_run.messages", "measured_run.pickled", "measured_run.against"},
    {"measured_run.snapshot", "measured_run.doubts", "measured_run.rows"},
    {"measured_run.reading", "measured_run.failure"},
    {"importing.expressions", "importing.foreign", "importing.hub", "importing.patterns", "importing.text"},
    {"importing.length_files"},
    {"importing.families", "importing.values"},
    {"importing.inventory"},
    {"importing.adapter", "importing.chosen", "importing.model", "importing.quantization"},
    {"training_files.given", "training_files.tools"},
    {"training_files.commands", "training_files.json_text", "training_files.python_text", "training_files.yaml_text"},
    {"training_files.reading", "training_files.recognise"},
    {"training_files.methods", "training_files.parallel"},
    {"training_files.axolotl", "training_files.deepspeed_config", "training_files.llama_factory", "training_files.swift", "training_files.torchtune", "training_files.trl"},
    {"training_files.accelerate_config"},
    {"training_files.training"},
    {"training_files"},
    {"importing.imported"},
    {"importing"},
    {"gpus"},
    {"fit", "curve", "compare", "timeline", "ranges"},
    {"claims", "fitmap", "hardware", "length_fit", "levers", "sweep"},
    {"make_fit"},
    {"asked", "front", "growth"},
    {"chart", "studio", "words"},
    {"frontchart", "timechart", "lengthchart", "mapchart"},
    {"report", "accounts", "brought", "evidence", "fetching", "own_run", "measure", "placement_report"},
    {"beside", "chronicle", "exporting.draft", "exporting.yaml_lines", "lengths_report", "make_fit_report", "needs", "pins"},
    {"waterfall"},
    {"exporting.heading", "exporting.markdown", "exporting.script", "exporting.spread"},
    {"exporting.axolotl", "exporting.llama_factory", "exporting.trl"},
    {"exporting.export"},
    {"exporting"},
    {"badge", "document", "notebook", "pins_report"},
    {"badge_document", "export_document", "lengths_document", "pins_document"},
    {"questions"},
    {"scene"},
    {"calculation", "documents", "share", "svg", "tables"},
    {"blocks", "cli_export", "cli_lengths", "cli_pins", "png"},
    {"cli"},
    {"__init__", "__main__"},
)
BROWSER_ONLY = {"js", "pyodide", "pyodide_js", "micropip"}
THIRD_PARTY = {**dict.fromkeys(("badge_document", "document", "documents", "export_document", "lengths_document", "pins_document"), {"pydantic"}), "training_files.yaml_text": {"ruamel"}, "png": {"PIL"}, "accountings.step.arrays": {"numpy"}, "sweep": {"numpy"}}


def sources(folder):
    return sorted(path for path in folder.rglob("*.py") if "__pycache__" not in path.parts)


def module_name(path, root):
    parts = path.relative_to(root).with_suffix("").parts
    return ".".join(parts[:-1] if parts[-1] == "__init__" and len(parts) > 1 else parts)


MODULES = {module_name(path, CORE): path for path in sources(CORE)}


def imports(path, package_root):
    """Dotted names a file imports, relative ones resolved; `from a import b` gives a.b."""
    here = path.relative_to(package_root).with_suffix("").parts
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            start = ".".join((*here[: len(here) - node.level], *filter(None, [node.module]))) if node.level else node.module
            yield from (f"{start}.{alias.name}" for alias in node.names)
        elif isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id == "__import__":
            yield "__import__"


def core_module(dotted):
    """The module of the core that an imported name lies in; '__init__' for a public name of the package itself."""
    parts = dotted.split(".")[1:]
    while parts and ".".join(parts) not in MODULES:
        parts.pop()
    return ".".join(parts) or "__init__"


def rung(module):
    found = [number for number, names in enumerate(RUNGS) if module in names]
    assert found, f"{module} has no place in the order of imports: give it one in RUNGS"
    return found[0]


@pytest.mark.parametrize("module", MODULES)
def test_core_modules_import_only_what_stands_below_them(module):
    wrong = [name for name in imports(MODULES[module], APP)
             if name.startswith("vramplan.") and rung(core_module(name)) >= rung(module)]
    assert wrong == []


@pytest.mark.parametrize("module", MODULES)
def test_core_modules_know_neither_browser_nor_tests_nor_site(module):
    roots = {name.split(".")[0] for name in imports(MODULES[module], APP)}
    assert roots & (BROWSER_ONLY | {"tests", "pyscript", "views", "vramplan_site", "__import__"}) == set()
    assert roots & {"pydantic", "pydantic_core", "PIL", "numpy"} <= THIRD_PARTY.get(module, set())


def accounting(module):
    """The accounting a module of the core is part of: 'accountings.step.tape' -> 'step', '' for the registry itself."""
    return module.split(".")[1] if "." in module else ""


def test_accountings_never_import_one_another():
    inside = [name for name in MODULES if name.startswith("accountings.")]
    assert {accounting(name) for name in inside} == {"planning", "rules", "step", "unsloth"}
    for name in inside:
        targets = [core_module(target) for target in imports(MODULES[name], APP) if target.startswith("vramplan.")]
        foreign = [t for t in targets if t.startswith("accountings") and accounting(t) != accounting(name)]
        assert foreign == [], name


def test_the_parts_of_an_accounting_are_known_to_it_alone():
    for name in MODULES:
        targets = {core_module(target) for target in imports(MODULES[name], APP) if target.startswith("vramplan.")}
        parts = {target for target in targets if target.count(".") > 1}
        assert {accounting(part) for part in parts} <= {accounting(name)}, name


def test_every_place_in_the_order_is_taken():
    assert set().union(*RUNGS) == set(MODULES)


def page_files(names):
    """Files of the page's own modules among imported names."""
    for name in names:
        parts = name.split(".")
        while parts and parts[0] == "pyscript":
            found = [p for p in (ROOT.joinpath(*parts).with_suffix(".py"), ROOT.joinpath(*parts, "__init__.py")) if p.is_file()]
            if found:
                yield found[0]
                break
            parts.pop()


def reached(starts):
    """Everything that is imported, directly or not, once the given files of the page are."""
    files, names = set(), set()
    waiting = set(starts)
    while waiting:
        path = waiting.pop()
        files.add(path)
        targets = set(imports(path, ROOT))
        names |= targets
        waiting |= set(page_files(targets)) - files
    return {name.split(".")[0] for name in names}


def test_the_site_build_stands_on_the_core_and_on_the_pure_parts_of_the_page():
    """What lies in `inside` runs in the page's own Python; the rest runs in any Python."""
    builders = [path for path in sources(SITE) if "inside" not in path.parts]
    assert builders
    for path in builders:
        targets = set(imports(path, APP))
        roots = {name.split(".")[0] for name in targets} | reached(page_files(targets))
        assert roots & (BROWSER_ONLY | {"tests"}) == set(), path
        assert not any(name.startswith("vramplan.cli") for name in targets), path


def test_the_page_stands_on_the_core_and_never_on_the_terminal_or_the_build():
    assert sources(PYSCRIPT)
    for path in sources(PYSCRIPT):
        targets = set(imports(path, ROOT))
        forbidden = ("vramplan.cli", "vramplan.tables", "vramplan_site", "tests", "__import__")
        assert not any(name.startswith(forbidden) for name in targets), path


def test_views_and_tree_are_pure():
    pure = [PYSCRIPT / "tree.py", *sources(PYSCRIPT / "views")]
    assert len(pure) > 2
    for path in pure:
        assert reached([path]) & BROWSER_ONLY == set(), path


def test_only_the_page_itself_is_reached_by_browser_names():
    """Guards the two tests above: they would pass on anything if imports were not followed."""
    assert "js" in reached([PYSCRIPT / "page.py"])
