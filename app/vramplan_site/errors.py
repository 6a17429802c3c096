"""Errors of every accounting against the recorded runs, as the evidence that is published."""

import json
from collections.abc import Iterable
from dataclasses import asdict
from pathlib import Path
from statistics import median, quantiles

from vramplan import evidence as published
from vramplan.accountings import ACCOUNTINGS, estimate
from vramplan.compare import counted_or_why
from vramplan.data import table
from vramplan.errors import NotExpressible
from vramplan.evidence import Evidence, Group, Point
from vramplan.ledger import Estimate
from vramplan.link import to_query
from vramplan.units import gib_text
from vramplan.words import COMPONENTS
from vramplan_site.recorded import Run, measured, traced

DATA = Path(published.__file__).parent / "data" / published.FILE

NOT_RECORDED = {"traced": ("workspace", "fixed_allowance", "extra_allowance"), "measured": ("fixed_allowance", "extra_allowance")}
"""Rows of a ledger that a kind of recording does not contain: traces have no cuBLAS, allowances stand for what is not allocated."""

MOST_WORST = 10
"""Points listed as the worst of one accounting and kind."""

ROUNDING = 0.0005
"""Error, as a share, up to which rounding explains it: the allocator gives out multiples of 512 bytes."""


def compute() -> Evidence:
    """Every error, from the recorded files and the estimators as they are now."""
    runs = [*traced(), *measured()]
    finished = [run for run in runs if run.allocated and run.exact]
    points, uncounted = [], {}
    for name in ACCOUNTINGS:
        found = [_point(name, run, counted_or_why(run.settings.varied(accounting=name))) for run in finished]
        points += [point for point in found if point]
        uncounted[name] = found.count(None)
    named = {(point.accounting, point.kind, point.id): run.group for point, run in _with_runs(points, finished)}
    return Evidence(
        groups=tuple(_groups(points, named)),
        points=tuple(points),
        worst=tuple(_worst(points, {(run.kind, run.id): run for run in finished})),
        band=_band(run for run in runs if run.process and not run.out_of_memory),
        verdicts=_verdicts(run for run in runs if run.kind == "measured" and run.exact),
        versions=tuple(sorted({run.source for run in runs if run.kind == "traced"})),
        uncounted=uncounted,
    )


def comparable_bytes(estimate: Estimate, kind: str) -> int:
    """The largest moment without the rows that a kind of recording cannot contain."""
    return max(
        sum(term.bytes for term in moment.terms if term.name not in NOT_RECORDED[kind]) for moment in estimate.moments
    )


def write(path: Path = DATA) -> None:
    """Write the evidence to the package's data."""
    path.write_text(to_json(compute()), encoding="utf-8")


def to_json(found: Evidence) -> str:
    """The evidence as the data file holds it: one entry a line."""
    content = asdict(found)
    content["points"] = [
        {name: value for name, value in point.items() if value != ""} for point in content["points"]
    ]
    parts = []
    for name, value in content.items():
        if isinstance(value, list | tuple):
            lines = ",\n".join(f"  {json.dumps(entry, ensure_ascii=False)}" for entry in value)
            parts.append(f'"{name}": [\n{lines}\n]')
        else:
            parts.append(f'"{name}": {json.dumps(value)}')
    return "{\n" + ",\n".join(parts) + "\n}\n"


def _point(accounting: str, run: Run, estimate: Estimate | NotExpressible) -> Point | None:
    if isinstance(estimate, NotExpressible):
        return None
    estimated = comparable_bytes(estimate, run.kind)
    return Point(accounting, run.kind, run.id, run.allocated, estimated)


def _with_runs(points: list[Point], runs: list[Run]) -> Iterable[tuple[Point, Run]]:
    by_id = {(run.kind, run.id): run for run in runs}
    return ((point, by_id[point.kind, point.id]) for point in points)


def _groups(points: list[Point], named: dict[tuple[str, str, str], str]) -> Iterable[Group]:
    """Quantiles over all runs of a kind, then over each group of them."""
    order = tuple(ACCOUNTINGS)
    kinds = sorted({(point.accounting, point.kind) for point in points}, key=lambda each: (each[1], order.index(each[0])))
    for accounting, kind in kinds:
        mine = [point for point in points if (point.accounting, point.kind) == (accounting, kind)]
        yield _group(accounting, kind, "all", mine)
        for name in sorted({named[accounting, kind, point.id] for point in mine}):
            yield _group(accounting, kind, name, [point for point in mine if named[accounting, kind, point.id] == name])


def _group(accounting: str, kind: str, name: str, points: list[Point]) -> Group:
    errors = sorted(point.error for point in points)
    absolute = sorted(abs(error) for error in errors)
    return Group(
        accounting, kind, name, len(errors), _rounded(median(errors)), _rounded(_deciles(errors)[0]), _rounded(errors[0]),
        _rounded(errors[-1]), _rounded(median(absolute)), _rounded(_deciles(absolute)[-1]),
        _rounded(sum(error < -published.FAR for error in errors) / len(errors)),
    )


def _deciles(ordered: list[float]) -> list[float]:
    """The nine deciles; of a single value, that value."""
    return quantiles(ordered, n=10, method="inclusive") if len(ordered) > 1 else ordered


def _rounded(share: float) -> float:
    return round(share, 6)


def _worst(points: list[Point], runs: dict[tuple[str, str], Run]) -> Iterable[Point]:
    """The largest errors of every accounting and kind, each with its reason."""
    for accounting, kind in sorted({(point.accounting, point.kind) for point in points}):
        mine = [point for point in points if (point.accounting, point.kind) == (accounting, kind)]
        for point in sorted(mine, key=lambda each: -abs(each.error))[:MOST_WORST]:
            run = runs[kind, point.id]
            known = {"source": run.source, "query": to_query(run.settings), "reason": _reason(point, run)}
            yield Point(**asdict(point) | known)


def _reason(point: Point, run: Run) -> str:
    """Why an estimate is off, as far as it is known."""
    reasons = table("reasons")
    if point.accounting != "step":
        return _largest_difference(point, run)
    if abs(point.error) <= ROUNDING:
        return reasons["rounding"]["text"]
    return next((entry["text"] for entry in reasons.values() if point.id in entry.get("runs", ())), reasons["unknown"]["text"])


def _largest_difference(point: Point, run: Run) -> str:
    """The component in which another accounting differs most from the training step."""
    step, other = (estimate(run.settings.varied(accounting=name)) for name in ("step", point.accounting))
    counted = {name: (_bytes_of(other, terms), _bytes_of(step, terms)) for name, (_, terms) in COMPONENTS.items()}
    name = max(counted, key=lambda each: abs(counted[each][0] - counted[each][1]) if each != "allowance" else 0)
    mine, held = counted[name]
    return f"{COMPONENTS[name][0]}: {gib_text(mine)} GiB counted, {gib_text(held)} GiB held at the peak ({step.moment.name})."


def _bytes_of(found: Estimate, terms: tuple[str, ...]) -> int:
    return sum(term.bytes for term in found.terms if term.name in terms)


def _band(runs: Iterable[Run]) -> dict[str, float]:
    """How well the process band of the step accounting does."""
    covered, half_widths = 0, []
    for run in runs:
        band = counted_or_why(run.settings.varied(accounting="step")).process
        covered += band.low <= run.process <= band.high
        half_widths.append((band.high - band.low) / (band.high + band.low))
    return {"runs": len(half_widths), "covered": covered, "median_half_width": _rounded(median(half_widths))}


def _verdicts(runs: Iterable[Run]) -> dict[str, dict[str, int]]:
    """How often each verdict was given, to runs that finished and to those that went out of memory."""
    counts: dict[str, dict[str, int]] = {"finished": {}, "out of memory": {}}
    for run in runs:
        verdict = counted_or_why(run.settings.varied(accounting="step")).verdict
        mine = counts["out of memory" if run.out_of_memory else "finished"]
        mine[verdict] = mine.get(verdict, 0) + 1
    return counts
