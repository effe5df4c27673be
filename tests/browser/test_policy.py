"""Policy in the browser, on a real Slurm: a limit is edited, seen, applied and undone; what was
changed behind the portal's back is shown and set back."""

import re
import time

import pytest
from playwright.sync_api import Page, expect
from steps import SignIn, shoot

from contrib.demo.portal import Portal

pytestmark = pytest.mark.browser

DRIFT_SECONDS = 30


def _slurm(portal: Portal, qos: str, column: str) -> str:
    words = ["sacctmgr", "-nP", "show", "qos", "where", f"name={qos}", f"format={column}"]
    return str(portal.cluster.run(words).stdout).strip()


def _apply(page: Page) -> None:
    page.locator("#apply").get_by_role("button", name="Apply").click()
    expect(page.locator("#notice")).to_contain_text("it was read back and compared")


def _until_it_drifts(page: Page, address: str) -> None:
    """The worker reads policy once a minute, and soon after a change."""
    until = time.monotonic() + DRIFT_SECONDS
    while time.monotonic() < until:
        page.goto(address)
        if page.locator("#drift").is_visible():
            return
        page.wait_for_timeout(500)
    pytest.fail("no drift was shown")


def test_a_limit_is_edited_applied_and_undone_and_drift_is_restored(
    portal: Portal, sign_in: SignIn
) -> None:
    page, was = sign_in("admin-1"), _slurm(portal, "spot", "Priority")
    page.goto("/admin/qos")
    shoot(page, "qos", height=700)
    page.get_by_role("link", name="urgent").first.click()
    page.get_by_role("button", name="Edit", exact=True).click()
    rows = page.locator("#field-max_tres_per_account")
    rows.get_by_role("button", name="Add a row").click()
    expect(rows.locator("select")).to_have_count(2)  # without a new page, where scripts run
    page.fill("#f-max_jobs_per_user", "7")
    page.get_by_role("button", name="Show what changes").last.click()
    page.wait_for_url(re.compile(r"/admin/changes/\d+"))
    change = page.url
    expect(page.locator("table.diff")).to_contain_text("7 jobs")
    expect(page.locator("#impact")).to_contain_text("no job that waits or runs is touched")
    assert _slurm(portal, "urgent", "MaxJobsPU") == ""
    shoot(page, "policy-change", height=1000)
    _apply(page)
    assert _slurm(portal, "urgent", "MaxJobsPU") == "7"

    behind = ["sacctmgr", "-i", "modify", "qos", "where", "name=spot", "set"]
    assert portal.cluster.run([*behind, "Priority=77"]).returncode == 0
    try:
        page.get_by_role("button", name="Undo this change").click()
        page.wait_for_url(lambda url: url != change)
        _apply(page)
        assert _slurm(portal, "urgent", "MaxJobsPU") == ""
        _until_it_drifts(page, "/admin/qos/spot")
        expect(page.locator("#drift")).to_contain_text("77")
        assert _slurm(portal, "spot", "Priority") == "77"
        page.get_by_role("button", name="Restore what the portal knew").click()
        page.wait_for_url(re.compile(r"/admin/changes/\d+"))
        _apply(page)
        assert _slurm(portal, "spot", "Priority") == was
    finally:
        portal.cluster.run([*behind, f"Priority={was}"])
    page.goto("/admin/qos/urgent/history")
    expect(page.locator("main")).to_contain_text("Version 3")
