"""The query string of a shared link: a defaults version, what differs from those defaults, and the runs that are pinned beside it."""

from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cache
from urllib.parse import parse_qsl, urlencode

from vramplan.catalogue import current_version, defaults, defaults_by_version
from vramplan.checks import Value, check, quoted, value
from vramplan.fields import BY_NAME, FIELDS
from vramplan.settings import Settings, as_text, format_settings
from vramplan.units import count_text

VERSION_KEY = "v"
"""Key that holds the version of the defaults a link was made with."""

PIN_KEY = "pin"
"""Key of a pinned run, once for each of them. Its value is a query string of its own: one with a version, or one that begins with
FROM_HERE and says how the pinned run differs from the run of the link."""

PINS_IN_FILE = "pins"
"""Name of what a settings file, not a link, holds of pinned runs: their query strings."""

FROM_HERE = "&"
"""How the query string of a pinned run begins that says only what differs from the run of the link."""

VIEW_KEYS = ("embed", "panels", "lock", "theme")
"""Keys that say how the page is shown, and nothing of the run; view.py reads them."""

ASKED_KEYS = ("keep", "at_least")
"""Keys that say what a run that is made to fit keeps and must have; asked.py reads them."""

LANGUAGE_KEY = "lang"
"""The key that names the language of the page and says nothing of the run; static/boot.mjs reads it."""

MAX_PINS = 4
"""Runs that can be pinned."""

MAX_NOTICES = 10
"""Notices shown for one link; a hostile link may earn thousands."""

MAX_PAIRS = 1_000
"""key=value pairs of one link that are read."""

MAX_QUERY = 2_000
"""Characters of an address, or of a query string by itself; chat programs and mail cut longer addresses."""


@dataclass(frozen=True)
class Query:
    """A query string, the names of the settings that did not fit in it, and how many of the pinned runs, the last ones, did not.

    run: the run alone. unpinned: with what is asked of it, without any pinned run.
    """

    text: str
    left_out: tuple[str, ...]
    run: str
    unpinned: str
    left_pins: int


@dataclass(frozen=True)
class Link:
    """What a link says.

    texts: the text of every setting it gives. version: the defaults that stand for what it leaves out.
    dropped: a sentence for everything in it that is not a setting. pins: the query strings of pinned runs, as they came.
    """

    texts: dict[str, str]
    version: int
    dropped: tuple[str, ...]
    pins: tuple[str, ...] = ()

    @property
    def notices(self) -> tuple[str, ...]:
        """A sentence for everything in the link that is not used."""
        return _at_most([*self.dropped, *unused_notices(self.texts, version=self.version)])

    def with_pins(self, more: Sequence[str]) -> "Link":
        """The same link with more pinned runs, as far as there is room for them."""
        return replace(self, pins=(*self.pins, *more)[:MAX_PINS])

    @property
    def all_texts(self) -> dict[str, str]:
        """The text of every setting, given or default."""
        return defaults(self.version) | self.texts


def unused_notices(texts: Mapping[str, str], *, version: int | None = None) -> list[str]:
    """A sentence for every given setting that the others make meaningless."""
    unused = check(texts, defaults(version)).unused
    return [f"{name} is not used: it applies {BY_NAME[name].condition}." for name in unused]


def to_query(settings: Settings, pins: Sequence[Settings] = ()) -> str:
    """The shortest query string that gives these settings and pinned runs back, now and under later defaults."""
    values, usual = settings.__dict__, _usual_values()
    unlike = {name: as_text(values[name]) for name in usual if values[name] is not None and values[name] != usual[name]}
    return _with_pins(_query(unlike), pins)


@cache
def _usual_values() -> dict[str, Value]:
    """The value that every default text stands for, of what does not apply by default as well."""
    usual = defaults()
    return {field.name: value(field, usual[field.name], usual) for field in FIELDS}


def texts_to_query(texts: Mapping[str, str]) -> str:
    """The query string of text as typed, valid or not: a half-typed number survives a reload.

    Fields that do not apply are left out, and so is what does not fit (fitted names it).
    """
    return fitted(texts).text


def fitted(
    texts: Mapping[str, str], pins: Sequence[Settings] = (), *, asked: str = "", room: int = MAX_QUERY, unused: Collection[str] | None = None
) -> Query:
    """The query string of text as typed and of pinned runs, in so many characters: the longest texts are left out, then the last pins.

    asked: the part of it that says what is asked of the run. That and the version of the defaults stay, whatever the room.
    unused: the settings that do not apply, from whoever has checked the texts already.
    """
    asked = f"&{asked}" if asked else ""
    values = {name: texts.get(name, default).strip() for name, default in defaults().items()}
    left_out = check(values, values).unused if unused is None else unused
    kept = {name: text for name, text in changed_texts(values).items() if name not in left_out}
    too_long: list[str] = []
    while len(query := _query(kept)) + len(asked) > room and kept:
        too_long.append(max(kept, key=lambda name: len(kept[name])))
        del kept[too_long[-1]]
    kept_pins = tuple(pins)
    while len(text := _with_pins(query + asked, kept_pins)) > room and kept_pins:
        kept_pins = kept_pins[:-1]
    return Query(text, tuple(too_long), query, query + asked, len(pins) - len(kept_pins))


def _with_pins(query: str, pins: Sequence[Settings]) -> str:
    """The query string with pinned runs, each in the shorter of the two ways to say it."""
    here = read_query(query).all_texts if pins else {}
    return "&".join((query, *(_pin(pin, here) for pin in pins)))


def _pin(pinned: Settings, here: Mapping[str, str]) -> str:
    """A pinned run as a part of a link that gives the texts `here`."""
    texts = format_settings(pinned)
    whole = urlencode({PIN_KEY: to_query(pinned)})
    other = urlencode({PIN_KEY: FROM_HERE + urlencode({name: text for name, text in texts.items() if here[name] != text})})
    return min(whole, other, key=len)


def read_pin(link: Link, pin: str) -> Link:
    """A pinned run of a link as a link of its own. Never raises, like read_query.

    One that says only what differs has the version and the texts of `link` besides; a version in it has no meaning.
    """
    if not pin.startswith(FROM_HERE):
        found = read_query(f"?{pin}")
        return Link(found.texts, found.version, _within_a_pin(found))
    found = read_query(f"?{pin.removeprefix(FROM_HERE)}")
    return Link(link.all_texts | found.texts, link.version, _within_a_pin(found))


def _within_a_pin(found: Link) -> tuple[str, ...]:
    return (*found.dropped, *(["A pinned run has no pinned runs of its own."] if found.pins else []))


def changed_texts(texts: Mapping[str, str]) -> dict[str, str]:
    """The texts that differ from the current defaults, in field order."""
    usual = defaults()
    return {
        field.name: texts[field.name]
        for field in FIELDS
        if texts.get(field.name, usual[field.name]) != usual[field.name]
    }


def change_texts(before: Settings, query: str) -> dict[str, str]:
    """What a query string changes in a run: the text of every setting that it gives differently."""
    texts = defaults() | format_settings(before)
    return {name: text for name, text in read_query(query).all_texts.items() if text != texts[name]}


def read_query(address: str) -> Link:
    """Read an address, or a query string with or without its leading '?'.

    Never raises: what cannot be used is named in a notice. Values are not checked here; parse() does that.
    """
    all_pairs = pairs_of(address)
    pairs, unread = all_pairs[:MAX_PAIRS], all_pairs[MAX_PAIRS:]
    version, notices = _version([value for key, value in pairs if key == VERSION_KEY])
    if unread:
        notices.append(f"The link has more than {count_text(MAX_PAIRS)} parts; the last {len(unread)} were not read.")
    texts: dict[str, str] = {}
    unknown: dict[str, None] = {}
    pins = [value for key, value in pairs if key == PIN_KEY]
    if len(pins) > MAX_PINS:
        notices.append(f"The link pins {count_text(len(pins))} runs; the first {MAX_PINS} are used.")
    for key, value in pairs:
        if key in (VERSION_KEY, PIN_KEY, LANGUAGE_KEY, *ASKED_KEYS, *VIEW_KEYS):
            continue
        if key not in BY_NAME:
            unknown.setdefault(key)
            continue
        if key in texts:
            notices.append(f"The link gives {key} more than once; the last one, {quoted(value)}, is used.")
        texts[key] = value
    if unknown:
        notices.append(_unknown_keys(list(unknown)))
    return Link(texts, version, tuple(notices), tuple(pins[:MAX_PINS]))


def pairs_of(address: str) -> list[tuple[str, str]]:
    """Every key and value of an address, or of a query string with or without its leading '?'."""
    return parse_qsl(_query_part(address), keep_blank_values=True, errors="replace")


def usable_parts(text: str, usable: Callable[[str], object], must: str, notices: list[str]) -> tuple[str, ...]:
    """The usable parts of a comma list, each once; the first that is not usable is named in a notice."""
    parts = [part.strip() for part in text.split(",") if part.strip()]
    wrong = [part for part in parts if not usable(part)]
    if wrong:
        more = f" and {len(wrong) - 1} more" if len(wrong) > 1 else ""
        notices.append(f"{must}; got {quoted(wrong[0])}{more}. The rest is used.")
    return tuple(dict.fromkeys(part for part in parts if usable(part)))


def _unknown_keys(keys: list[str]) -> str:
    """One notice for every key that is not a setting."""
    if len(keys) == 1:
        return f"The link has a key this calculator does not know, {quoted(keys[0])}. It was left out."
    rest = len(keys) - MAX_NOTICES
    named = ", ".join(quoted(key) for key in keys[:MAX_NOTICES]) + (f" and {count_text(rest)} more" if rest > 0 else "")
    return f"The link has keys this calculator does not know: {named}. They were left out."


def _query(changed: Mapping[str, str]) -> str:
    return urlencode({VERSION_KEY: current_version()} | changed, errors="replace")


def _query_part(address: str) -> str:
    """What follows the address proper. A '?' that comes after a '=' or '&' belongs to a value."""
    before, mark, after = address.partition("?")
    is_address = mark and not {"=", "&"} & set(before)
    query = after if is_address else "" if "://" in before else address
    return query.partition("#")[0]


def _version(given: list[str]) -> tuple[int, list[str]]:
    """The defaults version a link asks for, and a notice when it is not one of ours."""
    known = {str(version): version for version in defaults_by_version()}
    if not given:
        return current_version(), []
    if given[-1] in known:
        return known[given[-1]], []
    notice = (
        f"The link was made for version {quoted(given[-1])} of the defaults, which is not one this calculator has. "
        f"Version {current_version()} is used, so settings that the link leaves out may differ from what was meant."
    )
    return current_version(), [notice]


def _at_most(notices: list[str]) -> tuple[str, ...]:
    """The first notices, and a count of the rest."""
    rest = len(notices) - MAX_NOTICES
    more = [f"{rest} more parts of the link were left out or not used."] if rest > 0 else []
    return (*notices[:MAX_NOTICES], *more)
