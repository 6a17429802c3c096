"""A run on its way into a file: what the file means so far, and what it cannot say."""

from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass
from decimal import Decimal

from vramplan.catalogue import CUSTOM, defaults, presets
from vramplan.errors import NotExpressible
from vramplan.fields import applying
from vramplan.importing.chosen import inventory_of
from vramplan.importing.imported import OF_A_RUN, OF_CHECKPOINTS
from vramplan.policy import AS_THE_STACK, Policy, policy, stack_of
from vramplan.settings import Settings, format_settings, parse
from vramplan.stacks import stacks
from vramplan.training_files.methods import MODULES, targets
from vramplan.training_files.tools import Tool, optimizer_name
from vramplan.units import plain_decimal
from vramplan.words import loss_text, value_text

FACTS: dict[str, Callable[[Policy], str]] = {
    "reference": lambda chosen: chosen.reference,
    "kbit_preparation": lambda chosen: chosen.kbit_preparation,
    "base_precision": lambda chosen: chosen.base_precision,
    "trainable_precision": lambda chosen: chosen.trainable_precision,
    "optimizer": lambda chosen: chosen.optimizer,
    "optimizer_step": lambda chosen: chosen.optimizer_step,
    "loss": lambda chosen: chosen.loss,
    "layer_kernels": lambda chosen: {"transformers": "plain"}.get(chosen.norm_kernel, chosen.norm_kernel),
    "checkpoint_kind": lambda chosen: "reentrant" if chosen.reentrant else "non-reentrant",
    "autocast": lambda chosen: "on" if chosen.autocast else "off",
}
"""Settings that may be left to the stack, and what a run really uses, in the setting's own words."""

LEFT_TO_THE_STACK = {"optimizer": "adamw"}
"""The word of such a setting that leaves it to the stack, where that is not `stack`."""

NO_TASK = "A model that answers is not trained, so there is no training file of it; choose training."


@dataclass(frozen=True)
class Lost:
    """A setting that the file does not say, and why."""

    setting: str
    why: str


def as_a_step(settings: Settings) -> Settings:
    """The run as the training step counts it; what the chosen accounting does not read takes its default.

    Raises NotExpressible for a model that is not trained.
    """
    if settings.serves:
        raise NotExpressible("task", NO_TASK)
    texts, usual = format_settings(settings), defaults()
    read = applying(texts)
    return parse({name: text if name in read else usual[name] for name, text in texts.items()} | {"accounting": "step"})


class Draft:
    """A run on its way into a file of one tool.

    settings: the run; a model that starts from nothing is taken as one that is loaded. by_itself: what the tool does where its file does not say,
    if that is not what its stack does. means: the settings the file gives when it is read.
    """

    def __init__(self, settings: Settings, tool: Tool, *, stack: str, by_itself: Mapping[str, str] | None = None):
        self.tool, self.lost = tool, list[Lost]()
        usual = defaults()
        self.means = {name: usual[name] for name in OF_A_RUN} | {"stack": stack} | dict(by_itself or {})
        if settings.stack != stack:
            self.lose("stack", f"it is {stack_of(settings).label}; the file runs with {stacks()[stack].label}")
        if settings.method == "pretraining":
            self.lose("method", "the model is loaded, not made from nothing; every weight is trained, in FP32")
            settings = settings.varied(method="full", trainable_precision="mixed-bf16")
        if settings.measured:
            self.lose("measured", "what was measured belongs to the run that was measured; the link has it")
        self.settings = settings
        self._wanted = policy(settings)
        left = {name: LEFT_TO_THE_STACK.get(name, AS_THE_STACK) for name in FACTS}
        self._left = left | dict(by_itself or {}) | {"stack": stack}
        self._own = policy(settings.varied(**self._left))

    def say(self, setting: str, text: str) -> None:
        """The file says a setting."""
        self.means[setting] = text

    def lose(self, setting: str, why: str) -> None:
        """The file does not say a setting."""
        self.lost.append(Lost(setting, why))

    def quantized_elsewhere(self) -> None:
        """The model is a checkpoint that is quantised itself, which no key says: the file is one of LoRA."""
        self.lose("quantization", "no key says GPTQ or AWQ; the checkpoint has to be quantised itself")
        self.lose("method", "with a checkpoint that is quantised, the file itself says LoRA")
        self.say("method", "lora")
        self._own = policy(self.settings.varied(**self._left, method="lora"))

    def uses(self, setting: str) -> str:
        """What the run really uses of a setting that may be left to the stack."""
        return FACTS[setting](self._wanted)

    def settle(self, setting: str, sayable: Collection[str] = ()) -> str | None:
        """What the file has to say of a setting that may be left to the stack; None where it says nothing.

        Nothing is said of what the tool does by itself, unless it was set. What no key says (it is not in `sayable`) is named.
        """
        wanted, own = FACTS[setting](self._wanted), FACTS[setting](self._own)
        was_set = getattr(self.settings, setting) != LEFT_TO_THE_STACK.get(setting, AS_THE_STACK)
        if wanted in sayable and (was_set or wanted != own):
            self.say(setting, wanted)
            return wanted
        if wanted != own:
            self.lose(setting, f"{_shown(setting, wanted)} is nothing that {self.tool.label} has a key for; it takes {_shown(setting, own)}")
        return None

    def key_of(self, setting: str) -> str:
        """The key that gives a setting."""
        return next(each.key for each in self.tool.decides if each.setting == setting)

    def number(self, setting: str) -> tuple[str, object]:
        """A setting that is a number: its key and its value as the tool holds it, a whole number or a float."""
        value = getattr(self.settings, setting)
        if isinstance(value, Decimal):
            held = Decimal(repr(float(value)))
            if held != value:
                self.lose(setting, f"a number of the tool has fewer digits: {plain_decimal(held)}")
            value = held
        self.say(setting, plain_decimal(value) if isinstance(value, Decimal) else str(value))
        return self.key_of(setting), value

    def optimizer(self) -> str | None:
        """The name of the optimizer; None where nothing is said."""
        wanted = self.uses("optimizer")
        name = optimizer_name(wanted)
        said = self.settle("optimizer", {wanted} if name else ())
        return name if said else None

    def attends_eagerly(self) -> bool:
        """Whether attention is written out; sets which kernel the file says."""
        kernel = "eager" if self.settings.attention_kernel == "eager" else "efficient"
        if kernel != self.settings.attention_kernel:
            self.lose("attention_kernel", "heads are repeated by the card or the mask, not by a key")
        self.say("attention_kernel", kernel)
        return kernel == "eager"

    def leave_uncompiled(self, what: str) -> None:
        """The file, which is called `what`, compiles nothing."""
        if self.settings.torch_compile == "on":
            self.lose("torch_compile", f"what it keeps is counted for torchtune alone, so the {what} leaves it off")

    def repository(self) -> str:
        """The model's name on the Hub, or a placeholder."""
        if self.settings.method == "qlora" and self.settings.quantization in OF_CHECKPOINTS:
            self.lose("model", "a checkpoint that is quantised has a name of its own; put it there")
            return YOUR_CHECKPOINT
        if self.settings.model == CUSTOM:
            self.lose("model", "its dimensions are no key; put the name or the folder of the model")
            return YOUR_MODEL
        return presets()[self.settings.model].repository

    def modules(self) -> list[str] | None:
        """The modules that get an adapter, by their names in the model; None for every linear map."""
        if self.settings.adapter_targets == "all-linear":
            self.say("adapter_targets", "all-linear")
            return None
        names = _modules(self.settings)
        text, unknown = targets(names)
        missing = set(self.settings.targets) - {part for name in names for part in MODULES.get(name, ())}
        if unknown or missing or text == "" or set(self.settings.varied(adapter_targets=text).targets) != set(self.settings.targets):
            self.lose("adapter_targets", "the model’s modules have names that are not read back as these maps")
        self.say("adapter_targets", text or PEFT_TARGETS)
        return names


YOUR_MODEL = "YOUR_MODEL"
YOUR_CHECKPOINT = "YOUR_QUANTISED_MODEL"
YOUR_DATASET = "YOUR_DATASET"
YOUR_OUTPUT = "YOUR_OUTPUT_FOLDER"
"""Placeholders, for somebody to put a name in."""

PEFT_TARGETS = "q,v"
"""What is read where no module is known. Source: training_files/methods.py, PEFT_DEFAULT."""


def _shown(setting: str, text: str) -> str:
    return f"“{loss_text(text) if setting == 'loss' else value_text(setting, text)}”"


def _modules(settings: Settings) -> list[str]:
    """Names of the modules of the wanted maps, in the order of the model; the usual one for a map that is no module of its own."""
    wanted = set(settings.targets)
    usual = {parts[0]: name for name, parts in reversed(MODULES.items()) if len(parts) == 1}
    found: dict[str, set[str]] = {}
    for module in inventory_of(settings).modules:
        parts = set(module.role.split())
        if parts & wanted and not module.fused:
            found.setdefault(module.path.rpartition(".")[2], set()).update(parts)
    there = set().union(*found.values()) if found else set()
    return [*found, *(usual.get(part, part) for part in settings.targets if part not in there)]
