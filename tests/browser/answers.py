"""Everything the estimator says of a run, as one JSON text for another. Run by CPython and inside the page, to compare.

Belongs here: calls to the estimator, nothing else. Must need no module that the page does not start with.
"""

import json
import sys

from vramplan import Settings, SettingsError, accounts, compare, curve, fit, report
from vramplan.calculation import EXPLAINED, value_texts
from vramplan.compare import by_accounting, counted_or_why
from vramplan.errors import NotExpressible
from vramplan.link import read_query, to_query
from vramplan.settings import format_settings, parse


def answers(cases_json):
    """JSON list of what comes out for a JSON list of settings as typed."""
    return json.dumps([answer(texts) for texts in json.loads(cases_json)])


def answer(texts):
    try:
        settings = parse(texts)
    except SettingsError as problem:
        return {"errors": [[error.field, error.message] for error in problem.errors]}
    now = counted_or_why(settings)
    if isinstance(now, NotExpressible):
        return {"reason": [now.field, now.message]}
    return told(settings, now)


def told(settings, now):
    found, counted = fit(settings), by_accounting(settings)
    return {
        "settings": format_settings(settings),
        "again": read_query(to_query(settings)).texts,
        "estimate": counts(now),
        "sentence": report.headline(now).sentence,
        "values": [str(counted[name]) if isinstance(counted[name], NotExpressible) else value_texts(counted[name]) for name in EXPLAINED],
        "behind": [repr(part(now)) for part in BEHIND],
        "fit": {
            "largest_micro_batch": [found.largest_micro_batch.value, found.largest_micro_batch.at_cap],
            "longest_sequence": [found.longest_sequence.value, found.longest_sequence.at_cap],
            "alternatives": [
                [each.change, each.peak_bytes, each.difference_bytes, each.fits] for each in found.alternatives
            ],
            "smallest_gpu": found.smallest_gpu and [found.smallest_gpu.gpu.name, found.smallest_gpu.headroom_bytes],
        },
        "curve": [[each.sequence_length, each.peak_bytes, each.fits] for each in curve(settings).points],
        "compare": [counts(each) for each in compare(settings)],
    }


def by_each(now):
    return accounts.counted_by_each(now.settings, {now.accounting: now})


BEHIND = (report.headline, accounts.moments, accounts.tensors, by_each, accounts.assumptions, accounts.differences)


def counts(now):
    return {
        "moments": [[moment.name, moment.bytes] for moment in now.moments],
        "bands": repr((now.context_bytes, now.reserved, now.process)),
        "verdict": now.verdict,
        "terms": [[term.name, term.bytes] for term in now.terms],
        "parameters": [now.parameters.total, now.parameters.trainable],
        "peak_bytes": now.peak_bytes,
        "budget_bytes": now.budget_bytes,
        "headroom_bytes": now.headroom_bytes,
        "fits": now.fits,
    }


def where():
    """What this runs on."""
    return sys.platform


assert Settings() == parse({})
