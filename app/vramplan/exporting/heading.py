"""What stands on top of every file: what it is, the link, the estimate, what the file does not say, what is left to fill in."""

from vramplan import report
from vramplan.accountings import estimate
from vramplan.errors import NotExpressible
from vramplan.exporting.draft import YOUR_CHECKPOINT, YOUR_DATASET, YOUR_MODEL, YOUR_OUTPUT, Draft
from vramplan.fields import BY_NAME
from vramplan.ledger import Estimate
from vramplan.settings import Settings, format_settings, parse

FILLED_IN = {
    YOUR_MODEL: "the model’s name on the Hugging Face Hub, or its folder",
    YOUR_CHECKPOINT: "the name or folder of a checkpoint that is quantised so",
    YOUR_DATASET: "your data, by a name or a folder that the tool takes",
    YOUR_OUTPUT: "the folder for what is trained",
}
"""What goes in the place of every placeholder."""


def heading(current: Estimate, draft: Draft, body: str, *, link: str, start: str) -> tuple[str, ...]:
    """The lines, without the signs of a comment."""
    told = report.headline(current)
    lines = [f"{draft.tool.label} {draft.tool.version}: {told.run}. Written by VRAM Plan.", f"Link: {_one_line(link)}", told.sentence]
    if again := _as_the_file_says(current, draft):
        lines.append(again)
    lines += [f"Not in this file: {BY_NAME[each.setting].label}: {each.why}." for each in draft.lost]
    lines += [f"To fill in: {word}: {what}." for word, what in FILLED_IN.items() if word in body]
    return (*lines, f"Start: {start}")


def meant(current: Estimate, draft: Draft) -> Settings:
    """The run as the file says it, on the same card and by the same accounting."""
    return parse(format_settings(current.settings) | draft.means)


def _as_the_file_says(current: Estimate, draft: Draft) -> str:
    """The estimate of what the file says, where that is another one."""
    try:
        other = estimate(meant(current, draft))
    except NotExpressible as problem:
        return f"As this file says it, the run is not counted: {problem.message}"
    return "" if other.peak_bytes == current.peak_bytes else f"As this file says it: {report.headline(other).sentence}"


def _one_line(text: str) -> str:
    return " ".join(text.split())
