"""The interface in another language than English.

The program speaks English: its labels, hints and sentences are written where they are made, and nothing in it depends on a
language. What reaches a reader passes `told` once, where it meets the page. A phrase book, data/languages/<code>.toml, has
every English text with its translation; {} in the English stands for whatever a sentence is filled with, {1} and {2} in the
translation for the first and the second of them, which are told in turn; {#} takes numbers only. (s) or (es) in the English is an ending that a
plural may have. Numbers, names and what a visitor typed stay as they are.
"""

import re
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from functools import cached_property

from vramplan.data import table

ENGLISH = "en"

LANGUAGES = {ENGLISH: "English", "zh": "简体中文"}
"""The languages there are, by code, each in its own words."""

TAGS = {ENGLISH: "en", "zh": "zh-Hans"}
"""The same as a page says it of itself: with the script that is written."""

HOLE = re.compile(r"(\{#?\})")
"""What stands in an English phrase for the text it is filled with, and with a # for a number alone."""

FILLING = {"{}": ("(.*?)", "(.*)"), "{#}": (r"([+−]?[\d.,]+[+%]?)",) * 2}
"""What texts a hole takes: as few letters as can be, and as many."""

ENDING = re.compile(r"\((s|es)\)$|\((s|es)\)\W")
"""An ending that a plural may have."""

WORD = re.compile(r"[^\W\d_]+")

WITH_ENDING = re.compile(r"\w+\((s|es)\)")
"""A word with the ending that a plural may have."""

PLAIN_WORD = re.compile(r"(?<![\w./\-=_’])[a-z][a-z’]+(?![\w/=_(’]|[.\-]\w)")
"""A word as sentences have them: neither a name, nor a part of one, of a file, a setting or a number."""

QUOTED = re.compile("“[^”]*”")

SENTENCE_END = re.compile(r"(?<=[.!?…]) (?=[^a-z])")

LISTED, LIGHT = "; ", 12
"""What stands between the members of a list, and letters of a phrase from which it may have that within it: a lighter one is within a member."""

MOST_KEPT = 8_000
"""Texts whose translation is kept, before all are forgotten."""

MOST_SPLITS = 6
"""Places where a text is tried to be taken apart at one joint."""

DEEPEST = 8
"""Phrases within phrases that are read."""


@dataclass(frozen=True)
class Told:
    """A text in the other language, and how many words of it are still English."""

    text: str
    left: int


NEVER = Told("", 0), DEEPEST + 1


@dataclass(frozen=True)
class Phrase:
    """An English phrase with holes, and its translation."""

    english: str
    other: str

    @cached_property
    def parts(self) -> list[str]:
        """The literal text before, between and behind the holes, which stand between them."""
        return HOLE.split(self.english)

    @cached_property
    def words(self) -> frozenset[str]:
        """The words that a text must have to be this phrase."""
        return frozenset(WORD.findall(WITH_ENDING.sub("", HOLE.sub(" ", self.english))))

    @cached_property
    def patterns(self) -> tuple[re.Pattern, re.Pattern]:
        """What texts of this phrase look like: its holes as short as can be, and as long."""
        few, many = ("".join(FILLING[part][wide] if part in FILLING else LITERAL_ENDING.sub(r"(?:\1)?", re.escape(part)) for part in self.parts) for wide in (0, 1))
        return re.compile(few, re.DOTALL), re.compile(many, re.DOTALL)

    @cached_property
    def weight(self) -> int:
        """How much a text has to be like this phrase: its letters outside of holes."""
        return sum(map(len, self.parts[::2]))

    @cached_property
    def used(self) -> set[int]:
        """The holes that the translation fills; a form of a word that it does not need is left out."""
        return {int(number) - 1 for number in NUMBERED.findall(self.other)}

    def filled(self, parts: Iterable[str]) -> str:
        """The translation with its holes filled."""
        told = list(parts)
        return NUMBERED.sub(lambda match: told[int(match[1]) - 1], self.other)


HAN = "\u4e00-\u9fff"

APART = re.compile(rf"(?<=[{HAN}])(?=[A-Za-z0-9+−])|(?<=[A-Za-z0-9%+])(?=[{HAN}])")
"""Where a Chinese letter and a Latin one or a number touch: they stand apart."""

TOGETHER = re.compile(rf"(?<=[{HAN}，。：；、（）“”]) (?=[{HAN}，。：；、（）“”])|(?<=[，。：；、（]) | (?=[，。：；、）])")
"""White space beside Chinese letters and signs, which have none."""

FIRST_MARK, LAST_MARK = 0xE000, 0xF8FF
"""Characters that stand for elements among text: Unicode's private ones, which no text has."""

MARK = re.compile(f"([{chr(FIRST_MARK)}-{chr(LAST_MARK)}])")

_MARKS = f"([\\s{chr(FIRST_MARK)}-{chr(LAST_MARK)}]*)"
MARKS_AROUND = re.compile(f"{_MARKS}(.*?){_MARKS}", re.DOTALL)
"""Elements before and behind a text."""

LITERAL_ENDING = re.compile(r"\\\((s|es)\\\)")
"""(s) or (es) in a phrase whose signs are escaped for a pattern."""

NUMBERED = re.compile(r"\{(\d)\}")
"""A hole in a translation."""


class PhraseBook:
    """Every English text of the interface in another language."""

    def __init__(self, phrases: Mapping[str, str]):
        self.whole = {english: other for english, other in phrases.items() if not HOLE.search(english) and not ENDING.search(english)}
        made = [Phrase(english, other) for english, other in phrases.items() if english not in self.whole]
        often = Counter(word for each in made for word in each.words)
        self._by_word: dict[str, list[Phrase]] = {}
        self._joints = [each for each in made if not each.words and each.parts[0] == each.parts[-1] == "" and HOLE.findall(each.english) == ["{}", "{}"]]
        self._loose = [each for each in made if not each.words and each not in self._joints]
        for each in made:
            if each.words:
                self._by_word.setdefault(min(each.words, key=often.__getitem__), []).append(each)
        self._kept: dict[str, tuple[Told, int]] = {}  # with the depth it was read in: one that is less deep can go further
        self._depth = 0

    def told(self, text: str) -> Told:
        """A text in this language, as far as there are phrases for it."""
        known, depth = self._kept.get(text, NEVER)
        if depth > self._depth:
            if len(self._kept) >= MOST_KEPT:
                self._kept.clear()
            self._depth += 1
            known = self._read(text)
            self._depth -= 1
            self._kept[text] = known, self._depth if known.left else 0
        return known

    def _read(self, text: str) -> Told:
        before, inner, behind = MARKS_AROUND.fullmatch(text).groups()
        whole = self.whole.get(inner)
        if whole is None:
            whole = self.whole.get(inner[:1].swapcase() + inner[1:])
        if whole is not None:
            return Told(before + whole + behind, 0)
        left = len(plain_words(text))
        best = Told(text, left)
        if not WORD.search(text):
            return best
        for made in self._readings(text):
            if made.left < best.left or (made.left == best.left and best.text == text):
                best = made
            if not best.left:
                break
        return best

    def _readings(self, text: str) -> Iterator[Told]:
        other = text[:1].swapcase() + text[1:]
        there = {*WORD.findall(text), *WORD.findall(other)[:1]}
        near = [each for word in there for each in self._by_word.get(word, ()) if each.words <= there]
        listed = [each for each in self._joints if each.parts[2] == LISTED and LISTED in text]
        for phrase in sorted((*near, *self._loose, *listed), key=lambda each: -(LIGHT if each in listed else each.weight)):
            yield from self._joined(phrase, text) if phrase in listed else self._of(phrase, text if text.startswith(phrase.parts[0]) else other)
        yield from self._among_elements(text)
        yield from self._sentences(text)
        for joint in self._joints:
            yield from self._joined(joint, text)

    def _of(self, phrase: Phrase, text: str) -> Iterator[Told]:
        """The text as this phrase, where it is one."""
        for pattern in phrase.patterns:
            match = pattern.fullmatch(text)
            if not match:
                return
            yield self._filled(phrase, match.groups())

    def _among_elements(self, text: str) -> Iterator[Told]:
        """The text without the elements before and behind it."""
        before, inner, behind = MARKS_AROUND.fullmatch(text).groups()
        if inner != text:
            told = self.told(inner)
            yield Told(before + told.text + behind, told.left)

    def _sentences(self, text: str) -> Iterator[Told]:
        """The text as sentences, one after the other."""
        for end in list(SENTENCE_END.finditer(text))[:MOST_SPLITS]:
            first, rest = self.told(text[: end.start()]), self.told(text[end.end() :])
            yield Told(first.text + ("" if first.text.endswith(("。", "！", "？", "…")) else " ") + rest.text, first.left + rest.left)

    def _joined(self, joint: Phrase, text: str) -> Iterator[Told]:
        """The text as parts with a comma or the like between them: all of them, or two, wherever that stands."""
        between = joint.parts[2]
        parts = text.split(between)
        if len(parts) > len(("first", "last")):
            told = [self._part(part) for part in parts]
            yield Told(spaced(NUMBERED.split(joint.other)[2].join(each.text for each in told)), sum(each.left for each in told))
        for place in range(1, min(len(parts), MOST_SPLITS)):
            yield self._filled(joint, (between.join(parts[:place]), between.join(parts[place:])))

    def _part(self, text: str) -> Told:
        inner = text.strip()
        return self.told(inner) if inner and self._depth < DEEPEST else Told(inner, len(plain_words(inner)))

    def _filled(self, phrase: Phrase, parts: tuple[str, ...]) -> Told:
        told = [self._part(part) for part in parts]
        return Told(spaced(phrase.filled(each.text for each in told)), sum(each.left for place, each in enumerate(told) if place in phrase.used))


def plain_words(text: str) -> list[str]:
    """The English words of a text, but for those in quotes: what a visitor typed stays as it is."""
    return PLAIN_WORD.findall(QUOTED.sub("", text))


def spaced(text: str) -> str:
    """A filled translation with white space where it belongs."""
    return TOGETHER.sub("", APART.sub(" ", text))


_code = ENGLISH
_book: PhraseBook | None = None


def code_of(tag: str) -> str:
    """The language a page is in, by what it says of itself."""
    return next(code for code, each in TAGS.items() if each == tag)


def use(code: str, phrases: PhraseBook | None = None) -> None:
    """Speak this language from now on, by its own phrase book unless one is given. Unknown codes raise KeyError."""
    global _code, _book
    _code = code if LANGUAGES[code] else ENGLISH
    _book = None if code == ENGLISH else phrases or PhraseBook(book(code))


def current() -> str:
    """The code of the language in use."""
    return _code


def book(code: str) -> dict[str, str]:
    """The phrases of a language: {English: translation}."""
    return {english: other for part in table(f"languages/{code}").values() for english, other in part.items()}


def told(text: str) -> str:
    """A text as the reader gets it: white space at its ends stays, and English is left as it is."""
    if _book is None or not text:
        return text
    inner = text.strip()
    if not inner:
        return text
    at = text.index(inner)
    return text[:at] + _book.told(" ".join(inner.split())).text + text[at + len(inner) :]


def told_around(children: tuple) -> tuple:
    """Texts and elements in a row, as the reader gets them: one phrase, in which every element is a hole that moves with it."""
    if _book is None or not any(isinstance(child, str) for child in children):
        return children
    if len(children) == 1:
        return (told(children[0]),)
    elements = [child for child in children if not isinstance(child, str)]
    marks = iter(range(len(elements)))
    row = told("".join(child if isinstance(child, str) else chr(FIRST_MARK + next(marks)) for child in children))
    return tuple(elements[ord(part) - FIRST_MARK] if MARK.match(part) else part for part in MARK.split(row) if part)
