"""A dataset is chosen in the form with the keyboard alone, and without JavaScript."""

import pytest
from playwright.sync_api import Page, expect
from steps import SignIn, fill_form, shoot, submit

pytestmark = [pytest.mark.browser, pytest.mark.timeout(300)]
SEES = "sh -c 'echo sees $SLUICE_DATASETS'"


def ready(page: Page, name: str) -> None:
    """A form of a job that prints its dataset's folder."""
    fill_form(
        page,
        template="command",
        group="nlp",
        partition="a100",
        nodes="1",
        time_limit="5",
        name=name,
        working_directory="~",
        **{"v-command": SEES, "v-gpus_per_node": "0"},
    )


def ended(page: Page) -> None:
    """Wait on the job's page until its output is there."""
    for _ in range(60):
        if "sees /datasets/waves/v1" in page.content():
            return
        page.wait_for_timeout(1000)
        page.reload()
    raise AssertionError(page.locator("main").inner_text())


def test_with_the_keyboard(sign_in: SignIn) -> None:
    page = sign_in("nlp-1")
    ready(page, "by-keyboard")
    more = page.locator("details:has(#f-pick-datasets)")
    if more.count() and more.get_attribute("open") is None:
        more.locator("summary").first.focus()
        page.keyboard.press("Enter")
    page.get_by_label("Search datasets").focus()
    page.keyboard.type("stripes")
    shown = page.locator("#f-pick-datasets option:not([hidden]):not([value=''])")
    expect(shown).to_have_count(1)
    page.keyboard.press("Tab")
    expect(page.locator("#f-pick-datasets")).to_be_focused()
    page.keyboard.press("ArrowDown")
    page.keyboard.press("Tab")
    page.keyboard.press("Enter")
    words = page.locator("[name='v-datasets']")
    expect(words).to_have_value("waves@1")
    expect(page.locator("#f-pick-datasets")).to_have_value("")
    assert "/submit" in page.url  # Enter was for the button, not for the form
    shoot(page, "dataset-chosen")
    submit(page)
    expect(page.locator("#datasets")).to_contain_text("waves@1")
    ended(page)


def test_without_javascript(sign_in: SignIn) -> None:
    page = sign_in("nlp-2", java_script_enabled=False)
    page.goto("/submit?template=command")
    page.locator("input[name=template][value=command]").check()
    if not page.locator("[name='v-command']").count():
        page.locator("button", has_text="Show its fields").first.click()
    page.fill("[name='v-command']", SEES)
    page.fill("[name='v-gpus_per_node']", "0")
    page.fill("[name=time_limit]", "5")
    page.fill("[name=name]", "without-javascript")
    for summary in page.locator("details:has(#f-pick-datasets) > summary").all():
        if summary.locator("..").get_attribute("open") is None:
            summary.click()
    expect(page.get_by_label("Search datasets")).to_be_hidden()
    page.select_option("#f-pick-datasets", "waves@1")
    submit(page)
    page.wait_for_url("**/jobs/**")
    expect(page.locator("#datasets")).to_contain_text("waves@1")
    assert "DATASETS=(/datasets/waves/v1)" in page.content()  # the script that Slurm has
