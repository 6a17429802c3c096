"""A run in the order of time: its frames beside the ledger, the drawings of it, and the command that makes them.

Belongs here: frames, their drawing as SVG, PNG and blocks, `vramplan timeline`. The page's drawing: browser/test_drawn_step.py.
"""

from io import BytesIO
import json
import random
import re
import sys
import time
import xml.etree.ElementTree as ElementTree

from hypothesis import example, given, settings as hypothesis_settings
from PIL import Image
import pytest

from command import printed_json, run
from configurations import CUSTOM_STEP, OPENING, random_configuration
from strategies import configurations
from test_source_rules import STATIC
from vramplan import NotExpressible, Settings, chronicle, estimate, png as png_module
from vramplan.blocks import BLOCKS, LETTERS
from vramplan.documents import TimelineDocument
from vramplan.errors import Missing
from vramplan.png import png
from vramplan.scene import Area, Label, Line, for_a_file, scene
from vramplan.settings import parse
from vramplan.svg import DARK, LIGHT, svg
from vramplan.timechart import NARROW, WIDE
from vramplan.timeline import MOST_LAYERS, timeline


PARTS = ["load", "step 1, micro-batch 1", "step 1, optimizer step", "step 2, micro-batch 1", "step 2, a later micro-batch",
         "step 2, optimizer step"]
MOST_FRAMES = 700
BETWEEN = "backward of a layer between"


def of(configuration=OPENING, **changes):
    return timeline(parse({**configuration, **changes}))


def rows(frame):
    return {term.name: term.bytes for term in frame.terms}


def frames_of(shown, part):
    (found,) = [each for each in shown.parts if each.name == part]
    return shown.frames[found.start : found.end]


# Frames and the ledger


def check_against_the_ledger(shown):
    one = shown.estimate
    assert shown.peak.bytes == one.peak_bytes
    for moment in one.moments:
        largest = max(frame.bytes for frame in shown.frames if frame.moment == moment.name)
        if moment.name.startswith(BETWEEN):  # of the layers between, the ledger looks at those that can be the peak
            assert moment.bytes <= largest <= one.peak_bytes
        else:
            assert largest == moment.bytes, moment.name


@given(configurations("step"))
@example(OPENING)
@example({**CUSTOM_STEP, "num_layers": "1", "checkpointing": "none"})
@example({**CUSTOM_STEP, "num_layers": "1024"})
@hypothesis_settings(max_examples=60)
def test_the_largest_frame_of_every_moment_is_that_moment_of_the_ledger(typed):
    shown = timeline(parse(typed))
    check_against_the_ledger(shown)
    assert len(shown.frames) <= MOST_FRAMES


@pytest.mark.parametrize("seed", range(60))
def test_frames_and_ledger_agree_for_random_runs(seed):
    shown = timeline(parse(random_configuration(random.Random(seed), "step")))
    check_against_the_ledger(shown)
    for frame in shown.frames:
        assert all(term.bytes > 0 for term in frame.terms) and len(rows(frame)) == len(frame.terms)


@pytest.mark.parametrize("seed", range(20))
def test_the_tensors_behind_a_frame_add_up_to_its_rows(seed):
    generator = random.Random(seed)
    shown = timeline(parse(random_configuration(generator, "step")), most_layers=6)
    for frame in generator.sample(shown.frames, 20):
        for row, holdings in frame.inspect().items():
            behind = sum(holding.bytes for holding in holdings)
            assert all(holding.bytes > 0 and holding.count > 0 and holding.why for holding in holdings), frame.name
            assert behind <= rows(frame)[row] if row in ("base_weights", "reference_weights") else behind == rows(frame)[row], frame.name


def test_a_frame_is_the_same_however_many_layers_are_drawn():
    few, many = (timeline(Settings(), most_layers=count) for count in (4, 32))
    by_name = {(frame.part, frame.name, number): frame for number, frame in enumerate(many.frames)}
    names = {(part, name): frame for (part, name, _), frame in by_name.items() if "loss" not in name}
    shared = [frame for frame in few.frames if (frame.part, frame.name) in names]
    assert len(shared) > 40
    for frame in shared:
        assert frame.terms == names[frame.part, frame.name].terms
        assert frame.inspect() == names[frame.part, frame.name].inspect()


def test_parts_come_in_the_order_of_a_run():
    assert [part.name for part in of().parts] == PARTS
    assert [part.name for part in of(gradient_accumulation_steps="1").parts] == [name for name in PARTS if "later" not in name]


def test_states_are_there_once_a_step_has_made_them_and_gradients_once_a_layer_has():
    shown = of()
    assert not any("optimizer_states" in rows(frame) for frame in (*frames_of(shown, PARTS[0]), *frames_of(shown, PARTS[1])))
    for part in PARTS[2:]:
        assert all("optimizer_states" in rows(frame) for frame in frames_of(shown, part))
    assert "gradients" not in rows(frames_of(shown, PARTS[3])[0])
    assert "gradients" in rows(frames_of(shown, PARTS[4])[0])
    assert set(rows(shown.frames[0])) == {"base_weights", "adapters"}


def test_without_checkpoints_a_layer_leaves_its_tensors_forward_and_frees_them_backward():
    shown = of(checkpointing="none")
    saved = [rows(frame).get("saved_activations", 0) for frame in frames_of(shown, PARTS[1]) if "layer" in frame.name]
    half = len(saved) // 2
    assert saved[:half] == sorted(saved[:half]) and saved[half:] == sorted(saved[half:], reverse=True)
    assert saved[half - 1] > 20 * saved[2]


def test_gradients_of_a_full_run_grow_layer_by_layer():
    gradients = [rows(frame).get("gradients", 0) for frame in frames_of(of(method="full"), PARTS[1]) if frame.name.startswith("backward, behind")]
    steps = {after - before for before, after in zip(gradients, gradients[1:], strict=False)}
    assert len(gradients) == 32 and len(steps) == 1 and steps.pop() > 0


def test_a_deep_model_is_drawn_by_evenly_spread_layers_with_both_ends():
    shown = of(model="llama-3.1-70b")
    layers = [int(frame.name.rpartition(" ")[2]) for frame in frames_of(shown, PARTS[1]) if frame.name.startswith("forward, layer")]
    assert (layers[0], layers[-1], len(layers)) == (1, 80, MOST_LAYERS)
    gaps = {after - before for before, after in zip(layers, layers[1:], strict=False)}
    assert gaps == {2, 3}
    assert any("Of 80 layers, 32 are drawn" in sentence for sentence in chronicle.left_out(shown))


def test_what_is_left_out_is_said():
    assert any("micro-batches 2 to 8 of step 1 are left out" in sentence for sentence in chronicle.left_out(of()))
    assert any("micro-batch 2 of step 1 is left out" in sentence for sentence in chronicle.left_out(of(gradient_accumulation_steps="2")))
    assert not any("micro-batch" in sentence for sentence in chronicle.left_out(of(gradient_accumulation_steps="1")))


def test_a_timeline_takes_little_time():
    settings = Settings(model="llama-3.1-70b")
    estimate(settings)
    taken = []
    for _ in range(20):
        start = time.perf_counter()
        timeline(settings)
        taken.append(time.perf_counter() - start)
    assert min(taken) < 0.1  # around a tenth of that on a machine with nothing else to do


def test_the_planning_formula_has_no_timeline():
    with pytest.raises(NotExpressible) as refused:
        timeline(Settings(accounting="planning"))
    assert refused.value.field == "accounting" and "timeline" in refused.value.message


def test_the_reference_runs_between_the_forward_pass_and_the_comparison():
    names = [frame.name for frame in frames_of(of(stack="trl-1.15", objective="dpo"), PARTS[3])]
    place = names.index("forward, each layer of the reference")
    assert names[place + 1] == "forward, head of the reference"
    assert (names[place - 1], names[place + 2]) == ("loss: turn of the reference", "loss: comparison")


def test_checkpoints_that_wait_in_host_memory_are_on_the_gpu_in_the_first_step():
    shown = of(stack="unsloth-2025.11", checkpointing="offloaded")
    first, second = (max(rows(frame).get("saved_activations", 0) for frame in frames_of(shown, PARTS[part])) for part in (1, 3))
    assert first > 10 * second > 0


# What is told


@pytest.mark.parametrize("place", ["peak", 0, 30, -1])
def test_rows_of_what_is_alive_add_up_to_the_frame(place):
    shown = of()
    index = shown.peak_index if place == "peak" else place % len(shown.frames)
    for most in (3, 14, 1_000):
        told = chronicle.alive(shown, index, most=most)
        assert len(told) <= most + 1
        assert sum(float(row.gib) for row in told) == pytest.approx(shown.frames[index].bytes / 2**30, abs=0.0006 * len(told))


def test_the_legend_names_what_the_run_has_from_the_top_down():
    labels = [row.label for row in chronicle.legend(of(), 0)]
    assert labels[0] == "Logits and loss" and labels[-1] == "Base weights" and "Master weights" not in labels
    assert "Adapters" not in [row.label for row in chronicle.legend(of(method="full"), 0)]


def test_two_runs_differ_by_their_peaks():
    first, second = of(), of(method="lora")
    assert "6.21 GiB higher" in chronicle.against(first, second) and "6.21 GiB lower" in chronicle.against(second, first)
    assert "the same to the byte" in chronicle.against(first, first)


# Drawings


def heights(drawn, name):
    """(x, upper edge, lower edge) of a component's area at the left of each of its stairs."""
    (area,) = [piece for piece in drawn.pieces if isinstance(piece, Area) and piece.name == name]
    return area.corners


@pytest.mark.parametrize("frame", [WIDE, NARROW], ids=["wide", "narrow"])
@pytest.mark.parametrize("seed", range(10))
def test_everything_drawn_lies_inside_the_drawing(frame, seed):
    drawn = scene(timeline(parse(random_configuration(random.Random(seed), "step")), most_layers=8), frame=frame)
    for piece in drawn.pieces:
        corners = piece.corners if isinstance(piece, Area | Line) else [(piece.x, piece.y)]
        assert all(0 <= x <= frame.width and 0 <= y <= frame.height for x, y in corners), piece


def test_areas_stand_on_one_another_and_end_at_the_total():
    shown = of()
    drawn = scene(shown)
    chart = drawn.chart
    bases = [max(y for _, y in heights(drawn, band.name)) for band in chart.bands]
    assert bases[0] == chart.frame.floor and bases == sorted(bases, reverse=True)
    tops = {y for _, y in chart.bands[-1].corners}
    assert set(chart.tops) <= tops
    assert chart.tops[shown.peak_index] == min(chart.tops)


def test_the_lines_say_where_usable_memory_and_budget_are():
    drawn = scene(of())
    lines = {piece.role: piece.corners[0][1] for piece in drawn.pieces if isinstance(piece, Line) and piece.role in ("usable", "budget")}
    assert lines["budget"] < lines["usable"]
    assert any(isinstance(piece, Label) and "usable 23.51 of 24.00 GiB" in piece.text for piece in drawn.pieces)


def test_a_run_that_does_not_fit_reaches_above_the_line():
    drawn = scene(of(gpu="8"))
    assert min(drawn.chart.tops) < drawn.chart.usable_y


def test_frames_are_found_where_they_are_drawn():
    chart = scene(of()).chart
    for index in range(len(chart.tops)):
        assert chart.frame_at(at=10 + chart.middle(index) / 2, left=10, width=chart.frame.width / 2) == index
    assert chart.frame_at(at=-5, left=0, width=640) == 0 and chart.frame_at(at=9_999, left=0, width=640) == len(chart.tops) - 1


def test_a_run_laid_over_is_drawn_phase_by_phase_at_its_own_heights():
    first, second = of(), of(method="lora", model="llama-3.2-1b")
    drawn = scene(first, over=second)
    (path,) = drawn.chart.over
    same = scene(second).chart
    assert [x for x, _ in path] == sorted(x for x, _ in path)
    assert path[0][0] == drawn.chart.edges[0] and path[-1][0] == drawn.chart.edges[-1]
    scale = (drawn.frame.floor - min(y for _, y in path)) / second.peak.bytes
    assert scale == pytest.approx((drawn.frame.floor - min(drawn.chart.tops)) / first.peak.bytes, rel=0.01)
    assert len(same.tops) != len(drawn.chart.tops)


def test_a_part_that_one_run_lacks_leaves_a_gap_in_the_other():
    first, second = of(), of(gradient_accumulation_steps="1")
    assert len(scene(first, over=second).chart.over) == 2
    assert len(scene(second, over=first).chart.over) == 1


def test_the_svg_stands_alone_and_says_what_it_shows():
    shown, over = of(), of(method="lora")
    text = svg(for_a_file(shown, over=over), shown, over)
    root = ElementTree.fromstring(text)
    space = "{http://www.w3.org/2000/svg}"
    assert root.get("role") == "img" and set(root.get("aria-labelledby").split()) == {root.find(f"{space}title").get("id"), root.find(f"{space}desc").get("id")}
    assert "Llama 3.1 8B" in root.find(f"{space}title").text and "12.86 GiB" in root.find(f"{space}desc").text
    assert "prefers-color-scheme: dark" in text and not re.search(r"https?://(?!www\.w3\.org/2000/svg)|url\(|@import|<script", text)
    texts = [each.text for each in root.iter(f"{space}text")]
    for wanted in ("micro-batch 1", "optimizer step", "peak 12.86 GiB", "the run laid over", "Base weights 7.27"):
        assert wanted in texts


def test_a_name_cannot_bring_markup_into_the_svg():
    shown = of()
    drawn = for_a_file(shown)
    hostile = type(drawn)(drawn.chart, drawn.pieces, "<script>&", "]]> <b>")
    assert ElementTree.fromstring(svg(hostile, shown)).find("{http://www.w3.org/2000/svg}title").text == "<script>&"


def test_the_colours_of_a_file_are_those_of_the_page():
    sheet = (STATIC / "style.css").read_text(encoding="utf-8")
    pairs = re.findall(r"--([\w-]+): light-dark\((#[0-9a-f]{6}), (#[0-9a-f]{6})\);", sheet)
    for number, ours in enumerate((LIGHT, DARK), start=1):
        theirs = {pair[0]: pair[number] for pair in pairs}
        assert {name: colour for name, colour in ours.items() if name in theirs} == {name: theirs[name] for name in ours if name in theirs}
        assert set(chronicle.ORDER) <= set(theirs) & set(ours)


def test_the_png_shows_the_colours_of_the_largest_components():
    shown, over = of(), of(method="lora")
    image = Image.open(BytesIO(png(for_a_file(shown, over=over), shown, over)))
    assert image.format == "PNG" and image.width == 2_400
    counts = {colour: count for count, colour in image.convert("RGB").getcolors(maxcolors=2**20)}
    for name in ("base_weights", "activations", "logits", "optimizer_states", "over", "surface"):
        assert counts[tuple(bytes.fromhex(LIGHT[name][1:]))] > 500, name


def test_without_pillow_a_sentence_says_how_to_get_it(monkeypatch):
    monkeypatch.setitem(sys.modules, "PIL", None)
    shown = of()
    with pytest.raises(Missing) as missing:
        png_module.png(for_a_file(shown), shown)
    assert "vramplan[png]" in str(missing.value)


# The command


def test_the_command_draws_the_run_with_its_peak_line_and_legend():
    done = run("timeline")
    shown = timeline(Settings())
    assert (done.returncode, done.err) == (0, "")
    for text in ("◆", "▼", "─", "█", chronicle.sentence(shown), "Usable memory", *chronicle.left_out(shown), *PARTS):
        assert text in done.out
    assert max(map(len, done.out.split("\n\n")[2].splitlines())) <= 100


def test_every_component_has_a_character_of_its_own():
    for characters in (BLOCKS, LETTERS):
        assert set(characters) == set(chronicle.ORDER) and len(set(characters.values())) == len(characters)


def test_letters_stand_for_blocks_where_asked_for():
    drawing = run("timeline", "--ascii").out.split("\n\n")[2]
    assert drawing.isascii() and "L" in drawing and "W" in drawing and "v" in drawing


def test_the_largest_frame_is_the_highest_column():
    lines = run("timeline", "--method", "full", "--gpu", "80", "--ascii").out.split("\n\n")[2].splitlines()
    (marked,) = [number for number, line in enumerate(lines) if "v" in line]
    column = lines[marked].index("v")
    assert lines[marked + 1][column].isalpha()
    assert all(not line[5:].strip("- ") for line in lines[:marked])


@pytest.mark.parametrize(("named", "moment"), [("loss", "loss"), ("1", ""), ("optimizer step", "optimizer step"), ("forward, layer 3", "forward")])
def test_a_moment_lists_what_is_alive_with_shape_and_reason(named, moment):
    done = run("timeline", "--moment", named)
    shown = timeline(Settings())
    index = shown.find(named)
    assert done.returncode == 0 and shown.frames[index].moment.startswith(moment)
    assert f"frame {index + 1} of {len(shown.frames)}" in done.out and "Together" in done.out
    assert "there from loading to the end" in done.out and "(128,256, 4,096)" in done.out


@pytest.mark.parametrize("named", ["lunch", "0", "99999", "9" * 5_000, "-1", "", "²"])
def test_a_moment_that_is_not_there_is_bad_input(named):
    done = run("timeline", f"--moment={named}")
    assert (done.returncode, done.out) == (2, "") and done.err.startswith("vramplan: --moment: must be a frame from 1 to ")


def test_a_second_run_is_laid_over_and_told():
    done = run("timeline", "--against", "?v=2&method=lora")
    assert done.returncode == 0 and "•" in done.out
    assert chronicle.against(timeline(Settings()), timeline(Settings(method="lora"))) in done.out


@pytest.mark.parametrize(
    ("arguments", "start"),
    [(("--accounting", "planning"), "--accounting: The planning formula"), (("--against", "?v=2&rank=0"), "--against: "),
     (("--against", "?v=2&accounting=planning"), "--against: The planning formula"), (("--svg", "/no/such/folder/x.svg"), "/no/such/folder/x.svg could not be written")])
def test_what_cannot_be_drawn_is_bad_input_with_a_sentence(arguments, start):
    done = run("timeline", *arguments)
    assert (done.returncode, done.out) == (2, "") and done.err.startswith(f"vramplan: {start}") and done.err.count("\n") == 1


def test_files_are_written(tmp_path):
    done = run("timeline", "--svg", str(tmp_path / "a.svg"), "--png", str(tmp_path / "a.png"))
    assert done.returncode == 0
    assert ElementTree.parse(tmp_path / "a.svg").getroot().tag.endswith("svg")
    with Image.open(tmp_path / "a.png") as image:
        assert image.height > 600


def test_json_is_the_document_of_the_library():
    printed = printed_json("timeline", "--moment", "loss", "--against", "?v=2&method=lora")
    shown, over = timeline(Settings()), timeline(Settings(method="lora"))
    assert printed == json.loads(TimelineDocument.of(shown, shown.find("loss"), over).to_json())
    assert set(printed) == set(TimelineDocument.model_json_schema()["properties"])
    assert printed["frames"][printed["peak_frame"] - 1]["bytes"] == printed["peak_bytes"] == max(frame["bytes"] for frame in printed["frames"])
    for frame in printed["frames"]:
        assert sum(frame["terms"].values()) == frame["bytes"]
    assert printed["against"]["difference_bytes"] == over.peak.bytes - shown.peak.bytes
    assert printed["shown_frame"] == shown.find("loss") + 1 and printed["tensors"]
    assert printed_json("timeline")["against"] is None
