"""What a job costs on its page, in the list, in the head and in the API; who may see it."""

import html
import re
from datetime import timedelta
from typing import Any

import pytest

from gateway.core.billing import Doubt
from gateway.core.credits import MILLION
from gateway.services import credit, prices, refund, settle
from gateway.store import gate
from gateway.testing import builders as b
from gateway.testing.money import change_run, charge_of, set_price, set_terms
from gateway.web.doubt_texts import MEANS
from tests.web.conftest import Site

HOUR = 3600


@pytest.fixture
def priced(site: Site) -> Site:
    set_price(site.begin, "rtx4090", "1.2")
    set_price(site.begin, "a100", "3.5")
    set_terms(site.begin, "spot", "0.82")
    credit.top_up("nlp", 1000 * MILLION, begin=site.begin, now=site.broker.now)
    return site


def ended(site: Site, *, seconds: int = HOUR, gpus: int = 4, **values: Any) -> tuple[int, int]:
    """A job of nlp-1 that ran and ended, with its run; settled by `settled`."""
    now = site.broker.now
    start = now - timedelta(seconds=seconds)
    job: dict[str, Any] = {"user": "nlp-1", "state": "COMPLETED", "gpus": gpus, "cpus": 16}
    job |= {"start_time": start, "end_time": now, "submit_time": start, "accounted": True}
    job |= {name: values.pop(name) for name in ("qos", "name") if name in values}
    run = {
        "start_time": start,
        "end_time": now,
        "elapsed_seconds": seconds,
        "alloc_tres": f"cpu=16,gres/gpu={gpus},gres/gpu:a100={gpus}",
        "to_settle": True,
    }
    job_id = b.add_job(site.begin, **job)
    return job_id, b.add_run(site.begin, job_id, **(run | values))


def settled(site: Site) -> None:
    settle.settle(begin=site.begin, now=site.broker.now)


def running(site: Site, *, minutes: int = 90, **values: Any) -> int:
    start = site.broker.now - timedelta(minutes=minutes)
    job = {"user": "nlp-1", "state": "RUNNING", "gpus": 4, "start_time": start}
    return b.add_job(site.begin, **(job | {"time_limit_minutes": 240, "name": "runs"} | values))


def words(page: str, box: str = "cost") -> str:
    found = re.search(rf'<div id="{box}".*?</section>', page, re.DOTALL)
    return plain(found[0]) if found else ""


def plain(page: str) -> str:
    return " ".join(html.unescape(re.sub(r"<[^>]+>", " ", page)).split())


def test_without_prices_nothing_changes(site: Site) -> None:
    job_id, _ = ended(site)
    browser = site.signed_in()
    page, rows = browser.get(f"/jobs/{job_id}").text, browser.get("/jobs").text
    assert 'id="cost"' not in page
    assert ">Cost<" not in page + rows
    assert 'class="purse"' not in rows


def test_the_owner_sees_the_charge_with_who_paid(priced: Site) -> None:
    early = priced.broker.now - timedelta(days=1)
    offer = prices.add_offer("week", "a100", "0.9", begin=priced.begin, now=early)
    credit.buy_package("nlp", offer, 1, key="p", begin=priced.begin, now=early)
    job_id, _ = ended(priced)
    settled(priced)
    said = words(priced.signed_in().get(f"/jobs/{job_id}").text)
    assert "1.0 card-hours a100 × CN¥0.90 Package a100 (until" in said
    assert "3.0 card-hours a100 × CN¥3.50 Balance CN¥10.50" in said
    assert "Cost CN¥11.40" in said
    assert "≈" not in said


def test_a_colleague_sees_the_cost_and_a_stranger_nothing(priced: Site) -> None:
    job_id, _ = ended(priced)
    settled(priced)
    assert "CN¥14.00" in words(priced.signed_in("nlp-2").get(f"/jobs/{job_id}").text)
    assert priced.signed_in("vision-1").get(f"/jobs/{job_id}").status_code == 404
    rows = priced.signed_in("vision-1").get("/jobs?who=groups").text
    assert "14.00" not in rows
    assert "1,000" not in rows


def test_what_runs_has_accrued_so_far_and_says_that_it_is_no_charge(priced: Site) -> None:
    job_id = running(priced)
    browser = priced.signed_in()
    said = words(browser.get(f"/jobs/{job_id}").text)
    assert "Accrued so far ≈ CN¥21.00 an estimate" in said  # 4 x 1.5 h x 3.5
    assert "not final" in said
    assert "≈ CN¥21.00" in plain(browser.get("/jobs").text)
    live = browser.get(f"/jobs/{job_id}/state").text
    assert '<div id="cost" hx-swap-oob="innerMorph">' in live


def test_it_accrues_by_the_price_of_its_start_and_no_longer_than_its_limit(priced: Site) -> None:
    set_price(priced.begin, "a100", "9", starts=priced.broker.now - timedelta(hours=1))
    job_id = running(priced, minutes=400, qos="spot")
    # 4 cards x 4 h x 3.5 x 0.82
    assert "≈ CN¥45.92" in words(priced.signed_in().get(f"/jobs/{job_id}").text)


def test_the_type_comes_from_the_nodes_where_the_job_names_none(priced: Site) -> None:
    job_id = running(priced, gpu_type=None, node_list="a100-1")
    assert "≈ CN¥21.00" in words(priced.signed_in().get(f"/jobs/{job_id}").text)
    unknown = running(priced, gpu_type=None, node_list="gone-1", partition="gone")
    assert "nothing so far" in words(priced.signed_in().get(f"/jobs/{unknown}").text)


def test_a_correction_and_a_refund_stand_beneath_their_charge(priced: Site) -> None:
    job_id, run_id = ended(priced)
    settled(priced)
    now = priced.broker.now
    change_run(priced.begin, run_id, elapsed_seconds=1800, end_time=now - timedelta(seconds=1800))
    settled(priced)
    browser = priced.signed_in()
    said = words(browser.get(f"/jobs/{job_id}").text)
    assert "Correction" in said
    assert "CN¥7.00" in said
    refund.refund(
        charge_of(priced.begin, run_id).id,
        note="the file system was away",
        begin=priced.begin,
        now=now,
        person_id=None,
    )
    said = words(browser.get(f"/jobs/{job_id}").text)
    assert "the file system was away" in said
    assert "Whole job CN¥0.00" in said


def test_a_node_failure_gives_back_with_its_evidence(priced: Site) -> None:
    job_id, _ = ended(priced, state="NODE_FAIL", node_list="a100-3")
    settled(priced)
    said = words(priced.signed_in().get(f"/jobs/{job_id}").text)
    assert "A node failed. Slurm says NODE_FAIL on a100-3." in said
    assert "Whole job CN¥0.00" in said


def test_a_run_in_doubt_says_what_happened_what_it_means_and_what_to_do(priced: Site) -> None:
    job_id, run_id = ended(priced, alloc_tres="cpu=16", node_list="gone-1")
    change_run(priced.begin, run_id, gpus=None)
    settled(priced)
    browser = priced.signed_in()
    said = words(browser.get(f"/jobs/{job_id}").text)
    assert "In review" in said
    assert "Accounting does not say how many GPUs it had. So nobody can say" in said
    assert "tell an administrator" in said
    assert "in review" in plain(browser.get("/jobs").text)


def test_each_doubt_has_its_words() -> None:
    assert set(MEANS) == set(Doubt)


def test_a_cheaper_qos_is_told_for_comparison(priced: Site) -> None:
    job_id, _ = ended(priced)
    spot, _ = ended(priced, qos="spot")
    settled(priced)
    browser = priced.signed_in()
    said = words(browser.get(f"/jobs/{job_id}").text)
    assert "in QoS spot: CN¥11.48 by the price list, CN¥2.52 less." in said
    assert "For comparison" not in words(browser.get(f"/jobs/{spot}").text)


def test_the_list_has_a_column_of_costs(priced: Site) -> None:
    ended(priced, seconds=1234, name="odd")
    settled(priced)
    page = priced.signed_in().get("/jobs").text
    # 4 x 1234 s x 3.5 / 3600 = 4.798889, rounded up to a millionth
    assert '<data value="4.798889" title="4.798889 CNY">CN¥4.80</data>' in page


def test_the_head_tells_the_groups_credit(priced: Site) -> None:
    page = priced.signed_in().get("/jobs").text
    found = re.search(r'class="purse".*?</(a|span)>\n', page, re.DOTALL)
    assert found is not None
    assert "nlp" in found[0]
    assert "CN¥1,000.00" in found[0]
    other = priced.signed_in("vision-1").get("/jobs").text
    assert "1,000" not in other


def test_what_is_held_stands_on_the_submissions_page_until_slurm_has_it(
    priced: Site, filled: Any
) -> None:
    priced.broker.unreachable = True
    browser = priced.signed_in()
    place = browser.post("/submit", filled()).location
    assert "Held for the worst case CN¥336.00" in plain(browser.get(place).text)
    browser.post(f"{place}/withdraw")
    assert "all of it was given back" in plain(browser.get(place).text)


def test_the_hold_stands_on_the_jobs_page(priced: Site, filled: Any) -> None:
    browser = priced.signed_in()
    place = browser.post("/submit", filled()).location
    priced.broker.advance(1)
    priced.look()
    said = words(browser.get(place).text)
    assert "Credit held" in said
    assert "CN¥336.00 since" in said


def test_a_job_that_the_gate_holds_says_that_credit_is_missing(priced: Site) -> None:
    job = b.add_job(priced.begin, user="nlp-1", state="PENDING", reason="JobHeldAdmin")
    assert "not enough credit left" not in priced.signed_in().get(f"/jobs/{job}").text
    with priced.begin() as session:
        gate.put_held(session, job, at=priced.broker.now, reason="no_credit")
    page = priced.signed_in().get(f"/jobs/{job}").text
    assert "your group has not enough credit left for all of this job" in page
