"""A run in another form: a training file of a tool, or a summary."""

from collections.abc import Callable
from dataclasses import dataclass

from vramplan.checks import came
from vramplan.errors import NotExpressible
from vramplan.exporting import axolotl, llama_factory, trl
from vramplan.exporting.draft import Draft, Lost, as_a_step
from vramplan.exporting.heading import heading, meant
from vramplan.exporting.markdown import markdown
from vramplan.exporting.script import script
from vramplan.exporting.yaml_lines import yaml_text
from vramplan.ledger import Estimate
from vramplan.settings import Settings
from vramplan.training_files.tools import Tool, tool

MARKDOWN, SUMMARY = "markdown", "vramplan-summary.md"
"""The summary, and the name of its file."""


@dataclass(frozen=True)
class ToolOut:
    """How files of a tool are written. keys: of a draft, with the command that starts it. text: of the keys, and the objective."""

    draft_of: Callable[[Settings, Tool], Draft]
    keys: Callable[[Draft], tuple[dict[str, object], str]]
    text: Callable[[dict[str, object], str], str]
    file: str
    label: str


TOOLS_OUT: dict[str, ToolOut] = {
    "trl": ToolOut(trl.draft_of, trl.keys, script, trl.FILE, "TRL script"),
    "axolotl": ToolOut(axolotl.draft_of, axolotl.keys, lambda keys, _: yaml_text(keys), axolotl.FILE, "Axolotl YAML"),
    "llama-factory": ToolOut(llama_factory.draft_of, llama_factory.keys, lambda keys, _: yaml_text(keys), llama_factory.FILE, "LLaMA-Factory YAML"),
}
"""Tools whose files are written."""

FORMS = {**{name: each.label for name, each in TOOLS_OUT.items()}, MARKDOWN: "Markdown summary"}
"""Everything a run is exported to, by name, and what people call it."""


@dataclass(frozen=True)
class Export:
    """A run in another form. file: a name for it. lost: settings that it does not say. means: the run that it gives when it is read; None of a summary."""

    to: str
    file: str
    text: str
    lost: tuple[Lost, ...]
    means: Settings | None


def export(current: Estimate, to: str, *, link: str) -> Export:
    """A run as `to` says. link: the address that opens it. Raises ValueError for a form there is none of, NotExpressible for a run that is not trained."""
    if to == MARKDOWN:
        return Export(to, SUMMARY, markdown(current, link=link), (), None)
    if to not in TOOLS_OUT:
        raise ValueError(f"must be one of {', '.join(FORMS)}; {came(to)}.")
    out = TOOLS_OUT[to]
    run = as_a_step(current.settings)
    if run.objective not in TRAINED:
        raise NotExpressible("objective", "A run that generates text is not counted, so there is no file of it; choose another objective.")
    draft = out.draft_of(run, tool(to))
    keys, start = out.keys(draft)
    body = out.text(keys, run.objective)
    top = "".join(f"# {line}\n" for line in heading(current, draft, body, link=link, start=start))
    return Export(to, out.file, f"{top}\n{body}", tuple(draft.lost), meant(current, draft))


TRAINED = ("sft", "dpo", "reward")
"""Objectives that are counted."""
