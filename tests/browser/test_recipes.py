"""A job becomes a recipe in the browser; a colleague finds it as they type, and clones it."""

import pytest
from playwright.sync_api import expect
from steps import SignIn, fill_form, shoot, submit

pytestmark = [pytest.mark.browser, pytest.mark.timeout(300)]
TITLE = "Repeatable 配方"


def test_a_run_is_published_found_and_cloned(sign_in: SignIn) -> None:
    page = sign_in("nlp-1")
    fill_form(
        page,
        template="command",
        group="nlp",
        partition="a100",
        nodes="1",
        time_limit="5",
        name="repeatable",
        working_directory="~",
        **{"v-command": "echo ::metric loss=0.5"},
    )
    submit(page)
    button = page.get_by_role("button", name="Publish as recipe")
    for _ in range(60):
        if button.count():
            break
        page.wait_for_timeout(1500)
        page.reload()
    button.click()
    page.fill("#f-title", TITLE)
    page.fill("#f-tags", "echo")
    page.get_by_role("button", name="Publish", exact=True).click()
    expect(page.locator("h1")).to_have_text(TITLE)
    shoot(page, "recipe")

    other = sign_in("nlp-2")
    other.goto("/library")
    other.locator("#f-q").press_sequentially("配")
    link = other.locator("#found").get_by_role("link", name=TITLE)
    expect(link).to_be_visible()
    other.locator("#f-q").fill("nothing of the kind")
    expect(link).to_have_count(0)
    other.locator("#f-q").fill("repea")
    link.click()
    other.get_by_role("button", name="Clone").click()
    expect(other.locator("[name='v-command']")).to_have_value("echo ::metric loss=0.5")
    expect(other.locator("input[name=recipe]")).to_have_count(1)
