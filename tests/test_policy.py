"""Who decides what: a setting that is given, else the training stack. And what a stack decides stays out of the link.

Belongs here: precedence, and the facts of data/stacks.toml as the policy reads them. The data itself: test_catalogue.py.
"""

from functools import cache
from pathlib import Path
import tomllib

import pytest

from configurations import OPENING, PLANNING, STACKS
from vramplan import Settings, estimate
from vramplan.link import read_query, to_query
from vramplan.policy import policy
from vramplan.settings import parse
from vramplan.stacks import stacks

TABLES = tomllib.loads((Path(__file__).parent.parent / "app/vramplan/data/stacks.toml").read_text(encoding="utf-8"))


@cache
def fact(stack, name):
    """The value of a fact, in the stack's own table or in the one it extends."""
    own = TABLES[stack]
    return own[name]["value"] if name in own else fact(own["extends"], name)


def name_for(stack, name, method):
    """What a fact is called for a method: a stack may have one of its own for it."""
    own = {"full": f"full_{name}", "qlora": f"quantized_{name}"}.get(method)
    return own if own in stacks()[stack].facts else name


# Setting, a value for it, attribute of the policy, what the value means there, and the fact that decides otherwise.
DECIDED = [
    ("full", "trainable_precision", "mixed-bf16", "trainable_precision", "mixed-bf16", "weight_precision"),
    ("full", "trainable_precision", "pure-bf16", "base_precision", "bf16", "weight_precision"),
    ("lora", "trainable_precision", "pure-bf16", "adapter_precision", "bf16", "adapter_precision"),
    ("qlora", "trainable_precision", "mixed-bf16", "adapter_precision", "fp32", "quantized_adapter_precision"),
    ("lora", "base_precision", "fp32", "base_precision", "fp32", "base_precision"),
    ("lora", "base_precision", "bf16", "base_precision", "bf16", "base_precision"),
    ("qlora", "base_precision", "fp32", "base_precision", "fp32", "quantized_base_precision"),
    ("qlora", "kbit_preparation", "norms", "kbit_preparation", "norms", "kbit_preparation"),
    ("full", "loss", "triton", "loss", "triton", "loss"),
    ("full", "loss", "logits", "loss", "logits", "loss"),
    ("lora", "autocast", "on", "autocast", True, "autocast"),
    ("lora", "autocast", "off", "autocast", False, "autocast"),
    *(("full", "layer_kernels", "liger", name, "liger", name) for name in ("norm_kernel", "mlp_kernel")),
    *(("lora", "layer_kernels", "plain", name, "transformers", name) for name in ("norm_kernel", "mlp_kernel")),
    ("full", "optimizer", "adamw-foreach", "optimizer", "adamw-foreach", "adamw"),
    ("full", "optimizer", "lion", "optimizer", "lion", "adamw"),
]
LEFT_OPEN = {"optimizer": "adamw"}
MEANT = {"trainable_precision": {"fp32": "mixed-bf16", "bf16": "pure-bf16"}, "autocast": {"where-float32": True}}


@pytest.mark.parametrize("stack", STACKS)
@pytest.mark.parametrize(("method", "setting", "value", "attribute", "meaning", "name"), DECIDED)
def test_what_is_given_holds_and_what_is_left_open_is_the_stacks(stack, method, setting, value, attribute, meaning, name):
    name = name_for(stack, name, method)
    given = policy(parse({"stack": stack, "method": method, setting: value}))
    assert getattr(given, attribute) == meaning and name not in given.assumed
    left = policy(parse({"stack": stack, "method": method, setting: LEFT_OPEN.get(setting, "stack")}))
    decided = fact(stack, name)
    assert getattr(left, attribute) == MEANT.get(attribute, {}).get(decided, decided) and name in left.assumed


@pytest.mark.parametrize(("precision", "autocast"), [("fp32", True), ("bf16", False)])
def test_litgpt_has_autocast_with_float32_weights_and_with_these_alone(precision, autocast):
    trained = {"fp32": "mixed-bf16", "bf16": "pure-bf16"}[precision]
    given = {"stack": "litgpt-0.5", "method": "lora", "base_precision": precision, "trainable_precision": trained}
    assert policy(parse(given)).autocast == autocast


@pytest.mark.parametrize("stack", STACKS)
def test_what_no_setting_can_say_is_the_stacks(stack):
    decided = policy(parse({"stack": stack}))
    for name in ("logits_release", "adapter_kernel", "repeats_heads", "model_code", "quantized_linear", "quantized_head"):
        assert getattr(decided, name) == fact(stack, name)
    assert (decided.outputs_kept, decided.lingers) == (fact(stack, "outputs_kept") is not False, fact(stack, "outputs_kept") == "lingering")
    assert decided.reentrant == (fact(stack, "checkpoint_kind") == "reentrant")


def test_the_default_leaves_everything_to_the_default_stack():
    assert policy(Settings()) == policy(parse({"stack": "trainer-5"}))
    assert policy(Settings()) != policy(parse({"stack": "trl-1.15"}))


def test_preparation_is_of_quantised_models_only():
    for method in ("full", "lora"):
        assert policy(parse({"method": method, "kbit_preparation": "all"})).kbit_preparation == "none"


def test_a_stack_changes_the_bytes_and_an_explicit_setting_changes_them_back():
    """trl-1.5 loads a LoRA base in float32; trainer-5 does not. Nothing else of a LoRA run differs between them."""
    of_trainer, of_trl = (estimate(parse({**OPENING, "method": "lora", "stack": stack})) for stack in ("trainer-5", "trl-1.5"))
    assert of_trl.peak_bytes > of_trainer.peak_bytes
    explicit = estimate(parse({**OPENING, "method": "lora", "stack": "trl-1.5", "base_precision": "bf16"}))
    assert explicit.moments == of_trainer.moments


# Links


@pytest.mark.parametrize("stack", STACKS)
def test_what_a_stack_decides_stays_out_of_the_link(stack):
    settings = parse({"stack": stack, "method": "full"})
    policy(settings), estimate(settings)
    assert to_query(settings) == ("v=2&method=full" if stack == OPENING["stack"] else f"v=2&stack={stack}&method=full")


@pytest.mark.parametrize(("name", "value"), [("loss", "logits"), ("autocast", "on"), ("base_precision", "bf16"), ("trainable_precision", "mixed-bf16")])
def test_what_was_given_stays_in_the_link_even_where_the_stack_does_the_same(name, value):
    assert to_query(parse({name: value})) == f"v=2&{name}={value}"


# Links of the first release: query, peak and budget in bytes, as the first release counted them.
FIRST_RELEASE = [
    ("", 12_697_288_704, 25_769_803_776),
    ("method=lora", 20_836_196_352, 25_769_803_776),
    ("method=full", 148_564_942_848, 25_769_803_776),
    ("model=qwen3-8b&micro_batch=4&sequence_length=8192", 45_745_745_920, 25_769_803_776),
    ("model=llama-3.2-1b&method=full&trainable_precision=pure-bf16&optimizer=adamw-8bit", 10_889_867_264, 25_769_803_776),
    ("method=lora&adapter_targets=attention&rank=64&checkpointing=none", 29_400_506_368, 25_769_803_776),
    ("attention_kernel=eager&activation_multiplier=1.37&extra_allowance=0.3", 14_243_143_355, 25_769_803_776),
    ("model=custom&hidden_size=64&num_layers=3&num_attention_heads=6&num_kv_heads=2&head_dim=12&intermediate_size=200"
     "&vocab_size=1000&tied_embeddings=true&gpu=custom&budget=20.5&budget_unit=gb", 2_162_810_478, 20_500_000_000),
    ("model=custom&gpu=custom", 12_697_288_704, 25_769_803_776),
]


@pytest.mark.parametrize(("query", "peak", "budget"), FIRST_RELEASE)
def test_a_link_of_the_first_release_keeps_its_meaning(query, peak, budget):
    link = read_query(f"?v=1&{query}")
    settings = parse(link.texts, version=link.version)
    given = dict(pair.split("=") for pair in query.split("&") if pair)
    assert settings == parse({**PLANNING, **given}) and link.notices == ()
    one = estimate(settings)
    assert (one.accounting, one.peak_bytes, one.budget_bytes, one.fits) == ("planning", peak, budget, peak <= budget)
    again = read_query(to_query(settings))
    assert again.version == 2 and parse(again.texts, version=again.version) == settings


def test_a_link_without_a_version_is_of_today():
    assert parse(read_query("rank=8").texts) == Settings(rank=8)


def test_a_link_of_an_unknown_version_says_so():
    link = read_query("v=3&rank=8")
    assert link.version == 2 and "version" in link.notices[0]


def test_the_stacks_are_those_of_the_data_in_its_order():
    assert tuple(stacks()) == tuple(TABLES) == STACKS
