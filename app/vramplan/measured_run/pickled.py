"""Plain data out of a Python pickle, without Python's own unpickler: nothing in the file can name a class or be called.

Only numbers, text, truth values, None, lists, tuples and dictionaries are made. An instruction for anything else ends the
reading with a sentence. Source: the instructions as Python 3.13's Lib/pickletools.py describes them, protocols 2 to 5.
"""

import struct
from collections.abc import Callable

from vramplan.importing.problems import ImportProblem

MAX_BYTES = 64 * 2**20
"""Largest file that is read: some hundred thousand recorded events."""

MAX_INSTRUCTIONS = 6_000_000
"""Instructions that are followed: some hundred thousand events take as many."""

MAX_INTEGER_BYTES = 16
"""Bytes of one whole number; addresses and sizes have eight."""

ADVICE = "Save it with torch.cuda.memory._dump_snapshot(\"snapshot.pickle\"), and record fewer events (max_entries) if it is large."


def plain_data(data: bytes) -> object:
    """The data of a pickle. Raises ImportProblem for a file that is none, is cut off, or wants more than plain data."""
    if len(data) > MAX_BYTES:
        raise ImportProblem("too_large", f"The file has {len(data):,} bytes; at most {MAX_BYTES:,} are read.", ADVICE)
    try:
        return _Machine(data).run()
    except (IndexError, struct.error, UnicodeDecodeError, KeyError, TypeError, ValueError) as problem:
        if isinstance(problem, ImportProblem):
            raise
        raise ImportProblem("truncated", "The pickle is damaged or ends in the middle.", ADVICE) from None


class _Mark:
    """Where a group of items begins on the stack."""


_MARK = _Mark()


class _Machine:
    """The stack machine a pickle is written for, with the instructions that make plain data."""

    def __init__(self, data: bytes):
        self.data, self.at = data, 0
        self.stack: list = []
        self.memo: dict[int, object] = {}

    def run(self) -> object:
        """Follow every instruction to the end."""
        data, stop = self.data, STOP
        for _ in range(MAX_INSTRUCTIONS):
            code = data[self.at]
            self.at += 1
            if code == stop:
                return self._only()
            action = ACTIONS.get(code)
            if action is None:
                raise _forbidden(code)
            action(self)
        raise ImportProblem("too_large", f"The pickle has more than {MAX_INSTRUCTIONS:,} instructions.", ADVICE)

    def _only(self) -> object:
        """What a pickle leaves: one thing."""
        if len(self.stack) != 1 or self.stack[0] is _MARK:
            raise ValueError("stack")
        return self.stack[0]

    def take(self, count: int) -> bytes:
        """So many bytes that belong to the instruction."""
        start, self.at = self.at, self.at + count
        if self.at > len(self.data):
            raise IndexError(count)
        return self.data[start : self.at]

    def number(self, form: str) -> int | float:
        """A number of fixed size that belongs to the instruction."""
        return struct.unpack(form, self.take(struct.calcsize(form)))[0]

    def items(self) -> list:
        """Everything above the last mark; the mark goes too."""
        stack, start = self.stack, len(self.stack) - 1
        while stack[start] is not _MARK:
            start -= 1
            if start < 0:
                raise IndexError(start)
        found = stack[start + 1 :]
        del stack[start:]
        return found

    def keep(self, key: int) -> None:
        """Remember what lies on top."""
        if self.stack[-1] is _MARK:
            raise ValueError("mark")
        self.memo[key] = self.stack[-1]

    def text(self, length: int) -> None:
        """A text of so many bytes; half characters are allowed, as in names of files."""
        self.stack.append(self.take(length).decode("utf-8", "surrogatepass"))

    def whole(self, length: int) -> None:
        """A whole number of so many bytes, the smallest first."""
        if length > MAX_INTEGER_BYTES:
            raise ImportProblem("out_of_range", f"The pickle holds a whole number of {length:,} bytes.", ADVICE)
        self.stack.append(int.from_bytes(self.take(length), "little", signed=True))

    def frame(self) -> None:
        """A frame only says how much follows."""
        self.take(struct.calcsize("<Q"))

    def append(self, values: list) -> None:
        """Add to the list below them."""
        target = self.stack[-1]
        if type(target) is not list:
            raise TypeError("list")
        target.extend(values)

    def set_items(self, values: list) -> None:
        """Add keys, which are text in a snapshot, and values to the dictionary below them."""
        target = self.stack[-1]
        if type(target) is not dict or len(values) % 2:
            raise TypeError("dict")
        for key, value in zip(values[::2], values[1::2], strict=True):
            if type(key) is not str:
                raise TypeError("key")
            target[key] = value

    def pop_values(self, count: int) -> list:
        """The last few items, none of them a mark."""
        found = self.stack[-count:]
        if len(found) < count or any(each is _MARK for each in found):
            raise ValueError("items")
        del self.stack[-count:]
        return found

    def tuple_of(self, count: int) -> None:
        """A tuple of the last few items."""
        self.stack.append(tuple(self.pop_values(count)))


STOP = ord(".")


def _push(make: Callable[[], object]) -> Callable[[_Machine], None]:
    return lambda machine: machine.stack.append(make())


ACTIONS: dict[int, Callable[[_Machine], None]] = {
    0x80: lambda m: m.take(1),  # PROTO
    0x95: _Machine.frame,  # FRAME
    ord("("): _push(lambda: _MARK),  # MARK
    ord("N"): _push(lambda: None),  # NONE
    0x88: _push(lambda: True),  # NEWTRUE
    0x89: _push(lambda: False),  # NEWFALSE
    ord("J"): lambda m: m.stack.append(m.number("<i")),  # BININT
    ord("K"): lambda m: m.stack.append(m.number("<B")),  # BININT1
    ord("M"): lambda m: m.stack.append(m.number("<H")),  # BININT2
    0x8A: lambda m: m.whole(m.number("<B")),  # LONG1
    0x8B: lambda m: m.whole(m.number("<I")),  # LONG4
    ord("G"): lambda m: m.stack.append(m.number(">d")),  # BINFLOAT
    ord("X"): lambda m: m.text(m.number("<I")),  # BINUNICODE
    0x8C: lambda m: m.text(m.number("<B")),  # SHORT_BINUNICODE
    0x8D: lambda m: m.text(m.number("<Q")),  # BINUNICODE8
    ord("]"): _push(list),  # EMPTY_LIST
    ord("a"): lambda m: m.append(m.pop_values(1)),  # APPEND
    ord("e"): lambda m: m.append(m.items()),  # APPENDS
    ord(")"): _push(tuple),  # EMPTY_TUPLE
    ord("t"): lambda m: m.stack.append(tuple(m.items())),  # TUPLE
    0x85: lambda m: m.tuple_of(1),  # TUPLE1
    0x86: lambda m: m.tuple_of(2),  # TUPLE2
    0x87: lambda m: m.tuple_of(3),  # TUPLE3
    ord("}"): _push(dict),  # EMPTY_DICT
    ord("s"): lambda m: m.set_items(m.pop_values(2)),  # SETITEM
    ord("u"): lambda m: m.set_items(m.items()),  # SETITEMS
    ord("q"): lambda m: m.keep(m.number("<B")),  # BINPUT
    ord("r"): lambda m: m.keep(m.number("<I")),  # LONG_BINPUT
    0x94: lambda m: m.keep(len(m.memo)),  # MEMOIZE
    ord("h"): lambda m: m.stack.append(m.memo[m.number("<B")]),  # BINGET
    ord("j"): lambda m: m.stack.append(m.memo[m.number("<I")]),  # LONG_BINGET
}
"""What each instruction does, by its byte."""

CALLS = {
    ord("c"): "a class", 0x93: "a class", ord("R"): "a call", ord("b"): "the state of an object", ord("i"): "an object", ord("o"): "an object",
    0x81: "an object", 0x92: "an object", 0x82: "a registered object", 0x83: "a registered object", 0x84: "a registered object",
    ord("P"): "an object kept elsewhere", ord("Q"): "an object kept elsewhere",
}
"""What an instruction asks for that is never done."""


def _forbidden(code: int) -> ImportProblem:
    what = CALLS.get(code)
    if what:
        return ImportProblem("not_plain", f"The pickle asks for {what}, which is not followed; a memory snapshot holds plain data only.", ADVICE)
    return ImportProblem("not_plain", f"This is not a pickle of plain data: it has the byte 0x{code:02X} where an instruction should be.", ADVICE)
