"""What a link says of how its run is made to fit, beside the run: settings that stay as they are, and what the run must have at least."""

from collections import defaultdict
from dataclasses import dataclass, field
import re
from urllib.parse import urlencode

from vramplan.levers import lockable
from vramplan.link import ASKED_KEYS, MAX_PAIRS, pairs_of, usable_parts
from vramplan.make_fit import REQUIRABLE, Wanted

KEEP, AT_LEAST = ASKED_KEYS
"""The keys, and the flags of the command line: settings that stay; NAME=NUMBER. Each takes a comma list, and may be given again."""

NUMBER = re.compile("[0-9]{1,12}")
"""A whole number as somebody types it."""


@dataclass(frozen=True)
class Asked:
    """What is asked for, and a sentence for everything that the link says of it and that is not used."""

    wanted: Wanted = Wanted()
    notices: tuple[str, ...] = field(default=(), compare=False)


def read_asked(address: str) -> Asked:
    """What an address, or a query string with or without its leading '?', asks for. Never raises: what cannot be used is named.

    Whether a run can have so much is not checked here; wanted() of make_fit does that.
    """
    given: dict[str, list[str]] = defaultdict(list)
    for key, value in pairs_of(address)[:MAX_PAIRS]:
        given[key].append(value)
    names, notices = [each.name for each in lockable()], []
    keep = usable_parts(",".join(given[KEEP]), names.__contains__, f"{KEEP} must be a comma list of {', '.join(names)}", notices)
    must = f"{AT_LEAST} must be a comma list such as sequence_length=4096,effective_batch=16"
    at_least: dict[str, int] = {}
    for part in usable_parts(",".join(given[AT_LEAST]), _is_required, must, notices):
        name, _, number = part.partition("=")
        at_least[name] = max(int(number), at_least.get(name, 0))
    return Asked(Wanted(frozenset(keep), at_least), tuple(notices))


def asked_query(wanted: Wanted) -> str:
    """The part of a query string that gives this back; nothing where nothing is asked for."""
    required = [f"{name}={number}" for name in REQUIRABLE if (number := wanted.at_least.get(name)) is not None]
    kept = [each.name for each in lockable() if each.name in wanted.keep]
    return urlencode({key: ",".join(parts) for key, parts in ((KEEP, kept), (AT_LEAST, required)) if parts}, safe=",=")


def _is_required(part: str) -> bool:
    name, _, number = part.partition("=")
    return name in REQUIRABLE and NUMBER.fullmatch(number) is not None
