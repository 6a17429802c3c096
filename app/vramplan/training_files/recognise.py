"""Which tool a file is of: by the program of a command, or by the keys it has."""

import re

from vramplan.importing.problems import ImportProblem
from vramplan.training_files.commands import Command, training_command
from vramplan.training_files.given import Tree, found
from vramplan.training_files.tools import TOOLS, tool

_FIRST = re.compile(r"(?:\s*(?:#[^\n]*)?\n)*\s*(?P<line>[^\n]*)")
_YAML = re.compile(r"---(?:\s|$)|%YAML|[\"']?[A-Za-z_][\w.-]*[\"']?\s*:(?:\s|$)")
_WORDS = re.compile(r"[^\s;&|()\"'\\]+")

MAX_LOOKED = 200_000
"""Characters of a text that are looked through for a command."""


def is_yaml(text: str) -> bool:
    """Whether a text begins as YAML does: with a key, or with the mark of a document; comments before it do not count."""
    first = _FIRST.match(text.lstrip("\ufeff"))
    return bool(first and _YAML.match(first["line"]))


def is_command(text: str) -> bool:
    """Whether a text names a program that trains, anywhere."""
    return program_of(_WORDS.findall(text[:MAX_LOOKED])) is not None


def program_of(words: list[str]) -> tuple[str, int, int] | None:
    """Of the words of a command: the tool and its program, where that begins, and where its flags do. None for any other program."""
    names = [word.rpartition("/")[2] for word in words]
    present = set(names)
    for name in TOOLS:
        for phrase in tool(name).commands:
            for at in range(len(names) - len(phrase) + 1) if present.issuperset(phrase) else ():
                if tuple(names[at : at + len(phrase)]) == phrase:
                    return f"{name}: {' '.join(phrase)}", at, at + len(phrase)
        for script in tool(name).scripts:
            at = next((at for at, word in enumerate(words) if word == script or word.endswith(f"/{script}")), None)
            if at is not None and any(other.startswith("--") for other in words[at + 1 :]):
                return f"{name}: {script}", at, at + 1
    return None


def command_of(text: str) -> Command | None:
    """The command of a script that trains, where there is one. Raises ImportProblem."""
    return training_command(text, program_of)


def tool_of(tree: Tree) -> tuple[str, str]:
    """The tool whose keys a file has, and the next likely one, or nothing. Raises ImportProblem if it is of none."""
    known = {name: sum(key in tool(name).keys for key in tree) for name in TOOLS if any(all(found(tree, key) for key in sign) for sign in tool(name).signs)}
    if not known:
        labels = ", ".join(tool(name).label for name in TOOLS)
        raise ImportProblem("unknown_tool", f"This is no training file of a tool that is read here: {labels}.", "If it is one all the same, name the tool: with --as in a terminal.")
    ranked = sorted(known, key=lambda name: -known[name])
    second = ranked[1] if len(ranked) > 1 and known[ranked[1]] == known[ranked[0]] else ""
    return ranked[0], second


def has_signs(content: object) -> bool:
    """Whether a plain mapping has the keys of a tool."""
    return isinstance(content, dict) and any(all(content.get(key) is not None for key in sign) for name in TOOLS for sign in tool(name).signs)
