"""The main job of the product, as a member does it: form, start, output, end."""

import re

import pytest
from playwright.sync_api import expect
from steps import SignIn, fill_form, shoot, submit

from contrib.demo.portal import Portal

pytestmark = pytest.mark.browser

START_MS = 60_000
END_MS = 180_000


def test_a_member_submits_ddp_and_four_ranks_report(sign_in: SignIn) -> None:
    page = sign_in("nlp-1")
    fill_form(
        page,
        template="ddp",
        group="nlp",
        partition="a100",
        qos="normal",
        nodes="2",
        nproc_per_node="2",
        time_limit="10",
        name="two-by-two",
        working_directory="~/demo/ddp",
        environment="torch-2.13",
        **{"v-script": "train.py"},
    )
    expect(page.locator("#preview")).to_contain_text("--nodes=2")
    expect(page.locator("#preview")).to_contain_text("two-by-two")
    shoot(page, "submit", height=1000)
    submit(page)

    page.wait_for_url(re.compile(r"/jobs/\d+"))
    output = page.locator("[data-pane]")
    expect(output).to_contain_text("rank 0 of 4", timeout=START_MS)
    for rank in range(1, 4):
        expect(output).to_contain_text(f"rank {rank} of 4")
    state = page.locator("#state")
    expect(state).to_contain_text("COMPLETED", timeout=END_MS)
    hosts = set(re.findall(r"rank \d of 4 on (\S+)", output.inner_text()))
    assert len(hosts) == 2
    output.evaluate("pane => { pane.scrollTop = 0; }")
    shoot(page, "job", height=1000)

    page.goto("/jobs?state=COMPLETED&name=two-by-two")
    expect(page.locator("main")).to_contain_text("two-by-two")
    shoot(page, "jobs")


def test_only_nodes_and_processes_change_the_scale(sign_in: SignIn) -> None:
    page = sign_in("nlp-1")
    fill_form(page, template="ddp", nodes="1", nproc_per_node="4", **{"v-script": "train.py"})
    preview = page.locator("#preview")
    expect(preview).to_contain_text("--nodes=1")
    expect(preview).to_contain_text("4")
    page.fill("[name=nodes]", "2")
    page.fill("[name=nproc_per_node]", "8")
    expect(preview).to_contain_text("--nodes=2")
    expect(preview).to_contain_text(re.compile(r"--gpus-per-node=\S*8"))
    expect(preview).to_contain_text("16")


def test_a_running_job_is_cancelled_from_its_page(sign_in: SignIn) -> None:
    page = sign_in("nlp-2")
    fill_form(
        page,
        template="command",
        group="nlp",
        time_limit="10",
        name="sleeper",
        working_directory="~",
        **{"v-command": "sleep 300"},
    )
    submit(page)
    page.wait_for_url(re.compile(r"/jobs/\d+"))
    state = page.locator("#state")
    expect(state).to_contain_text("RUNNING", timeout=START_MS)
    page.get_by_role("button", name="Cancel").first.click()
    page.locator("main form button").first.click()
    expect(page.locator("#state")).to_contain_text("CANCELLED", timeout=START_MS)
    expect(page.locator("main")).to_contain_text("nlp-2")


def test_the_end_of_a_job_is_shown_everywhere_and_disturbs_nothing(sign_in: SignIn) -> None:
    """Without a reload: the buttons, the allocation and the events; focus and output stay."""
    page = sign_in("nlp-2")
    fill_form(
        page,
        template="command",
        group="nlp",
        time_limit="10",
        name="short",
        working_directory="~",
        **{"v-command": "sh -c 'echo begun; sleep 12'"},
    )
    submit(page)
    page.wait_for_url(re.compile(r"/jobs/\d+"))
    output, facts, actions = (
        page.locator(one) for one in ("[data-pane]", "#facts", "#state .actions")
    )
    expect(output).to_contain_text("begun", timeout=START_MS)
    expect(page.locator("#state")).to_contain_text("RUNNING", timeout=START_MS)
    expect(facts).to_contain_text(re.compile(r"a100-\d|rtx4090-\d|debug-\d"))
    expect(actions).to_contain_text("Cancel")
    output.evaluate("pane => { pane.firstChild.marked = true; pane.focus(); }")
    expect(page.locator("#state")).to_contain_text("COMPLETED", timeout=END_MS)
    expect(actions).to_be_empty()
    expect(output).to_be_focused()
    assert output.evaluate("pane => pane.firstChild.marked"), "the output was drawn anew"


def test_a_refusal_by_slurm_is_a_sentence_that_helps(portal: Portal, sign_in: SignIn) -> None:
    """The limit is set in Slurm after the portal read the policy, so only Slurm can refuse."""
    page = sign_in("biolab-1")
    fill_form(
        page,
        template="command",
        group="biolab",
        time_limit="10",
        name="one-too-many",
        working_directory="~",
        **{"v-command": "hostname"},
    )
    limit = ["sacctmgr", "-i", "modify", "user", "where", "name=biolab-1", "set"]
    assert portal.cluster.run([*limit, "MaxSubmitJobs=0"]).returncode == 0
    try:
        submit(page)
        page.wait_for_load_state()
        shown = page.locator("main")
        expect(shown).to_contain_text("as many jobs in the queue as it may")
        expect(shown).not_to_contain_text("Traceback")
        expect(shown).not_to_contain_text(re.compile(r"\bError\b|errno|pyslurm"))
        shoot(page, "refused")
    finally:
        portal.cluster.run([*limit, "MaxSubmitJobs=-1"])
