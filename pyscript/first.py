"""The answer to a link, shown before the page around it is there: to load and lay out the rest takes longer than to count one run."""

import json

import js

from vramplan import language
from vramplan.catalogue import defaults
from vramplan.checks import check
from vramplan.compare import counted_or_why
from vramplan.ledger import Estimate
from vramplan.link import read_query
from vramplan.settings import of_checked
from pyscript import answer, memory
from pyscript.dom import Region


def start(touched: str, phrases: str = "") -> bool:
    """Entry for the boot script, before the page's: whether the answer is shown. It is where the link alone says all of a
    run that can be counted. Only what is in the snapshot can be imported by then; what tells of a measured run is not.

    touched: JSON list of the names of controls used before Python was there. phrases: JSON object, the phrase book of the
    page's language; nothing for English.
    """
    if phrases:
        language.use(language.code_of(js.document.documentElement.lang), language.PhraseBook(json.loads(phrases)))
    if not js.location.search or json.loads(touched) or memory.holds_any():
        return False
    checked = check(read_query(js.location.search).all_texts, defaults())
    counted = None if checked.errors else counted_or_why(of_checked(checked))
    if not isinstance(counted, Estimate) or counted.settings.measured:
        return False
    Region("headline").paint(answer.headline(counted))
    return True
