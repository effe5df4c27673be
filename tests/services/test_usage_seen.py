"""Use as one person may see it: few people hidden, money as in the statements, cards as counted."""

from dataclasses import replace
from datetime import UTC, date, datetime, timedelta
from zoneinfo import ZoneInfo

import pytest

from gateway.core.access import Role
from gateway.core.months import days, month_bounds
from gateway.core.usage_figures import By, CreditSeen, Limits, advised_limit
from gateway.core.wait_figures import Dimension, Question
from gateway.services import keep_history, poll, usage_history
from gateway.services.usage_history import credit_seen, past_use, seen_use, spent
from gateway.store import capacity
from gateway.store.queries import statement
from gateway.store.training_models import TrainingMinute
from gateway.testing import builders as b
from gateway.testing.fakebroker import FakeBroker
from gateway.testing.money_samples import fill_money

HOUR = 3600
LEAST = 3


@pytest.fixture
def folder(tmp_path):
    return tmp_path / "history"


@pytest.fixture
def ran(begin, read, folder):
    """Puts runs of an hour on eight cards into the history."""

    def put(*facts, **more):
        for one in facts:
            job = b.add_job(begin, active=False, **{"state": "COMPLETED", "gpus": 8} | one | more)
            b.add_run(begin, job)
        keep_history.keep(folder, begin=begin, read=read, now=b.NOW)

    return put


def of(user, group="vision", **more):
    return {"user": user, "group": group} | more


def asked(**more):
    return Question(now=b.NOW, **more)


def seen(folder, viewer, *by, **more):
    with seen_use(folder, viewer, least=LEAST) as past:
        return past.use(asked(**more), by)


def keys(found):
    return [row.keys for row in found.rows]


def test_a_row_of_too_few_other_people_is_hidden_and_so_is_what_would_tell_of_it(ran, folder):
    ran(of("bob"), of("eve"), *(of(f"n{n}", "nlp") for n in range(4)), of("ann", "bio"))
    me = b.viewer("ann", groups=("bio",))
    found = seen(folder, me, By.GROUP)
    assert keys(found) == [("bio",)]
    assert found.hidden == 2
    assert len(keys(seen(folder, b.viewer("x", role=Role.OPERATOR), By.GROUP))) == 3


def test_a_leader_sees_the_members_and_others_see_themselves(ran, folder):
    ran(of("bob"), of("eve"), of("ann", "nlp"))
    assert keys(seen(folder, b.viewer("ann"), By.USER)) == [("ann",)]
    leader = b.viewer("eve", groups=("vision",), leads=("vision",))
    assert sorted(keys(seen(folder, leader, By.USER))) == [("bob",), ("eve",)]
    assert keys(seen(folder, b.viewer("ann"), By.USER, only={Dimension.USER: ("bob",)})) == []


def test_nobody_asks_about_another_by_a_filter(ran, folder):
    ran(of("bob"))
    with seen_use(folder, b.viewer("ann"), least=LEAST) as past:
        question = asked(only={Dimension.USER: ("bob",)})
        assert past.total(question) is None
        assert past.limits(question).rows == ()
        assert past.use(question, (By.MONTH,)).rows == ()


def test_waits_for_limits_are_for_leaders_of_their_groups(ran, folder, begin, read):
    with seen_use(folder, b.viewer("ann"), least=LEAST) as past:
        assert past.limit_waits(asked()) == []
    leader = b.viewer("eve", leads=("vision",))
    with seen_use(folder, leader, least=LEAST) as past:
        assert past.limit_waits(asked(only={Dimension.GROUP: ("nlp",)})) == []


def test_own_limits_are_of_all_ones_groups(ran, folder):
    ran(of("ann"), of("ann", "nlp"), of("bob"))
    with seen_use(folder, b.viewer("ann"), least=LEAST) as past:
        assert past.own_limits(asked(), "ann").runs == 2


def test_what_was_spent_is_what_the_statements_say(begin, read):
    fill_money(begin, now=b.NOW)
    zone = ZoneInfo("Europe/Berlin")
    question = asked(since=b.NOW - timedelta(days=100), zone=zone.key)
    with read() as session:
        found = {(row.group, row.month): row for row in spent(session, question, ALL)}
        assert {group for group, _ in found} >= {"nlp"}
        assert any(row.refunded for row in found.values())
        for (group, month), row in found.items():
            since, until = month_bounds(month, zone)
            lines = statement.totals(session, group, since=since, until=until).lines
            sums = {line.kind: line.amount for line in lines}
            charged = sums.get("charge", 0) + sums.get("correction", 0)
            refunded = sums.get("refund", 0) + sums.get("refund_undone", 0)
            assert (row.charged, row.refunded) == (-charged, refunded), (group, month)


ALL = CreditSeen(all_groups=True)


def test_of_money_one_sees_that_of_ones_groups(begin, read):
    fill_money(begin, now=b.NOW)
    question = asked(since=b.NOW - timedelta(days=100))
    with read() as session:
        assert spent(session, question, credit_seen(b.viewer(groups=("vision",)))) == []
        own = spent(session, question, credit_seen(b.viewer(groups=("nlp",))))
        assert {row.group for row in own} == {"nlp"}
        only = replace(question, only={Dimension.GROUP: ("vision", "bio")})
        assert spent(session, only, credit_seen(b.viewer(groups=("nlp",)))) == []
    assert credit_seen(b.viewer(role=Role.OPERATOR)).all_groups


def test_the_poll_keeps_the_most_cards_of_a_day_of_the_sites_zone(begin, read):
    broker = FakeBroker()
    shanghai = ZoneInfo("Asia/Shanghai")
    evening = datetime(2026, 3, 2, 17, tzinfo=UTC)  # the third, there
    poll.poll_cluster(begin=begin, broker=broker, now=evening, zone=shanghai)
    poll.poll_cluster(begin=begin, broker=broker, now=evening, zone=shanghai)
    with begin() as session:
        capacity.note(session, date(2026, 3, 3), {"a100": 4000, "rtx4090": 1})
    with read() as session:
        found = {one.gpu_type: one for one in capacity.between(session, date(2026, 3, 1), date.max)}
    assert found["a100"].gpus == 4000
    assert found["rtx4090"].gpus > 1
    assert {one.day for one in found.values()} == {date(2026, 3, 3)}


def test_days_before_the_first_count_have_its_cards_and_say_so(begin, read, ran, folder):
    ran(of("ann", gpus=8), cluster="cluster")
    today = b.NOW.date()
    with begin() as session:
        capacity.note(session, today, {"a100": 16})
    question = asked(since=b.NOW - timedelta(days=2))
    with past_use(folder) as past, read() as session:
        (cards,) = past.cards(question, session, cluster="cluster")
    assert [day.assumed for day in cards.days] == [True, True, False]
    assert cards.gpu_seconds == 8 * HOUR
    assert cards.capacity_s == 16 * 2 * 24 * HOUR
    assert cards.days[-1].capacity_s == 16 * 9 * HOUR


def test_another_clusters_jobs_do_not_make_these_cards_busy(read, ran, folder):
    ran(of("ann"), cluster="other")
    with past_use(folder) as past, read() as session:
        assert past.cards(asked(), session, cluster="cluster") == []


def test_a_day_of_the_clock_change_has_its_own_length():
    berlin = ZoneInfo("Europe/Berlin")
    since, until = (datetime(2026, 3, day, tzinfo=berlin) for day in (28, 31))
    lengths = [(ends - begins).total_seconds() / HOUR for _, begins, ends in
               days(since.astimezone(UTC), until.astimezone(UTC), berlin)]  # fmt: skip
    assert lengths == [24, 23, 24]


@pytest.mark.parametrize(
    ("p90", "timeout", "limit", "completed", "hours"),
    [
        (3 * HOUR, None, 48 * HOUR, 20, 4),
        (3 * HOUR, None, 48 * HOUR, 19, None),  # too few runs
        (3 * HOUR, 10 * HOUR, 48 * HOUR, 50, 12),  # a run needed more than ten hours
        (3 * HOUR, 48 * HOUR, 48 * HOUR, 50, None),
        (3 * HOUR, None, 6 * HOUR, 50, None),  # not much shorter
        (HOUR, None, 48 * HOUR, 50, 2),  # never the very time that runs needed
        (59 * 60, None, 2 * HOUR, 50, 1),
        (None, None, None, 0, None),
        (400 * HOUR, None, 2000 * HOUR, 50, None),
    ],
)
def test_a_shorter_limit_is_advised_only_where_the_numbers_say_so(
    p90, timeout, limit, completed, hours
):
    found = advised_limit(
        Limits("nlp", completed=completed, p90_s=p90, timeout_s=timeout, median_limit_s=limit)
    )
    assert found == (None if hours is None else hours * HOUR)


def test_measured_use_is_of_the_period_and_by_type(begin, read):
    start = b.NOW - timedelta(hours=2)
    job = b.add_job(begin, state="RUNNING", start_time=start, gpu_type="a100")
    minutes = {"node": "a100-1", "last_at": 0.0, "cards": []}
    with begin() as session:
        for number, util in enumerate((100.0, 50.0, None, 30.0)):
            at = int(start.timestamp()) + 60 * number
            session.add(TrainingMinute(job_id=job, at=at, util=util, **minutes))
    with read() as session:
        found = usage_history.measured(session, asked(), start)["a100"]
        assert (found.node_minutes, found.percent) == (3, 60.0)
        later = usage_history.measured(session, asked(), start + timedelta(minutes=3))["a100"]
        assert later.percent == 30.0
        early = asked(until=start - timedelta(minutes=1))
        assert usage_history.measured(session, early, start - timedelta(hours=9)) == {}
