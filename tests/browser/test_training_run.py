"""A training as a member meets it: tried first, warned, back by itself, one run on one page."""

import re
import time

import pytest
from playwright.sync_api import Page, expect
from steps import SignIn, fill_form, shoot, submit

from contrib.demo.portal import Portal

pytestmark = pytest.mark.browser

SOON_MS = 90_000

# Counts and saves; needs no PyTorch.
COUNTS = """\
import pathlib, time
import sluice_train

run = sluice_train.start()
step = int(pathlib.Path(run.resume_path, "step").read_text()) if run.resume_path else 0
print("from", step, flush=True)
while not pathlib.Path("enough").exists():
    step += 1
    time.sleep(0.05)
    if run.step(step, loss=1 / step, tokens=10):
        with run.saving(step) as folder:
            (folder / "step").write_text(str(step))
    if run.stopping:
        break
run.finish()
"""


@pytest.fixture
def folder(portal: Portal) -> str:
    place = "/home/nlp-1/counting"
    portal.cluster.run(["mkdir", "-p", place], user="nlp-1")
    write = ["sh", "-c", f"cat > {place}/counts.py; rm -rf {place}/enough {place}/sluice-runs"]
    assert portal.cluster.run(write, user="nlp-1", stdin=COUNTS).returncode == 0
    return place


def fill(page: Page, folder: str, name: str) -> None:
    fill_form(
        page,
        template="single-gpu",
        group="nlp",
        partition="a100",
        qos="normal",
        time_limit="10",
        name=name,
        working_directory=folder,
        **{"v-script": "counts.py"},
    )


def test_a_run_that_is_warned_comes_back_and_is_one_run_on_one_page(
    portal: Portal, sign_in: SignIn, folder: str
) -> None:
    page = sign_in("nlp-1")
    fill(page, folder, "counting")
    submit(page)
    page.wait_for_url(re.compile(r"/jobs/\d+"))
    expect(page.locator("[data-pane]")).to_contain_text("from 0", timeout=SOON_MS)
    run = page.locator("#whole-run")
    expect(run).to_contain_text(re.compile(r"now at step \d+"), timeout=SOON_MS)
    job = page.locator("h1 .quiet").inner_text().strip()

    warn = ["scancel", "--batch", "--signal=USR1", job]
    assert portal.cluster.run(warn, user="nlp-1").returncode == 0
    output = page.locator("[data-pane]")
    expect(output).to_contain_text("asked to save and to stop", timeout=SOON_MS)
    end = time.monotonic() + 60
    while portal.cluster.run(["squeue", "-h", "-j", job, "-o", "%T"]).stdout.strip() != "PENDING":
        assert time.monotonic() < end
        time.sleep(0.2)
    portal.cluster.run(["scontrol", "update", f"JobId={job}", "StartTime=now"])
    expect(output).to_contain_text(re.compile(r"from [1-9]\d*"), timeout=SOON_MS)
    expect(page.locator("#checkpoints")).to_contain_text("complete", timeout=SOON_MS)
    portal.cluster.run(["touch", f"{folder}/enough"], user="nlp-1")
    expect(page.locator("#state")).to_contain_text("COMPLETED", timeout=SOON_MS)
    page.reload()
    expect(run.locator(".stretches tbody tr")).to_have_count(2, timeout=SOON_MS)
    expect(page.locator("#goodput")).to_contain_text("Useful")
    expect(page.locator("main")).to_contain_text("restart 1")
    shoot(page, "training-run")


def test_a_smoke_job_says_on_the_form_that_the_job_would_run(sign_in: SignIn, folder: str) -> None:
    page = sign_in("nlp-1")
    fill(page, folder, "tried")
    page.get_by_role("button", name="Smoke job first").click()
    box = page.locator("#smoke")
    expect(box).to_be_visible(timeout=SOON_MS)
    expect(box.locator(".state")).to_contain_text("passed", timeout=SOON_MS)
    # What the run told of itself comes a little later than its end.
    expect(box.locator(".facts")).to_contain_text("s", timeout=SOON_MS)
    shoot(page, "smoke")
