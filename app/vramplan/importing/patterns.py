"""Regular expressions from somebody's file, matched by following all ways at once, so that none can take forever.

The expression is read by Python's own parser; which positions of the text it can reach is then worked out as sets, where
Python's matcher would try one way after another. A pattern that would still be slow, or needs memory of what it matched,
is refused.
"""

from dataclasses import dataclass
import re
from re import _constants as op, _parser  # the parser behind re.compile; there is no public way to its result
import warnings

from vramplan.checks import quoted
from vramplan.importing.problems import ImportProblem

MAX_PATTERN = 2_000
"""Longest pattern in characters; those that training tools write have a few hundred."""

MAX_NESTED_REPEATS = 3
"""Repeats inside repeats that are followed: work grows with the length of the text to this power."""

MAX_NESTED = 20
"""Groups inside groups that are followed."""

MAX_WORK = 1_500_000
"""Positions that are followed for the patterns of one file over all names; those that training tools write need some hundred thousand for a
model of a hundred layers."""

CATEGORIES = {
    op.CATEGORY_DIGIT: r"\d", op.CATEGORY_NOT_DIGIT: r"\D", op.CATEGORY_SPACE: r"\s", op.CATEGORY_NOT_SPACE: r"\S",
    op.CATEGORY_WORD: r"\w", op.CATEGORY_NOT_WORD: r"\W",
}
"""How the parser names the classes of characters."""

REPEATS = (op.MAX_REPEAT, op.MIN_REPEAT)
ONE_CHARACTER = (op.LITERAL, op.NOT_LITERAL, op.ANY, op.IN)


@dataclass
class Work:
    """How much may still be followed."""

    left: int = MAX_WORK


class Pattern:
    """A regular expression that matches whole texts."""

    def __init__(self, text: str, key: str, work: "Work | None" = None):
        """Read a pattern that stands under `key` in a file. work: what patterns of one file share. Raises ImportProblem when
        it cannot be followed."""
        if len(text) > MAX_PATTERN:
            raise _refused(key, text, f"it has more than {MAX_PATTERN:,} characters")
        try:
            with warnings.catch_warnings(action="ignore"):
                self._parsed = _parser.parse(text)
        except (re.error, OverflowError, RecursionError):
            raise _refused(key, text, "it is not a regular expression") from None
        if self._parsed.state.flags != re.UNICODE.value:
            raise _refused(key, text, "it sets flags")
        reason = _reason_against(self._parsed, 0, 0)
        if reason:
            raise _refused(key, text, reason)

        self._key, self._text, self._work = key, text, work or Work()

    def fullmatch(self, text: str) -> bool:
        """Whether the pattern matches all of the text. Raises ImportProblem when it has taken too much work."""
        return len(text) in self._ends(self._parsed, {0}, text)

    def _ends(self, sequence: _parser.SubPattern, starts: set[int], text: str) -> set[int]:
        """Where a match of the sequence can end, if it begins at any of these positions."""
        for kind, argument in sequence:
            if not starts:
                break
            self._work.left -= len(starts) * (len(argument) if kind is op.IN else 1)
            if self._work.left < 0:
                raise _refused(self._key, self._text, "it takes too long")
            starts = self._after(kind, argument, starts, text)
        return starts

    def _after(self, kind: object, argument: tuple, starts: set[int], text: str) -> set[int]:
        if kind in ONE_CHARACTER:
            return {at + 1 for at in starts if at < len(text) and _is(kind, argument, text[at])}
        if kind is op.BRANCH:
            return set().union(*(self._ends(part, starts, text) for part in argument[1]))
        if kind is op.SUBPATTERN:
            return self._ends(argument[-1], starts, text)
        if kind is op.AT:
            return {at for at in starts if _holds(argument, text, at)}
        if kind in (op.ASSERT, op.ASSERT_NOT):
            return {at for at in starts if bool(self._ends(argument[-1], {at}, text)) is (kind is op.ASSERT)}
        return self._repeated(*argument, starts, text)

    def _repeated(self, least: int, most: int, part: _parser.SubPattern, starts: set[int], text: str) -> set[int]:
        for _ in range(min(least, len(text) + 1)):
            starts = self._ends(part, starts, text)
        found, new = set(starts), set(starts)
        rounds = least
        while new and (most is op.MAXREPEAT or rounds < most):
            new = self._ends(part, new, text) - found
            found |= new
            rounds += 1
        return found


def _refused(key: str, text: str, reason: str) -> ImportProblem:
    return ImportProblem("pattern", f"{key} holds a pattern that is not followed here, {quoted(text)}: {reason}.", "Give the modules as a list of names.")


def _reason_against(sequence: _parser.SubPattern, repeats: int, groups: int) -> str:
    """Why a pattern that lies inside so many repeats and groups is not followed, or nothing."""
    if groups > MAX_NESTED:
        return f"its groups are nested more than {MAX_NESTED} deep"
    for kind, argument in sequence:
        if kind in REPEATS and repeats >= MAX_NESTED_REPEATS:
            return f"it repeats what repeats more than {MAX_NESTED_REPEATS} times over"
        if kind not in (*REPEATS, *ONE_CHARACTER, op.BRANCH, op.SUBPATTERN, op.AT, op.ASSERT, op.ASSERT_NOT):
            return "it refers back to what it matched, or uses another feature that has to remember"
        if kind in (op.ASSERT, op.ASSERT_NOT) and argument[0] < 0:
            return "it looks behind"
        if kind is op.SUBPATTERN and (argument[1] or argument[2]):
            return "it sets flags"
        if reason := next(filter(None, (_reason_against(part, repeats + (kind in REPEATS), groups + 1) for part in _parts(kind, argument))), ""):
            return reason
    return ""


def _parts(kind: object, argument: tuple) -> list[_parser.SubPattern]:
    """The patterns inside one element."""
    if kind is op.BRANCH:
        return argument[1]
    return [argument[-1]] if kind in (*REPEATS, op.SUBPATTERN, op.ASSERT, op.ASSERT_NOT) else []


def _is(kind: object, argument: object, character: str) -> bool:
    code = ord(character)
    if kind is op.ANY:
        return character != "\n"
    if kind in (op.LITERAL, op.NOT_LITERAL):
        return (code == argument) is (kind is op.LITERAL)
    negated = argument[0][0] is op.NEGATE
    return any(_in(each, code, character) for each in argument[negated:]) is not negated


def _in(element: tuple, code: int, character: str) -> bool:
    kind, argument = element
    if kind is op.RANGE:
        return argument[0] <= code <= argument[1]
    if kind is op.LITERAL:
        return code == argument
    return bool(re.fullmatch(CATEGORIES[argument], character))


def _holds(place: object, text: str, at: int) -> bool:
    if place in (op.AT_BEGINNING, op.AT_BEGINNING_STRING):
        return at == 0
    if place is op.AT_END:
        return at == len(text) or (at == len(text) - 1 and text[at] == "\n")
    if place is op.AT_END_STRING:
        return at == len(text)
    before = at > 0 and bool(re.match(r"\w", text[at - 1]))
    after = at < len(text) and bool(re.match(r"\w", text[at]))
    return (before is not after) is (place is op.AT_BOUNDARY)
