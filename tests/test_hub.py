"""Models by their id: what is asked for, and a sentence for every answer that is not the file."""

import json

import pytest

from hub_stand_in import TOTAL, hub
from vramplan import cli, fetching
from vramplan.importing import hub as hub_words
from vramplan.importing.problems import ImportProblem


@pytest.fixture
def stand_in(monkeypatch):
    with hub() as server:
        monkeypatch.setenv(fetching.ORIGIN_VARIABLE, server.origin)
        yield server


def imported(capsys, *arguments):
    status = cli.main(["import", "--json", *arguments])
    return status, json.loads(capsys.readouterr().out)


def test_a_model_is_fetched_by_its_id_and_nothing_else_is_asked_for(stand_in, capsys):
    status, document = imported(capsys, "--hub", "ok/Qwen2.5-7B")
    assert (status, document["parameters"]["total"]) == (0, TOTAL)
    assert stand_in.asked == ["/ok/Qwen2.5-7B/resolve/main/config.json", "/api/resolve-cache/ok/Qwen2.5-7B/config.json"]


def test_an_estimate_takes_a_model_from_the_hub(stand_in, capsys):
    assert cli.main(["estimate", "--hub", "ok/Qwen2.5-7B", "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["parameters"]["total"] == TOTAL


@pytest.mark.parametrize("name, code", (
    ("gated/m", "gated"), ("forbidden/m", "gated"), ("missing/m", "not_found"), ("busy/m", "busy"), ("broken/m", "hub_failed"), ("html/m", "html"),
    ("huge/m", "too_large"), ("cut/m", "cut_off"), ("elsewhere/m", "hub_failed"),
))
def test_every_other_answer_is_a_sentence(stand_in, capsys, name, code):
    status, document = imported(capsys, "--hub", name)
    assert (status, document["error"]["code"]) == (2, code)
    assert document["error"]["message"].endswith(".") and document["error"]["hint"]


def test_a_slow_answer_is_not_waited_for(stand_in, capsys, monkeypatch):
    monkeypatch.setattr(hub_words, "TIMEOUT_SECONDS", 0.3)
    status, document = imported(capsys, "--hub", "slow/m")
    assert (status, document["error"]["code"]) == (2, "timeout")


def test_no_network_is_said(monkeypatch, capsys):
    with hub() as server:
        origin = server.origin
    monkeypatch.setenv(fetching.ORIGIN_VARIABLE, origin)
    status, document = imported(capsys, "--hub", "ok/m")
    assert (status, document["error"]["code"]) == (2, "offline")


@pytest.mark.parametrize("typed, name", (
    ("Qwen/Qwen3-8B", "Qwen/Qwen3-8B"), (" gpt2 ", "gpt2"), ("https://huggingface.co/Qwen/Qwen3-8B", "Qwen/Qwen3-8B"),
    ("https://huggingface.co/Qwen/Qwen3-8B/blob/main/config.json", "Qwen/Qwen3-8B"), ("https://hf.co/a/b?x=1", None), ("hf.co/a/b", None),
    ("", None), ("a/b/c", None), ("../etc/passwd", None), ("a b/c", None), ("https://huggingface.co/datasets/x/y", None), ("a/b?x", None),
    ("//evil.example/a", None), ("https://evil.example/a/b", None), ("a/../b", None), ("a@b/c", None), ("a/b#c", None), ("ä/b", None),
))
def test_ids_are_taken_and_everything_else_is_refused(typed, name):
    if name:
        assert hub_words.model_id(typed) == name
        assert hub_words.address(name).startswith(f"{hub_words.ORIGIN}/{name}/")
    else:
        with pytest.raises(ImportProblem):
            hub_words.model_id(typed)
