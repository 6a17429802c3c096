"""One configuration: the settings of a training run, named as in traced.csv."""

from dataclasses import asdict, dataclass


@dataclass(frozen=True, slots=True)
class Configuration:
    """One training run. The words are those of traced.csv; see README.md."""

    id: str
    model: str
    method: str
    load_dtype: str = "bf16"
    autocast: str = "bf16"
    adapter_dtype: str = ""
    quantization: str = ""
    kbit_preparation: str = ""
    rank: int | str = ""
    targets: str = ""
    lora_dropout: float | str = ""
    optimizer: str = "adamw-fused"
    loss: str = "logits"
    attention: str = "flash"
    checkpointing: str = "full"
    micro_batch: int = 1
    sequence_length: int = 2048
    gradient_accumulation_steps: int = 1
    objective: str = "sft"
    reference: str = ""
    kernels: str = "plain"

    def row(self) -> dict[str, str | int | float]:
        return asdict(self)


def identify(**settings) -> Configuration:
    """A configuration whose id lists the settings that differ from the defaults, in the order of the columns."""
    row = Configuration(id="", **settings).row()
    defaults = Configuration("", "", "").row()
    words = [name_value(name, value) for name, value in row.items() if value != defaults[name]]
    return Configuration(id="_".join(words), **settings)


def name_value(name: str, value: str | int | float) -> str:
    """How a setting appears in an id: words as they are, numbers with their column's initials."""
    if isinstance(value, str):
        return value.replace(",", "-")
    return "".join(word[0] for word in name.split("_")) + str(value)
