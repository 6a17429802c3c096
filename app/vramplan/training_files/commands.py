"""Command lines as values with lines: the one command of a shell script that trains, its launcher, and its flags.

Nothing is run or looked up. Variables that the script sets plainly are put in; others stay as they are written.
"""

from collections.abc import Callable, Iterable
from dataclasses import dataclass
import json
import re
import shlex

from vramplan.importing.problems import ImportProblem
from vramplan.training_files.given import Given
from vramplan.units import count_text

MAX_WORDS = 4_000
"""Words of a command that are read; published ones have about a hundred."""

MAX_LINES = 4_000
"""Lines of a script that are read."""

ENDS = frozenset(";&|()\n<>")
"""What ends a command, or sends it elsewhere."""

_ASSIGNMENT = re.compile(r"([A-Za-z_]\w*)=(.*)", re.DOTALL)
_VARIABLE = re.compile(r"\$\{?([A-Za-z_]\w*)\}?")
_OVERRIDE = re.compile(r"([A-Za-z_][\w.]*)=(.+)", re.DOTALL)
_DIVISION = re.compile(r"\$\(\s*expr\s+([\w${}]+)\s*/\s*([\w${}]+)\s*\)|\$\(\(\s*([\w${}]+)\s*/\s*([\w${}]+)\s*\)\)")
_DIVIDED = re.compile(r"\$\[(\d{1,6})/(\d{1,6})\]")
_OFF = "no_"
_FLAG = re.compile(r"--[A-Za-z]")

GPU_FLAGS = ("num_processes", "nproc_per_node", "num_gpus")
"""Flags of accelerate launch, torchrun and deepspeed that say how many processes there are, each with one GPU; nnodes multiplies those of torchrun."""

LAUNCHER_FLAGS = ("config_file", "accelerate_config", "num_machines", "nnodes", "mixed_precision", "main_process_port")
"""Other flags of launchers; `trl sft` takes them among its own. Source: trl 1.16.0, cli/accelerate_launcher.py."""

GPU_VARIABLES = ("NPROC_PER_NODE", "CUDA_VISIBLE_DEVICES")
"""Variables that say so; the first that is there counts."""


@dataclass(frozen=True)
class Word:
    """One word of a command, and its line."""

    text: str
    line: int


@dataclass(frozen=True)
class Command:
    """A command that trains. program: how it was recognised. launcher: flags before it. flags: its own. files: its words that are no flags."""

    program: str
    launcher: dict[str, Given]
    flags: dict[str, Given]
    files: tuple[Word, ...]
    variables: dict[str, Given]
    line: int


def read_commands(text: str) -> list[list[Word]]:
    """The commands of a script, each as its words. Raises ImportProblem for quotes without an end."""
    lines = text.split("\n")
    if len(lines) > MAX_LINES:
        raise ImportProblem("too_large", f"The script has more than {count_text(MAX_LINES)} lines.", "Bring the command that trains alone.")
    commands, held, first = [], "", 0
    for number, line in enumerate(lines, 1):
        line = line.rstrip("\r")
        first = first if held else number
        if line.rstrip().endswith("\\") and not line.lstrip().startswith("#"):
            held += line.rstrip()[:-1] + "\n"
            continue
        if held and line.lstrip().startswith("#"):  # a comment between continued lines
            held += "\n"
            continue
        try:
            commands += _split(held + line, first)
        except ValueError:
            if number - first > MAX_OPEN:
                raise _no_end(first) from None
            held += line + "\n"
            continue
        held = ""
    if held:
        try:
            commands += _split(held, first)
        except ValueError:
            raise _no_end(first) from None
    return [words for words in commands if words]


MAX_OPEN = 200
"""Lines that a quote may stay open over."""


def _no_end(line: int) -> ImportProblem:
    return ImportProblem("not_a_command", f"A quote that begins near line {count_text(line)} has no end.", "Copy the command whole.")


def _split(text: str, first: int) -> list[list[Word]]:
    """The commands of a logical line. A division of the shell is one word, as `$[16/$n]`."""
    text = _DIVISION.sub(lambda match: f"$[{match[1] or match[3]}/{match[2] or match[4]}]", text)
    lexer = shlex.shlex(text, posix=True, punctuation_chars=";&|()")
    lexer.whitespace_split = True
    lexer.commenters = "#"
    commands: list[list[Word]] = [[]]
    position = 0
    for text_of_word in lexer:
        if text_of_word and set(text_of_word) <= ENDS:
            commands.append([])
            continue
        at = text.find(text_of_word[:20], position) if text_of_word else -1
        position = at + 1 if at >= 0 else position
        commands[-1].append(Word(text_of_word, first + text.count("\n", 0, max(at, 0) if at >= 0 else position)))
        if sum(map(len, commands)) > MAX_WORDS:
            raise ImportProblem("too_large", f"The command has more than {count_text(MAX_WORDS)} words.", "Bring the command that trains alone.")
    return commands


def training_command(text: str, program: Callable[[list[str]], tuple[str, int, int] | None]) -> Command | None:
    """The one command of a script that trains. program: of words, the tool, where its program begins, and where its flags do.

    Raises ImportProblem for several that differ.
    """
    variables: dict[str, Given] = {}
    found: list[Command] = []
    for words in read_commands(text):
        own, words = _assigned(words)
        words = [Word(_filled(word.text, variables), word.line) for word in words]
        own = {name: Given(_filled(str(given.value), variables), given.line) for name, given in own.items()}
        if not words or words[0].text in ("export", "set", "local", "declare"):
            exported, _ = _assigned(words[1:]) if words else ({}, [])
            variables |= own | exported
            continue
        known = program([word.text for word in words])
        if known:
            name, begins, ends = known
            launcher, _ = _flags(words[:begins])
            flags, files = _flags(words[ends:])
            launcher |= {flag: flags.pop(flag) for flag in (*GPU_FLAGS, *LAUNCHER_FLAGS) if flag in flags}
            found.append(Command(name, launcher, flags, tuple(files), variables | own, words[begins].line))
    different = {(each.program, repr({key: given.value for key, given in each.flags.items()})) for each in found}
    if len(different) > 1:
        lines = " and ".join(count_text(each.line) for each in found[:2])
        raise ImportProblem("many_commands", f"The script trains {count_text(len(found))} times, in lines {lines} and so on." if len(found) > 2 else f"The script trains twice, in lines {lines}.", "Bring one of the commands.")
    return found[0] if found else None


def _assigned(words: list[Word]) -> tuple[dict[str, Given], list[Word]]:
    """Variables set before a command, and the rest."""
    own: dict[str, Given] = {}
    for at, word in enumerate(words):
        match = _ASSIGNMENT.fullmatch(word.text)
        if not match:
            return own, words[at:]
        own[match[1]] = Given(match[2], word.line)
    return own, []


def _filled(text: str, variables: dict[str, Given]) -> str:
    if "$" not in text:
        return text
    put_in = _VARIABLE.sub(lambda match: str(variables[match[1]].value) if match[1] in variables else match[0], text)[:MAX_TEXT]
    return _DIVIDED.sub(lambda match: str(int(match[1]) // int(match[2])) if int(match[2]) else match[0], put_in)


MAX_TEXT = 10_000
"""Characters of a word with variables in it."""


def is_open(value: object) -> bool:
    """Whether a text holds a variable that nothing set."""
    return isinstance(value, str) and bool(_VARIABLE.search(value)) and value.strip().startswith("$")


def _flags(words: Iterable[Word]) -> tuple[dict[str, Given], list[Word]]:
    """`--key value`, `--key=value`, `--flag`, `key=value`; and the words that belong to none before the first flag."""
    flags: dict[str, Given] = {}
    files: list[Word] = []
    held: str = ""
    values: list[str] = []
    line = 0

    def close() -> None:
        if held:
            if not values and held.startswith(_OFF):
                flags[held.removeprefix(_OFF)] = Given(False, line)
            else:
                value = True if not values else values[0] if len(values) == 1 else list(values)
                flags[held] = Given(_structured(value), line)

    for word in words:
        if _FLAG.match(word.text):
            close()
            name, equals, value = word.text[2:].partition("=")
            held, values, line = name.replace("-", "_"), [value] if equals else [], word.line
        elif held:
            values.append(word.text)
        elif match := _OVERRIDE.fullmatch(word.text):
            flags[match[1]] = Given(_structured(match[2]), word.line)
        else:
            files.append(word)
    close()
    return flags, files


def _structured(value: object) -> object:
    """A value that is an object in JSON, as such; its members have no lines of their own."""
    if not isinstance(value, str) or not value.startswith("{"):
        return value
    try:
        content = json.loads(value)
    except (ValueError, RecursionError):
        return value
    return {str(key): Given(inner, 0) for key, inner in content.items() if not isinstance(inner, dict)} if isinstance(content, dict) else value


def counts_processes(command: Command) -> bool:
    """Whether a launcher or a variable says how many processes there are, and not how many GPUs are seen alone."""
    return GPU_VARIABLES[0] in command.variables or any(name in command.launcher for name in (*GPU_FLAGS, *LAUNCHER_FLAGS))


def gpus_of(command: Command) -> Given | None:
    """How many GPUs the launcher or a variable says there are."""
    for name in GPU_FLAGS:
        given = command.launcher.get(name)
        if given and isinstance(given.value, str) and given.value.isdecimal():
            nodes = command.launcher.get("nnodes")
            times = int(nodes.value[:MAX_COUNT]) if name != GPU_FLAGS[0] and nodes and isinstance(nodes.value, str) and nodes.value.isdecimal() else 1
            return Given(int(given.value[:MAX_COUNT]) * max(times, 1), given.line)
    for name in GPU_VARIABLES:
        given = command.variables.get(name)
        text = str(given.value).strip() if given else ""
        if text.isdecimal() and name == GPU_VARIABLES[0]:
            return Given(int(text[:MAX_COUNT]), given.line)
        if re.fullmatch(r"\d+(,\d+)*", text):
            return Given(text.count(",") + 1, given.line)
    return None


_STARTED = re.compile(r"\s*#.*\b(?:accelerate launch|torchrun|deepspeed|llamafactory-cli train)\s.*")
_GPUS = re.compile(rf"(?:--(?:{'|'.join(name.replace('_', '[_-]') for name in GPU_FLAGS)})[ =]|\b{GPU_VARIABLES[0]}=)(?P<gpus>\d+)")


def gpus_in_comments(text: str) -> Given | None:
    """How many GPUs the command in a file's comments starts, where they have one and it says so."""
    for number, line in enumerate(text.split("\n")[:MAX_LINES], 1):
        started = _STARTED.match(line[:MAX_TEXT]) if "#" in line else None
        found = _GPUS.search(started[0]) if started else None
        if found:
            return Given(int(found["gpus"][:MAX_COUNT]), number)
    return None


MAX_COUNT = 6
"""Digits of a number of GPUs that are read."""
