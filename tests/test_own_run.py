"""A measured run: what is read out of pastes, pickles and messages of all kinds, what it says, and that nothing hostile gets through.

Belongs here: reading, comparing, explaining, and the command `measured`. The page: browser/test_measured_runs.py. The script that
measures: test_measure.py.
"""

import json
import pickle
import random
import re
import subprocess
import sys

from hypothesis import given, settings as hypothesis_settings, strategies as st
import pytest

from command import ENVIRONMENT, run
from strategies import configurations
from vramplan import Settings, estimate, own_run
from vramplan.accountings import peak_bytes
from vramplan.errors import NotExpressible
from vramplan.importing.problems import ImportProblem
from vramplan.ledger import NO
from vramplan.link import read_query, to_query
from vramplan.measured_run import against, doubts, failure
from vramplan.measured_run.amounts import as_printed, asked_of_driver, least_asked
from vramplan.measured_run.pickled import plain_data
from vramplan.measured_run.reading import read_file, read_text
from vramplan.measured_run.record import AMOUNTS, MAX_DIGITS, Record, format_record, parse_record
from vramplan.measured_run.rows import matching_rows
from vramplan.measured_run.snapshot import read_snapshot
from vramplan.settings import format_settings, parse
from vramplan_site.recorded import measured as measured_runs
from vramplan_site.recorded import traced as traced_runs

KIB, MIB, GIB = 2**10, 2**20, 2**30

# Messages as PyTorch has printed them, oldest first, and what is in them.
OLDEST = ("RuntimeError: CUDA out of memory. Tried to allocate 20.00 MiB (GPU 0; 10.76 GiB total capacity; 9.42 GiB already allocated; "
          "13.56 MiB free; 350.50 MiB cached)")
OLD = ("RuntimeError: CUDA out of memory. Tried to allocate 2.00 GiB (GPU 0; 23.69 GiB total capacity; 21.10 GiB already allocated; 1.20 GiB free; "
       "22.00 GiB reserved in total by PyTorch) If reserved memory is >> allocated memory try setting max_split_size_mb to avoid fragmentation.")
ALLOWED = OLD.replace("1.20 GiB free; ", "1.20 GiB free; 23.00 GiB allowed; ")
MISSPELT = ("torch.cuda.OutOfMemoryError: CUDA out of memory. Tried to allocate 2.00 GiB. GPU 0 has a total capacty of 23.69 GiB of which 1.20 GiB is "
            "free. Including non-PyTorch memory, this process has 22.47 GiB memory in use. Of the allocated memory 21.10 GiB is allocated by PyTorch, and "
            "921.60 MiB is reserved by PyTorch but unallocated. If reserved but unallocated memory is large try setting max_split_size_mb")
NEW = MISSPELT.replace("capacty", "capacity").replace("torch.cuda.", "torch.")
LISTED = NEW.replace("Including non-PyTorch memory, this process has 22.47 GiB memory in use.",
                     "Process 1184 has 512.00 MiB memory in use. Process 3652628 has 22.47 GiB memory in use.")
HIP = NEW.replace("CUDA out", "HIP out")
PRIVATE = NEW.replace("is allocated by PyTorch, and", "is allocated by PyTorch, with 64.00 MiB allocated in private pools (e.g., CUDA Graphs), and")
TRACEBACK = f"""Traceback (most recent call last):
  File "/home/me/train.py", line 51, in <module>
    trainer.train()
  File ".../transformers/loss/loss_utils.py", line 47, in ForCausalLMLoss
    logits = logits.float()
             ^^^^^^^^^^^^^^
{NEW.replace(" is free. ", chr(10) + "is free.   ")}
  0%|          | 0/100 [00:03<?, ?it/s]
"""
HELD, TRIED, TOTAL = round(21.1 * GIB), 2 * GIB, round(23.69 * GIB)


@pytest.mark.parametrize("text", [OLD, ALLOWED, MISSPELT, NEW, LISTED, HIP, PRIVATE, TRACEBACK, f"{OLD}\n{OLD}"])
def test_every_generation_of_the_message_is_read(text):
    record = read_text(text).record
    assert (record.tried, record.total) == (TRIED, TOTAL)
    assert abs(record.held - HELD) <= 1 and abs(record.free - 1.2 * GIB) <= 1
    assert abs(record.pool - 22 * GIB) <= 2
    assert record.taken is None if "Process " not in text and "process" not in text else abs(record.taken - 22.47 * GIB) <= 1


def test_the_oldest_message_has_cached_in_place_of_reserved():
    record = read_text(OLDEST).record
    assert record.tried == 20 * MIB and record.pool == round(350.5 * MIB)


def test_the_first_of_several_different_messages_is_taken_and_said():
    reading = read_text(f"[rank1]: {NEW}\n[rank0]: {OLD.replace('2.00 GiB', '3.00 GiB')}")
    assert reading.record.tried == TRIED and "2 different" in reading.told[0]


@pytest.mark.parametrize("text", [
    "RuntimeError: CUDA error: out of memory", "torch.cuda.OutOfMemoryError: CUDA out of memory.",
    "RuntimeError: CUDA error: CUBLAS_STATUS_ALLOC_FAILED when calling `cublasCreate(handle)`"])
def test_a_failure_without_amounts_is_named_as_one(text):
    with pytest.raises(ImportProblem, match="ran out of memory, but the message has no amounts"):
        read_text(text)


@pytest.mark.parametrize(("text", "expected"), [
    ("13207024640", {"allocated": 13_207_024_640}),
    (" 13,207,024,640 bytes\n", {"allocated": 13_207_024_640}),
    ("12.5 GiB", {"allocated": 25 * GIB // 2}),
    ("12.5GB", {"allocated": 12_500_000_000}),
    ("torch.cuda.max_memory_allocated(): 13207024640", {"allocated": 13_207_024_640}),
    ("max_memory_reserved = 13.0 GiB", {"reserved": 13 * GIB}),
    ("peak allocated: 12.5 GiB, peak reserved: 13 GiB", {"allocated": 25 * GIB // 2, "reserved": 13 * GIB}),
    ("peak reserved 13 GiB; peak allocated 12.5 GiB", {"allocated": 25 * GIB // 2, "reserved": 13 * GIB}),
    ("Peak reserved memory = 7.5 GB.", {"reserved": 7_500_000_000}),
    ("the process used 14 GiB", {"process": 14 * GIB}),
])
def test_amounts_are_read_with_their_unit_and_what_they_are(text, expected):
    reading = read_text(text)
    assert {name: getattr(reading.record, name) for name in AMOUNTS if getattr(reading.record, name) is not None} == expected
    assert any("power of ten" in told for told in reading.told) == ("GB" in text)


@pytest.mark.parametrize("text", ["12", "12.5", "1024", "hello", "0", "allocated: none", "9" * 400, "GiB", "1e9", "!?"])
def test_a_text_without_an_amount_is_refused_in_a_sentence(text):
    with pytest.raises(ImportProblem) as caught:
        read_text(text)
    assert str(caught.value).endswith(".") and len(str(caught.value)) < 400


def summary(device, peak, reserved, unit="KiB"):
    """A summary in the layout of torch.cuda.memory_summary(), with amounts in whole units of 1,024 bytes."""
    def row(name, value):
        return f"| {name:<21} | {value // KIB:6d} {unit} | {value // KIB:6d} {unit} | {9 * value // KIB:6d} {unit} | {8 * value // KIB:6d} {unit} |"
    rule = "|" + "-" * 75 + "|"
    rows = [row("Allocated memory", peak), row("      from large pool", peak), row("Active memory", peak), row("GPU reserved memory", reserved)]
    return "\n".join([f"|                  PyTorch CUDA memory summary, device ID {device:<17d} |", rule,
                      "|        Metric         | Cur Usage  | Peak Usage | Tot Alloc  | Tot Freed  |", rule, *rows, rule])


@pytest.mark.parametrize("unit", ["KiB", "KB"])
def test_a_summary_gives_the_peaks_of_the_fullest_device(unit):
    text = f"before\n{summary(0, 3 * GIB, 4 * GIB, unit)}\n{summary(1, 13 * GIB, 14 * GIB, unit)}\nafter"
    reading = read_text(text)
    assert (reading.record.allocated, reading.record.reserved) == (13 * GIB, 14 * GIB)
    assert "card 1" in reading.told[0]


def test_a_summary_printed_by_pytorch_itself_is_read():
    """The layout of torch 2.13.0, with thousands of MiB as it prints large amounts."""
    line = "| Allocated memory      |  12000 MiB |  12595 MiB | 812345 MiB | 800345 MiB |"
    text = f"|                  PyTorch CUDA memory summary, device ID 0                 |\n{line}\n| GPU reserved memory   |  13000 MiB |  13356 MiB |  13356 MiB |      0 B   |"
    assert read_text(text).record == Record(allocated=12_595 * MIB, reserved=13_356 * MIB)


STATISTICS = {"allocated_bytes.all.current": 5, "allocated_bytes.all.peak": 13 * GIB, "reserved_bytes.all.peak": 14 * GIB, "num_ooms": 0}


@pytest.mark.parametrize("text", [
    json.dumps(STATISTICS), json.dumps(STATISTICS, indent=2), repr(STATISTICS), f"OrderedDict({list(STATISTICS.items())})",
    json.dumps({"allocated_bytes": {"all": {"allocated": 3, "current": 5, "peak": 13 * GIB}}, "reserved_bytes": {"all": {"peak": 14 * GIB}}})])
def test_statistics_are_read_as_json_and_as_python_prints_them(text):
    assert read_text(text).record == Record(allocated=13 * GIB, reserved=14 * GIB)


SMI = """\
|   0  NVIDIA GeForce RTX 4090        On  |   00000000:01:00.0  On |                  Off |
|  0%   41C    P8             21W /  450W |   21504MiB /  24564MiB |      2%      Default |
| Processes:                                                                              |
|    0   N/A  N/A            2190      G   /usr/lib/xorg/Xorg                       480MiB |
|    0   N/A  N/A            2190    C+G   /usr/bin/desktop thing                   300MiB |
|    0   N/A  N/A           77190      C   .../envs/train/bin/python              20480MiB |
"""


@pytest.mark.parametrize(("text", "mib"), [
    (SMI, 20_480), (SMI.partition("| Processes")[0], 21_504), ("pid, process_name, used_gpu_memory [MiB]\n77190, python, 20480 MiB\n", 20_480)])
def test_nvidia_smi_gives_the_process_or_else_the_card(text, mib):
    reading = read_text(text)
    assert reading.record == Record(process=mib * MIB)
    assert ("others use" in " ".join(reading.told)) == (mib == 21_504)


def test_the_line_of_the_script_gives_all_of_it():
    current = against.fingerprint(Settings())
    reading = read_text(f'x\nvramplan-measured v1 allocated=13207024640 reserved=14004781056 process=14500000000 torch=2.13.0 transformers=5.24.0 '
                        f'gpu="NVIDIA L4" settings={current}\n')
    assert reading.record == Record(allocated=13_207_024_640, reserved=14_004_781_056, process=14_500_000_000, settings=current)
    assert "NVIDIA L4" in reading.told[0] and "2.13.0" in reading.told[0]


def test_the_line_of_a_machine_without_a_gpu_is_refused():
    with pytest.raises(ImportProblem, match="without a GPU"):
        read_text("vramplan-measured v1 allocated=0 reserved=0 process=0 torch=2.13.0 settings=01234567")


amounts = st.one_of(st.none(), st.integers(0, 10**MAX_DIGITS - 1))


@given(st.builds(lambda values, over, settings: Record(**dict(zip(AMOUNTS, values, strict=True)), over=over, settings=settings),
                 st.tuples(*[amounts] * len(AMOUNTS)), st.one_of(st.none(), st.integers(-(10**MAX_DIGITS) + 1, 10**MAX_DIGITS - 1)),
                 st.sampled_from(("", "01234567", "ffffffff"))))
def test_a_record_is_the_same_after_writing_and_reading(record):
    text = format_record(record)
    assert parse_record(text) == (record if record.kind or record.failed else None)


@given(st.text(st.sampled_from("alocted.reservd-procinghu0123456789with xü=&"), max_size=200))
def test_what_is_no_record_is_none_and_what_is_comes_out_in_one_form(text):
    record = parse_record(text)
    assert record is None or parse_record(format_record(record)) == record


@given(st.one_of(st.text(max_size=300), st.text(st.sampled_from("CUDA out of memory. Tried to allocate 2.0GiB(PU;|0123456789 MKB\n\t'\":{}=-"), max_size=600)))
def test_no_text_is_answered_with_anything_but_a_reading_or_a_sentence(text):
    try:
        reading = read_text(text)
    except ImportProblem as problem:
        assert problem.message.endswith(".")
    else:
        assert parse_record(format_record(reading.record)) == reading.record


@pytest.mark.parametrize("text", [
    "1" * 10**6, "CUDA out of memory. " * 50_000, " ".join(["Tried to allocate 2.00 GiB (GPU 0;"] * 20_000), "| Allocated memory |" * 50_000,
    "'allocated_bytes': {'all': {" * 40_000, "vramplan-measured v1" + " a=b" * 200_000, "reserved " * 100_000, "1,\n" * 200_000, "a" * (5 * MIB), "{" * 10**6])
def test_long_texts_are_answered_soon(text):
    """Every expression is linear in the text: a minute would be far more than any of these needs."""
    try:
        read_text(text)
    except ImportProblem as problem:
        assert len(str(problem)) < 500


# A snapshot as torch.cuda.memory._dump_snapshot writes it: plain data of the documented structure.

def frames(*places):
    return [{"filename": filename, "line": line, "name": name} for filename, line, name in places]


LOSS = frames(("/env/lib/python3.12/site-packages/torch/nn/functional.py", 3479, "cross_entropy"),
              ("/env/lib/python3.12/site-packages/transformers/loss/loss_utils.py", 36, "fixed_cross_entropy"), ("/home/me/train.py", 51, "<module>"))
WEIGHTS = frames(("/home/me/train.py", 12, "load"))


def event(action, addr, size, where=()):
    return {"action": action, "addr": addr, "size": size, "stream": 0, "time_us": 1_700_000_000_000_000 + addr, "compile_context": "N/A",
            "user_metadata": "", "pool_id": (0, 0), "frames": list(where)}


def block(addr, size, state="active_allocated", where=()):
    return {"address": addr, "size": size, "requested_size": size - 100, "state": state, "frames": list(where)}


def snapshot(*, recorded_from=0):
    """8 GiB of weights stay; 2 GiB and 3 GiB come for the loss and go: the peak is 13 GiB, 8 GiB are left."""
    trace = [
        event("segment_alloc", 1 << 40, 20 * GIB),
        event("alloc", 1 << 40, 8 * GIB - 100, WEIGHTS),
        event("alloc", 2 << 40, 2 * GIB, LOSS),
        event("alloc", 3 << 40, 3 * GIB - 500, LOSS),
        event("free_requested", 3 << 40, 3 * GIB - 500),
        event("free_completed", 3 << 40, 3 * GIB - 500),
        event("free_requested", 2 << 40, 2 * GIB),
        event("free_completed", 2 << 40, 2 * GIB),
        event("snapshot", 0, 0),
    ]
    segment = {"device": 0, "address": 1 << 40, "total_size": 20 * GIB, "stream": 0, "segment_type": "large", "segment_pool_id": (0, 0),
               "allocated_size": 8 * GIB, "active_size": 8 * GIB, "requested_size": 8 * GIB - 100, "is_expandable": False, "frames": [],
               "blocks": [block(1 << 40, 8 * GIB, where=WEIGHTS if recorded_from else ()), block(9 << 40, 12 * GIB, "inactive")]}
    return {"segments": [segment], "device_traces": [trace[recorded_from:], []], "external_annotations": [],
            "allocator_settings": {"expandable_segments": False, "max_split_size": -1, "garbage_collection_threshold": 0.0, "roundup_power2_divisions": {"1": 0}}}


@pytest.mark.parametrize("protocol", [2, 3, 4, 5])
@pytest.mark.parametrize("recorded_from", [0, 2])
def test_a_snapshot_is_replayed_to_its_peak_wherever_the_recording_began(protocol, recorded_from):
    reading = read_file(pickle.dumps(snapshot(recorded_from=recorded_from), protocol=protocol))
    assert reading.record == Record(allocated=13 * GIB)
    assert [(each.bytes, each.count) for each in reading.blocks] == [(8 * GIB, 1), (5 * GIB, 2)]
    assert [each.place for each in reading.blocks] == ["train.py:12 load", "loss_utils.py:36 fixed_cross_entropy"]


def test_a_snapshot_of_a_failed_run_has_what_was_tried_and_held():
    content = snapshot()
    content["device_traces"][0].insert(4, {"action": "oom", "size": 4 * GIB, "device_free": GIB, "stream": 0, "frames": []})
    reading = read_file(pickle.dumps(content))
    assert reading.record == Record(held=13 * GIB, tried=4 * GIB, free=GIB)


def test_a_snapshot_without_a_recording_is_said_to_show_no_peak():
    content = snapshot() | {"device_traces": [[]]}
    reading = read_file(pickle.dumps(content))
    assert reading.record == Record(allocated=8 * GIB) and "not the peak" in reading.told[0]


def test_the_card_with_the_largest_peak_is_taken():
    content = snapshot()
    content["segments"].append(content["segments"][0] | {"device": 1, "blocks": [block(7 << 40, 14 * GIB)]})
    reading = read_file(pickle.dumps(content))
    assert reading.record == Record(allocated=14 * GIB) and any("card 1" in told for told in reading.told)


plain = st.recursive(st.one_of(st.none(), st.booleans(), st.integers(-(2**100), 2**100), st.floats(allow_nan=False), st.text()),
                     lambda inside: st.one_of(st.lists(inside), st.lists(inside).map(tuple), st.dictionaries(st.text(), inside)), max_leaves=40)


@given(plain, st.integers(2, 5))
def test_plain_data_comes_back_as_python_reads_it(content, protocol):
    assert plain_data(pickle.dumps(content, protocol=protocol)) == content


class Calls:
    def __reduce__(self):
        return print, ("called",)


class State:
    def __init__(self):
        self.x = 1


@pytest.mark.parametrize("content", [Calls(), State(), print, {1, 2}, {"segments": Calls()}, bytearray(b"x"), complex(1, 2), range(3)])
@pytest.mark.parametrize("protocol", [2, 4, 5])
def test_a_pickle_that_wants_more_than_data_is_refused_and_nothing_is_called(content, protocol, capsys):
    with pytest.raises(ImportProblem) as caught:
        read_file(pickle.dumps(content, protocol=protocol))
    assert caught.value.code == "not_plain" and "called" not in capsys.readouterr().out


HOSTILE = {
    "nested": b"\x80\x04" + b"]" * 100_000 + b"a" * 99_999 + b".",
    "bomb": b"\x80\x04]\x94" + b"".join(b"](" + b"h%c" % (n - 1) * 9 + b"e\x94" for n in range(1, 200)) + b".",
    "itself": b"\x80\x04]\x94h\x00a.",
    "long number": b"\x80\x04\x8b\xff\xff\xff\x7f" + b"1" * 100 + b".",
    "long text": b"\x80\x04\x8d\xff\xff\xff\xff\xff\xff\xff\x7fx.",
    "no mark": b"\x80\x04Ne.",
    "two results": b"\x80\x04NN.",
    "no result": b"\x80\x04.",
    "mark as result": b"\x80\x04(.",
    "mark in a list": b"\x80\x04](a.",
    "unknown memo": b"\x80\x04h\x05.",
    "list into text": b"\x80\x04X\x01\x00\x00\x00xNa.",
    "odd items": b"\x80\x04}(Nu.",
    "key that is a list": b"\x80\x04}]Ns.",
    "class by name": b"\x80\x04\x8c\x02os\x8c\x06system\x93.",
    "old class": b"\x80\x02cos\nsystem\n.",
    "number as snapshot": b"\x80\x04K\x01.",
    "empty": b"\x80\x04}.",
    "segments of text": b"\x80\x04}X\x08\x00\x00\x00segmentsX\x01\x00\x00\x00xs.",
    "nothing": b"\x80",
}


@pytest.mark.parametrize("data", HOSTILE.values(), ids=HOSTILE)
def test_hostile_pickles_are_answered_with_one_sentence(data):
    with pytest.raises(ImportProblem) as caught:
        read_file(data)
    assert str(caught.value).count("Traceback") == 0 and len(str(caught.value)) < 400


@given(st.data())
def test_a_damaged_snapshot_is_a_reading_or_a_sentence(data):
    whole = bytearray(pickle.dumps(snapshot(), protocol=data.draw(st.integers(2, 5))))
    for _ in range(data.draw(st.integers(1, 6))):
        whole[data.draw(st.integers(2, len(whole) - 1))] = data.draw(st.integers(0, 255))
    try:
        read_file(bytes(whole[: data.draw(st.integers(1, len(whole)))]))
    except ImportProblem as problem:
        assert problem.message.endswith(".")


def test_amounts_of_a_snapshot_that_no_memory_has_are_refused():
    content = snapshot()
    content["segments"][0]["blocks"][0]["size"] = 2**63
    with pytest.raises(ImportProblem):
        read_file(pickle.dumps(content))
    content["segments"][0]["blocks"][0]["size"] = -5
    with pytest.raises(ImportProblem):
        read_snapshot(pickle.dumps(content))


@pytest.mark.parametrize(("size", "asked", "printed"), [
    (1, 2 * MIB, "2.00 MiB"), (MIB, 2 * MIB, "2.00 MiB"), (MIB + 1, 20 * MIB, "20.00 MiB"), (10 * MIB - 512, 20 * MIB, "20.00 MiB"),
    (10 * MIB, 10 * MIB, "10.00 MiB"), (10 * MIB + 1, 12 * MIB, "12.00 MiB"), (1_050_673_152, 1002 * MIB, "1002.00 MiB"), (2 * GIB - 5, 2 * GIB, "2.00 GiB")])
def test_a_request_is_rounded_and_printed_as_pytorch_does(size, asked, printed):
    assert asked_of_driver(size) == asked and as_printed(asked) == printed
    assert asked_of_driver(least_asked(asked)) == asked and least_asked(asked) <= max(size, MIB + 1)


RUN = Settings(model="llama-3.1-8b", method="qlora", sequence_length=4096, micro_batch=2)


def measured(run, **values):
    """The estimate of a run with a measurement of exactly that run."""
    current = estimate(run)
    return estimate(against.with_record(run, against.attached(Record(**values), current)))


def test_what_was_measured_is_held_against_the_estimate_of_the_same_kind():
    plain = estimate(RUN)
    told = measured(RUN, allocated=plain.peak_bytes + GIB, reserved=plain.reserved.high + 5, process=plain.process.low - 7)
    record = against.record_of(told.settings)
    assert [(each.kind, each.difference) for each in against.compared(told, record)] == [("allocated", GIB), ("reserved", 5), ("process", -7)]
    assert told.terms == plain.terms and told.peak_bytes == plain.peak_bytes
    assert against.adjusted_headroom(told) == plain.headroom_bytes - GIB
    assert "+1.00 GiB" in own_run.adjusted_text(told) and "1.00 GiB" in own_run.own_run(told).sentences[0]


def test_the_measurement_stays_in_the_link_and_knows_whether_the_settings_have_changed():
    told = measured(RUN, allocated=estimate(RUN).peak_bytes + GIB)
    link = read_query(to_query(told.settings))
    again = parse(link.texts, version=link.version)
    assert again == told.settings and not own_run.own_run(estimate(again)).other
    on_another_card = again.replace(gpu=80, replicas=4)
    assert not own_run.own_run(estimate(on_another_card)).other
    longer = estimate(again.replace(sequence_length=8192))
    other = own_run.own_run(longer)
    assert other.other and "only assumed" in other.settings
    assert against.adjusted_headroom(longer) == longer.headroom_bytes - GIB
    assert "measured with other settings" in own_run.adjusted_text(longer)
    taken = parse(read_query(other.query_here).texts)
    assert not own_run.own_run(estimate(taken)).other
    assert parse(read_query(other.forgotten).texts) == longer.settings.replace(measured="")


@hypothesis_settings(max_examples=30)
@given(configurations(accounting="step", small=True))
def test_a_measurement_goes_with_every_run_and_changes_none(typed):
    run = parse(typed)
    try:
        plain = estimate(run)
    except NotExpressible:
        return
    told = measured(run, allocated=max(plain.peak_bytes + 3, 1))
    assert parse(format_settings(told.settings)) == told.settings
    assert told.terms == plain.terms and told.verdict == plain.verdict
    assert against.adjusted_headroom(told) == plain.headroom_bytes - 3


def test_the_planning_formula_says_that_it_is_not_held_against_a_run():
    run = Settings(accounting="planning")
    told = own_run.own_run(estimate(run.varied(measured="allocated.13207024640")))
    assert told.measures == () and "training step" in told.sentences[0]


@pytest.mark.parametrize(("change", "at"), [
    ({"loss": "fused-linear"}, "Loss: Fused linear (Liger)"), ({"attention_kernel": "eager"}, "Attention kernel: Eager"),
    ({"checkpointing": "none"}, "Gradient checkpointing: Off"), ({"kbit_preparation": "none"}, "Preparation of the quantised model: None")])
def test_the_wrong_assumption_is_found_and_taken_over(change, at):
    told = measured(RUN, allocated=peak_bytes(RUN.varied(**change)) + 12_345)
    why = own_run.explained(told)
    assert why.choices[0].likely and why.choices[0].label == at
    assert why.sentences[-1].startswith(f"Likely: {at}")
    taken = estimate(parse(read_query(why.choices[0].query).texts))
    assert taken.peak_bytes == peak_bytes(RUN.varied(**change)) and not own_run.own_run(taken).other


def test_optimizers_are_told_apart_in_full_fine_tuning():
    run = Settings(model="qwen3-0.6b", method="full", gpu=24)
    told = measured(run, allocated=peak_bytes(run.varied(optimizer="sgd-momentum")))
    assert own_run.explained(told).choices[0].label == "Optimizer: SGD with momentum"


def test_two_wrong_assumptions_are_found_together():
    run = Settings(model="qwen2.5-1.5b", method="lora", sequence_length=4096, loss="fused-linear", gpu=24)
    true = run.varied(attention_kernel="eager", base_precision="fp32")
    told = measured(run, allocated=peak_bytes(true))
    assert peak_bytes(true) in [peak_bytes(parse(read_query(each.query).texts)) for each in own_run.explained(told).choices]


def test_a_row_that_is_as_large_as_the_difference_is_named():
    current = estimate(RUN)
    weights = next(term for term in current.terms if term.name == "base_weights")
    found = matching_rows(current, weights.bytes + 1_000)
    assert ("base_weights", "", 1, 1_000) in [(each.term, each.holding, each.times, each.apart) for each in found]
    assert matching_rows(current, 5 * MIB) == ()


def quiet_and_right(runs, most_wrong):
    """Runs whose real settings are known: nothing is called likely for these, and with one setting wrong the right one is found."""
    generator, outcomes = random.Random(11), {"right": 0, "wrong": 0, "unnamed": 0}
    for each in runs:
        real = doubts.doubts(each.settings, Record(allocated=each.allocated))
        assert real.likely is None, each.id
        change = generator.choice(doubts.single_changes(each.settings))
        try:
            wrong, right = peak_bytes(each.settings.varied(**change)), peak_bytes(each.settings)
        except NotExpressible:
            continue
        if doubts.is_off(wrong - each.allocated, measured=each.allocated):
            likely = doubts.doubts(each.settings.varied(**change), Record(allocated=each.allocated)).likely
            outcomes["unnamed" if likely is None else "right" if likely.peak_bytes == right else "wrong"] += 1
    assert outcomes["right"] >= 8 and outcomes["wrong"] <= most_wrong, outcomes


def test_the_rule_for_likely_holds_on_measured_runs():
    quiet_and_right([run for run in measured_runs() if run.allocated and run.exact], 0)


def test_the_rule_for_likely_holds_on_traced_runs():
    quiet_and_right(random.Random(5).sample(traced_runs(), 60), 1)


def message(moment, tensor, **changes):
    """What PyTorch says when this tensor of a moment is the one that does not fit any more."""
    one = tensor.bytes // tensor.count
    held = moment.bytes - one
    return NEW.replace("2.00 GiB. GPU", f"{as_printed(asked_of_driver(one))}. GPU").replace("21.10 GiB", as_printed(held)).replace("921.60 MiB", "100.00 MiB")


def test_a_failed_run_is_led_to_the_tensor_and_the_moment():
    current = estimate(RUN)
    loss = next(moment for moment in current.moments if moment.name == "loss")
    largest = next(each for each in loss.inspect()["logits"] if each.name == "gradient of logits in float32")
    told = measured(RUN, **vars(read_text(message(loss, largest)).record) | {"settings": "", "over": None})
    why = own_run.explained(told)
    first = why.tensors[0]
    assert (first.label, first.shape, first.moment, first.same) == ("Gradient of logits in float32", "(B, S, 128,256)", "Loss", True)
    assert any("as it turned out" in sentence for sentence in own_run.own_run(told).sentences)
    assert told.verdict == NO


def test_a_failed_run_that_the_settings_cannot_explain_is_led_to_those_that_can():
    current = estimate(RUN)
    loss = next(moment for moment in current.moments if moment.name == "loss")
    largest = next(each for each in loss.inspect()["logits"] if each.name == "gradient of logits in float32")
    wrong = RUN.varied(loss="fused-linear")
    told = measured(wrong, **vars(read_text(message(loss, largest)).record) | {"settings": "", "over": None})
    why = own_run.explained(told)
    assert why.choices and peak_bytes(parse(read_query(why.choices[0].query).texts)) == current.peak_bytes
    assert any("too low" in sentence for sentence in own_run.own_run(told).sentences)
    assert "at least" in own_run.adjusted_text(told) and against.adjusted_headroom(told) < told.headroom_bytes


@pytest.mark.parametrize(("run", "name", "moment"), [
    (Settings(model="qwen3-0.6b", method="full", gpu=8), "embedding", "Loading of the model"),
    (Settings(model="qwen3-0.6b", method="full", gpu=8), "optimizer state of embedding", "First optimizer step"),
])
def test_weights_and_states_are_among_what_may_have_been_asked_for(run, name, moment):
    size = 151_936 * 1_024 * 2
    told = measured(run, tried=asked_of_driver(size), held=GIB)
    assert any(each.label.lower() == name and each.moment.startswith(moment) for each in own_run.explained(told).tensors)


def test_a_small_request_is_said_to_tell_nothing_of_its_tensor():
    why = own_run.explained(measured(RUN, **vars(read_text(OLDEST).record) | {"settings": "", "over": None}))
    assert why.tensors == () and "cannot be told" in " ".join(why.sentences)


def test_memory_in_pieces_is_said_to_be_that():
    record = failure.failure(estimate(RUN), read_text(NEW.replace("921.60 MiB", "2.50 GiB")).record)
    assert record.in_pieces and not failure.failure(estimate(RUN), read_text(NEW).record).in_pieces


def printed(text, *arguments):
    done = subprocess.run([sys.executable, "-m", "vramplan", "measured", *arguments], input=text, capture_output=True, env=ENVIRONMENT, timeout=60)
    assert b"Traceback" not in done.stderr
    return done


def test_the_command_reads_standard_input_and_says_what_it_found():
    done = printed(b"16386650169", "-", "--sequence-length", "4096", "--micro-batch", "2")
    out = done.stdout.decode()
    assert done.returncode == 1 and "Likely: Loss" in out and "With your run’s difference" in out


def test_the_command_reads_a_snapshot_and_prints_a_document(tmp_path):
    path = tmp_path / "snapshot.pickle"
    path.write_bytes(pickle.dumps(snapshot()))
    done = run("measured", str(path), "--json")
    document = json.loads(done.out)
    assert document["source"] == "a memory snapshot" and document["compared"][0]["measured_bytes"] == 13 * GIB
    assert document["adjusted_headroom_bytes"] == document["headroom_bytes"] - document["compared"][0]["difference_bytes"]
    assert [each["place"] for each in document["blocks"]] == ["train.py:12 load", "loss_utils.py:36 fixed_cross_entropy"]
    assert re.search(r"measured=allocated\.13958643712", document["query"])


@pytest.mark.parametrize("arguments", [("nothing-here.txt",), (), ("-", "--accounting", "planning"), ("-", "--measured", "allocated.x")])
def test_the_command_answers_what_it_cannot_use_with_one_sentence(arguments):
    done = printed(b"hello", *arguments)
    assert done.returncode == 2 and done.stdout == b"" and done.stderr.decode().startswith("vramplan: ") and done.stderr.count(b"\n") == 1
