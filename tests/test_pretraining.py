"""Pre-training: every weight trained from scratch, in float32."""

import pytest

from configurations import CUSTOM_STEP, OPENING, OPENINGS
from vramplan.accountings import estimate
from vramplan.errors import NotExpressible
from vramplan.fields import applying
from vramplan.settings import parse
from vramplan.ledger import Estimate


def of(**changes) -> Estimate:
    return estimate(parse({**CUSTOM_STEP, **changes}))


@pytest.mark.parametrize("accounting", [name for name in OPENINGS if name != "unsloth"])  # which trains in 16 bits alone
def test_pre_training_takes_what_full_fine_tuning_of_float32_weights_takes(accounting):
    opening = {**OPENINGS[accounting], "gradient_accumulation_steps": "1"}
    from_scratch, tuned = (
        estimate(parse({**opening, **changes})) for changes in ({"method": "pretraining"}, {"method": "full", "trainable_precision": "mixed-bf16"})
    )
    assert from_scratch.moments == tuned.moments and from_scratch.parameters == tuned.parameters


def test_pre_training_keeps_float32_weights_whatever_precision_was_chosen_before():
    pure = of(method="pretraining", trainable_precision="pure-bf16")
    assert pure.moments == of(method="pretraining").moments
    assert pure.peak_bytes > of(method="full", trainable_precision="pure-bf16").peak_bytes


def test_the_precision_is_no_choice_while_a_model_is_trained_from_scratch():
    assert "trainable_precision" not in applying(OPENING | {"method": "pretraining"})
    assert "trainable_precision" in applying(OPENING | {"method": "full"})
    assert not {"rank", "quantization", "base_precision"} & applying(OPENING | {"method": "pretraining"})


def test_sixteen_bytes_of_state_for_every_parameter():
    # float32 weights, gradients and two moments; the embedding is not tied
    rows = {term.name: term.bytes for term in of(method="pretraining", optimizer="adamw-foreach", gradient_accumulation_steps="2").moments[-1].terms}
    total = of(method="pretraining").parameters.total
    assert rows["base_weights"] == rows["gradients"] == 4 * total and rows["optimizer_states"] >= 8 * total


@pytest.mark.parametrize(
    ("field", "changes"),
    [("objective", {"objective": "dpo", "stack": "trl-1.15"}), ("stack", {"stack": "litgpt-0.5"}), ("stack", {"stack": "unsloth-2026.10"})],
)
def test_what_does_not_train_from_scratch_is_named(field, changes):
    with pytest.raises(NotExpressible) as refused:
        of(method="pretraining", **changes)
    assert refused.value.field == field
