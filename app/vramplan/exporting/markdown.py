"""A run as a summary in Markdown: settings, the peak by component, budget and verdict, the link."""

from vramplan import report
from vramplan.fields import BY_NAME
from vramplan.ledger import Estimate
from vramplan.link import changed_texts
from vramplan.settings import format_settings
from vramplan.words import value_text


def markdown(current: Estimate, *, link: str) -> str:
    """The summary. What stands in a table is kept from breaking it."""
    told = report.headline(current)
    settings = current.settings
    changed = {name: value_text(name, getattr(settings, name)) for name in changed_texts(format_settings(settings)) if name != "model"}
    lines = [f"# {_plain(told.run)}", "", f"{_plain(told.sentence)}", ""]
    lines += [_plain(text) for text in (told.counted, told.beside) if text] + [""]
    lines += _table(("", ""), [
        ("Model", settings.model_label), ("Estimated peak per GPU", f"{told.peak} GiB"), ("Budget per GPU", f"{told.budget} GiB ({told.budget_label})"),
        (told.headroom_label, f"{told.headroom} GiB"), ("Verdict", told.verdict), ("Accounting", value_text("accounting", settings.accounting)),
        *([("Training stack", value_text("stack", settings.stack))] if settings.accounting == "step" else []),
    ])
    lines += ["", "## Settings that are not as the calculator opens with", ""]
    lines += _table(("Setting", "Value"), [(BY_NAME[name].label, text) for name, text in changed.items()]) if changed else ["None."]
    lines += ["", "## What fills the memory", ""]
    rows = [(row.label, row.gib, row.share_text) for row in report.components(current)]
    lines += _table(("Component", "GiB", "Share"), [*rows, ("**Peak per GPU**", f"**{report.components_total(current)}**", "")], right=(1, 2))
    if hosted := report.host(current):
        lines += ["", *_table(("Host memory per GPU", "GiB"), [(row.label, row.gib) for row in hosted], right=(1,))]
    return "\n".join((*lines, "", f"[Open this run in VRAM Plan](<{''.join(link.split()).replace('>', '%3E').replace('<', '%3C')}>)", ""))


def _table(head: tuple[str, ...], rows: list[tuple[str, ...]], right: tuple[int, ...] = ()) -> list[str]:
    marks = ["---:" if at in right else "---" for at in range(len(head))]
    return [f"| {' | '.join(_cell(each) for each in row)} |" for row in (head, marks, *rows)]


def _cell(text: str) -> str:
    return _plain(text).replace("|", "\\|")


def _plain(text: str) -> str:
    return " ".join(text.split())
