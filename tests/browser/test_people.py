"""What each kind of person sees, on each kind of screen."""

import re
import uuid
from collections.abc import Iterator

import pytest
from playwright.sync_api import expect
from steps import SignIn, choose, shoot, submit

from contrib.demo.__main__ import JOB
from contrib.demo.portal import Portal

pytestmark = pytest.mark.browser

COMMAND = {
    **JOB,
    "template": "command",
    "environment": "none",
    "nodes": "1",
    "nproc_per_node": "1",
    "name": "quick",
    "working_directory": "~",
    "values": {"command": "hostname"},
}


def job_of(portal: Portal, login: str) -> int:
    made = portal.api(login).post("/submissions", COMMAND, key=str(uuid.uuid4()))
    return int(made["job_id"])


def test_owner_leader_colleague_and_stranger(portal: Portal, sign_in: SignIn) -> None:
    job = f"/jobs/{job_of(portal, 'nlp-1')}"
    owner = sign_in("nlp-1")
    owner.goto(job)
    expect(owner.locator("[data-pane]")).to_be_visible()

    colleague = sign_in("nlp-2")
    colleague.goto(job)
    expect(colleague.locator("[data-pane]")).to_have_count(0)
    expect(colleague.locator("pre.script")).to_have_count(0)

    stranger = sign_in("vision-1")
    answer = stranger.goto(job)
    assert answer is not None
    assert answer.status == 404

    administrator = sign_in("admin-1")
    administrator.goto(job)
    expect(administrator.locator("h1")).to_contain_text("quick")


BUSY = (
    # Who, group, partition, QoS, nodes, GPUs on each. The fourth finds no room.
    ("nlp-1", "nlp", "a100", "normal", 2, 8),
    ("vision-1", "vision", "a100", "normal", 1, 4),
    ("biolab-1", "biolab", "rtx4090", "normal", 1, 6),
    ("vision-1", "vision", "a100", "normal", 2, 8),
    ("nlp-2", "nlp", "a100", "normal", 1, 8),
)


@pytest.fixture
def busy(portal: Portal) -> Iterator[list[int]]:
    """Jobs of several people, more than there is room for; cancelled afterwards."""
    made = []
    for login, group, partition, qos, nodes, gpus in BUSY:
        values = {"command": "sleep 600", "gpus_per_node": str(gpus)}
        where = {"group": group, "partition": partition, "qos": qos, "nodes": str(nodes)}
        ask = {**COMMAND, **where, "name": f"{group}-train", "time_limit": "2:00:00"}
        answer = portal.api(login).post(
            "/submissions", {**ask, "values": values}, key=str(uuid.uuid4())
        )
        made.append((login, int(answer["job_id"])))
    yield [job for _, job in made]
    for login, job in made:
        portal.api(login).post(f"/jobs/{job}/cancel", {})


def test_the_cluster_page_counts_cards(sign_in: SignIn, busy: list[int]) -> None:
    page = sign_in("vision-lead")
    page.goto("/cluster")
    main = page.locator("main")
    for word in ("a100", "rtx4090", "debug"):
        expect(main).to_contain_text(word)
    expect(main.get_by_role("table").filter(has_text="Longest wait").first).to_be_visible(
        timeout=60_000
    )
    expect(main).to_contain_text("0 of 8 free", timeout=60_000)
    assert busy
    shoot(page, "cluster", height=840)


def test_the_form_works_without_javascript(portal: Portal, sign_in: SignIn) -> None:
    page = sign_in("nlp-1", java_script_enabled=False)
    page.goto("/submit")
    page.check("input[name=template][value=command]")
    page.click("button.without-script")
    page.fill("[name='v-command']", "echo said-without-script")
    page.fill("[name=name]", "no-script")
    page.fill("[name=working_directory]", "~")
    page.fill("[name=time_limit]", "5")
    submit(page)
    page.wait_for_url(re.compile(r"/jobs/\d+"))
    for _ in range(40):
        page.click("#output a.without-script")
        if "said-without-script" in page.locator("[data-pane]").inner_text():
            return
        page.wait_for_timeout(500)
    raise AssertionError("the output never came")


def test_the_form_is_sent_by_keyboard_alone(sign_in: SignIn) -> None:
    page = sign_in("nlp-1")
    page.goto("/submit")
    choose(page, "command")
    page.fill("[name='v-command']", "hostname")
    page.fill("[name=working_directory]", "~")
    page.fill("[name=time_limit]", "5")
    page.fill("[name=name]", "by-keyboard")
    page.press("[name=name]", "Enter")
    page.wait_for_url(re.compile(r"/jobs/\d+"))
    page.keyboard.press("/")
    expect(page.locator("#find")).to_be_focused()


@pytest.mark.parametrize("width", [1440, 820, 390])
@pytest.mark.parametrize("scheme", ["light", "dark"])
@pytest.mark.parametrize("locale", ["en", "zh-CN"])
def test_no_page_scrolls_sideways(
    portal: Portal, sign_in: SignIn, width: int, scheme: str, locale: str
) -> None:
    page = sign_in("nlp-1", color_scheme=scheme, locale=locale)
    page.set_viewport_size({"width": width, "height": 900})
    job = job_of(portal, "nlp-1")
    for path in ("/submit", "/jobs", f"/jobs/{job}", "/cluster", "/sessions", "/settings"):
        answer = page.goto(path)
        assert answer is not None
        assert answer.ok, path
        wide = page.evaluate("document.documentElement.scrollWidth")
        assert wide <= width, f"{path} is {wide} px wide on a screen of {width} px"
        shoot(page, f"{path.strip('/').split('/')[0]}-{width}-{scheme}-{locale}")
