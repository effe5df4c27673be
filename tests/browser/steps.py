"""What the tests of this folder do again and again in the browser."""

import os
from pathlib import Path
from typing import Protocol

from playwright.sync_api import Page

SHOTS = Path(os.environ.get("SLUICE_SCREENSHOTS") or Path(__file__).parent / "screenshots")


class SignIn(Protocol):
    """Sign in as somebody in a browser context of their own; options are Playwright's."""

    def __call__(self, login: str, **options: object) -> Page: ...


def fill_form(page: Page, **values: str) -> None:
    """Choose the template first: the other fields follow it."""
    page.goto("/submit")
    choose(page, values.pop("template"))
    for name in ("group", "partition", "qos"):
        wanted = values.pop(name, None)
        box = page.locator(f"select[name={name}]")
        if wanted is not None and box.input_value() != wanted:
            with page.expect_response("**/submit/choices"):
                box.select_option(wanted)
    for name, value in values.items():
        field = page.locator(f"[name='{name}']")
        if field.evaluate("element => element.tagName") == "SELECT":
            field.select_option(value)
        else:
            field.fill(value)


def choose(page: Page, template: str) -> None:
    """Another template brings other fields from the server: wait until they are there."""
    radio = page.locator(f"input[name=template][value={template}]")
    if not radio.is_checked():
        with page.expect_response("**/submit/choices"):
            radio.check()
        page.wait_for_timeout(150)  # the answer is there, the page swaps it in next


def submit(page: Page) -> None:
    page.click("#submit-form .bar-end button[type=submit]:not(.plain)")


def shoot(page: Page, name: str, *, height: int | None = None) -> None:
    """A screenshot of the whole page, or of its upper part, for the README and for people
    who look."""
    SHOTS.mkdir(parents=True, exist_ok=True)
    size = page.viewport_size
    if height is None or size is None:
        page.screenshot(path=SHOTS / f"{name}.png", full_page=True)
        return
    clip = {"x": 0, "y": 0, "width": size["width"], "height": height}
    page.screenshot(path=SHOTS / f"{name}.png", full_page=True, clip=clip)
