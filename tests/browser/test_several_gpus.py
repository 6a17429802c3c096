"""Several GPUs on the page: the settings, the peak against their number, and host memory.

Belongs here: what only shows once a run divides its states. What the numbers are: tests/test_gpus.py.
"""

import re

from playwright.sync_api import expect

import runs
from vramplan import report
from vramplan.gpus import gpu_curve

DIVIDED = {"method": "full", "gpu": "80", "gradient_accumulation_steps": "1", "sharding": "fsdp2", "sharded_over": "4"}


def test_a_run_is_divided_over_gpus_and_the_drawing_says_how_many_it_needs(calculator):
    expect(calculator.region("Memory against the number of GPUs")).to_be_hidden()
    expect(calculator.control("sharded_over")).to_be_hidden()
    calculator.set(**DIVIDED)
    run = runs.of(**DIVIDED)
    calculator.expect_headline(run)
    drawn, region = gpu_curve(run.settings, "fsdp2"), calculator.region("Memory against the number of GPUs")
    for text in (report.gpu_sentence(drawn), report.gpu_floor(drawn)):
        expect(region).to_contain_text(text)
    expect(region.get_by_role("img", name=re.compile("^Peak memory per GPU against the number of GPUs"))).to_be_visible()
    region.get_by_text("The drawing as a table", exact=True).click()
    rows = region.get_by_role("table").get_by_role("row").filter(has=calculator.root.get_by_role("rowheader"))
    expect(rows).to_have_count(len(drawn.points))
    now = rows.filter(has_text="now")
    expect(now).to_contain_text(report.gpu_rows(run, drawn)[3].peak)
    expect(calculator.fact("Effective batch")).to_contain_text("4 sequences")


def test_what_is_offloaded_is_listed_under_host_memory(calculator):
    changes = {**DIVIDED, "offload": "optimizer-and-parameters"}
    calculator.set(**changes)
    run, region = runs.of(**changes), calculator.region("Host memory")
    expect(region).to_contain_text(report.host_sentence(run))
    for row in report.host(run):
        expect(region.get_by_role("row").filter(has_text=row.label)).to_contain_text(row.gib)
    calculator.set(sharding="none")
    expect(region).to_be_hidden()


def test_what_does_not_go_together_is_named_instead_of_a_number(calculator):
    calculator.set(**{**DIVIDED, "offload": "optimizer"})
    expect(calculator.answer).to_contain_text("moves parameters, gradients and optimizer states together")


def test_a_run_that_does_not_fit_is_shown_what_dividing_it_would_do(calculator):
    calculator.set(method="full", gpu="24")
    region = calculator.region("Memory against the number of GPUs")
    run = runs.of(method="full", gpu="24")
    expect(region).to_contain_text(report.gpu_sentence(gpu_curve(run.settings, "fsdp2")))
