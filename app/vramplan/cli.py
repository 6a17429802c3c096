"""The command `vramplan`: the same settings as the page, as flags; tables for people, JSON for programs.

Exit status: 0 the run fits or likely fits (or the file was read), 1 it does not or is unlikely to, 2 the input cannot be used or counted.
"""

import argparse
import io
import os
import re
import shutil
import sys
from collections.abc import Callable, Iterable, Sequence
from functools import partial
from pathlib import Path
from typing import TextIO

from vramplan import badge, blocks, brought, chronicle, cli_export, cli_lengths, cli_pins, measure, own_run, pins, pins_report, scene, tables
from vramplan.accountings import ACCOUNTINGS, estimate
from vramplan.asked import read_asked
from vramplan.catalogue import CUSTOM, DIMENSIONS, defaults
from vramplan.checks import came
from vramplan.compare import compare
from vramplan.curve import curve
from vramplan.errors import CardsError, FieldError, FrameError, Missing, NotExpressible, SettingsError
from vramplan.fetching import file_bytes, file_text, hub_text
from vramplan.fields import FIELDS, SECTIONS
from vramplan.kinds import INFERENCE, Choice, ExactDecimal, Field, Layers, Measured, Targets
from vramplan.limits import range_text
from vramplan.fit import fit, longest_sequence
from vramplan.front import front
from vramplan.gpus import gpu_curves
from vramplan.growth import growth
from vramplan.importing.foreign import MODEL, SETTINGS
from vramplan.importing.imported import Imported, import_text
from vramplan.importing.problems import ImportProblem
from vramplan.ledger import Estimate
from vramplan.make_fit import make_fit
from vramplan.measured_run.pickled import MAX_BYTES
from vramplan.measured_run.reading import Reading, read_file
from vramplan.length_fit import length_fit
from vramplan.link import MAX_PINS, read_query, to_query, unused_notices
from vramplan.placement_report import ACCOUNTING, placed
from vramplan.png import png
from vramplan.ranges import named_once
from vramplan.settings import Settings, parse
from vramplan.svg import svg
from vramplan.sweep import Sweep
from vramplan.timeline import Timeline, timeline
from vramplan.training_files.tools import TOOLS
from vramplan.units import count_text

FITS, DOES_NOT_FIT, BAD_INPUT = 0, 1, 2
"""Exit statuses."""

BYTE_RULES = "rules"
"""The accounting that knows of a model that answers."""

COMMANDS = {
    "estimate": "estimated peak per GPU, by component",
    "fit": "largest batch, longest sequence, single changes, smallest GPU class",
    "curve": "peak against sequence length",
    "gpus": "peak per GPU against the GPUs that divide its states, for every kind of sharding",
    "hardware": "the smallest hardware for every method and several lengths, beside the rules of thumb",
    "place": "which of your cards Unsloth Studio would put the run on, from what is free on them",
    "questions": "questions people ask about memory, answered with the figures of this run",
    "compare": "the same run with every training method, by every accounting, or beside other runs, term by term",
    "timeline": "memory over a training step, drawn: what is alive at every layer, forward and backward",
    "sweep": "every combination of settings with several values: ranges of numbers, lists of choices; as a table, CSV or JSON",
    "link": "the link that opens this run in the page (with --link, at the same address)",
    "export": "this run as a training file of a tool, or as a summary in Markdown",
    "badge": "this run as a badge for a README: a small SVG with a sentence, or the Markdown that shows it",
    "lengths": "a file of token lengths against the run: percentiles, what is cut, whether batches fit, padded and packed",
    "measured": "what was measured of a run, against its estimate: a paste, an out-of-memory message, a memory snapshot",
    "measure": "a script that measures this run on your GPU and prints one line for `measured`",
    "import": "what a config.json, an adapter_config.json or a training file comes to: parameters, settings, what was assumed",
}

SWEEP_EPILOG = (
    "Settings take several values: numbers as 1:64 (each), 512:8192:512 (in steps), 512:131072:*2 (in factors) or 8,16,32;"
    " choices as full,lora,qlora. Exit status: 0 a point fits or likely fits, 1 none does, 2 the input cannot be used, or no point counted."
)
"""What is said of several values below the flags of a sweep."""

MAKE_IT_FIT_EPILOG = (
    "--keep and --at-least go with --make-it-fit, and mean it alone. Exit status: 0 the run fits or likely fits as it is, with what is required of it,"
    " 1 it does not or is unlikely to, 2 the input cannot be used or counted."
)
"""What is said of exit statuses below the flags of `fit`."""

FILES = {
    "import": "a config.json, an adapter_config.json, or a training file: a tool’s YAML or JSON, or a script with its command line",
    "lengths": "one token length a line, a CSV file with a column of them, or JSON Lines with a key of them",
    "measured": "text with max_memory_allocated(), memory_summary(), nvidia-smi output or an out-of-memory message, or a memory snapshot",
}
"""What the commands that read a file of their own read."""


def main(arguments: list[str] | None = None) -> int:
    """Run one command and return its exit status."""
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(errors="replace")  # a terminal without these characters still gets the numbers
    options = _parser().parse_args(arguments)
    if options.command == "evidence":
        return _print(tables.evidence_tables)
    link = read_query(_given(options, "link") or "")
    flags = {field.name: text for field in FIELDS if (text := _given(options, field.name)) is not None}
    try:
        read, given = _brought(options, _one_each(options, link.texts | flags), link.version)
        reading = _measurement(options, link.texts | flags) if options.command == "measured" else None
        samples = cli_lengths.read(_given(options, "file"), _given(options, "column")) if options.command == "lengths" else None
    except ImportProblem as problem:
        return _refused(problem, as_json=options.json and options.command in ("import", "lengths", "measured"))
    if options.command == "import":
        return _print(lambda: _document("import", read[-1]) if options.json else tables.import_table(read[-1]))
    texts = link.texts | given | flags
    saved = [pin for each in read for pin in each.pins]
    pinned = pins.pinned(link.with_pins(saved))
    notes = (*link.dropped, *_beyond_room(len(link.pins) + len(saved)), *pinned.notices, *_unshown(options, pinned), *_assumed(texts, options), *(note for each in read for note in brought.notes(each)), *_other_task(texts))
    if options.command == "sweep":
        return _sweep(options, texts, link.version, notes)
    if options.command == "place":
        return _place(options, texts | {"accounting": ACCOUNTING}, link.version, notes)
    try:
        settings = parse(texts, version=link.version)
        current = None if options.command == "link" else estimate(settings)
        written = measure.script(settings) if options.command == "measure" else ""
        if current and options.command == "measured":
            current = own_run.with_reading(current, reading)
        held = length_fit(samples.lengths, current) if samples else None
        made = cli_export.made(current, _given(options, "to"), _address(options, settings)) if options.command == "export" else None
    except SettingsError as problem:
        return _wrong(problem)
    except NotExpressible as problem:
        print(f"vramplan: --{_flag(problem.field)}: {problem.message}", file=sys.stderr)
        return BAD_INPUT
    for notice in (*notes, *unused_notices(texts, version=link.version)):
        _note(notice)
    if made:
        if path := _given(options, "output"):
            return _write(path, lambda stream: stream.write(made.text))
        return _print(lambda: _document("export", made) if options.json else made.text, end="\n" if options.json else "")
    if options.command == "badge":
        return _badge(options, current)
    if options.command == "timeline":
        return _timeline(options, current)
    if options.command == "fit" and (options.make_it_fit or options.keep or options.at_least):
        return _make_it_fit(options, current)
    if options.command == "compare" and options.accountings is None and (options.against or pinned.runs):
        return _against(options, current, pinned)
    if options.command == "compare" and (options.markdown or options.csv is not None):
        print(f"vramplan: --{'markdown' if options.markdown else 'csv'}: needs runs to compare with; name one with --against.", file=sys.stderr)
        return BAD_INPUT
    if options.command == "compare" and options.accountings is not None:
        return _accountings(options, current)
    if current is None:
        return _print(lambda: _document("link", settings) if options.json else _address(options, settings, pinned.settings))
    if written:
        return _print(lambda: _document("measure", (settings, written)) if options.json else written)
    if options.command == "measured":
        status = _print(lambda: _document("measured", (current, reading)) if options.json else tables.measured_table(current, reading))
        return status or (FITS if current.fits else DOES_NOT_FIT)
    if held:
        status = _print(lambda: _document("lengths", (samples, held)) if options.json else cli_lengths.table(samples, held))
        return status or (FITS if current.fits else DOES_NOT_FIT)
    status = _print(lambda: _json(options.command, current) if options.json else _text(options.command, current))
    return status or (FITS if current.fits else DOES_NOT_FIT)


def _address(options: argparse.Namespace, settings: Settings, pinned: Sequence[Settings] = ()) -> str:
    """The link that opens a run, at the address of the link that was given."""
    page = (_given(options, "link") or "").partition("?")[0].partition("#")[0]
    return f"{page if '://' in page else ''}?{to_query(settings, pinned)}"


def _badge(options: argparse.Namespace, current: Estimate) -> int:
    """Print the badge of a run, its Markdown or its document, or write it to a file."""
    made, address = badge.badge(current), _address(options, current.settings)
    link = address if "://" in address else ""
    if options.json:
        return _print(lambda: _document("badge", (made, link)))
    path = _given(options, "output")
    if options.markdown:
        text = badge.markdown(made, link=link, file=path or badge.FILE)
        return (_write(path, lambda stream: stream.write(badge.svg(made))) if path else 0) or _print(lambda: text)
    return _write(path, lambda stream: stream.write(badge.svg(made))) if path else _print(lambda: badge.svg(made), end="")


def _place(options: argparse.Namespace, texts: dict[str, str], version: int, notes: Iterable[str]) -> int:
    """Choose cards for a run."""
    try:
        settings = parse(texts, version=version)
        found = placed(settings, free=_given(options, "free") or "", cards=_given(options, "cards") or "")
    except SettingsError as problem:
        return _wrong(problem)
    except (CardsError, NotExpressible) as problem:
        print(f"vramplan: --{_flag(problem.field)}: {problem.message}", file=sys.stderr)
        return BAD_INPUT
    for notice in (*notes, *unused_notices(texts, version=version)):
        _note(notice)
    status = _print(lambda: _document("place", found) if options.json else tables.placement_table(settings, found))
    return status or (FITS if found.fits else DOES_NOT_FIT)


def _timeline(options: argparse.Namespace, current: Estimate) -> int:
    """Draw a run over time, and write the files that were asked for."""
    try:
        shown, over = timeline(current.settings), None
        if options.against is not None:
            link = read_query(_given(options, "against"))
            over = timeline(parse(link.texts, version=link.version))
        at = None if options.moment is None else shown.find(_given(options, "moment"))
        if options.moment is not None and at is None:
            raise FrameError(chronicle.no_such_frame(shown))
        drawn = scene.for_a_file(shown, over=over)
        for name, content in (("svg", lambda: svg(drawn, shown, over).encode()), ("png", lambda: png(drawn, shown, over))):
            if path := _given(options, name):
                Path(path).write_bytes(content())
    except OSError as problem:
        print(f"vramplan: {problem.filename} could not be written: {problem.strerror}.", file=sys.stderr)
        return BAD_INPUT
    except FrameError as problem:
        print(f"vramplan: --moment: {problem}", file=sys.stderr)
        return BAD_INPUT
    except Missing as problem:
        print(f"vramplan: --png: {problem}", file=sys.stderr)
        return BAD_INPUT
    except (SettingsError, NotExpressible) as problem:
        flag = "against" if isinstance(problem, SettingsError) or current.accounting == "step" else "accounting"
        print(f"vramplan: --{flag}: {problem}", file=sys.stderr)
        return BAD_INPUT
    return _print(lambda: _timeline_text(options, shown, at, over)) or (FITS if current.fits else DOES_NOT_FIT)


def _accountings(options: argparse.Namespace, current: Estimate) -> int:
    """The run by the accountings that were named."""
    text = _given(options, "accountings")
    names = tuple(ACCOUNTINGS) if text == "all" else tuple(part.strip() for part in text.split(","))
    unknown = [name for name in names if name not in ACCOUNTINGS]
    if unknown:
        print(f"vramplan: --accountings: must be all, or a comma list of {', '.join(ACCOUNTINGS)}; {came(unknown[0])}.", file=sys.stderr)
        return BAD_INPUT
    status = _print(lambda: _document("accountings", (current, names)) if options.json else tables.compare_table(current, names))
    return status or (FITS if current.fits else DOES_NOT_FIT)


def _make_it_fit(options: argparse.Namespace, current: Estimate) -> int:
    """The changes that make the run fit."""
    asked = read_asked(_given(options, "link") or "")
    for notice in asked.notices:
        _note(notice)
    keep = [name.strip().replace("-", "_") for text in options.keep or () for name in text.split(",") if name.strip()]
    try:
        made = make_fit(current.settings, keep=(*asked.wanted.keep, *keep), at_least={**asked.wanted.at_least, **dict(map(_required, options.at_least or ()))})
    except SettingsError as problem:
        return _wrong(problem)
    except NotExpressible as problem:
        print(f"vramplan: --{_flag(problem.field)}: {problem.message}", file=sys.stderr)
        return BAD_INPUT
    larger = growth(made.run.settings, made.wanted) if made.run.fits else ()
    points = front(made.run.settings, made.offers or [each.offer for each in larger], made.wanted)
    status = _print(lambda: _document("make-it-fit", (made, larger, points)) if options.json else tables.make_fit_table(made, larger, points))
    return status or (FITS if made.run.fits else DOES_NOT_FIT)


def _required(text: str) -> tuple[str, int]:
    """A name and a whole number from NAME=NUMBER. Raises SettingsError."""
    name, _, number = text.partition("=")
    if not re.fullmatch("[0-9]{1,12}", number.strip()):
        raise SettingsError((FieldError("at_least", f"must be NAME=NUMBER with a whole number, such as sequence_length=4096; {came(text)}."),))
    return name.strip().replace("-", "_"), int(number)


def _against(options: argparse.Namespace, current: Estimate, pinned: pins.Pinned) -> int:
    """Other runs beside this one, as a table, and in the forms that were asked for."""
    try:
        runs = cli_pins.against(options.against or (), pinned.runs, _note)
    except (SettingsError, NotExpressible) as problem:
        print(f"vramplan: --against: {problem}", file=sys.stderr)
        return BAD_INPUT
    path = _given(options, "csv")
    if path not in (None, "-") and (status := _write(path, lambda stream: print(pins_report.csv_text(runs, current), end="", file=stream))):
        return status
    if path == "-" or options.markdown:
        status = _print(lambda: pins_report.csv_text(runs, current) if path == "-" else pins_report.markdown(runs, current), end="")
    else:
        status = _print(lambda: _document("pins", (runs, current)) if options.json else cli_pins.table(runs, current))
    return status or (FITS if current.fits else DOES_NOT_FIT)


def _beyond_room(number: int) -> list[str]:
    """That a link and a file together pin more runs than there can be."""
    return [f"The link and the file pin {number} runs; the first {MAX_PINS} are used."] if number > MAX_PINS else []


def _unshown(options: argparse.Namespace, pinned: pins.Pinned) -> list[str]:
    """That a link or a file pins runs which this command does not show."""
    shown = options.command == "link" or (options.command == "compare" and options.accountings is None)
    return [] if shown or not pinned.runs else [f"the link or the file pins {len(pinned.runs)} run{'s' if len(pinned.runs) > 1 else ''} besides; compare shows them."]


def _timeline_text(options: argparse.Namespace, shown: Timeline, at: int | None, over: Timeline | None) -> str:
    if options.json:
        from vramplan.documents import TimelineDocument

        return TimelineDocument.of(shown, at, over).to_json()
    if at is not None:
        return blocks.alive_table(shown, at)
    letters = options.ascii or not blocks.can_print(sys.stdout.encoding)
    return blocks.page(shown, width=shutil.get_terminal_size().columns, over=over, ascii_only=letters)


def _wrong(problem: SettingsError) -> int:
    """Say what is wrong with every setting."""
    for error in problem.errors:
        print(f"vramplan: --{_flag(error.field)}: {error.message}", file=sys.stderr)
    return BAD_INPUT


def _one_each(options: argparse.Namespace, texts: dict[str, str]) -> dict[str, str]:
    """The settings that have one value; only a sweep takes others."""
    return named_once(texts) if options.command == "sweep" else texts


def _note(notice: str) -> None:
    """Say something beside the result."""
    print(f"vramplan: note: {notice}", file=sys.stderr)


def _sweep(options: argparse.Namespace, texts: dict[str, str], version: int, notes: Iterable[str]) -> int:
    """Count a grid, and print it or write it to a file."""
    path = _given(options, "csv")
    try:
        swept = Sweep(texts, version=version)
    except SettingsError as problem:
        return _wrong(problem)
    except Missing as problem:
        print(f"vramplan: {problem}", file=sys.stderr)
        return BAD_INPUT
    if path is None and not options.json and swept.size > tables.MOST_SWEEP_ROWS:
        size, most = count_text(swept.size), count_text(tables.MOST_SWEEP_ROWS)
        print(f"vramplan: --csv: A table has room for {most} points; these are {size}. Name a file, - for standard output, or take larger steps.", file=sys.stderr)
        return BAD_INPUT
    for notice in (*notes, *swept.unused_notices()):
        _note(notice)
    if path not in (None, "-"):
        status = _write(path, swept.write_csv)
    elif path:
        status = _print(lambda: swept.write_csv(sys.stdout) or "", end="")
    else:
        status = _print(lambda: _document("sweep", swept) if options.json else tables.sweep_table(swept))
    return status or (FITS if swept.fitting else DOES_NOT_FIT if swept.counted else BAD_INPUT)


def _write(path: str, write: Callable[[TextIO], None]) -> int:
    """Write a file, and return 0, or the status for one that cannot be written."""
    try:
        with open(path, "w", encoding="utf-8", newline="") as stream:
            write(stream)
    except OSError as problem:
        print(f"vramplan: {problem.filename or path or 'A file without a name'} could not be written: {problem.strerror}.", file=sys.stderr)
        return BAD_INPUT
    return 0


def _brought(options: argparse.Namespace, texts: dict[str, str], version: int) -> tuple[list[Imported], dict[str, str]]:
    """What was brought, a model first, then an adapter for it, and the settings that all of it gives. Raises ImportProblem."""
    files = {name: path for name in ("config", "training", "adapter", *(["file"] if options.command == "import" else [])) if (path := _given(options, name)) is not None}
    contents = [] if options.hub is None else [("hub", partial(hub_text, _given(options, "hub")))]
    contents += [(name, partial(file_text, path)) for name, path in files.items()]
    if options.command == "import" and not contents:
        raise ImportProblem("no_file", "No file was named.", "Name a config.json, an adapter_config.json or a training file, - for standard input, or --hub OWNER/NAME.")
    everything, given = [], {}
    for name, content in contents:
        models = [each for each in everything if each.kind == MODEL]
        tool = _given(options, "as_tool") or "" if name in ("training", "file") else ""
        found = import_text(content(), texts | given, as_dense=options.as_dense, base=models[-1] if models else None, version=version, tool=tool)
        everything.append(found)
        given |= found.texts
        if options.command == "import" and found.kind == SETTINGS and not found.settings:
            raise ImportProblem("out_of_range", f"{found.unsupported[0].why}.", "Correct it in the file, or open the file on the page.")
        if options.command != "import" and not found.texts:
            raise ImportProblem("not_counted", brought.why_not(found), "vramplan import shows its parameters.")
    return everything, given


def _measurement(options: argparse.Namespace, texts: dict[str, str]) -> Reading | None:
    """What the named file says of a run; None where the settings have a measurement already. Raises ImportProblem."""
    path = _given(options, "file")
    if path is not None:
        return read_file(file_bytes(path, MAX_BYTES))
    if not texts.get("measured"):
        raise ImportProblem("no_file", "No file was named.", "Name a file with what was measured, or - for standard input.")
    return None


def _refused(problem: ImportProblem, *, as_json: bool) -> int:
    """Say why something cannot be read."""
    if as_json:
        from vramplan import documents

        _print(documents.ProblemDocument.of(problem).to_json)
    else:
        print(f"vramplan: {problem}", file=sys.stderr)
    return BAD_INPUT


def _print(make: Callable[[], str], end: str = "\n") -> int:
    """Print what is made, and return 0, or the status for a result that cannot be written."""
    try:
        print(make(), end=end, flush=True)
    except BrokenPipeError:
        _drop_output()
    except OSError as problem:
        _drop_output()
        print(f"vramplan: the result could not be written: {problem.strerror}.", file=sys.stderr)
        return BAD_INPUT
    return 0


def _assumed(texts: dict[str, str], options: argparse.Namespace) -> list[str]:
    """Names the dimensions of a custom model that were not given. A link leaves out what equals the defaults on purpose."""
    missing = [name for name in DIMENSIONS if name not in texts]
    if CUSTOM not in _each(texts, "model") or options.link or options.config is not None or options.hub is not None or not missing:
        return []
    values = ", ".join(f"{name}={defaults()[name]}" for name in missing)
    return [f"not given for the custom model, so the defaults are used: {values}."]


def _other_task(texts: dict[str, str]) -> list[str]:
    """That a model is trained although it was to answer. A link keeps the task while another accounting is chosen."""
    if INFERENCE not in _each(texts, "task") or _each(texts, "accounting") == {BYTE_RULES}:
        return []
    return [f"task={INFERENCE} is used with accounting={BYTE_RULES} only; every other accounting counts training."]


def _each(texts: dict[str, str], name: str) -> set[str]:
    """The values that are given for a setting, several of them in a sweep."""
    return {part.strip() for part in texts.get(name, "").split(",")}


def _drop_output() -> None:
    """Let Python's own last flush go nowhere instead of failing again."""
    os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())


def _given(options: argparse.Namespace, name: str) -> str | None:
    """The text given for an option; argparse makes a list of the value '--', which is text like any other here."""
    value = getattr(options, name)
    return "--" if isinstance(value, list) else value


def _text(command: str, current: Estimate) -> str:
    settings = current.settings
    if command == "estimate":
        return tables.estimate_table(current)
    if command == "fit":
        return tables.fit_table(current, fit(settings))
    if command == "hardware":
        return tables.hardware_table(current)
    if command == "questions":
        return tables.questions_text(current)
    if command == "gpus":
        return tables.gpus_table(current, gpu_curves(settings))
    if command == "curve":
        longest = longest_sequence(settings).value
        return tables.curve_table(current, curve(settings, also=[longest] if longest else []), longest)
    return tables.compare_table(current)


def _json(command: str, current: Estimate) -> str:
    settings = current.settings
    content = {
        "estimate": lambda: current,
        "fit": lambda: fit(settings),
        "curve": lambda: curve(settings),
        "gpus": lambda: (settings, gpu_curves(settings)),
        "hardware": lambda: settings,
        "questions": lambda: settings,
        "compare": lambda: compare(settings),
    }
    return _document(command, content[command]())


def _document(command: str, content: object) -> str:
    from vramplan import documents  # pydantic takes longer to load than everything else together

    return documents.DOCUMENTS[command].of(content).to_json()


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="vramplan",
        description="Will this LLM fine-tuning run fit on that GPU, and if not, what makes it fit?",
        epilog="Exit status: 0 the run fits or likely fits, 1 it does not or is unlikely to, 2 the input cannot be used or counted.",
    )
    commands = parser.add_subparsers(dest="command", required=True, metavar="COMMAND")
    for name, purpose in COMMANDS.items():
        command = commands.add_parser(
            name,
            help=purpose,
            description=f"{purpose[0].upper()}{purpose[1:]}.",
            epilog=parser.epilog,
            usage=f"vramplan {name} {'[FILE] ' if name in FILES else ''}[--config FILE | --hub ID] [--link URL] [--json] [--SETTING VALUE ...]",
            allow_abbrev=False,
        )
        if name in FILES:
            command.add_argument("file", nargs="?", metavar="FILE", help=f"{FILES[name]}; - is standard input")
        model = command.add_mutually_exclusive_group()
        model.add_argument("--config", metavar="FILE", help="the model’s config.json (- is standard input)")
        model.add_argument("--hub", metavar="ID", help="fetch the model’s config.json from the Hugging Face Hub, by an id such as Qwen/Qwen3-8B")
        command.add_argument("--training", metavar="FILE", help="a training file, such as an Axolotl or torchtune YAML, or a script with a trl or swift command: its settings; one of DeepSpeed or accelerate gives a part of them")
        command.add_argument("--as", dest="as_tool", metavar="TOOL", help=f"the tool that the training file is of, where its keys do not tell: {', '.join(TOOLS)}")
        command.add_argument("--adapter", metavar="FILE", help="a PEFT adapter_config.json for the model")
        command.add_argument("--as-dense", action="store_true", help="read a model type that is not known as a dense decoder like Llama")
        output = command.add_mutually_exclusive_group()
        command.add_argument("--link", metavar="URL", help="start from a shared link; flags change what it says")
        if name == "timeline":
            command.add_argument("--moment", metavar="NAME", help="list what is alive at a frame, by number or name, or at the largest of a moment such as loss")
            command.add_argument("--against", metavar="URL", help="lay the run of another link over this one")
            command.add_argument("--svg", metavar="FILE", help="write the drawing as SVG")
            command.add_argument("--png", metavar="FILE", help="write the drawing as PNG (needs Pillow: pip install \"vramplan[png]\")")
            command.add_argument("--ascii", action="store_true", help="letters in place of block characters")
        if name == "sweep":
            command.epilog = SWEEP_EPILOG
            output.add_argument("--csv", metavar="FILE", help="write every point as comma-separated values (- is standard output)")
        if name == "place":
            command.add_argument("--free", metavar="GIB", help="free memory of every card, as 22.5,22.5,10, or what nvidia-smi --query-gpu=index,memory.total,memory.free --format=csv prints")
            command.add_argument("--cards", metavar="NUMBERS", help="numbers of the cards to use, as 0,1; left out, the fewest that hold the run")
        if name == "fit":
            command.epilog = MAKE_IT_FIT_EPILOG
            command.add_argument("--make-it-fit", action="store_true", help="every smallest set of up to three changes with which the run fits, cheapest first")
            command.add_argument("--keep", metavar="NAMES", action="append", help="settings that must stay as they are, as a comma list; may be given again")
            command.add_argument("--at-least", metavar="NAME=NUMBER", action="append", help="what the run must have: sequence_length=4096 or effective_batch=16; may be given again")
        if name == "export":
            command.add_argument("--to", metavar="FORM", help=f"what to write: {', '.join(cli_export.FORMS)}")
            command.add_argument("--output", metavar="FILE", help="write it to a file")
        if name == "badge":
            output.add_argument("--markdown", action="store_true", help="print the Markdown that shows the badge, and leads to the page of --link")
            command.add_argument("--output", metavar="FILE", help=f"write the SVG to a file (a name for it: {badge.FILE})")
        if name == "lengths":
            command.add_argument("--column", metavar="NAME", help="the column or key that holds the lengths; left out, one that is named so, or the only one with whole numbers")
        if name == "compare":
            command.add_argument("--against", metavar="URL", action="append", help="the run of another link, beside this one; may be given up to four times, the first is the baseline")
            output.add_argument("--markdown", action="store_true", help="print the runs side by side as Markdown, with --against")
            output.add_argument("--csv", metavar="FILE", help="write them as comma-separated values (- is standard output), with --against")
            command.add_argument("--accountings", metavar="LIST", help=f"compare accountings in place of methods: all, or a comma list of {', '.join(ACCOUNTINGS)}")
        output.add_argument("--json", action="store_true", help="print JSON instead of a table")
        groups = {section: command.add_argument_group(label) for section, label in SECTIONS.items()}
        for field in FIELDS:
            groups[field.section].add_argument(f"--{_flag(field.name)}", metavar=_metavar(field), help=_help(field))
    purpose = "how far the estimates are off recorded runs, and why"
    commands.add_parser("evidence", help=purpose, description=f"{purpose[0].upper()}{purpose[1:]}.")
    return parser


def _flag(name: str) -> str:
    return name.replace("_", "-")


def _metavar(field: Field) -> str:
    if isinstance(field.kind, Choice | Targets):
        return "CHOICE"
    if isinstance(field.kind, Layers):
        return "LAYERS"
    if isinstance(field.kind, Measured):
        return "AMOUNTS"
    return "NUMBER" if isinstance(field.kind, ExactDecimal) else "N"


def _help(field: Field) -> str:
    usual = defaults()
    if isinstance(field.kind, Choice):
        span = ", ".join(field.kind.values)
    elif isinstance(field.kind, Targets):
        names = ", ".join(field.kind.values)
        span = f"{names}, or a comma list of {', '.join(field.kind.parts)}"
    else:
        span = range_text(field, usual)
    condition = f"; {field.condition}" if field.condition else ""
    return f"{field.hint} ({span}; default {usual[field.name] or 'nothing'}{condition})".replace("%", "%%")
