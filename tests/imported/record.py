"""Count the models of models.jsonl with their own classes, on the meta device. Run by hand, never by the tests.

    python -m tests.imported.record            fill in what is not counted yet
    python -m tests.imported.record --check    count everything again and report what differs

Needs torch 2.13.0 and transformers 5.24.0 (tests/traced/requirements.txt), and not the calculator itself.

One line of models.jsonl is one model. `id`: ORG/NAME, or synthetic-… where an optional key was flipped. `config`: the keys
of its config.json that decide sizes, under the names and with the values they have in the published file. `counted_as`: the
model_type of the class in transformers, where the file gives another. `total`: unique
parameters and what the file stores beside them (STORED). `active`: of those, the ones that one token goes through.
`linears`: how many linear maps and tables there are; `names_sha256`: of their sorted names, one a line. `published`: the
total on the model's page, where it is known and covers the same. `source`: where config and counts come from; a line whose
source starts with "by hand" has no class in transformers and is left as it is. Published values were noted from memory
before anything was counted: a `published` that agrees in every digit confirms the sizes.
"""

import argparse
from collections.abc import Iterator
from copy import deepcopy
import hashlib
import json
from pathlib import Path
import sys
import warnings

import torch
from torch import nn
from transformers import AutoModelForCausalLM, AutoModelForImageTextToText, CONFIG_MAPPING, logging
from transformers.pytorch_utils import Conv1D

FILE = Path(__file__).parent / "models.jsonl"

STORED = ("e_score_correction_bias", "expert_bias", "layer_scalar")
"""Buffers that a checkpoint stores with the weights: biases with which experts are chosen, and the scale of a layer."""

OTHER_PARTS = ("embed_tokens_extend",)
"""Parts of a model that see or hear, where its class has them inside the decoder."""

TOP_K = ("num_experts_per_tok", "moe_topk", "experts_per_token", "top_k_experts", "num_experts_per_token")
"""What configurations call the number of experts that a token goes through."""


def decoder(config: dict) -> tuple[nn.Module, object, str]:
    """The decoder a config.json describes, its configuration, and how the names of its modules start."""
    whole = CONFIG_MAPPING[config["model_type"]].from_dict(deepcopy(config))
    text = whole.get_text_config(decoder=True)
    if text is not whole and "tie_word_embeddings" in config:
        inner = config.get("text_config", {})
        if "tie_word_embeddings" not in inner:
            text.tie_word_embeddings = config["tie_word_embeddings"]
    with torch.device("meta"):
        if type(text) in AutoModelForCausalLM._model_mapping.keys():
            return AutoModelForCausalLM.from_config(text), text, ""
        return AutoModelForImageTextToText.from_config(whole), text, "model.language_model."


def modules(model: nn.Module, start: str) -> Iterator[tuple[str, nn.Module]]:
    """The modules of the decoder under the names they have in a model that only reads text."""
    for name, module in model.named_modules():
        if any(part in name for part in OTHER_PARTS):
            continue
        if not start or name.startswith("lm_head"):
            yield name, module
        elif f"{name}.".startswith(start):
            yield f"model.{name[len(start):]}", module


def counted(config: dict) -> dict[str, object]:
    """What is recorded of a model."""
    model, settings, start = decoder(config)
    found = dict(modules(model, start))
    seen: dict[int, nn.Parameter] = {}
    total = active = 0
    for module in found.values():
        for value in module.parameters(recurse=False):
            if id(value) not in seen:
                seen[id(value)] = value
                total += value.numel()
                active += value.numel() * share(module, value, settings)
        for name, value in module.named_buffers(recurse=False):
            if name in STORED:
                total += value.numel()
                active += value.numel()
    names = sorted(name for name, module in found.items() if isinstance(module, nn.Linear | nn.Embedding | Conv1D))
    return {
        "total": total,
        "active": int(active),
        "linears": len(names),
        "names_sha256": hashlib.sha256("\n".join(names).encode()).hexdigest(),
    }


def share(module: nn.Module, value: nn.Parameter, settings: object) -> float:
    """The part of a parameter that one token goes through: all of it, but for the weights of experts."""
    if "Expert" not in type(module).__name__ or value.dim() < 2:
        return 1
    experts = getattr(module, "num_experts", None) or getattr(module, "moe_num_experts", None) or getattr(module, "num_routed_experts", None)
    chosen = next(given for where in (settings, getattr(settings, "ffn_config", None)) for key in (*TOP_K, "moe_top_k") if (given := getattr(where, key, None)))
    chosen = chosen[0] if isinstance(chosen, list) else chosen
    exact, rest = divmod(value.numel() * chosen, experts)
    assert rest == 0
    return exact / value.numel()


def main() -> int:
    parser = argparse.ArgumentParser(prog="record", description=__doc__.split("\n")[0])
    parser.add_argument("--check", action="store_true", help="count everything again and report what differs")
    options = parser.parse_args()
    warnings.simplefilter("ignore")
    logging.set_verbosity_error()
    lines = [json.loads(line) for line in FILE.read_text(encoding="utf-8").splitlines()]
    failures = 0
    for line in lines:
        if line["source"].startswith("by hand") or ("total" in line and not options.check):
            continue
        try:
            fresh = counted(line["config"] | {"model_type": line.get("counted_as", line["config"]["model_type"])})
        except Exception as error:  # one that fails must not stop the rest
            failures += 1
            print(f"{line['id']}: {type(error).__name__}: {str(error)[:300]}", file=sys.stderr, flush=True)
            continue
        if options.check:
            different = {key: (line[key], value) for key, value in fresh.items() if line[key] != value}
            failures += bool(different)
            print(f"{line['id']}: {different or 'same'}", flush=True)
        else:
            line.update(fresh)
            print(f"{line['id']}: {fresh['total']:,}", flush=True)
    if not options.check:
        FILE.write_text("".join(json.dumps(line, separators=(",", ":"), ensure_ascii=False) + "\n" for line in lines), encoding="utf-8")
    return failures


if __name__ == "__main__":
    sys.exit(main())
