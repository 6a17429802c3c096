"""The badge of a run: its sentence, its picture, its Markdown, and the command that prints them."""

import re
from dataclasses import replace
from xml.etree import ElementTree

import pytest

from command import printed_json, run
from vramplan import badge as badges
from vramplan import estimate
from vramplan.badge import COLOURS, Badge, badge, markdown, svg
from vramplan.ledger import VERDICTS
from vramplan.link import to_query
from vramplan.settings import parse

SPACE = "{http://www.w3.org/2000/svg}"
SAID = {
    "QLoRA fits 24 GiB at 2,048": {},
    "QLoRA fits 12 GiB at 2,048": {"model": "llama-3.2-1b", "gpu": "12"},
    "LoRA likely fits 8 GiB at 2,048": {"model": "llama-3.2-3b", "method": "lora", "loss": "fused-linear", "gpu": "8"},
    "QLoRA is unlikely to fit 24 GiB at 7,000": {"sequence_length": "7000"},
    "Full fine-tuning does not fit RTX 4090 at 4 × 512": {"method": "full", "gpu": "rtx-4090", "micro_batch": "4", "sequence_length": "512"},
    "QLoRA fits 20.5 GB at 2,048": {"gpu": "custom", "budget": "20.50", "budget_unit": "gb"},
    "Full fine-tuning fits 8 × 80 GiB at 2,048": {"method": "full", "gpu": "80", "sharding": "fsdp2", "sharded_over": "8"},
    "Inference in 4-bit fits 24 GiB at 2,048": {"accounting": "rules", "task": "inference", "served_weights": "int4"},
}


@pytest.mark.parametrize("text", SAID)
def test_a_badge_says_the_method_the_verdict_the_memory_and_the_length(text):
    counted = estimate(parse(SAID[text]))
    made = badge(counted)
    assert made == Badge(counted.settings.model_label, text, counted.verdict)


def test_the_picture_stands_alone_and_is_the_same_for_the_same_run():
    made = badge(estimate(parse({})))
    text = svg(made)
    root = ElementTree.fromstring(text)
    assert text == svg(badge(estimate(parse({}))))
    assert root.get("role") == "img" and root.get("aria-label") == root.find(f"{SPACE}title").text == made.alternative == "Llama 3.1 8B: QLoRA fits 24 GiB at 2,048"
    assert [each.text for each in root.iter(f"{SPACE}text")] == [made.model, made.text]
    assert not re.search(r"https?://(?!www\.w3\.org/2000/svg)|url\(|@import|<script|<style|style=|href", text)
    assert float(root.get("width")) < 400


def test_texts_are_set_to_a_width_inside_the_picture_whatever_the_font():
    root = ElementTree.fromstring(svg(badge(estimate(parse({"sequence_length": "7000", "gpu": "rtx-4090"})))))
    ends = [float(each.get("x")) + float(each.get("textLength")) for each in root.iter(f"{SPACE}text")]
    starts = [float(each.get("x")) for each in root.iter(f"{SPACE}text")]
    assert 0 < starts[0] < ends[0] < starts[1] < ends[1] < float(root.get("width"))


def luminance(colour):
    def linear(part):
        share = part / 255
        return share / 12.92 if share <= 0.04045 else ((share + 0.055) / 1.055) ** 2.4

    red, green, blue = map(linear, bytes.fromhex(colour[1:]))
    return 0.2126 * red + 0.7152 * green + 0.0722 * blue


@pytest.mark.parametrize("colour", [*COLOURS.values(), badges.MODEL_COLOUR])
def test_white_text_is_read_on_every_ground(colour):
    assert 1.05 / (luminance(colour) + 0.05) >= 4.5


def test_every_verdict_has_words_and_a_ground_of_its_own():
    assert set(badges.VERBS) == set(COLOURS) == set(VERDICTS)
    assert len(set(COLOURS.values())) == len(set(badges.VERBS.values())) == len(VERDICTS)


def test_a_name_cannot_bring_markup_into_picture_or_markdown():
    hostile = Badge("\"><script>[a](b)\\", "]]>&<b>'", "no")
    root = ElementTree.fromstring(svg(hostile))
    assert [each.text for each in root.iter(f"{SPACE}text")] == [hostile.model, hostile.text]
    assert {each.tag for each in root.iter()} == {SPACE + name for name in ("svg", "title", "rect", "path", "g", "text")}
    assert re.sub(r"\\.", "", markdown(replace(hostile, text="fits"), link="")) == "![\"><script>a(b): fits](vramplan-badge.svg)"


def test_the_markdown_shows_the_picture_and_leads_to_the_run():
    made = badge(estimate(parse({})))
    assert markdown(made, link="") == "![Llama 3.1 8B: QLoRA fits 24 GiB at 2,048](vramplan-badge.svg)"
    assert markdown(made, link="https://example.org/?v=2", file="img/fits.svg") == "[![Llama 3.1 8B: QLoRA fits 24 GiB at 2,048](img/fits.svg)](https://example.org/?v=2)"


def test_the_terminal_prints_the_badge_its_markdown_and_its_document(tmp_path):
    settings = parse({"model": "qwen3-8b", "gpu": "12"})
    made = badge(estimate(settings))
    arguments, page = ("badge", "--model", "qwen3-8b", "--gpu", "12"), "https://example.org/vram/"
    link = f"{page}?{to_query(settings)}"
    assert run(*arguments).out == svg(made)
    told = run(*arguments, "--markdown", "--link", f"{page}?v=2")
    assert (told.returncode, told.out) == (0, markdown(made, link=link) + "\n")
    assert run(*arguments, "--markdown").out == markdown(made, link="") + "\n"
    printed = printed_json(*arguments, "--link", f"{page}?v=2")
    assert printed == {"model": made.model, "text": made.text, "verdict": made.verdict, "file": badges.FILE, "svg": svg(made), "markdown": markdown(made, link=link)}
    path = tmp_path / "fits.svg"
    assert run(*arguments, "--output", str(path)).out == "" and path.read_text("utf-8") == svg(made)
    assert run(*arguments, "--output", "/nowhere/x.svg").returncode == 2


def test_a_run_that_is_not_counted_has_no_badge():
    told = run("badge", "--accounting", "planning", "--model", "olmoe-1b-7b")
    assert told.returncode == 2 and told.out == "" and told.err.startswith("vramplan: --")
