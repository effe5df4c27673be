"""Waits in a real browser: real traces in the history, their reference figures on the page."""

import gzip
import json
import threading
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest
from playwright.sync_api import Browser, Page, expect
from steps import SHOTS
from werkzeug.serving import make_server

from gateway.config import load_settings
from gateway.history import sets
from gateway.services import keep_history
from gateway.services.import_feed import Source, batches
from gateway.services.import_history import import_history
from gateway.services.import_set import Given, import_set
from gateway.store.schema import upgrade
from gateway.store.uow import make_begin, make_engine
from gateway.testing import builders as b
from gateway.testing.fakebroker import FakeBroker
from gateway.web.app import create_app

TRACES = Path(__file__).resolve().parents[3] / "shared" / "traces"
DUMP = TRACES / "xdmod_phillips.sacct.psv.gz"
GRAHAM = "drac_graham_2021"
NOW = datetime(2026, 11, 30, 12, tzinfo=UTC)


@pytest.fixture(scope="module")
def references() -> dict[str, Any]:
    if not DUMP.exists():
        pytest.skip("../shared/traces is not here: the real traces lie beside the checkout")
    figures: dict[str, Any] = json.loads((TRACES / "reference.json").read_text())["traces"]
    return figures


@pytest.fixture(scope="module")
def reference(references: dict[str, Any]) -> Any:
    return references["xdmod_phillips"]


@dataclass
class Site:
    address: str
    home: Path


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory, reference: object) -> Iterator[Site]:
    """The portal's web process over a store with the dump in it; Slurm is not asked."""
    home = tmp_path_factory.mktemp("waits")
    settings = load_settings({"SLUICE_HOME": str(home)})
    engine = make_engine(settings.database_url)
    upgrade(engine)
    begin = make_begin(engine)
    b.add_person(begin, "boss", role="administrator")
    b.add_person(begin, "stranger")
    plain = home / "dump.psv"
    plain.write_bytes(gzip.decompress(DUMP.read_bytes()))
    source = Source(
        path=str(plain), zone="UTC", home="phillips", cluster=None, delimiter=None, now=NOW
    )
    import_history(batches(source), begin=begin, now=NOW)
    keep_history.rebuild(home / "history", begin=begin, read=begin, now=NOW)
    app = create_app(settings, begin=begin, broker=FakeBroker(), clock=lambda: NOW)
    server = make_server("127.0.0.1", 0, app, threaded=True)
    thread = threading.Thread(target=server.serve_forever)
    thread.start()
    yield Site(f"http://127.0.0.1:{server.port}", home)
    server.shutdown()
    thread.join()
    engine.dispose()


def enter(site: Site, chromium: Browser, login: str = "boss", **options: Any) -> Page:
    context = chromium.new_context(
        base_url=site.address, **({"viewport": {"width": 1440, "height": 900}} | options)
    )
    page = context.new_page()
    page.goto("/sign-in")
    page.fill("input[name=login]", login)
    page.fill("input[name=password]", b.PASSWORD)
    page.click("main button[type=submit]")
    page.wait_for_url(lambda url: "/sign-in" not in url)
    return page


@pytest.fixture
def page(site: Site, chromium: Browser) -> Iterator[Page]:
    found = enter(site, chromium)
    yield found
    found.context.close()


def exact(page: Page, name: str) -> float:
    row = page.locator("#exact tr", has=page.locator(f"th:text-is('{name}')"))
    return float(row.locator("data").get_attribute("value") or "nan")


def test_the_page_has_the_reference_figures_to_the_last_digit(
    page: Page, reference: dict[str, Any]
) -> None:
    page.goto("/waits?wait=submit&period=all")
    page.screenshot(path=SHOTS / "waits.png", full_page=True)
    page.click("#exact summary")
    known = reference["all"]
    assert exact(page, "wait.mean_s") == known["wait"]["mean_s"]
    assert exact(page, "wait.median_s") == known["wait"]["median_s"]
    assert exact(page, "wait.p99_s") == known["wait"]["p99_cont_s"]
    assert exact(page, "run.p90_disc_s") == known["run"]["p90_disc_s"]
    assert exact(page, "never_started") == known["never_started"]
    assert exact(page, "gpu_hours") == known["gpu_hours"]
    assert exact(page, "ratio_of_sums") == known["wait_to_run_ratio_of_sums"]
    expect(page.locator("#overview .of-waiting data").first).to_have_text("4 h 5 min")


def test_a_set_that_was_imported_is_a_filter_of_its_own(
    site: Site, chromium: Browser, references: dict[str, Any]
) -> None:
    """The Graham trace has accounts and no people: there each job counts for itself."""
    given = Given(str(TRACES / f"{GRAHAM}.csv.gz"), "csv", GRAHAM, "UTC", NOW)
    import_set(given, imports=site.home / sets.FOLDER, keep=len)
    for login in ("boss", "stranger"):
        page = enter(site, chromium, login)
        page.goto(f"/waits?wait=submit&period=all&source={GRAHAM}")
        page.click("#exact summary")
        known = references[GRAHAM]["all"]
        assert exact(page, "jobs") == known["jobs"]
        assert exact(page, "wait.median_s") == known["wait"]["median_s"]
        assert exact(page, "wait.p95_s") == known["wait"]["p95_cont_s"]
        expect(page.locator("a.off", has_text=GRAHAM)).to_be_visible()
        page.context.close()
    sets.remove(site.home / sets.FOLDER, GRAHAM)


def test_never_started_jobs_are_in_no_row_of_the_waits(
    page: Page, reference: dict[str, Any]
) -> None:
    page.goto("/waits/by/gpu_class?wait=submit&period=all")
    for name, key in (("no card", "0"), ("2–4 cards", "2-4")):
        row = page.locator(".wait-table tbody tr", has=page.locator(f"th:has-text('{name}')"))
        if not (known := reference["by_gpu_class"][key])["jobs"]:
            continue
        values = [one.get_attribute("value") for one in row.locator("data").all()]
        assert values[:4] == [str(known[name]) for name in ("jobs", "never_started")] + [
            "0",
            str(known["wait"]["n"]),
        ]


def test_filters_are_set_and_taken_away_by_keyboard(page: Page) -> None:
    page.goto("/waits?period=all")
    page.locator("select[name=gpu_class]").focus()
    page.keyboard.type("no")
    page.keyboard.press("Tab")
    page.keyboard.press("Tab")
    expect(page.locator(".filters button")).to_be_focused()
    page.keyboard.press("Enter")
    page.wait_for_url("**gpu_class=0**")
    chip = page.locator("a.off", has_text="no card")
    chip.focus()
    page.keyboard.press("Enter")
    page.wait_for_url(lambda url: "gpu_class" not in url)


def test_a_chart_is_saved_as_a_picture(page: Page, tmp_path: Path) -> None:
    problems: list[str] = []
    page.on("console", lambda said: problems.append(said.text) if said.type == "error" else None)
    for path, figure in (
        ("/waits?period=all", "by-cards"),
        ("/waits/distribution?period=all", "curves"),
        ("/waits/week?period=all", "week"),
    ):
        page.goto(path)
        with page.expect_download() as download:
            page.click(f"button[data-png={figure}]")
        saved = tmp_path / f"{figure}.png"
        download.value.save_as(saved)
        picture = saved.read_bytes()
        assert picture.startswith(b"\x89PNG")
        assert len(picture) > 10_000, "an empty canvas is smaller"
    assert problems == []


def test_everything_but_the_picture_works_without_javascript(site: Site, chromium: Browser) -> None:
    page = enter(site, chromium, java_script_enabled=False)
    page.goto("/waits?period=all")
    expect(page.locator("button[data-png]").first).to_be_hidden()
    page.select_option("select[name=gpu_class]", "0")
    page.click(".filters button")
    assert "gpu_class=0" in page.url
    page.click("#table-by-cards summary")
    expect(page.locator("#table-by-cards table")).to_be_visible()
    for path in ("by/group", "distribution", "over-time", "week"):
        page.goto(f"/waits/{path}?period=all")
        expect(page.locator("svg.wait-chart").first).to_be_visible()
    page.context.close()


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_a_phone_shows_each_page_within_its_width(
    scheme: str, site: Site, chromium: Browser
) -> None:
    view = {"width": 390, "height": 844}
    page = enter(site, chromium, viewport=view, color_scheme=scheme)
    for path in ("", "/by/group", "/distribution", "/over-time", "/week"):
        page.goto(f"/waits{path}?period=all")
        wide = page.evaluate("document.documentElement.scrollWidth")
        assert wide <= view["width"], path
        if path in {"", "/by/group"}:
            expect(page.locator("svg .short-word").first).to_be_visible()
            expect(page.locator("svg .count-word").first).to_be_hidden()
    page.context.close()


def test_a_stranger_finds_no_group_of_few_people(site: Site, chromium: Browser, page: Page) -> None:
    page.goto("/waits/by/group?period=all")
    all_groups = page.locator(".wait-table tbody tr").count()
    stranger = enter(site, chromium, "stranger")
    stranger.goto("/waits/by/group?period=all")
    assert stranger.locator(".wait-table tbody tr").count() < all_groups
    expect(stranger.locator("main")).to_contain_text("fewer than 3 people")
    stranger.context.close()
