"""A Python script that trains with TRL, as the keys of TRL's command line: read as a text, never run.

Only constants count: those that stand in the calls of the configuration classes, and those that a name holds that is set once.
"""

import ast
from collections.abc import Iterator
from dataclasses import dataclass, field
import re

from vramplan.importing.problems import ImportProblem
from vramplan.training_files.given import MAX_DEPTH, Given
from vramplan.units import count_text

MAX_SCRIPT = 200_000
"""Characters of a script that are read."""

MAX_LINE = 4_000
"""Characters of one of its lines; published scripts have about 200."""

_FIRST = re.compile(r"(?:\s*(?:#[^\n]*)?\n)*\s*(?P<line>[^\n]*)")
_IMPORT = re.compile(r"(?:from\s+[\w.]+\s+import\b|import\s+[\w.]+\s*(?:as\s+\w+\s*)?(?:$|[,;#]))")

RENAMED = {
    "LoraConfig": {
        "r": "lora_r", "lora_alpha": "lora_alpha", "lora_dropout": "lora_dropout", "target_modules": "lora_target_modules", "modules_to_save": "lora_modules_to_save",
        "task_type": "lora_task_type", "use_rslora": "use_rslora", "use_dora": "use_dora", "target_parameters": "lora_target_parameters",
    },
    "BitsAndBytesConfig": {
        "load_in_4bit": "load_in_4bit", "load_in_8bit": "load_in_8bit", "bnb_4bit_quant_type": "bnb_4bit_quant_type", "bnb_4bit_use_double_quant": "use_bnb_nested_quant",
        "bnb_4bit_quant_storage": "bnb_4bit_quant_storage", "bnb_4bit_compute_dtype": "bnb_4bit_compute_dtype",
    },
}
"""Arguments of the classes that TRL makes of its own keys, and those keys. Source: trl 1.16.0, trainer/utils.py, get_peft_config, get_quantization_config."""

OF_THE_MODEL = ("dtype", "torch_dtype", "attn_implementation")
"""What the model is loaded with that is a key of TRL. Source: trl 1.16.0, scripts/sft.py, model_init_kwargs."""

DEFAULTS = {"LoraConfig": {"lora_r": 8, "lora_dropout": 0.0}, "BitsAndBytesConfig": {"bnb_4bit_quant_type": "fp4", "use_bnb_nested_quant": False}}
"""What these classes take by themselves, where TRL's command line takes something else.
Source: peft 0.21.2, tuners/lora/config.py; transformers 5.24.0, utils/quantization_config.py."""

CONFIGS, TRAINER = re.compile(r"(?P<of>[A-Z]\w*?)Config"), re.compile(r"(?P<of>[A-Z]\w*?)Trainer")

LOADS = "from_pretrained"

NO_SCRIPT = ImportProblem(
    "not_a_script", "This Python script has no call of a trainer of TRL with its configuration, such as SFTTrainer and SFTConfig.", "Bring such a script, or the YAML or command it is started with."
)


@dataclass
class Script:
    """What a script says. keys: by the names of TRL's command line. trainer: the class that trains. left: keys whose values are worked out,
    and the lines of those. noted: what its classes take by themselves."""

    trainer: str
    keys: dict[str, Given] = field(default_factory=dict)
    left: dict[str, int] = field(default_factory=dict)
    noted: list[str] = field(default_factory=list)


def is_python(text: str) -> bool:
    """Whether a text begins as a script does: with an import, or a text about it."""
    first = _FIRST.match(text[:MAX_SCRIPT].lstrip("\ufeff"))
    return bool(first and (_IMPORT.match(first["line"]) or first["line"].startswith(('"""', "'''"))))


def read_script(text: str) -> Script:
    """The keys of the one run that a script trains. Raises ImportProblem."""
    if len(text) > MAX_SCRIPT or any(len(line) > MAX_LINE for line in text.split("\n")):
        raise ImportProblem("too_large", f"The script has more than {count_text(MAX_SCRIPT)} characters, or a line of more than {count_text(MAX_LINE)}.", "Bring the script that trains alone.")
    try:
        calls = list(_calls(ast.parse(text)))
    except SyntaxError as problem:
        raise ImportProblem("not_a_script", f"This is not valid Python in line {count_text(problem.lineno or 1)}.", "Mend it there; Python itself would refuse it too.") from None
    except (ValueError, RecursionError, MemoryError):
        raise ImportProblem("not_a_script", "This is not valid Python.", "Bring the script as it runs.") from None
    names = _names(calls)
    trainers = {name for name, call in calls if isinstance(call, ast.Call) and TRAINER.fullmatch(name)}
    configs = {name for name, call in calls if isinstance(call, ast.Call) and CONFIGS.fullmatch(name) and name not in RENAMED}
    if len(trainers) > 1:
        raise ImportProblem("many_commands", f"The script trains with {' and '.join(sorted(trainers)[:2])}.", "Bring a script that trains once.")
    if not trainers or trainers == {"Trainer"}:
        raise NO_SCRIPT
    script = Script(next(iter(trainers)))
    own = f"{script.trainer.removesuffix('Trainer')}Config"
    if own not in configs:
        raise NO_SCRIPT
    for name, call in calls:
        if not isinstance(call, ast.Call):
            continue
        if name in RENAMED:
            _take(script, call, names, RENAMED[name])
            if name == "LoraConfig":
                script.keys["use_peft"] = Given(True, call.lineno)
            for key, value in DEFAULTS[name].items():
                if key not in script.keys and key not in script.left and (name == "LoraConfig" or "load_in_4bit" in script.keys):
                    script.keys[key] = Given(value, call.lineno)
                    script.noted.append(f"{name} takes {key}={value} where it is not given")
        elif name == own:
            _take(script, call, names, {})
        elif name == script.trainer or name == LOADS and "Model" in ast.unparse(call.func):
            _model(script, call, names, name == LOADS)
    return script


def _calls(tree: ast.AST) -> Iterator[tuple[str, ast.AST]]:
    """Every call under the last part of its name, and every assignment of a plain name, in the order of the script."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Name | ast.Attribute):
            yield node.func.id if isinstance(node.func, ast.Name) else node.func.attr, node
        elif isinstance(node, ast.Assign) and len(node.targets) == 1 and isinstance(node.targets[0], ast.Name):
            yield node.targets[0].id, node


def _names(calls: list[tuple[str, ast.AST]]) -> dict[str, ast.AST]:
    """What names hold that are set once."""
    found: dict[str, list[ast.AST]] = {}
    for name, node in calls:
        if isinstance(node, ast.Assign):
            found.setdefault(name, []).append(node.value)
    return {name: values[0] for name, values in found.items() if len(values) == 1}


def _take(script: Script, call: ast.Call, names: dict[str, ast.AST], renamed: dict[str, str]) -> None:
    for keyword in call.keywords:
        if keyword.arg is None:
            script.left["**"] = call.lineno
        elif keyword.arg == "model_init_kwargs":
            _loaded(script, keyword, names)
        else:
            _set(script, renamed.get(keyword.arg, keyword.arg), keyword.value, names)


def _loaded(script: Script, keyword: ast.keyword, names: dict[str, ast.AST]) -> None:
    """What the model is loaded with: a dictionary in place."""
    value = names.get(keyword.value.id) if isinstance(keyword.value, ast.Name) else keyword.value
    if not isinstance(value, ast.Dict):
        _set(script, "model_init_kwargs", keyword.value, names)
        return
    for key, inner in zip(value.keys, value.values, strict=True):
        if isinstance(key, ast.Constant) and key.value in OF_THE_MODEL:
            _set(script, str(key.value), inner, names)
        elif not (isinstance(key, ast.Constant) and key.value == "quantization_config"):
            script.left["model_init_kwargs"] = value.lineno


def _model(script: Script, call: ast.Call, names: dict[str, ast.AST], loads: bool) -> None:
    """The model's name, and what it is loaded with."""
    named = call.args[0] if call.args else next((each.value for each in call.keywords if each.arg in ("model", "pretrained_model_name_or_path")), None)
    found = _constant(named, names, 0) if named is not None else OPEN
    if isinstance(found, str):
        script.keys["model_name_or_path"] = Given(found, named.lineno)
    for keyword in call.keywords if loads else ():
        if keyword.arg in OF_THE_MODEL:
            _set(script, keyword.arg, keyword.value, names)


def _set(script: Script, key: str, node: ast.AST, names: dict[str, ast.AST]) -> None:
    value = _constant(node, names, 0)
    if value is OPEN:
        script.left[key] = node.lineno
    else:
        script.keys[key] = Given(value, node.lineno)


class _Open:
    """A value that a script works out."""


OPEN = _Open()


def _constant(node: ast.AST, names: dict[str, ast.AST], depth: int) -> object:
    """What a constant is, a name that holds one, or a type of torch by its name; OPEN for anything else."""
    if depth > MAX_DEPTH:
        return OPEN
    if isinstance(node, ast.Constant) and isinstance(node.value, str | bool | int | float | None):
        return node.value
    if isinstance(node, ast.Name) and node.id in names:
        return _constant(names[node.id], names, depth + 1)
    if isinstance(node, ast.Attribute) and isinstance(node.value, ast.Name) and node.value.id == "torch":
        return node.attr
    if isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.USub) and isinstance(node.operand, ast.Constant) and isinstance(node.operand.value, int | float):
        return -node.operand.value
    if isinstance(node, ast.List | ast.Tuple):
        items = [_constant(each, names, depth + 1) for each in node.elts]
        return OPEN if any(each is OPEN or isinstance(each, dict) for each in items) else items
    if isinstance(node, ast.Dict):
        items = [(_constant(key, names, depth + 1) if key else OPEN, _constant(value, names, depth + 1), value.lineno) for key, value in zip(node.keys, node.values, strict=True)]
        return OPEN if any(not isinstance(key, str) or value is OPEN for key, value, _ in items) else {key: Given(value, line) for key, value, line in items}
    return OPEN
