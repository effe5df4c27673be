"""The planner's page: what it says, that all of it stands in the address, what it fills."""

import re
from html import unescape

import pytest

from gateway.services import prices
from tests.web.conftest import Site

MODEL = "params=10e9&tokens=12e9&gpu=a100-80g&gpus_per_node=8&mfu=58"
SMALL = MODEL.replace("10e9", "1e9")
CLAIM = f"{MODEL}&gpus=16&strategy=zero3"


def page(site: Site, query: str) -> str:
    return site.signed_in().get(f"/plan?{query}").text


def test_it_says_whether_it_fits_and_by_how_much(site: Site) -> None:
    text = page(site, CLAIM)
    assert "<b>fits</b>" in text
    assert re.search(r"[\d.]+ of 80 GB", text)
    assert "69.1 hours" in text
    assert "at an MFU of 58 %, as you said" in text
    assert "140.0 GB" in text  # a checkpoint


def test_the_bar_is_as_wide_as_its_parts(site: Site) -> None:
    text = page(site, CLAIM)
    bar = text[text.index('class="memory"') :]
    wide = [float(one) for one in re.findall(r'class="part" x="[\d.]+%" width="([\d.]+)%"', bar)]
    sums = re.search(r"([\d.]+) of 80 GB", text)
    limit = re.search(r'class="card-room" width="([\d.]+)%"', bar)
    assert sums is not None
    assert limit is not None
    assert sum(wide) / float(limit[1]) == pytest.approx(float(sums[1]) / 80, abs=0.01)


def test_what_does_not_fit_says_what_would_and_the_link_is_that_plan(site: Site) -> None:
    text = page(site, f"{MODEL}&gpus=16&strategy=ddp")
    assert "<b>does not fit</b>" in text
    assert "GB too much for a card." in text
    link = re.search(r'<a href="([^"]+)">with another strategy: zero3</a>', text)
    assert link is not None
    again = site.signed_in().get(unescape(link[1])).text
    assert "<b>fits</b>" in again
    assert '<option value="zero3" selected>' in again


def test_without_an_address_it_shows_an_example_on_cards_of_this_site(site: Site) -> None:
    text = site.signed_in().get("/plan").text
    assert re.search(r'<option value="a100-\w+" selected>a100-\w+, \d+ GB – here', text)
    assert "fsdp on 8 ×" in text
    assert "usual for a100-" in text


def test_live_it_is_the_found_part_alone_with_the_notes(site: Site) -> None:
    live = site.signed_in().get(f"/plan?{CLAIM}", headers={"HX-Request": "true"}).text
    assert "<html" not in live
    assert "<b>fits</b>" in live
    assert 'id="note-gpus" hx-swap-oob="true"' in live


@pytest.mark.parametrize(
    ("query", "field", "words"),
    [
        (f"{MODEL}&gpus=many&strategy=zero3", "gpus", "Type a number"),
        (f"{MODEL}&gpus=2&strategy=single", "gpus", "is for one card"),
        ("tokens=1B&gpus=8&strategy=fsdp", "params", "Say how large the model is"),
        (f"{MODEL}&gpus=8&strategy=zero3&layers=4", "hidden", "needed together"),
        (f"{MODEL.replace('a100-80g', 'zzz')}&gpus=8&strategy=fsdp", "gpu", "knows no card"),
        (f"{MODEL}&gpus=8&strategy=fsdp&sequence=1.5", "sequence", "Type a whole number"),
        (f"{MODEL}&gpus=1e999&strategy=fsdp", "gpus", "Type a number"),
        (f"{MODEL}&gpus=8&strategy=fsdp&keep=9e99", "keep", "From 1 to"),
    ],
)
def test_what_cannot_be_is_told_at_its_field(
    site: Site, query: str, field: str, words: str
) -> None:
    text = unescape(page(site, query))
    note = text[text.index(f'id="note-{field}"') :][:400]
    assert words in note
    assert "A field needs another value" in text


@pytest.mark.parametrize("name", ["strategy", "gpu", "precision", "recompute"])
@pytest.mark.parametrize("value", ["", "+"])
def test_a_choice_that_is_empty_is_the_usual_one(site: Site, name: str, value: str) -> None:
    query = "&".join(x for x in CLAIM.split("&") if not x.startswith(f"{name}="))
    answer = site.signed_in().get(f"/plan?{query}&{name}={value}")
    assert answer.status_code == 200
    assert "A field needs another value" not in answer.text


def test_what_is_typed_is_text(site: Site) -> None:
    text = page(site, 'params="><script>alert(1)</script>&tokens=1B&gpus=8&strategy=fsdp')
    assert "<script>alert" not in text


def test_each_way_to_buy_has_its_cost_with_its_waste(site: Site) -> None:
    now = site.broker.now
    prices.set_price("a100", "3.5", begin=site.begin, now=now)
    prices.set_terms("spot", "0.82", begin=site.begin, now=now)
    text = page(site, CLAIM)
    assert "CN¥3.50" in text
    assert "spot: preempted every 6 h. That is an assumption" in text
    assert "every 48 h, as you said" in page(site, f"{CLAIM}&spot_interrupted_hours=48")


def test_a_plan_fills_the_form(site: Site) -> None:
    browser = site.signed_in()
    text = browser.get(f"/plan?{SMALL}&gpus=16&strategy=ddp").text
    link = re.search(r'href="(/submit\?plan=[^"]+)"', text)
    assert link is not None
    form = browser.get(unescape(link[1])).text
    assert 'name="template" value="ddp" checked' in form
    assert 'name="nodes" type="text" value="2"' in form
    assert 'name="nproc_per_node" type="text" value="8"' in form
    assert '<option value="a100" selected>' in form
    assert re.search(r'name="time_limit" type="text" value="[\d:-]+"', form)
    assert re.search(r'name="v-checkpoint_hours"[^>]* value="0\.\d+"', form)
    assert "Filled from the plan" in form
    assert re.search(r'name="name"[^>]* value="ddp"', form)


def test_the_form_says_whether_it_still_fits(site: Site, filled) -> None:
    browser = site.signed_in()
    plan = f"{SMALL}&gpus=16&strategy=zero3"
    fits = browser.post("/submit/preview", filled(plan=plan)).text
    assert "<h2>Fit</h2>" in fits
    assert "ddp on 8 × a100-80g" in fits
    assert re.search(r"</svg>\s*fits<", fits)
    large = browser.post("/submit/preview", filled(plan=plan.replace("=1e9", "=30e9"))).text
    assert "does not fit" in large
    assert "<h2>Fit</h2>" not in browser.post("/submit/preview", filled()).text


def test_a_plan_that_is_none_is_passed_over(site: Site, filled) -> None:
    browser = site.signed_in()
    for text in ("x" * 3000, "params=none", "%%%", "gpus=8"):
        assert browser.get("/submit", query_string={"plan": text}).status_code == 200
        assert browser.post("/submit/preview", filled(plan=text)).status_code == 200
