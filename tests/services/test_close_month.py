"""A month against Slurm's accounting: each run once, by its end, and every difference named."""

from datetime import UTC, datetime, timedelta
from zoneinfo import ZoneInfo

import pytest
from sqlalchemy import text

from gateway.core.closing import Kind
from gateway.core.credits import MILLION
from gateway.errors import NotFound, Refused
from gateway.services import close_month, credit, prices, refund, review
from gateway.services.elsewhere import cost_elsewhere
from gateway.services.settle import Rules, settle
from gateway.testing import builders as b
from gateway.testing.money import change_run, charge_of, one_credit_an_hour, set_price, set_terms

HOUR = timedelta(hours=1)
LATER = datetime(2026, 6, 1, tzinfo=UTC)
ZONE = ZoneInfo("Asia/Shanghai")


@pytest.fixture(autouse=True)
def priced(begin):
    one_credit_an_hour(begin, "a100")
    credit.top_up("nlp", 1000 * MILLION, begin=begin, now=b.NOW)


def ran(begin, start, hours=1, *, gpus=2, group="nlp", settled=True, **values):
    job = b.add_job(begin, state="COMPLETED", gpus=gpus, group=group)
    facts = {
        "start_time": start,
        "end_time": start + hours * HOUR,
        "elapsed_seconds": hours * 3600,
        "alloc_tres": f"gres/gpu={gpus},gres/gpu:a100={gpus}",
        "gpus": gpus,
        "to_settle": True,
    }
    run = b.add_run(begin, job, **(facts | values))
    if settled:
        settle(begin=begin, now=b.NOW)
    return run


def close(begin, read, month, zone=UTC, **values):
    given = {"now": LATER, "suspended": False} | values
    return close_month.close(month, begin=begin, read=read, zone=zone, **given)


def at(text_):
    return datetime.fromisoformat(text_).replace(tzinfo=UTC)


def test_a_run_over_the_months_edge_counts_once_by_its_end(begin, read):
    """Case 12: 48 card-hours, 0 in January and 48 in February; never 96."""
    ran(begin, at("2026-01-31T22:00"), 6, gpus=8)
    january, february = (close(begin, read, month) for month in ("2026-01", "2026-02"))
    assert (january.total.runs, february.total.runs) == (0, 1)
    assert february.total.card_seconds == february.total.charged_card_seconds == 48 * 3600
    assert february.total.charged == 48 * MILLION
    assert january.differences == february.differences == ()


def test_the_months_edge_is_that_of_the_sites_zone(begin, read):
    """16:00 in UTC is midnight in Shanghai."""
    ran(begin, at("2026-01-31T14:59"))
    ran(begin, at("2026-01-31T15:00"))
    found = [close(begin, read, month, ZONE).total.runs for month in ("2026-01", "2026-02")]
    assert found == [1, 1]


def test_what_is_not_charged_yet_is_told_apart(begin, read):
    start = at("2026-02-03T00:00")
    ran(begin, start, group="vision", alloc_tres="gres/gpu=2", node_list="gone")
    waived = ran(begin, start, alloc_tres="gres/gpu=2", node_list="gone")
    decided = ran(begin, start, alloc_tres="gres/gpu=2", node_list="gone")
    decision = {"note": "seen", "begin": begin, "now": b.NOW, "person_id": None}
    review.decide(charge_of(begin, waived).id, waive=True, **decision)
    review.decide(charge_of(begin, decided).id, seconds=1800, gpus={"a100": 2}, **decision)
    ran(begin, at("2024-02-03T00:00"), end_time=start, elapsed_seconds=3600)
    again = ran(begin, start, state="NODE_FAIL")
    late = ran(begin, start, settled=False)
    found = close(begin, read, "2026-02")
    nlp, vision = found.groups
    assert (vision.reviews, vision.charged) == (1, 0)
    assert (nlp.waived, nlp.decided, nlp.before_charging, nlp.runs) == (1, 1, 1, 5)
    assert (nlp.charged, nlp.refunded, nlp.spent) == (3 * MILLION, 2 * MILLION, MILLION)
    [difference] = found.differences
    assert (difference.kind, difference.run_id) == (Kind.NOT_SETTLED, late)
    assert charge_of(begin, again).amount == 2 * MILLION


def test_each_way_to_differ_is_named(begin, read):
    start = at("2026-02-03T00:00")
    runs = [ran(begin, start + n * HOUR) for n in range(5)]
    with begin() as session:
        for statement in (
            f"update run set to_settle = false, elapsed_seconds = 1800 where id = {runs[0]}",
            f"update charge set amount = 1 where run_id = {runs[1]}",
            f"update charge set group_name = 'vision' where run_id = {runs[2]}",
            f"update entry set charge_id = null where charge_id in "
            f"(select id from charge where run_id = {runs[3]})",
            f"delete from charge where run_id = {runs[3]}",
        ):
            session.execute(text(statement))
    found = close(begin, read, "2026-02")
    told = [(one.run_id, one.kind, one.expected, one.found) for one in found.differences]
    assert told == [
        (runs[0], Kind.CARD_SECONDS, "3600", "7200"),
        (runs[1], Kind.ENTRIES, "1", "2000000"),
        (runs[2], Kind.GROUP, "nlp", "vision"),
        (runs[3], Kind.NO_CHARGE, "7200", ""),
    ]


def test_suspended_time_is_compared_as_the_site_bills_it(begin, read):
    start = at("2026-02-03T00:00")
    end = start + 2 * HOUR
    ran(begin, start, suspended_seconds=3600, end_time=end, settled=False)
    from gateway.core.billing import Suspended

    settle(begin=begin, now=b.NOW, rules=Rules(suspended=Suspended.HELD))
    assert close(begin, read, "2026-02", suspended=True).differences == ()
    again = close(begin, read, "2026-02", suspended=False, again=True)
    assert [one.kind for one in again.differences] == [Kind.CARD_SECONDS]


def test_a_closed_month_stays_and_shows_what_was_corrected_since(begin, read):
    run = ran(begin, at("2026-02-03T00:00"), 2)
    refunded = ran(begin, at("2026-02-04T00:00"))
    first = close(begin, read, "2026-02")
    change_run(begin, run, elapsed_seconds=3600, end_time=at("2026-02-03T01:00"))
    settle(begin=begin, now=LATER + HOUR)
    charge = charge_of(begin, refunded).id
    refund.refund(charge, note="ours", begin=begin, now=LATER + 2 * HOUR, person_id=None)
    with read() as session:
        found = close_month.shown(session, "2026-02", zone=UTC)
    assert (found.total, found.differences) == (first.total, ())
    assert [(c.kind, c.amount, c.run_id) for c in found.corrections] == [
        ("correction", 2 * MILLION, run),
        ("refund", 2 * MILLION, refunded),
    ]
    with pytest.raises(Refused, match="month_closed"):
        close(begin, read, "2026-02")
    anew = close(begin, read, "2026-02", again=True, now=LATER + 3 * HOUR)
    assert (anew.total.spent, anew.corrections) == (2 * MILLION, ())
    assert anew.earlier == ((LATER.isoformat(), 0),)


def test_what_may_still_come_to_light_is_counted(begin, read):
    b.add_job(begin, state="RUNNING", left_queue_at=at("2026-02-20T00:00"))
    assert close(begin, read, "2026-02").not_told == {"jobs_without_end": 1, "held_rows": 0}


def test_a_month_that_is_not_over_or_none_is_refused(begin, read):
    with pytest.raises(Refused, match="month_not_over"):
        close(begin, read, "2026-06")
    with pytest.raises(Refused, match="bad_month"):
        close(begin, read, "2026-13")
    with read() as session, pytest.raises(NotFound):
        close_month.shown(session, "2026-01", zone=UTC)


def test_the_same_hours_elsewhere(begin, read):
    """QoS factors are this site's own; what the other list lacks is named, not free."""
    set_price(begin, "h200", "10")
    set_price(begin, "rtx4090", "1.2")
    set_terms(begin, "spot", "0.5")
    start = at("2026-02-03T00:00")
    rtx = {"alloc_tres": "gres/gpu=1,gres/gpu:rtx4090=1", "gpus": 1}
    ran(begin, start, 8, **rtx)
    ran(begin, start, 8, **rtx, qos="spot", state="NODE_FAIL")
    ran(begin, start, group="vision")
    ran(begin, start, alloc_tres="gres/gpu=2,gres/gpu:h200=2")
    ran(begin, at("2026-03-03T00:00"), 8, **rtx)
    prices.set_price("rtx4090", "1.5", list_name="elsewhere", begin=begin, now=LATER)
    prices.set_price("a100", "3", list_name="elsewhere", begin=begin, now=LATER)
    window = {"since": at("2026-02-01T00:00"), "until": at("2026-03-01T00:00"), "read": read}
    site = cost_elsewhere("elsewhere", **window)
    nlp = cost_elsewhere("elsewhere", **window, group="nlp")
    assert site.comparison.lacking == nlp.comparison.lacking == ("h200",)
    assert (nlp.comparison.here, nlp.comparison.there) == (14_400_000, 24 * MILLION)
    assert (site.comparison.here, site.comparison.there) == (16_400_000, 30 * MILLION)
    assert nlp.refunded == 4_800_000
    with pytest.raises(Refused, match="no_such_list"):
        cost_elsewhere("site", **window)
