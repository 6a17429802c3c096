"""Keys of TRL as a Python script that runs. The other way round: training_files/python_text.py.

Source: trl 1.16.0, scripts/sft.py, dpo.py, reward.py: what these scripts do with the same keys.
"""

from collections.abc import Mapping
from decimal import Decimal

from vramplan.exporting.draft import YOUR_DATASET
from vramplan.training_files.python_text import OF_THE_MODEL, RENAMED
from vramplan.units import plain_decimal

TRAINERS = {"sft": "SFT", "dpo": "DPO", "reward": "Reward"}
"""Names of the trainer and its configuration, by objective."""

MODEL, NOT_ARGUMENTS = "model_name_or_path", ("use_peft", "model_name_or_path", *OF_THE_MODEL)
"""Keys that are no arguments of a configuration class."""


def script(keys: Mapping[str, object], objective: str) -> str:
    """The script, without what stands on top of it."""
    name = TRAINERS[objective]
    adapters = _renamed(keys, "LoraConfig") if keys.get("use_peft") else {}
    quantized = _renamed(keys, "BitsAndBytesConfig") if "load_in_4bit" in keys or "load_in_8bit" in keys else {}
    taken = {*NOT_ARGUMENTS, *RENAMED["LoraConfig"].values(), *RENAMED["BitsAndBytesConfig"].values()}
    arguments = {key: value for key, value in keys.items() if key not in taken}
    if loaded := {key: keys[key] for key in OF_THE_MODEL if key in keys}:
        arguments["model_init_kwargs"] = loaded
    lines = ["from datasets import load_dataset"]
    lines += ["from peft import LoraConfig"] if adapters else []
    lines += ["from transformers import BitsAndBytesConfig"] if quantized else []
    lines += [f"from trl import {name}Config, {name}Trainer", "", f"trainer = {name}Trainer(", f"    model={_value(keys[MODEL])},"]
    lines += [f"    args={name}Config(", *_arguments(arguments), "    ),", f'    train_dataset=load_dataset("{YOUR_DATASET}", split="train"),']
    lines += ["    quantization_config=BitsAndBytesConfig(", *_arguments(quantized), "    ),"] if quantized else []
    lines += ["    peft_config=LoraConfig(", *_arguments(adapters), "    ),"] if adapters else []
    return "\n".join((*lines, ")", "trainer.train()", "trainer.save_model()", ""))


def _renamed(keys: Mapping[str, object], of: str) -> dict[str, object]:
    return {name: keys[key] for name, key in RENAMED[of].items() if key in keys}


def _arguments(values: Mapping[str, object]) -> list[str]:
    return [f"        {name}={_value(value)}," for name, value in values.items()]


def _value(value: object) -> str:
    if isinstance(value, Decimal):
        return plain_decimal(value)
    if isinstance(value, Mapping):
        return f"{{{', '.join(f'{_value(key)}: {_value(inner)}' for key, inner in value.items())}}}"
    if isinstance(value, list):
        return f"[{', '.join(_value(each) for each in value)}]"
    if isinstance(value, str):
        return f'"{value}"' if value.isascii() and value.isprintable() and not {'"', "\\"} & set(value) else repr(value)
    return repr(value)
