"""Spot in the submit form: its line, one click, and what is amiss."""

import html
import re
from collections.abc import Callable
from dataclasses import replace
from datetime import UTC
from pathlib import Path

import pytest

from gateway.config import assets
from gateway.services import prices, spot
from gateway.services.templates import Catalogue
from gateway.testing.money import LONG_AGO, set_price
from gateway.testing.spot_samples import fill_spot
from tests.web.conftest import Browser, Site

Fill = Callable[..., dict[str, str]]
MANIFEST = """name = "mine"
title = { en = "Mine", zh_Hans = "我的" }
summary = { en = "Mine", zh_Hans = "我的" }
fields = []

[resources]
nodes = { min = 1, max = 2, default = 1 }
nproc_per_node = { min = 1, max = 8, default = 1 }
gpus = "per_process"
"""


@pytest.fixture
def priced(site: Site) -> Site:
    set_price(site.begin, "a100", "3.5")
    prices.set_terms(
        "spot", "0.82", starts=LONG_AGO, begin=site.begin, now=site.broker.now, backdated=True
    )
    return site


@pytest.fixture
def recorded(priced: Site) -> Site:
    now = priced.broker.now
    fill_spot(priced.begin, now=now, cluster="old", runs=600)
    spot.refresh(begin=priced.begin, read=priced.begin, now=now, zone=UTC)
    return priced


def box(browser: Browser, form: dict[str, str]) -> str:
    """The box's words, without its marks."""
    answer = browser.post("/submit/preview", form)
    assert answer.status_code == 200
    return words(answer.text)


def words(page: str) -> str:
    found = re.search(r'<section class="box spot".*?</section>', page, re.DOTALL)
    return " ".join(html.unescape(re.sub(r"<[^>]+>", " ", found[0])).split()) if found else ""


def test_the_difference_and_how_often(recorded: Site, filled: Fill) -> None:
    said = box(recorded.signed_in(), filled())
    assert "Take spot spot −18 % : CN¥275.52 instead of CN¥336.00 in QoS normal" in said
    assert re.search(r"here about every [\d.]+ h on a100.*by \d+ preemptions; 95 %: ", said)
    assert re.search(r"Best checkpoint interval about \d+ min, where a save takes 1 min", said)
    assert "far from" not in said  # it is not chosen


def test_one_press_takes_it_and_another_goes_back(recorded: Site, filled: Fill) -> None:
    browser = recorded.signed_in()
    taken = browser.post("/submit/choices", filled() | {"set": "qos=spot"})
    assert '<option value="spot" selected>' in taken.text
    said = words(taken.text)
    assert "Back to normal chosen : spot −18 % : CN¥275.52 instead of CN¥336.00" in said
    back = browser.post("/submit/choices", filled(qos="spot") | {"set": "qos=normal"})
    assert '<option value="normal" selected>' in back.text


def test_an_interval_far_from_the_best_is_warned_of_and_mended_by_a_press(
    recorded: Site, filled: Fill
) -> None:
    browser = recorded.signed_in()
    far = filled(qos="spot", **{"v-checkpoint_hours": "20"})
    page = browser.post("/submit/preview", far).text
    assert "A checkpoint every 20 hours is far from the best interval" in words(page)
    use = re.search(r'name="try" value="(checkpoint_hours=[\d.]+)"', page)
    assert use is not None
    mended = browser.post("/submit/choices", far | {"try": use[1]})
    assert "far from" not in words(mended.text)
    assert f'value="{use[1].partition("=")[2]}"' in mended.text


@pytest.mark.parametrize(
    ("changes", "warning"),
    [
        ({"v-checkpoint_hours": "0"}, "It saves only when it is warned"),
        ({"v-checkpoint_hours": "soon"}, ""),
        ({"v-checkpoint_hours": ""}, ""),
    ],
)  # fmt: skip
def test_a_job_that_would_lose_its_work_is_warned_of(
    recorded: Site, filled: Fill, changes: dict[str, str], warning: str
) -> None:
    said = box(recorded.signed_in(), filled(qos="spot", **changes))
    assert said
    assert warning in said
    assert ("far from" in said) is False


def test_a_template_without_checkpoints_says_so(
    recorded: Site, filled: Fill, tmp_path: Path
) -> None:
    """A site's own: those that are shipped all save."""
    own = tmp_path / "own" / "mine"
    own.mkdir(parents=True)
    (own / "manifest.toml").write_text(MANIFEST, encoding="utf-8")
    (own / "script.sbatch.j2").write_text("#!/bin/bash\nsrun hostname\n", encoding="utf-8")
    have = recorded.app.extensions["sluice"]
    folders = (assets() / "sbatch_templates", tmp_path / "own")
    recorded.app.extensions["sluice"] = replace(have, catalogue=Catalogue.load(folders))
    mine = {"template": "mine", "shown_template": "mine", "nodes": "1", "nproc_per_node": "1"}
    said = box(recorded.signed_in(), filled(qos="spot", **mine))
    assert "This template saves no checkpoints" in said
    assert "Best checkpoint interval" not in said


def test_with_too_little_history_there_is_no_number(priced: Site, filled: Fill) -> None:
    said = box(priced.signed_in(), filled())
    assert "How often cannot be said: too few preemptions are on record here." in said
    assert "Best checkpoint interval" not in said


def test_without_prices_there_is_no_difference(site: Site, filled: Fill) -> None:
    said = box(site.signed_in(), filled())
    assert "Take spot" in said
    assert "instead of" not in said
    assert "%" not in said


def test_a_form_that_cannot_be_read_has_no_such_line(priced: Site, filled: Fill) -> None:
    assert box(priced.signed_in(), filled(time_limit="soon")) == ""


def test_the_link_takes_the_job_to_the_adviser(recorded: Site, filled: Fill) -> None:
    browser = recorded.signed_in()
    page = browser.post("/submit/preview", filled()).text
    link = re.search(r'href="(/spot\?[^"]+)"', page)
    assert link is not None
    found = browser.get(html.unescape(link[1])).text
    assert 'name="cards" type="text" value="8"' in found
    assert 'name="hours" type="text" value="12"' in found
