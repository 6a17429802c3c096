"""A run of one's own on the page: a message becomes a tensor, a suggestion and a link; nothing of it leaves the browser.

Belongs here: what a visitor does and sees. What is read and concluded: ../test_own_run.py.
"""

import pickle

from playwright.sync_api import expect
import pytest

from vramplan.measure import script
from vramplan.measured_run.amounts import as_printed, asked_of_driver
import runs

GIB = 2**30
LONGER = {"sequence_length": "4096", "micro_batch": "2"}
QUERY = "?v=2&sequence_length=4096&micro_batch=2"


def out_of_memory():
    """The message of a run that fails at the loss, its logits kept."""
    loss = next(moment for moment in runs.of(**LONGER).moments if moment.name == "loss")
    tensor = next(each for each in loss.inspect()["logits"] if each.name == "gradient of logits in float32")
    return (f"Traceback (most recent call last):\n  File \"train.py\", line 51\ntorch.OutOfMemoryError: CUDA out of memory. Tried to allocate "
            f"{as_printed(asked_of_driver(tensor.bytes))}. GPU 0 has a total capacity of 23.64 GiB of which 1.10 GiB is free. Including non-PyTorch memory, "
            f"this process has 22.53 GiB memory in use. Of the allocated memory {as_printed(loss.bytes - tensor.bytes)} is allocated by PyTorch, and "
            "300.00 MiB is reserved by PyTorch but unallocated.")


def test_a_failed_run_leads_to_its_tensor_and_to_the_setting_that_explains_it_and_stays(visit):
    visitor = visit()
    calculator = visitor.open(QUERY + "&loss=fused-linear")
    calculator.measured(out_of_memory())
    expect(calculator.own_run).to_contain_text("The run failed as it asked for 3.91 GiB")
    expect(calculator.answer).to_contain_text("With your run’s difference")
    suggestion = calculator.explained.get_by_role("link", name="Loss: As the stack")
    suggestion.click()
    calculator.expect_setting("loss", "stack")
    row = calculator.explained.get_by_role("row").filter(has_text="as your run")
    expect(row).to_contain_text("Gradient of logits in float32")
    expect(row).to_contain_text("(B, S, 128,256)")
    assert "measured=held." in calculator.query
    calculator.root.reload()
    calculator.wait_ready()
    expect(calculator.explained.get_by_role("row").filter(has_text="as your run")).to_contain_text("Gradient of logits in float32")
    assert not [request for request in visitor.watch.requests if "held" in request and "?" not in request]


def test_a_measured_peak_finds_the_wrong_assumption_and_adjusts_the_headroom(visit):
    calculator = visit().open(QUERY)
    calculator.measured(str(runs.of(**LONGER, loss="fused-linear").peak_bytes))
    expect(calculator.explained).to_contain_text("Likely: Loss: Fused linear (Liger)")
    calculator.explained.get_by_role("link", name="Loss: Fused linear (Liger)").click()
    calculator.expect_setting("loss", "fused-linear")
    expect(calculator.own_run).to_contain_text("the same to the byte")
    calculator.set(sequence_length="2048")
    expect(calculator.own_run).to_contain_text("Measured with other settings")
    calculator.own_run.get_by_role("link", name="Forget this measurement").click()
    expect(calculator.own_run).to_be_hidden()
    assert "measured" not in calculator.query


def test_a_snapshot_is_chosen_and_another_is_dropped(visit):
    calculator = visit().open(QUERY)
    block = {"size": 8 * GIB, "requested_size": 8 * GIB, "address": 4096, "state": "active_allocated",
             "frames": [{"filename": "/home/me/train.py", "line": 12, "name": "<img src=x onerror=alert(1)>"}]}
    content = {"segments": [{"device": 0, "total_size": 9 * GIB, "blocks": [block]}], "device_traces": [[]]}
    calculator.choose_snapshot("snapshot.pickle", pickle.dumps(content))
    expect(calculator.own_run).to_contain_text("peaked at 8.00 GiB")
    expect(calculator.root.get_by_text("train.py:12 <img src=x onerror=alert(1)>")).to_be_attached()
    calculator.choose_snapshot("snapshot.pickle", pickle.dumps(print))
    expect(calculator.region("Your own run")).to_contain_text("asks for a class, which is not followed")


@pytest.mark.parametrize("text", ["", "hello", "CUDA error: out of memory"])
def test_what_cannot_be_read_is_answered_in_a_sentence_and_changes_nothing(visit, text):
    calculator = visit().open()
    calculator.measured(text)
    expect(calculator.region("Your own run").get_by_text("Paste the", exact=False).last).to_be_visible()
    calculator.expect_headline(runs.of())
    assert "measured" not in calculator.query


def test_a_bad_measurement_in_a_link_is_named_where_it_can_be_mended(visit):
    calculator = visit().open("?v=2&measured=allocated.x")
    calculator.expect_problems(["Your own run must be amounts in bytes, such as allocated.13207024640; got “allocated.x”. Paste the measurement again."])
    calculator.problems.get_by_role("link").first.click()
    expect(calculator.own_run_text).to_be_focused()


def test_the_script_is_that_of_the_run_and_can_be_copied(visit):
    calculator = visit(permissions=["clipboard-read", "clipboard-write"]).open(QUERY)
    calculator.region("Your own run").get_by_text("Measure it: a script for this run").click()
    box = calculator.root.get_by_role("textbox", name="Script that measures this run")
    expect(box).to_have_value(script(runs.of(**LONGER).settings))
    calculator.button("Copy Script").click()
    assert calculator.root.evaluate("navigator.clipboard.readText()") == script(runs.of(**LONGER).settings)
    calculator.set(sequence_length="1024")
    expect(box).to_have_value(script(runs.of(**LONGER | {"sequence_length": "1024"}).settings))
    calculator.set(loss="triton")
    expect(calculator.region("Your own run")).to_contain_text("The script cannot run the loss")
