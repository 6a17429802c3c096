"""The kinds of settings there are: what each takes, and when it applies."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import cached_property

from vramplan.catalogue import CUSTOM, cards


@dataclass(frozen=True)
class Option:
    """One choice of a setting: its value in links and flags, its label, and a hint where the label does not say enough."""

    value: str
    label: str
    hint: str = ""


@dataclass(frozen=True)
class Listing:
    """What has a list of options."""

    options: tuple[Option, ...]

    @cached_property
    def values(self) -> tuple[str, ...]:
        """The values of the options, in order."""
        return tuple(option.value for option in self.options)


@dataclass(frozen=True)
class Choice(Listing):
    """A setting that takes one of a few values."""


@dataclass(frozen=True)
class WholeNumber:
    """A setting that takes a whole number in a closed range; `model_caps`: the model's own limit may be lower."""

    minimum: int
    maximum: int
    unit: str = ""
    model_caps: bool = False


@dataclass(frozen=True)
class ExactDecimal:
    """A setting that takes a plain decimal, kept exactly as typed, in a closed range.

    The range is in `unit`, or in GiB where `unit_field` names the setting that holds the unit it is typed in.
    """

    minimum: str
    maximum: str
    unit: str = ""
    unit_field: str = ""


@dataclass(frozen=True)
class Targets(Listing):
    """A setting that takes one of a few named sets of linear maps, or a comma list of `parts`."""

    parts: tuple[str, ...]


@dataclass(frozen=True)
class Layers:
    """A setting that takes the numbers of some layers, from 0 up, as a comma list, or the word for none; below `count`."""

    count: int


@dataclass(frozen=True)
class Measured:
    """A setting that takes what was measured of a run, as measured_run.record writes it, or nothing."""


Kind = Choice | WholeNumber | ExactDecimal | Targets | Layers | Measured


def always(values: Mapping[str, object]) -> bool:
    """Applies whatever else is chosen."""
    return True


def with_custom_model(values: Mapping[str, object]) -> bool:
    """Applies when the dimensions are typed in."""
    return values.get("model") == CUSTOM


def with_adapters(values: Mapping[str, object]) -> bool:
    """Applies when low-rank adapters are trained."""
    return values.get("method") in ("lora", "qlora")


def with_a_choice_of_precision(values: Mapping[str, object]) -> bool:
    """Applies unless the method, or an accounting that knows one precision only, decides which copies exist of a trained weight."""
    return values.get("method") != "pretraining" and not counting_as_unsloth(values)


def with_quantized_base(values: Mapping[str, object]) -> bool:
    """Applies when an accounting tells quantised bases apart."""
    return values.get("accounting") in ("step", "unsloth", "rules") and values.get("method") == "qlora"


def with_step_quantized_base(values: Mapping[str, object]) -> bool:
    """Applies when a quantised base is counted tensor by tensor."""
    return counting_steps(values) and values.get("method") == "qlora"


def with_step_adapters(values: Mapping[str, object]) -> bool:
    """Applies when adapters are counted tensor by tensor."""
    return counting_steps(values) and with_adapters(values)


def counting_steps(values: Mapping[str, object]) -> bool:
    """Applies when the accounting follows the tensors of a training step."""
    return values.get("accounting") == "step"


def with_divided_states(values: Mapping[str, object]) -> bool:
    """Applies when the states of one copy are divided over several GPUs."""
    return with_sharding(values) and str(values.get("sharding")) in DIVIDING


def with_offload(values: Mapping[str, object]) -> bool:
    """Applies when what waits in host memory is counted."""
    return counting_steps(values) and with_divided_states(values)


def with_sharding(values: Mapping[str, object]) -> bool:
    """Applies when the accounting knows what GPUs divide between them."""
    return counting_steps(values) or counting_by_rules(values)


def counting_by_rules(values: Mapping[str, object]) -> bool:
    """Applies when the accounting is the byte rules."""
    return values.get("accounting") == "rules"


def serving(values: Mapping[str, object]) -> bool:
    """Applies when a model is served, not trained."""
    return counting_by_rules(values) and values.get("task") == INFERENCE


def while_training(applies: Callable[[Mapping[str, object]], bool]) -> Callable[[Mapping[str, object]], bool]:
    """The same condition, and that a model is trained."""
    return lambda values: not serving(values) and applies(values)


def with_a_reference(values: Mapping[str, object]) -> bool:
    """Applies when the objective compares with a reference model."""
    return counting_steps(values) and values.get("objective") == "dpo"


def with_cross_entropy(values: Mapping[str, object]) -> bool:
    """Applies when the head gives scores for every token of the vocabulary."""
    return counting_steps(values) and values.get("objective") != "reward"


def planning(values: Mapping[str, object]) -> bool:
    """Applies when the accounting is the planning formula."""
    return values.get("accounting") == "planning"


def counting_as_unsloth(values: Mapping[str, object]) -> bool:
    """Applies when the accounting is Unsloth Studio's."""
    return values.get("accounting") == "unsloth"


def with_a_kernel(values: Mapping[str, object]) -> bool:
    """Applies when an accounting tells kernels of attention apart: Unsloth Studio's does so since its revision 2026-08."""
    return not counting_as_unsloth(values) or values.get("unsloth_revision") == "2026-08"


def with_named_card(values: Mapping[str, object]) -> bool:
    """Applies when the memory is what a driver reports for a card."""
    return values.get("gpu") in cards()


INFERENCE = "inference"
"""The task of a model that answers."""

WHOLE_MODEL = ("full", "pretraining")
"""Methods that train every weight."""

DIVIDING = ("zero1", "zero2", "zero3", "fsdp1", "fsdp2")
"""Kinds of sharding that divide something."""


def with_custom_budget(values: Mapping[str, object]) -> bool:
    """Applies when the memory budget is typed in."""
    return values.get("gpu") == CUSTOM


@dataclass(frozen=True)
class Field:
    """One setting.

    name: key in Python, links and (with dashes) flags. section: group it is shown in. applies: from the values chosen
    so far. governed_by: the setting that decides whether it applies. condition: the same in words. kept: a valid value
    is kept while it does not apply, because a comparison still uses it.
    """

    name: str
    kind: Kind
    label: str
    hint: str
    section: str
    applies: Callable[[Mapping[str, object]], bool] = always
    governed_by: str = ""
    condition: str = ""
    kept: bool = False
