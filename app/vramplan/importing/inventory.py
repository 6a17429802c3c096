"""Every module of a model with its size, from the table of its family."""

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from functools import cached_property, lru_cache
import re

from vramplan.importing.expressions import Value, evaluate
from vramplan.importing.families import Entry, Family

LINEAR, EMBEDDING, OTHER = "linear", "embedding", "other"
"""Kinds of modules: linear maps, tables of rows, and the rest (norms, convolutions, single parameters)."""


@dataclass(frozen=True)
class Module:
    """One module, or `count` equal ones: experts, which differ only in the number that stands for `{e}` in the path. Numbers
    start at `first` and go in steps of `step`.

    path: its name in the model; role: what it is in our words, if it has a name there. inputs, outputs: widths of a
    linear map, or rows and width of a table. bias: values of its bias. used: how many of the `count` one token goes
    through. tied: its weight is another module's. fused: parameters without a module of their own.
    """

    path: str
    kind: str
    role: str
    inputs: int
    outputs: int
    bias: int
    count: int
    used: int
    tied: bool
    fused: bool
    first: int = 0
    step: int = 1

    @property
    def adaptable(self) -> bool:
        """Whether “all-linear” gives it an adapter: a linear map that is no output head."""
        return self.kind == LINEAR and "lm_head" not in self.role.split()

    @property
    def values(self) -> int:
        """Parameters of one of them, as stored: a tied weight is stored elsewhere."""
        return (0 if self.tied else self.inputs * self.outputs) + self.bias

    @property
    def parameters(self) -> int:
        """Parameters of all of them."""
        return self.count * self.values

    @property
    def active(self) -> int:
        """Parameters that one token goes through."""
        return self.used * self.values


@dataclass(frozen=True)
class Inventory:
    """All modules of one model."""

    modules: tuple[Module, ...]

    @cached_property
    def total(self) -> int:
        """Parameters of the model; a tied head is counted once."""
        return sum(module.parameters for module in self.modules)

    @cached_property
    def active(self) -> int:
        """Parameters that one token goes through, the embedding table included."""
        return sum(module.active for module in self.modules)


def inventory(family: Family, values: Mapping[str, Value]) -> Inventory:
    """The modules of a model of this family. `values`: every named value of the family.

    Raises KeyError, TypeError or IndexError for values that do not suit the family (a list shorter than the layers).
    """
    found = [module for entry in family.outside if (module := _module(entry, values, family.names))]
    for index in range(values["num_layers"]):
        here = dict(values, i=index)
        for name, expression in family.per_layer.items():
            here[name] = evaluate(expression, here)
        found += [module for entry in family.layer if (module := _module(entry, here, family.names))]
    return Inventory(tuple(found))


def _module(entry: Entry, values: Mapping[str, Value], names: Mapping[str, str]) -> Module | None:
    if not evaluate(entry.when, values):
        return None
    facts = entry.facts

    def number(name: str, default: int = 0) -> int:
        return int(evaluate(facts.get(name, default), values))

    kind = LINEAR if "in" in facts else EMBEDDING if "rows" in facts else OTHER
    first, second = {LINEAR: ("in", "out"), EMBEDDING: ("rows", "width"), OTHER: ("size", "columns")}[kind]
    inputs, outputs = number(first), number(second, 1)
    bias = (inputs if kind == OTHER else outputs) if number("bias") else 0
    count = number("count", 1)
    return Module(
        path=_path(facts["path"], values, names),
        kind=kind,
        role=facts.get("role", ""),
        inputs=inputs,
        outputs=outputs,
        bias=bias,
        count=count,
        used=number("used", count),
        tied=bool(number("tied")),
        fused=bool(number("fused")),
        first=number("first"),
        step=number("step", 1),
    )


def _path(path: str, values: Mapping[str, Value], names: Mapping[str, str]) -> str:
    """The name of a module in its family, with the values it names, `{i}` for one; `{e}` stays."""
    if names:
        path = _any_of(tuple(names)).sub(lambda found: names[found[0]], path)
    return _NAMED.sub(lambda found: str(values[found[1]]), path)


_NAMED = re.compile(r"\{(?!e\})(\w+)\}")


@lru_cache(maxsize=None)
def _any_of(names: tuple[str, ...]) -> re.Pattern:
    return re.compile("|".join(re.escape(name) for name in sorted(names, key=len, reverse=True)))


def concrete(modules: Iterable[Module]) -> Iterator[tuple[str, Module]]:
    """Every single module by its name: equal ones one by one."""
    for module in modules:
        for number in range(module.count):
            yield module.path.replace("{e}", str(module.first + number * module.step)), module
