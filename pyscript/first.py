"""The answer to a link, shown before the page around it is there: to load and lay out the rest takes longer than to count one run."""

import json

from js import document, location

from vramplan import language
from vramplan.catalogue import defaults
from vramplan.checks import check
from vramplan.compare import counted_or_why
from vramplan.ledger import Estimate
from vramplan.link import read_query
from vramplan.settings import of_checked
from pyscript import memory, panels
from pyscript.address import Address
from pyscript.dom import Region


def start(touched: str, phrases: str = "") -> bool:
    """Entry for the boot script, before the page's: whether the answer is shown. It is where the link alone says all of a run that can be counted.

    touched: JSON list of the names of controls used before Python was there. phrases: JSON object, the phrase book of the
    page's language; nothing for English.
    """
    if phrases:
        language.use(language.code_of(document.documentElement.lang), language.PhraseBook(json.loads(phrases)))
    if not location.search or json.loads(touched) or memory.recall(Address().query().removeprefix("?")):
        return False
    checked = check(read_query(location.search).all_texts, defaults())
    counted = None if checked.errors else counted_or_why(of_checked(checked))
    if not isinstance(counted, Estimate):
        return False
    Region("headline").paint(panels.headline(counted))
    return True
