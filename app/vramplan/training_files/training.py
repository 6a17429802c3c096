"""A training file, whatever its form, as the settings of a run."""

from collections.abc import Callable

from vramplan.checks import quoted
from vramplan.importing.problems import ImportProblem
from vramplan.importing.text import unfenced
from vramplan.training_files import accelerate_config, axolotl, deepspeed_config, llama_factory, swift, torchtune, trl
from vramplan.training_files.commands import counts_processes, gpus_in_comments, gpus_of
from vramplan.training_files.given import Given, Tree
from vramplan.training_files.json_text import read_json
from vramplan.training_files.python_text import Script, is_python, read_script
from vramplan.training_files.reading import Reading, TrainingFile
from vramplan.training_files.recognise import command_of, is_command, is_yaml, tool_of
from vramplan.training_files.tools import TOOLS, tool
from vramplan.units import count_text

COMBINE: dict[str, Callable[[Reading], None]] = {
    "axolotl": axolotl.combine, "llama-factory": llama_factory.combine, "swift": swift.combine, "trl": trl.combine, "torchtune": torchtune.combine, "deepspeed": deepspeed_config.combine, "accelerate": accelerate_config.combine,
}
"""What reads the keys of a tool that count together."""


def is_training_text(text: str) -> bool:
    """Whether a text that is no JSON object looks like a training file: YAML, a Python script, or a command that trains."""
    return not text.lstrip("\ufeff \t\r\n").startswith(("{", "[", "<")) and (is_yaml(text) or is_python(text) or is_command(text))


def needs_yaml(text: str) -> bool:
    """Whether a text is read as YAML, which takes a part that the page loads when it is first needed."""
    bare, _ = unfenced(text.lstrip("\ufeff").strip())
    return is_training_text(bare) and is_yaml(bare) and not is_python(bare)


def read_training(text: str, name: str = "") -> TrainingFile:
    """Read a training file. name: the tool, if somebody says which. Raises ImportProblem."""
    if name and name not in TOOLS:
        raise ImportProblem("unknown_tool", f"{quoted(name)} is no tool whose files are read here.", f"The tools are {', '.join(TOOLS)}.")
    bare = text.lstrip("\ufeff").strip()
    if not _whole_characters(bare):
        raise ImportProblem("not_text", "The file holds half a character (a surrogate without its pair).", "Save it as UTF-8, or download it again.")
    repaired: tuple[str, ...] = ()
    if bare.startswith("{"):
        tree, repaired = read_json(text)
        command = None
    elif is_python(bare):
        return _script(read_script(bare), bare)
    elif is_command(text) and not is_yaml(text):
        command = command_of(text)
        if command is None:
            raise ImportProblem("not_a_command", "There is no command in it that trains.", "Copy the command whole.")
        return _command(command, name)
    else:
        tree = _yaml(text)
    return _read(tree, name, repaired, gpus_in_comments(bare) if not bare.startswith("{") else None)


def _whole_characters(text: str) -> bool:
    try:
        text.encode()
    except UnicodeEncodeError:
        return False
    return True


def _yaml(text: str) -> Tree:
    from vramplan.training_files.yaml_text import read_yaml  # ruamel.yaml takes longer to load than everything else of this package

    given = read_yaml(text.lstrip("\ufeff"))
    if not isinstance(given.value, dict):
        what = "a list" if isinstance(given.value, list) else "a single value"
        raise ImportProblem("not_an_object", f"This is {what} in YAML, not the keys of a training file.", "Bring the training file itself.")
    return given.value


def _read(tree: Tree, name: str, repaired: tuple[str, ...], gpus: Given | None) -> TrainingFile:
    found, second = (name, "") if name else tool_of(tree)
    notes = repaired
    if second:
        notes += (f"it could be of {tool(second).label} too; it is read as one of {tool(found).label} (--as {second} reads it otherwise)",)
    return _finished(Reading(tool(found), tree, gpus=gpus), notes)


def _script(script: Script, text: str) -> TrainingFile:
    reading = Reading(tool("trl"), script.keys, gpus=gpus_in_comments(text), command=script.trainer)
    for key, line in script.left.items():
        reading.worked_out(key, line)
    return _finished(reading, tuple(script.noted))


def _command(command, name: str) -> TrainingFile:
    found, _, program = command.program.partition(": ")
    if not command.flags or (command.files and not any(key in tool(found).keys for key in command.flags)):
        named = next((word.text for word in command.files), "")
        what = f"{quoted(named)}, which is not here" if named else "no flags"
        raise ImportProblem("names_a_file", f"The command in line {count_text(command.line)} has its settings in {what}.", "Bring that file.")
    reading = Reading(tool(name or found), command.flags, gpus=gpus_of(command), command=program, launcher=command.launcher, processes=counts_processes(command))
    for word in command.files:
        reading.cannot(word.text, "the command reads this file too, which is not here", "none")
    if "config" in command.flags:
        reading.cannot("config", f"the command reads {quoted(str(command.flags['config'].value))} too, which is not here", "none")
    return _finished(reading, ())


def _finished(reading: Reading, notes: tuple[str, ...]) -> TrainingFile:
    COMBINE[reading.tool.name](reading)
    reading.by_the_tables()
    if reading.tool.stack and "stack" not in reading.texts and not reading.uncounted:
        reading.assume("stack", reading.tool.stack, f"the file does not say which release; {reading.tool.version} was read")
    return reading.finish(notes)
