"""The script under “Measure it”: valid for every run it takes on, made of nothing a stranger wrote, and one sentence for the rest.

Belongs here: the script as text. That it runs: it is started by hand with PyTorch, which these tests do not have.
"""

import ast

from hypothesis import given
import pytest

from command import run
from configurations import STACKS
from strategies import configurations
from vramplan import NotExpressible, Settings
from vramplan.data import table
from vramplan.measure import needs, script
from vramplan.measured_run.against import fingerprint
from vramplan.measured_run.reading import read_text
from vramplan.settings import parse


def told(text):
    """The dictionary the script goes by."""
    assignment = next(node for node in ast.parse(text).body if isinstance(node, ast.Assign) and node.targets[0].id == "RUN")
    return ast.literal_eval(assignment.value)


@given(configurations(accounting="step"))
def test_every_script_is_python_and_differs_from_the_template_in_one_plain_dictionary(typed):
    settings = parse(typed)
    try:
        text = script(settings)
    except NotExpressible as reason:
        assert reason.message.endswith(".") and hasattr(settings, reason.field)
        return
    compile(text, "measure.py", "exec")
    before, after = table("measure")["script"]["text"].lstrip().split("{run}")
    assert text.startswith(before) and text.endswith(after)
    run = told(text)
    assert run["settings"] == fingerprint(settings)
    assert (run["micro_batch"], run["sequence_length"]) == (settings.micro_batch, settings.sequence_length)
    assert set(needs(settings)) >= {"torch", "transformers"}


@pytest.mark.parametrize("stack", STACKS)
def test_every_stack_has_a_script_or_a_sentence(stack):
    settings = Settings(stack=stack, loss="logits")
    if stack.startswith(("trainer-", "trl-", "loop")):
        assert told(script(settings))["loss"] == "logits"
    else:
        with pytest.raises(NotExpressible, match="cannot run"):
            script(settings)


@pytest.mark.parametrize(("changed", "field"), [
    ({"loss": "tiled"}, "loss"), ({"loss": "triton"}, "loss"), ({"quantization": "gptq"}, "quantization"), ({"sharding": "zero3"}, "sharding"),
    ({"accounting": "planning"}, "accounting")])
def test_what_the_script_cannot_run_is_named_with_its_setting(changed, field):
    with pytest.raises(NotExpressible) as caught:
        script(Settings(**changed))
    assert caught.value.field == field


def test_what_the_run_really_does_is_in_the_script():
    run = told(script(Settings(model="qwen3-8b", method="lora", rank=8, stack="trainer-4.54", gradient_accumulation_steps=16)))
    assert run["repository"] == "Qwen/Qwen3-8B" and run["rank"] == 8
    assert (run["weights"], run["adapters"], run["reentrant"], run["micro_batches"]) == ("fp32", "fp32", True, 2)


def test_a_custom_decoder_is_made_from_its_dimensions_or_asks_for_its_file():
    custom = {"model": "custom", "hidden_size": 64, "num_layers": 2, "num_attention_heads": 4, "num_kv_heads": 2, "head_dim": 16}
    assert told(script(Settings(**custom)))["dimensions"]["num_hidden_layers"] == 2
    assert told(script(Settings(**custom, query_key_norms=True)))["family"] == "qwen3"
    assert told(script(Settings(**custom, scaled_residual=True)))["dimensions"] == {}


def test_the_line_it_prints_is_one_that_is_read():
    text = script(Settings())
    printed = next(node for node in ast.walk(ast.parse(text)) if isinstance(node, ast.JoinedStr) and "vramplan-measured" in ast.unparse(node))
    values = {"allocated": 2**34, "reserved": 2**35, "process": 0, "about": 'torch=2.13.0 transformers=5.24.0 gpu="NVIDIA L4"', "RUN": told(text)}
    reading = read_text(eval(compile(ast.Expression(printed), "line", "eval"), values))
    assert (reading.record.allocated, reading.record.reserved, reading.record.settings) == (2**34, 2**35, fingerprint(Settings()))


def test_the_command_prints_it_and_refuses_in_a_sentence():
    done = run("measure", "--model", "qwen3-0.6b")
    assert done.returncode == 0 and done.err == "" and told(done.out)["repository"] == "Qwen/Qwen3-0.6B"
    refused = run("measure", "--loss", "tiled")
    assert refused.returncode == 2 and refused.out == "" and refused.err.startswith("vramplan: --loss: The script cannot run")
