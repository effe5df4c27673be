"""The API's money: the quote of a body that could be submitted, and what a job costs."""

from typing import Any

import pytest

from gateway.core.credits import MILLION
from gateway.services import credit, settle
from gateway.testing import builders as b
from gateway.testing.money import set_price, set_terms
from tests.web.conftest import Site
from tests.web.test_api import ASK, Caller


@pytest.fixture
def caller(site: Site) -> Caller:
    return signed_in(site, "nlp-1")


@pytest.fixture
def priced(site: Site) -> Site:
    set_price(site.begin, "rtx4090", "1.2")
    set_price(site.begin, "a100", "3.5")
    set_terms(site.begin, "spot", "0.82")
    credit.top_up("nlp", 1000 * MILLION, begin=site.begin, now=b.NOW)
    return site


def signed_in(site: Site, login: str) -> Caller:
    client = site.app.test_client()
    answer = client.post("/api/v1/sessions", json={"login": login, "password": b.PASSWORD})
    return Caller(client, answer.get_json()["token"])


def money(text: str, millionths: int) -> dict[str, Any]:
    return {"amount": text, "millionths": millionths}


def test_a_quote_is_exact(priced: Site, caller: Caller) -> None:
    found = caller.post("/quote", ASK).get_json()
    assert found["currency"] == "CNY"
    assert found["items"] == [
        {
            "resource": "a100",
            "units": 8,
            "seconds": 43200,
            "per_hour": money("3.50", 3_500_000),
            "factor": money("1.00", 1_000_000),
            "total": money("336.00", 336_000_000),
        }
    ]
    assert found["held"] == found["total"] == money("336.00", 336_000_000)
    assert (found["free"], found["after"]) == (
        money("1000.00", 1_000_000_000),
        money("664.00", 664_000_000),
    )
    assert found["enough"] is True
    assert (found["likely"], found["likely_from"], found["cap_left"]) == (None, None, None)
    assert [one["kind"] for one in found["paid_by"]] == ["balance"]
    assert {"change": "qos", "value": "spot", "partition": "a100"}.items() <= (
        next(one for one in found["cheaper"] if one["change"] == "qos").items()
    )
    assert priced.broker.jobs == {}


def test_a_quote_says_what_is_missing(priced: Site, caller: Caller) -> None:
    credit.top_up("nlp", -676 * MILLION, begin=priced.begin, now=b.NOW)
    found = caller.post("/quote", ASK).get_json()
    assert (found["enough"], found["missing"]) == (False, money("12.00", 12_000_000))
    refused = caller.post("/submissions", ASK)
    assert refused.status_code == 422
    assert refused.get_json()["fields"]["group"]["code"] == "not_enough_credit"


def test_the_api_refuses_what_it_cannot_price(priced: Site, caller: Caller) -> None:
    unread = caller.post("/quote", ASK | {"time_limit": "soon"})
    assert unread.status_code == 422
    assert set(unread.get_json()["fields"]) == {"time_limit"}
    assert caller.post("/quote", ASK | {"typo": 1}).status_code == 400


def test_cards_without_a_price_are_a_problem_at_the_partition(site: Site, caller: Caller) -> None:
    set_price(site.begin, "rtx4090", "1.2")
    answer = caller.post("/quote", ASK)
    assert answer.status_code == 422
    assert answer.get_json()["fields"]["partition"]["code"] == "no_price"


def test_without_prices_nothing_is_charged(site: Site, caller: Caller) -> None:
    assert caller.post("/quote", ASK).get_json() == {"charged": False}
    job = caller.post("/submissions", ASK).get_json()["job_id"]
    assert caller.get(f"/jobs/{job}").get_json()["cost"] is None
    assert [one["cost"] for one in caller.get("/jobs").get_json()["jobs"]] == [None]


def test_a_jobs_cost_from_its_hold_to_its_charge(priced: Site, caller: Caller) -> None:
    job = caller.post("/submissions", ASK).get_json()["job_id"]
    priced.broker.advance(3600)
    priced.look()
    cost = caller.get(f"/jobs/{job}").get_json()["cost"]
    assert cost["hold"]["now"] == money("336.00", 336_000_000)
    assert (cost["final"], cost["charged"], cost["charges"]) == (False, None, [])
    assert 0 < cost["accrued"]["millionths"] <= 28_000_000
    caller.post(f"/jobs/{job}/cancel")
    priced.broker.advance(60)
    priced.look()
    priced.portal.ingest()
    settle.settle(begin=priced.begin, now=priced.broker.now)
    cost = caller.get(f"/jobs/{job}").get_json()["cost"]
    (charge,) = cost["charges"]
    assert (cost["final"], cost["accrued"], charge["state"]) == (True, None, "posted")
    assert charge["amount"] == cost["total"]
    assert [(one["resource"], one["paid_by"]) for one in charge["lines"]] == [("a100", "balance")]
    (row,) = caller.get("/jobs").get_json()["jobs"]
    assert row["cost"]["total"] == cost["total"]


def test_a_colleague_sees_the_cost_and_a_stranger_no_job(priced: Site, caller: Caller) -> None:
    job = caller.post("/submissions", ASK).get_json()["job_id"]
    assert signed_in(priced, "nlp-2").get(f"/jobs/{job}").get_json()["cost"] is not None
    assert signed_in(priced, "vision-1").get(f"/jobs/{job}").status_code == 404
