"""A notebook in Chromium through nginx: from the click to a cell with its output; who gets in."""

import os
import signal

import pytest
from playwright.sync_api import Page, expect
from steps import SignIn, shoot

from contrib.demo.portal import Portal
from gateway.cli import front

pytestmark = [
    pytest.mark.timeout(300),
    pytest.mark.skipif(front.nginx() is None, reason="nginx is not installed"),
]
START_MS = 90_000
LAUNCHER = ".jp-LauncherCard[data-category=Notebook]"
LAB = "#jp-main-dock-panel"
IDLE = "Python 3 (ipykernel) | Idle"


def test_a_notebook_from_the_click_to_a_cells_output_and_others_only_by_name(
    portal: Portal, sign_in: SignIn
) -> None:
    page = sign_in("nlp-1")
    job = start(page)
    run_cell(page, "print(6 * 7, 'through the proxy')", "42 through the proxy")
    page.goto("/notebooks")
    shoot(page, "notebooks")
    place = page.locator("#running td.name a").first.get_attribute("href")
    assert place is not None
    page.goto(place)
    expect(page.locator("#state")).to_contain_text("Ready")
    shoot(page, "notebook")

    other = sign_in("nlp-2")
    assert status_of(other, f"/apps/{job}/lab") == 404
    assert status_of(other, place) == 404
    page.fill("#f-login", "nlp-2")
    page.click("text=Let in")
    other.goto("/notebooks")
    other.click("#running td.name a")
    shoot(other, "notebook-guest")
    other.click("text=I trust")
    other.wait_for_selector(LAB, timeout=START_MS)
    page.goto(place)
    page.click("text=Take back")
    expect(page.locator(".note.good")).to_be_visible()
    assert status_of(other, f"/apps/{job}/lab") in {403, 404}  # at once
    other.wait_for_timeout(3_000)
    assert status_of(other, f"/apps/{job}/lab") == 404

    phone = sign_in("nlp-1", color_scheme="dark", viewport={"width": 390, "height": 844})
    for path, name in (("/notebooks", "notebooks-phone"), (place, "notebook-phone")):
        phone.goto(path)
        wide = phone.evaluate("document.documentElement.scrollWidth")
        assert wide <= 390, (path, wide)
        shoot(phone, name)
    page.goto(place)
    page.click("form[action$=stop] button")
    page.wait_for_url("**/notebooks")


def test_jupyterlab_finds_its_way_back_after_the_proxy_was_killed(
    portal: Portal, sign_in: SignIn
) -> None:
    page = sign_in("vision-1")
    start(page)
    run_cell(page, "x = 40", "")
    pid = portal.home / "run" / "nginx" / "nginx.pid"
    os.kill(int(pid.read_text()), signal.SIGKILL)
    page.wait_for_timeout(4_000)
    run_cell(page, "print(x + 3)", "43", again=True)  # the kernel and what it knows are still there


def start(page: Page) -> str:
    """By the form; ends in JupyterLab. Slurm's number of the job."""
    page.goto("/notebooks")
    page.select_option("select[name=environment]", "jupyter")
    page.wait_for_timeout(1_000)
    page.fill("input[name=cards]", "0")
    page.check("#app-form input[name=open]")
    page.click("#app-form .bar-end button:not(.plain)")
    page.wait_for_selector(LAUNCHER, timeout=START_MS)
    return page.url.split("/apps/")[1].split("/")[0]


def run_cell(page: Page, code: str, output: str, *, again: bool = False) -> None:
    if not again:
        # Before its kernel speaks the notebook is drawn anew, and what was typed is lost.
        with page.expect_websocket(lambda one: "/channels" in one.url, timeout=60_000) as opened:
            page.click(LAUNCHER)
        opened.value.wait_for_event("framereceived", timeout=60_000)
        expect(page.locator(".jp-StatusBar-Widget", has_text=IDLE)).to_be_visible(timeout=60_000)
        page.wait_for_timeout(1_000)
    cell = page.locator(".jp-Notebook .jp-CodeCell .cm-content").last
    cell.click(timeout=START_MS)
    page.keyboard.type(code)
    expect(cell).to_contain_text(code)
    page.keyboard.press("Shift+Enter")
    if output:
        shown = page.locator(".jp-OutputArea-output", has_text=output).first
        expect(shown).to_be_visible(timeout=60_000)
    else:
        expect(page.locator(".jp-InputPrompt", has_text="[1]:")).to_be_visible(timeout=60_000)


def status_of(page: Page, path: str) -> int:
    return page.context.request.get(path).status
