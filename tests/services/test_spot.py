"""The preemption record, the adviser and what was saved, over a database."""

from datetime import UTC, timedelta

import pytest

from gateway.core.credits import MILLION
from gateway.core.spot import Origin, Prices
from gateway.core.spot_record import ALL_TYPES
from gateway.errors import Refused
from gateway.services import credit, settle, spot
from gateway.services.spot import Asked, SiteRecord
from gateway.store.queries import job as jobs
from gateway.store.uow import Begin
from gateway.testing import builders as b
from gateway.testing.builders import NOW
from gateway.testing.money import set_price, set_terms
from gateway.testing.spot_samples import fill_spot
from gateway.wire.messages import Qos

HOUR = timedelta(hours=1)
CARDS = "cpu=4,gres/gpu=2,gres/gpu:a100=2"
LEVELS = (
    Qos(name="normal", priority=100, preempts=("spot",)),
    Qos(name="spot", priority=10, preempt_mode=("requeue",)),
)


@pytest.fixture(autouse=True)
def _policy(begin: Begin) -> None:
    b.add_cluster(begin, qos_list=LEVELS)


def refresh(begin: Begin, read: Begin, *, later: timedelta = timedelta()) -> int | None:
    return spot.refresh(begin=begin, read=read, now=NOW + later, zone=UTC)


def record(begin: Begin, **values: object) -> SiteRecord:
    with begin() as session:
        return spot.record(session, **({"now": NOW, "zone": UTC} | values))


def advise(begin: Begin, asked: Asked, **values: object) -> spot.Advised:
    site = record(begin, fresh=True)
    with begin() as session:
        return spot.advise(session, asked, **({"site": site, "now": NOW} | values))


def test_the_record_is_made_once_an_hour(begin: Begin, read: Begin) -> None:
    fill_spot(begin, now=NOW, cluster="c", runs=300)
    assert record(begin).made_at is None
    assert refresh(begin, read) == 3  # two types, and both together
    assert refresh(begin, read, later=timedelta(minutes=59)) is None
    assert refresh(begin, read, later=HOUR) == 3
    found = record(begin)
    assert found.made_at == NOW + HOUR
    assert [one.gpu_type for one in found.records] == ["", "a100", "rtx4090"]
    by_day, by_night = found.find("a100").at_hour(12), found.find("a100").at_hour(2)
    assert by_day.per_hour > by_night.per_hour
    assert record(begin, fresh=True, now=NOW + HOUR) == found


def test_a_site_without_such_runs_has_an_empty_record(begin: Begin, read: Begin) -> None:
    assert refresh(begin, read) == 1
    assert record(begin).records == ()
    assert record(begin).made_at == NOW


def test_few_people_are_hidden_and_so_is_what_would_give_them_away(begin: Begin) -> None:
    fill_spot(begin, now=NOW, cluster="c", runs=200, types=("a100",))
    few = ("one", "two", "three", "four")
    fill_spot(begin, now=NOW, cluster="c", runs=200, types=("h100",), people=few)
    found = record(begin, fresh=True)
    assert [one.gpu_type for one in found.records] == ["a100"]  # not the sum: h100 would be told
    assert found.hidden == 1
    everything = record(begin, fresh=True, least_people=1)
    assert [one.gpu_type for one in everything.records] == ["", "a100", "h100"]


def test_advice_is_by_the_sites_own_record_and_prices(begin: Begin) -> None:
    set_price(begin, "a100", "3.5")
    set_terms(begin, "spot", "0.82", "free")
    fill_spot(begin, now=NOW, cluster="c", runs=600)
    found = advise(begin, Asked(hours=12, gpu_type="a100", cards=8))
    mean = found.advice.between
    assert (found.qos, found.normal, found.gpu_type) == ("spot", "normal", "a100")
    assert (mean.origin, mean.runs) == (Origin.SITE, 300)
    assert mean.events > 50
    assert found.requeues > 20
    assert found.advice.work.interval == found.advice.best
    costs = found.advice.costs
    assert costs.gives_back
    assert costs.by_rule < costs.spot < costs.normal
    assert found.advice.normal.p50 < found.advice.spot.p50 < found.advice.spot.p90


def test_what_is_typed_goes_before_the_record(begin: Begin) -> None:
    fill_spot(begin, now=NOW, cluster="c", runs=300)
    asked = Asked(hours=12, gpu_type="a100", interval_minutes=90, wait_minutes=3, between_hours=2)
    found = advise(begin, asked)
    assert found.advice.between.origin is Origin.ASKED
    assert (found.advice.work.interval, found.advice.work.wait) == (5400, 180)
    assert found.requeues == 0
    assert found.advice.costs is None  # nobody has set a price


def test_a_type_with_too_little_history_takes_that_of_all_types(begin: Begin) -> None:
    fill_spot(begin, now=NOW, cluster="c", runs=300)
    found = advise(begin, Asked(hours=12, gpu_type="h100"))
    assert found.gpu_type == ALL_TYPES
    assert found.advice.between.origin is Origin.SITE


def test_without_history_it_is_an_assumption(begin: Begin) -> None:
    found = advise(begin, Asked(hours=12, gpu_type="a100"))
    assert found.advice.between.origin is Origin.ASSUMED
    assert found.advice.work.wait == 900
    assert found.qos == "spot"


def test_without_a_database_what_was_typed_counts() -> None:
    typed = Prices(MILLION, 800_000)
    asked = Asked(hours=10, cards=2, between_hours=5)
    found = spot.advise(None, asked, site=SiteRecord(()), now=NOW, typed=typed)
    assert found.advice.costs.normal > 20 * MILLION


@pytest.mark.parametrize("minutes", [0.0, -1.0, 0.5])
def test_an_interval_that_cannot_be_is_refused(begin: Begin, minutes: float) -> None:
    with pytest.raises(Refused) as refused:
        advise(begin, Asked(hours=12, interval_minutes=minutes))
    assert refused.value.field == "interval_minutes"


def preempted_job(begin: Begin, **values: object) -> int:
    """Two hours that were preempted, an hour of waiting, three more; two cards."""
    job = b.add_job(begin, **({"state": "COMPLETED", "qos": "spot", "restarts": 1} | values))
    start = NOW - 8 * HOUR
    b.add_run(
        begin, job, state="PREEMPTED", submit_time=start, start_time=start,
        end_time=start + 2 * HOUR, elapsed_seconds=7200, to_settle=True, alloc_tres=CARDS,
    )  # fmt: skip
    b.add_run(
        begin, job, submit_time=start + 2 * HOUR, start_time=start + 3 * HOUR,
        end_time=start + 6 * HOUR, elapsed_seconds=10_800, restarts=1, to_settle=True,
        alloc_tres=CARDS,
    )  # fmt: skip
    return job


def saved(begin: Begin, job: int):
    with begin() as session:
        row = jobs.job(session, job).row
        return spot.saved(session, row, viewer=b.viewer(), now=NOW)


@pytest.mark.parametrize(("rule", "charged"), [("free", 4_920_000), ("pay", 8_200_000)])
def test_what_spot_saved(begin: Begin, rule: str, charged: int) -> None:
    set_price(begin, "a100", "1")
    set_terms(begin, "spot", "0.82", rule)
    credit.top_up("nlp", 100 * MILLION, begin=begin, now=NOW)
    job = preempted_job(begin)
    assert saved(begin, job) is None  # not charged yet
    settle.settle(begin=begin, now=NOW)
    found = saved(begin, job)
    assert (found.charged, found.elsewhere) == (charged, 10 * MILLION)
    assert found.money == 10 * MILLION - charged
    assert (found.preempted, found.runs, found.waited, found.again) == (1, 2, HOUR, None)


def test_of_other_jobs_nothing_is_said(begin: Begin) -> None:
    set_price(begin, "a100", "1")
    for changes in ({"qos": "normal"}, {"state": "RUNNING"}, {"qos": None}):
        job = preempted_job(begin, **changes)
        settle.settle(begin=begin, now=NOW)
        assert saved(begin, job) is None
