"""What a restored memory snapshot needs in Python: a check that it counts right, and the modules that are not in its memory.

The build makes the snapshot (app/vramplan_site/inside/snapshot.py).
"""

import json
import random
import sys

from vramplan import estimate, report
from vramplan.catalogue import defaults
from vramplan.checks import check
from vramplan.link import read_query
from vramplan.settings import of_checked


def answer(query: str) -> str:
    """What the estimator says to a link, in full: the peak, every moment and every row, in bytes, and the sentence."""
    counted = estimate(of_checked(check(read_query(query).all_texts, defaults())))
    moments = " ".join(f"{moment.name}={moment.bytes}" for moment in counted.moments)
    rows = " ".join(f"{row.name}={row.bytes}" for row in report.components(counted))
    return f"{counted.peak_bytes} | {moments} | {rows} | {report.headline(counted).sentence}"


def agrees(told: str) -> bool:
    """Whether the restored estimator still gives these answers. told: JSON object, the answers by link.

    Chance, which would be the same in every copy, starts anew.
    """
    random.seed()
    return all(answer(query) == expected for query, expected in json.loads(told).items())


def complete(place: str, content) -> None:
    """Put the zip of all other modules and of the data where Python looks for them. content: the zip, a JavaScript Uint8Array."""
    with open(place, "wb") as file:
        file.write(content.to_bytes())
    for finder in sys.path_importer_cache.values():
        if finder:
            finder.invalidate_caches()
