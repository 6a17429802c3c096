"""Steps on pairs: DPO with its reference, and reward models; and what the objectives that generate text are told.

Belongs here: what an objective changes in an estimate, and how it is spoken of. Peaks against traces: test_traced.py.
"""

import pytest

from command import run
from configurations import CUSTOM_STEP, OPENING, PAIR_STACKS, STACKS
from vramplan import NotExpressible, Settings, accounts, compare, curve, estimate, fit, measure, report
from vramplan.compare import by_accounting, peaks_by_stack
from vramplan.link import read_query, to_query
from vramplan.settings import carried_over, format_settings, parse

SFT = {**CUSTOM_STEP, "stack": "trl-1.15", "method": "full", "trainable_precision": "pure-bf16", "sequence_length": "512"}
DPO = {**SFT, "objective": "dpo"}
REWARD = {**SFT, "objective": "reward"}
ADAPTERS = {**DPO, "method": "lora", "base_precision": "bf16"}
HIDDEN, VOCABULARY = 64, 1000  # of CUSTOM_STEP
REFERENCE = "forward of the reference"


def of(configuration, **changes):
    return estimate(parse({**configuration, **changes}))


def rows(one, moment):
    (found,) = [each for each in one.moments if each.name == moment]
    return {term.name: term.bytes for term in found.terms}


def names(one):
    return [moment.name for moment in one.moments]


def refusal(configuration, **changes):
    with pytest.raises(NotExpressible) as raised:
        of(configuration, **changes)
    assert raised.value.message.count(". ") <= 1
    return raised.value.field, raised.value.message


def test_a_second_model_is_there_at_every_moment_and_as_large_as_the_first():
    one = of(DPO)
    for moment in one.moments:
        of_moment = {term.name: term.bytes for term in moment.terms}
        assert of_moment["reference_weights"] == of_moment["base_weights"] == 2 * one.parameters.total


def test_full_fine_tuning_gets_a_second_model_and_adapters_share_theirs_unless_somebody_says_otherwise():
    assert of(DPO).peak_bytes == of(DPO, reference="copy").peak_bytes > of(DPO, reference="precomputed").peak_bytes
    assert of(ADAPTERS).peak_bytes == of(ADAPTERS, reference="shared").peak_bytes < of(ADAPTERS, reference="copy").peak_bytes


@pytest.mark.parametrize(("reference", "forward", "weights"), [("copy", True, True), ("shared", True, False), ("precomputed", False, False)])
def test_each_kind_of_reference_has_its_moment_and_its_weights(reference, forward, weights):
    one = of(ADAPTERS, reference=reference)
    assert (REFERENCE in names(one)) == forward
    assert ("reference_weights" in rows(one, "loss")) == weights


def test_the_reference_runs_between_the_forward_pass_and_the_loss_while_everything_saved_is_there():
    one = of(ADAPTERS, gradient_accumulation_steps="2")
    assert names(one)[:3] == ["forward", REFERENCE, "loss"] and f"{REFERENCE}, later micro-batch" in names(one)
    assert rows(one, REFERENCE)["saved_activations"] == rows(one, "loss")["saved_activations"]


def test_a_pair_is_two_rows_and_without_a_reference_the_step_is_that_of_two_sequences():
    """Only the completion mask is more, 8 bytes a token."""
    for configuration in (SFT, {**ADAPTERS, "objective": "sft"}, {**SFT, "checkpointing": "none"}):
        pairs, sequences = of(configuration, objective="dpo", reference="precomputed"), of(configuration, micro_batch="2")
        assert pairs.peak_bytes - sequences.peak_bytes == 8 * 2 * 512


def test_a_second_model_in_float32_is_copied_to_16_bits_as_a_whole_and_a_frozen_base_one_weight_at_a_time():
    copied = rows(of(ADAPTERS, base_precision="fp32", reference="copy"), REFERENCE)
    assert copied["autocast_copies"] > 0
    assert "autocast_copies" not in rows(of(ADAPTERS, base_precision="fp32"), REFERENCE)
    assert "autocast_copies" not in rows(of(ADAPTERS, reference="copy"), REFERENCE)


def test_trainers_on_pairs_switch_dropout_off():
    for configuration in (ADAPTERS, {**ADAPTERS, "objective": "reward"}):
        for changes in ({"lora_dropout": "0.1"}, {"residual_dropout": "true", "embedding_dropout": "true"}):
            assert of(configuration, **changes).peak_bytes == of(configuration).peak_bytes
    assert of(ADAPTERS, objective="sft", lora_dropout="0.1", checkpointing="none").peak_bytes > of(ADAPTERS, objective="sft", checkpointing="none").peak_bytes


@pytest.mark.parametrize("method", ["full", "lora", "qlora"])
def test_a_reward_model_has_one_score_where_the_head_was(method):
    scores, tokens = of(REWARD, method=method), of(SFT, method=method)
    assert tokens.parameters.total - scores.parameters.total == (VOCABULARY - 1) * HIDDEN
    trained = -(VOCABULARY - 1) * HIDDEN if method == "full" else HIDDEN
    assert scores.parameters.trainable - tokens.parameters.trainable == trained


def test_a_tied_model_gets_a_head_of_its_own_for_its_scores():
    tied, untied = (of(REWARD, tied_embeddings=value) for value in ("true", "false"))
    assert tied.parameters == untied.parameters and tied.peak_bytes == untied.peak_bytes


def test_no_logits_of_a_vocabulary_are_there_in_a_reward_model():
    small, large = (of(REWARD, method="lora", vocab_size=size) for size in ("1000", "100000"))
    assert large.peak_bytes - small.peak_bytes == 4 * 99_000 * HIDDEN  # the embedding, in float32
    assert rows(large, "loss")["logits"] == rows(small, "loss")["logits"] > 0


def test_older_releases_hold_logits_of_both_models():
    newest = of(ADAPTERS).peak_bytes
    peaks = [of(ADAPTERS, stack=stack, vocab_size="50000").peak_bytes for stack in PAIR_STACKS]
    assert newest < peaks[0] < peaks[1] < peaks[2] < peaks[3]


@pytest.mark.parametrize("stack", [name for name in STACKS if name not in PAIR_STACKS])
@pytest.mark.parametrize("objective", ["dpo", "reward"])
def test_a_stack_without_pairs_names_those_that_have_them(stack, objective):
    field, message = refusal(DPO, stack=stack, objective=objective)
    assert field == "stack" and "TRL 1.15 and later" in message and "TRL 0.26–1.5" in message


@pytest.mark.parametrize(("changes", "field", "told"), [
    ({"reference": "shared"}, "reference", "no adapters"),
    ({"loss": "fused-linear"}, "loss", "refuses"),
    ({"loss": "fused-linear", "stack": "trl-1.6"}, "loss", "compiled"),
    ({"loss": "chunked"}, "loss", "Chunked"),
    ({"sharding": "zero3", "sharded_over": "2"}, "sharding", "DDP"),
    ({"autocast": "off", "stack": "trl-1.6"}, "autocast", "autocast"),
    ({"method": "lora", "adapter_targets": "q,lm_head"}, "adapter_targets", "lm_head"),
    ({"method": "lora", "adapter_targets": "q,lm_head", "objective": "reward"}, "adapter_targets", "lm_head"),
])
def test_contradictions_are_told_in_a_sentence(changes, field, told):
    found, message = refusal(DPO, **changes)
    assert found == field and told in message


@pytest.mark.parametrize(("objective", "missing"), [
    ("grpo", ("generates", "cache", "vLLM", "log-probabilities")), ("ppo", ("generates", "value model", "reward model", "cache")),
])
def test_objectives_that_generate_say_what_is_missing_everywhere(objective, missing):
    field, message = refusal(OPENING, objective=objective)
    assert field == "objective" and all(word in message for word in missing)
    printed = run("estimate", "--objective", objective)
    assert printed.returncode != 0 and message in " ".join(printed.err.split()) and not printed.out
    with pytest.raises(NotExpressible, match=objective.upper()):
        estimate(Settings(objective=objective))


def test_everything_that_speaks_of_the_batch_speaks_of_pairs():
    one = of(DPO, micro_batch="3", gradient_accumulation_steps="4", gpu="8")
    assert "DPO" in report.headline(one).run and "512 tokens × 3 pairs" in report.headline(one).run
    (batch,) = [fact for fact in report.facts(one) if fact.label == "Effective batch"]
    assert (batch.text, batch.exact) == ("12", "pairs")
    largest, _ = report.maxima(one, fit(one.settings))
    assert largest.sentence.startswith("pairs at 512 tokens")
    assert "pair" not in report.headline(of(SFT)).run


def test_the_reference_is_told_of_and_may_be_left_out_as_a_change():
    one = of(DPO)
    assert "reference: a second model in memory" in accounts.assumed_text(one)
    changes = {change.label: change for change in report.alternatives(one, fit(one.settings))}
    assert changes["Reference: Precomputed"].difference.startswith("saves")
    labels = [row.label for row in report.components(one)]
    assert labels[:2] == ["Base weights", "Reference model"]
    assert "Reference model" not in [row.label for row in report.components(of(SFT))]


def test_the_methods_the_curve_and_the_stacks_follow_the_objective():
    one = of(DPO)
    assert [each.settings.method for each in compare(one.settings)] == ["full", "lora", "qlora"]
    assert [each.settings.method for each in compare(of(ADAPTERS, reference="shared").settings)] == ["lora", "qlora"]
    assert set(peaks_by_stack(one.settings)) == set(PAIR_STACKS)
    here = [point for point in curve(one.settings).points if point.sequence_length == 512]
    assert [point.peak_bytes for point in here] == [one.peak_bytes]


def test_the_planning_formula_says_that_it_has_no_pairs():
    counted = by_accounting(parse(DPO))
    assert counted["step"].peak_bytes and isinstance(counted["planning"], NotExpressible)
    assert "next-token training only" in [each.reason for each in accounts.counted_by_each(parse(DPO), {})][1]
    assert accounts.differences(of(DPO)) is None
    plain = {**OPENING, "accounting": "planning", "trainable_precision": "mixed-bf16"}
    assert of(plain, objective="dpo").peak_bytes == of(plain).peak_bytes


@pytest.mark.parametrize("objective", ["dpo", "reward", "ppo"])
def test_the_script_that_measures_a_run_says_that_it_makes_no_pairs(objective):
    with pytest.raises(NotExpressible) as raised:
        measure.script(parse({**DPO, "objective": objective}))
    assert raised.value.field == "objective" and "pairs" in raised.value.message


@pytest.mark.parametrize("changes", [{}, {"reference": "precomputed"}, {"objective": "reward"}])
def test_a_link_brings_the_objective_back(changes):
    settings = parse({**DPO, **changes})
    link = read_query(to_query(settings))
    assert parse(link.texts, version=link.version) == settings


def test_choosing_pairs_takes_a_stack_that_has_them_unless_somebody_chose_one():
    texts = format_settings(parse(OPENING))
    assert carried_over(texts | {"objective": "dpo"}, chosen="objective", before="sft") == {"stack": "trl-1.15"}
    for stack in ("loop", "trl-1.6"):
        assert carried_over(texts | {"objective": "dpo", "stack": stack}, chosen="objective", before="sft") == {}
    assert carried_over(texts | {"objective": "grpo"}, chosen="objective", before="sft") == {}
