"""Query strings that somebody might make to break, stall or deceive the page: from a seed, so that each can be made again.

Belongs here: generation only. Keys and usable values are those of the code, so that new settings and keys are among them.
"""

from dataclasses import dataclass
from random import Random
from urllib.parse import quote, quote_plus

from strategies import HOSTILE_KEYS, HOSTILE_VALUES
from vramplan import link
from vramplan.fields import BY_NAME
from vramplan.kinds import Choice, Targets, WholeNumber

OWN_KEYS = tuple(
    key for name, value in vars(link).items() if name.endswith(("_KEY", "_KEYS")) for key in ([value] if isinstance(value, str) else value)
)
"""Keys of a link that are no settings."""

KEYS = (*BY_NAME, *OWN_KEYS)
STRANGE_KEYS = tuple(key for key in HOSTILE_KEYS if key.strip() not in KEYS) + (
    "hasOwnProperty", "__defineGetter__", "valueOf", "innerHTML", "onload", "data-action", "id", "class", "style", "\ud83e", "rank\x00", "\u202ekinar", "pin[]",
)

MARKUP = (
    "<img src=x onerror=alert(1)>", "<svg/onload=alert(1)>", "</textarea><script>alert(1)</script>", "\"onfocus=alert(1) autofocus=\"", "'-alert(1)-'",
    "<iframe srcdoc='<script>parent.alert(1)</script>'>", "<base href=//elsewhere.example/>", "<form action=//elsewhere.example>", "javascript:alert(1)",
    "data:text/html,<script>alert(1)</script>", "<!--", "]]>", "&lt;b&gt;", "&#0;", "<meta http-equiv=refresh content=0>", "{{constructor.constructor('alert(1)')()}}",
)
NUMBERS = (
    "NaN", "-nan", "inf", "-Infinity", "1e309", "1e-400", "1E+99999999999", "-0.0", "0e0", "00016", "1_6", "1,6", "1.6.1", "0x1F", "0b11", "1e", ".", "-", "+16",
    "9" * 400, "0." + "0" * 400 + "1", "1" + "0" * 60, "2147483648", "18446744073709551616", "½", "१६", "𝟏𝟔", "1\u00a0000", "1/0", "١٦", "Ⅷ", "1e1e1", "--1",
)
SIGNS = tuple("\x00\x01\x07\x08\t\n\r\x0b\x1b\x7f\x85\xa0\xad\u061c\u200b\u200d\u200e\u202e\u2028\u2029\u2066\ufeff\ufffd\uffff\U0001f999\U000e0001\U0010ffff") + ("e\u0301" * 40, "\u0300" * 90)
BYTES = ("%", "%0", "%zz", "%00", "%ff", "%c0%80", "%ed%a0%80", "%f4%90%80%80", "%e2%80%ae", "%25%30%30", "%u0031", "%26", "%3d", "%2B")
JOINTS = ("&", "&", "&", "&", ";", "&&", "&amp;", "?", "#", "=")


@dataclass(frozen=True)
class Hostile:
    """A query string, and settings in it that nothing else in it touches: each must be taken as it is."""

    query: str
    untouched: dict[str, str]


def hostile(seed: int) -> Hostile:
    """The query string of a seed."""
    random = Random(seed)
    return random.choice(SHAPES)(random)


def usable(random: Random, name: str) -> str:
    """A text that a field takes by itself."""
    kind = BY_NAME[name].kind
    if isinstance(kind, (Choice, Targets)):
        return random.choice(kind.options).value
    if isinstance(kind, WholeNumber):
        return str(random.choice((kind.minimum, kind.maximum, random.randint(kind.minimum, min(kind.maximum, 4_096 + kind.minimum)))))
    return random.choice(("0", "1", "0.5", "16", "none"))


def text(random: Random) -> str:
    """A text that mostly no field takes."""
    parts = random.choices((*HOSTILE_VALUES, *MARKUP, *NUMBERS, *SIGNS), k=random.choice((1, 1, 1, 2, 3)))
    return "".join(parts)[:random.choice((40, 400, 12_000))]


def written(random: Random, value: str) -> str:
    """A text as it may stand in an address."""
    value = value.encode("utf-8", "replace").decode()
    return random.choice((quote, quote_plus, quote_plus, lambda text: quote(quote(text)), lambda text: text))(value)


def pair(random: Random, keys=KEYS) -> str:
    """One part of a query string."""
    key = random.choice(keys if random.random() < 0.7 else STRANGE_KEYS)
    value = usable(random, key) if key in BY_NAME and random.random() < 0.3 else text(random)
    return written(random, key) + random.choice(("=", "=", "=", "=", "==", "")) + written(random, value) + random.choice(("", "", "", "", random.choice(BYTES)))


def soup(random: Random) -> Hostile:
    """Anything beside anything."""
    start = random.choice(("", "?", "?", "?v=1&", "?v=2&", "?v=99&", "?v=2&v=x&", "?v=2&model=custom&gpu=custom&", "https://example.org/a?", "?&"))
    return Hostile(start + random.choice(JOINTS).join(pair(random) for _ in range(random.randint(0, 12))), {})


def beside(random: Random) -> Hostile:
    """A good run with bad parts in between; those have other keys."""
    good = {"sequence_length": str(random.randint(1, 8_192)), "micro_batch": str(random.randint(1, 64)), "rank": str(random.randint(1, 64)), "method": "lora"}
    good = dict(random.sample(sorted(good.items()), k=random.randint(1, 4)))
    others = tuple(key for key in KEYS if key not in (*good, link.VERSION_KEY))
    parts = [f"{name}={value}" for name, value in good.items()]
    for _ in range(random.randint(1, 8)):
        key = random.choice(others if random.random() < 0.7 else STRANGE_KEYS)
        parts.insert(random.randrange(len(parts) + 1), f"{quote(key.encode('utf-8', 'replace'))}={quote(text(random).encode('utf-8', 'replace'))}")
    return Hostile("?" + "&".join(parts), good)


def huge(random: Random) -> Hostile:
    """Too much of something."""
    key, size = random.choice(KEYS), random.choice((2_001, 9_000, 70_000))
    shape = random.randrange(5)
    if shape == 0:
        return Hostile(f"?micro_batch=2&{key if key != 'micro_batch' else 'rank'}={random.choice(('x', '9', '%00', 'é', '+', ',', 'q,', '0.'))[0] * size}", {"micro_batch": "2"})
    if shape == 1:
        return Hostile("?" + "&".join(f"{key}={number}" for number in range(size // 20)), {})
    if shape == 2:
        return Hostile("?micro_batch=2&" + "&".join(f"{random.choice(STRANGE_KEYS[:9])}{number}=1" for number in range(900)), {"micro_batch": "2"})
    if shape == 3:
        return Hostile("?" + "&".join(f"{name}={quote(text(random).encode('utf-8', 'replace'))}" for name in BY_NAME), {})
    return Hostile("?" + random.choice(("&", "=", "%", ";", "?", "+", "%26", "a&"))[:2] * size, {})


def pins(random: Random) -> Hostile:
    """Runs in runs."""
    parts = []
    for _ in range(random.randint(1, 7)):
        inner = hostile(random.randrange(2**31)).query[:3_000] if random.random() < 0.4 else "&" + "&".join(pair(random) for _ in range(random.randint(0, 4)))
        for _ in range(random.choice((0, 0, 0, 1, 6))):
            inner = f"pin={quote_plus(inner.encode('utf-8', 'replace')[:2_000])}"
        parts.append(f"{link.PIN_KEY}={quote_plus(inner.encode('utf-8', 'replace'))}")
    return Hostile("?v=2&micro_batch=2&" + "&".join(parts), {"micro_batch": "2"})


def nearly_right(random: Random) -> Hostile:
    """Every value can be used by itself; together they may not, and there may be hundreds of them."""
    names = random.sample(sorted(BY_NAME), k=random.randint(1, len(BY_NAME)))
    start = random.choice(("v=1", "v=2", "v=2&model=custom", "v=2&model=custom&gpu=custom", "v=2&accounting=step", "v=2&accounting=rules", "v=2&accounting=unsloth"))
    return Hostile(f"?{start}&" + "&".join(f"{name}={quote(usable(random, name))}" for name in names), {})


SHAPES = (soup, soup, soup, beside, beside, beside, huge, pins, nearly_right, nearly_right)
