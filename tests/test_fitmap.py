"""The map of what fits: each cell is a run of its own, and every one of them is drawn once, on its side of the line.

Belongs here: fitmap.py, mapchart.py and the words of the map. What one run comes to: the tests of its accounting; pointing at it: browser/.
"""

from hypothesis import given, settings as hypothesis_settings, strategies as st
import pytest

from configurations import CUSTOM_STEP, OPENINGS, SMALL_DELTA_NET
from strategies import configurations
from vramplan import Settings, estimate, fit, report
from vramplan.fitmap import fit_map, map_in_steps
from vramplan.ledger import VERDICTS
from vramplan.link import read_query
from vramplan.mapchart import NARROW, WIDE, band, layout
from vramplan.settings import parse

RUNS = {
    "opening": {}, "eager": {"attention_kernel": "eager"}, "a short model": {"model": "llama-2-7b"}, "tiles": {"stack": "trl-1.15"},
    "a batch beside the powers": {"micro_batch": "5", "sequence_length": "2000"}, "a large batch": {"micro_batch": "700", "sequence_length": "3"},
    "latent attention": {"model": "deepseek-v2-lite", "gpu": "80"}, "rows in chunks": {**CUSTOM_STEP, **SMALL_DELTA_NET, "method": "lora", "gpu": "8"},
    "pairs": {"stack": "trl-1.15", "objective": "dpo", "gpu": "80"}, "nothing fits": {"method": "full", "gpu": "8"},
    "everything fits": {"model": "custom", "hidden_size": "64", "num_layers": "1", "num_attention_heads": "2", "num_kv_heads": "1", "intermediate_size": "8",
                        "head_dim": "8", "vocab_size": "8", "gpu": "180"},
}


def every(made):
    return [(row, column, cell) for row, cells in enumerate(made.cells) for column, cell in enumerate(cells)]


@pytest.mark.parametrize("accounting", OPENINGS)
@hypothesis_settings(max_examples=12)
@given(data=st.data())
def test_every_cell_is_the_run_with_its_batch(accounting, data):
    settings = parse(data.draw(configurations(accounting=accounting, small=True)))
    for _, _, cell in every(fit_map(settings))[::29]:
        alone = estimate(settings.replace(micro_batch=cell.micro_batch, sequence_length=cell.sequence_length))
        assert (cell.peak_bytes, cell.headroom_bytes, cell.verdict, cell.fits) == (alone.peak_bytes, alone.headroom_bytes, alone.verdict, alone.fits)


@pytest.mark.parametrize("run", RUNS)
def test_cells_of_every_kind_of_run_are_the_run_with_their_batch(run):
    settings = parse(RUNS[run])
    for _, _, cell in every(fit_map(settings))[::17]:
        alone = estimate(settings.replace(micro_batch=cell.micro_batch, sequence_length=cell.sequence_length))
        assert (cell.peak_bytes, cell.verdict) == (alone.peak_bytes, alone.verdict)


@pytest.mark.parametrize("run", RUNS)
def test_the_map_goes_in_order_up_to_the_cap_and_holds_the_run_itself(run):
    settings = parse(RUNS[run])
    made = fit_map(settings)
    assert list(made.micro_batches) == sorted(set(made.micro_batches)) and list(made.lengths) == sorted(set(made.lengths))
    assert made.micro_batches[0] == 1 and made.micro_batches[-1] >= 64 and made.lengths[-1] == settings.max_sequence_length
    row, column = made.current
    assert made.cells[row][column].peak_bytes == estimate(settings).peak_bytes
    assert [[(c.micro_batch, c.sequence_length) for c in cells] for cells in made.cells] == [[(b, s) for s in made.lengths] for b in made.micro_batches]


@pytest.mark.parametrize("run", RUNS)
def test_the_longest_sequences_are_those_that_a_search_finds(run):
    settings = parse(RUNS[run])
    made = fit_map(settings)
    assert [micro_batch for micro_batch, _, _ in made.longest][:7] == [1, 2, 4, 8, 16, 32, 64]
    for micro_batch, limit, cell in made.longest[::3]:
        found = fit(settings.replace(micro_batch=micro_batch)).longest_sequence
        assert limit == found and (cell.sequence_length if cell else None) == found.value


def test_a_map_is_made_in_steps_that_each_count_little():
    steps, made = 0, None
    making = map_in_steps(Settings())
    while made is None:
        try:
            next(making)
            steps += 1
        except StopIteration as done:
            made = done.value
    assert steps >= len(every(made))


# The drawing


def covered(drawn, row, column):
    """The bands whose rectangles hold the middle of a cell."""
    left, top, right, bottom = drawn.box(row, column)
    x, y = (left + right) / 2, (top + bottom) / 2
    return [each.name for each in drawn.bands for a, b, c, d in each.boxes if a < x < c and b < y < d]


@pytest.mark.parametrize("frame", [WIDE, NARROW], ids=["wide", "narrow"])
@pytest.mark.parametrize("run", RUNS)
def test_every_cell_is_drawn_once_in_its_band_and_found_again_where_it_is(run, frame):
    drawn = layout(fit_map(parse(RUNS[run])), frame=frame)
    for row, column, cell in every(drawn.made):
        left, top, right, bottom = drawn.box(row, column)
        assert frame.left <= left < right <= frame.plot_right and frame.top <= top < bottom <= frame.floor
        assert covered(drawn, row, column) == [band(cell, drawn.made.usable_bytes)] and drawn.cell(row, column) is cell
        assert drawn.cell_at((left + right) / 2, (top + bottom) / 2) == (row, column)
    assert drawn.cell_at(-50, 9_999) == (0, 0) and drawn.cell_at(9_999, -50) == (len(drawn.ys) - 2, len(drawn.xs) - 2)


@pytest.mark.parametrize("run", RUNS)
def test_the_line_is_between_neighbours_with_and_without_headroom_and_nowhere_else(run):
    drawn = layout(fit_map(parse(RUNS[run])))
    cells, edges = drawn.made.cells, {frozenset(((x, y), (to_x, to_y))) for x, y, to_x, to_y in drawn.budget}
    rows, columns, found = len(cells), len(cells[0]), set()
    for row, column, cell in every(drawn.made):
        left, top, right, bottom = drawn.box(row, column)
        within = cell.headroom_bytes >= 0
        if column + 1 < columns and (cells[row][column + 1].headroom_bytes >= 0) != within:
            found.add(frozenset(((right, top), (right, bottom))))
        if row + 1 < rows and (cells[row + 1][column].headroom_bytes >= 0) != within:
            found.add(frozenset(((left, top), (right, top))))
    assert edges == found and len(drawn.budget) == len(edges)


def test_bands_follow_the_verdict_and_the_headroom():
    names = {}
    for run in RUNS.values():
        made = fit_map(parse(run))
        for _, _, cell in every(made):
            name = band(cell, made.usable_bytes)
            names.setdefault(name, []).append((cell.verdict, cell.headroom_bytes / made.usable_bytes))
    assert set(names) <= set(report.MAP_BANDS)
    assert {verdict for name in ("ample", "easy", "close") for verdict, _ in names[name]} == {"yes"}
    assert {verdict for name in ("over", "far") for verdict, _ in names[name]} == {"no"}
    assert min(share for _, share in names["ample"]) >= 0.5 > max(share for _, share in names["easy"]) >= min(share for _, share in names["easy"]) >= 0.25
    assert max(share for _, share in names["close"]) < 0.25 and max(share for _, share in names["far"]) < -1 <= min(share for _, share in names["over"])


def test_ticks_are_powers_of_two_with_room_for_their_labels():
    for frame in (WIDE, NARROW):
        for run in RUNS.values():
            drawn = layout(fit_map(parse(run)), frame=frame)
            for ticks, room in ((drawn.x_ticks, 50), (drawn.y_ticks, 12)):
                assert ticks and all(tick.value & (tick.value - 1) == 0 for tick in ticks)
                places = [tick.at for tick in ticks]
                assert all(abs(b - a) >= room for a, b in zip(places, places[1:], strict=False))


def test_keys_move_to_neighbours_and_stop_at_the_edges():
    drawn = layout(fit_map(Settings()))
    assert drawn.moved((3, 4), 1, 0) == (4, 4) and drawn.moved((3, 4), 0, -1) == (3, 3)
    assert drawn.moved((0, 0), -1, 0) == drawn.moved((0, 0), 0, -1) == (0, 0)
    last = (len(drawn.ys) - 2, len(drawn.xs) - 2)
    assert drawn.moved(last, 1, 0) == drawn.moved(last, 0, 1) == last


# The words


def test_a_cell_is_read_with_its_peak_its_headroom_and_its_verdict():
    made = fit_map(Settings())
    cells = {verdict: next(cell for _, _, cell in every(made) if cell.verdict == verdict) for verdict in ("yes", "no")}
    for cell in cells.values():
        text = report.map_reading(cell)
        for part in (f"Micro-batch {cell.micro_batch}", f"{cell.sequence_length:,} tokens", f"{cell.peak_bytes / 2**30:.2f} GiB", f"{abs(cell.headroom_bytes) / 2**30:.2f}"):
            assert part in text
    assert "of headroom, fits" in report.map_reading(cells["yes"]) and "too much, does not fit" in report.map_reading(cells["no"])


def test_rows_of_the_table_lead_to_the_longest_run_of_each_micro_batch():
    settings = Settings(micro_batch=4)
    made = fit_map(settings)
    rows = report.map_rows(made)
    assert [row.current for row in rows] == [row.micro_batch == "4" for row in rows]
    for (micro_batch, limit, cell), row in zip(made.longest, rows, strict=True):
        run = parse(read_query(row.query).texts)
        assert run == settings.replace(micro_batch=micro_batch, sequence_length=limit.value) and row.tokens.rstrip("+") == f"{limit.value:,}"
        assert row.peak == f"{cell.peak_bytes / 2**30:.2f}"


def test_where_nothing_fits_the_map_and_its_table_say_so():
    made = fit_map(parse(RUNS["nothing fits"]))
    assert "none of them fit." in report.map_sentence(made)
    assert {(row.tokens, row.query) for row in report.map_rows(made)} == {("None", "")}
    assert set(dict(report.map_legend(layout(made)))) <= {"over", "far"}


def test_every_verdict_has_a_band():
    assert set(VERDICTS) - {"yes", "no"} <= set(report.MAP_BANDS)
