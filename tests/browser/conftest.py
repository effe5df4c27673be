"""A real portal on a real cluster, and Chromium. Started once: it costs some twenty seconds."""

import os
import shutil
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest
from playwright.sync_api import Browser, Page, sync_playwright
from steps import SignIn

sys.path.insert(0, str(Path(__file__).resolve().parents[2]))  # for contrib, which no wheel holds

from contrib.demo.portal import Portal
from contrib.devcluster import host
from contrib.devcluster.errors import DevclusterError

CHROMIUM = shutil.which("chromium") or ""
SWITCHES = (
    "--no-sandbox",
    "--disable-gpu",
    "--disable-quic",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
)


@pytest.fixture(scope="session")
def portal() -> Iterator[Portal]:
    """The cluster with PyTorch, the three processes and the sample people of the demo."""
    if os.geteuid() != 0:
        pytest.skip("the development cluster needs root")
    if not CHROMIUM:
        pytest.skip("Debian's chromium is not installed")
    try:
        host.require_supported()
    except DevclusterError as lacking:
        pytest.skip(str(lacking))
    home = Path(tempfile.mkdtemp(prefix="sluice-"))  # short: a Unix socket's path has a limit
    portal = Portal(home, say=print)
    try:
        portal.start(port=0, with_jupyter=True)
        for group in ("nlp", "vision", "biolab"):
            portal.give(group, 100_000)  # these tests are not about money
        yield portal
    finally:
        portal.stop()
        shutil.rmtree(home, ignore_errors=True)


@pytest.fixture(scope="session")
def chromium() -> Iterator[Browser]:
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=CHROMIUM, args=[*SWITCHES])
        yield browser
        browser.close()


@pytest.fixture
def sign_in(portal: Portal, chromium: Browser) -> Iterator[SignIn]:
    """Sign in as somebody, in a browser context of their own, through the page."""
    contexts = []

    def enter(login: str, **options: object) -> Page:
        options = {"viewport": {"width": 1440, "height": 900}, **options}
        context = chromium.new_context(base_url=portal.address, **options)
        context.set_default_timeout(15_000)
        contexts.append(context)
        page = context.new_page()
        password = next(one.password for one in portal.logins() if one.login == login)
        page.goto("/sign-in")
        page.fill("input[name=login]", login)
        page.fill("input[name=password]", password)
        page.click("main button[type=submit]")
        page.wait_for_url(lambda url: "/sign-in" not in url)
        return page

    yield enter
    for context in contexts:
        context.close()
