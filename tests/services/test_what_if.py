"""The past against proposed limits and prices, also against a slow and simple reckoning."""

import tempfile
from collections import Counter
from dataclasses import dataclass, replace
from datetime import timedelta
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from gateway.core.credits import MILLION
from gateway.core.past_runs import COLUMNS
from gateway.core.policy_change import Item
from gateway.core.pricing import Preempted
from gateway.core.qos import GroupPolicy, Qos, tres
from gateway.core.what_if import Effects, ProposedPrices
from gateway.history import blocks
from gateway.services import keep_history
from gateway.services.what_if import NO_PRICES, replay
from gateway.store import prices, snapshot
from gateway.testing import builders as b
from gateway.wire import policy as p

GPU = "gres/gpu"
NORMAL = Qos(name="normal")
NLP = GroupPolicy(name="nlp", qos=("normal", "spot"))
DAYS = 10
HOUR = 3600


@pytest.fixture
def folder(tmp_path):
    return tmp_path / "history"


@dataclass(frozen=True)
class Past:
    """A run: hours before NOW at which it was eligible and started, and how long it ran."""

    start: float
    hours: float = 1
    gpus: int = 2
    waited: float = 0
    user: str = "ann"
    group: str = "nlp"
    qos: str = "normal"
    limit: int = 120
    gpu_type: str | None = "a100"
    state: str = "COMPLETED"
    cpus: int = 4


def put(begin, *runs):
    for run in runs:
        start = b.NOW - timedelta(hours=run.start)
        eligible = start - timedelta(hours=run.waited)
        facts = {"user": run.user, "group": run.group, "qos": run.qos, "gpus": run.gpus}
        facts |= {"submit_time": eligible, "eligible_time": eligible, "state": run.state}
        facts |= {"cpus": run.cpus}
        job = b.add_job(
            begin, **facts, time_limit_minutes=run.limit, gpu_type=run.gpu_type, active=False
        )
        end = start + timedelta(hours=run.hours)
        seconds = int(run.hours * HOUR)
        b.add_run(begin, job, **facts, start_time=start, end_time=end, elapsed_seconds=seconds)


@pytest.fixture
def ask(begin, read, folder):
    def asked(before, *, days=DAYS, prices=NO_PRICES, **changed):
        items = [Item(before, replace(before, **changed))] if changed else []
        keep_history.keep(folder, begin=begin, read=read, now=b.NOW)
        return replay(items, days=days, prices=prices, history=folder, read=read, now=b.NOW)

    return asked


def only(found):
    (limit,) = found.limits
    return limit.effects


def test_without_a_history_there_is_nothing_and_it_is_said(read, folder):
    found = replay([], days=DAYS, history=folder, read=read, now=b.NOW)
    assert (found.runs, found.groups, found.history_until) == (0, (), None)


def test_who_would_have_waited_for_a_lower_limit_and_how_long(begin, ask):
    put(begin, Past(5, hours=2), Past(4, hours=2, user="bob", group="cv"), Past(4.5, qos="spot"))
    found = ask(NORMAL, grp_tres=tres({GPU: 2}))
    assert only(found) == Effects(runs=3, later=1, later_seconds=HOUR)
    by_group = {one.group: one.effects for one in found.groups}
    assert by_group["cv"] == Effects(runs=1, later=1, later_seconds=HOUR)
    assert by_group["nlp"] == Effects(runs=2)
    assert found.groups[0].group == "cv"  # the most affected first


def test_people_and_groups_have_their_own_room(begin, ask):
    put(begin, Past(5), Past(5, user="bob"), Past(5, user="bob", group="cv"))
    assert only(ask(NORMAL, max_tres_per_user=tres({GPU: 2}))).later == 1
    assert only(ask(NORMAL, max_tres_per_account=tres({GPU: 2}))).later == 1
    assert only(ask(NORMAL, grp_jobs=1)).later == 2
    assert only(ask(NORMAL, max_jobs_per_user=3)).later == 0


def test_what_alone_is_above_the_limit_is_refused_and_holds_nobody_up(begin, ask):
    put(begin, Past(5, gpus=8), Past(5, gpus=2))
    found = ask(NORMAL, grp_tres=tres({GPU: 4}))
    assert only(found) == Effects(runs=2, refused=1)


@pytest.mark.parametrize(
    ("changed", "refused"),
    [
        ({"max_tres_per_job": tres({GPU: 2})}, 1),
        ({"max_tres_per_job": tres({"gres/gpu:a100": 3})}, 1),
        ({"max_tres_per_job": tres({"gres/gpu:h100": 0})}, 0),
        ({"max_tres_per_node": tres({GPU: 3})}, 1),
        ({"max_wall_minutes": 119}, 1),
        ({"max_wall_minutes": 120}, 0),
        ({"max_tres_minutes_per_job": tres({GPU: 239})}, 2),
        ({"min_tres_per_job": tres({GPU: 3})}, 1),
        ({"min_tres_per_job": tres({"cpu": 5})}, 2),
    ],
)
def test_who_would_have_been_refused(begin, ask, changed, refused):
    put(begin, Past(5, gpus=2), Past(5, gpus=4, limit=60), Past(5, gpus=16, qos="spot"))
    assert only(ask(NORMAL, **changed)).refused == refused


def test_what_was_refused_before_is_not_counted_again(begin, ask):
    put(begin, Past(5, gpus=8))
    before = replace(NORMAL, max_tres_per_job=tres({GPU: 4}))
    assert only(ask(before, max_tres_per_job=tres({GPU: 2}))).refused == 0


def test_a_higher_limit_gives_back_what_was_waited_for_it(begin, ask):
    """At most what they waited: the cluster was full too."""
    put(begin, Past(5, hours=2), Past(3, waited=1.5), Past(2.9, waited=0.1, gpus=1))
    before = replace(NORMAL, grp_tres=tres({GPU: 2}))
    found = ask(before, grp_tres=tres({GPU: 4}))
    assert only(found).sooner == 2
    # Under the old limit the second would have waited from 4.5 to 3, the third from 3 to 2.
    assert only(found).sooner_seconds == round(1.5 * HOUR) + round(0.1 * HOUR)
    assert only(ask(before, grp_tres=())).sooner == 2


def test_run_minutes_fall_as_time_passes(begin, ask):
    """2 GPUs x 120 minutes each; 1 hour after the first started there is room for half."""
    put(begin, Past(5, hours=2), Past(4.5, hours=2))
    found = ask(NORMAL, grp_tres_run_minutes=tres({GPU: 360}))
    assert only(found) == Effects(runs=2, later=1, later_seconds=HOUR // 2)


def test_runs_from_before_the_window_hold_their_part_and_are_not_counted(begin, ask):
    put(begin, Past(30, hours=10), Past(23, hours=1))
    found = ask(NORMAL, days=1, grp_tres=tres({GPU: 2}))
    assert only(found) == Effects(runs=1, later=1, later_seconds=3 * HOUR)


def test_limits_of_a_group_are_its_own_and_those_of_the_qos_go_before(begin, ask):
    with begin() as session:
        own = replace(NORMAL, grp_jobs=50)
        accounts = [
            p.Account(NLP, None, "", "", (), NLP.qos),
            p.Account(GroupPolicy(name="sub"), "nlp", "", "", (), NLP.qos),
        ]
        snapshot.replace_policy(
            session, associations=(), qos=(own,), accounts=accounts, fair_shares=()
        )
    put(begin, Past(5, qos="spot"), Past(5, qos="spot", group="sub"), Past(5), Past(5, group="cv"))
    assert only(ask(NLP, grp_jobs=1)).later == 1
    assert only(ask(NLP, max_jobs=1)).later == 1  # of each person in each group by itself
    assert only(ask(NLP, qos=("normal",))).refused == 2


def test_a_run_that_two_limits_touch_counts_once(begin, ask):
    put(begin, Past(5), Past(5), Past(5, gpus=8))
    found = ask(NORMAL, grp_jobs=1, max_tres_per_user=tres({GPU: 2}), max_wall_minutes=500)
    assert [one.effects.refused for one in found.limits] == [0, 1, 0]
    (group,) = found.groups
    assert (group.effects.refused, group.effects.later) == (1, 1)


def test_what_cannot_be_replayed_is_said(begin, ask):
    put(begin, Past(5), Past(5, gpu_type=None))
    found = ask(
        NORMAL,
        description="new",
        priority=7,
        grp_tres_minutes=tres({GPU: 1}),
        grp_tres=tres({"mem": 1, "gres/gpu:a100": 1}),
    )
    assert [(one.field.key, one.tres) for one in found.not_replayed] == [
        ("priority", None),
        ("grp_tres", "gres/gpu:a100"),
        ("grp_tres", "mem"),
        ("grp_tres_minutes", GPU),
    ]
    assert [one.tres for one in found.limits] == ["gres/gpu:a100"]
    assert only(found).refused == 1


def price(begin, resource, per_hour):
    with begin() as session:
        prices.add_price(
            session,
            list_name=prices.SITE,
            resource=resource,
            per_hour=per_hour,
            starts=b.NOW - timedelta(days=1),
            now=b.NOW,
            person_id=None,
        )


def test_costs_by_todays_list_and_the_proposed_one(begin, ask):
    price(begin, "a100", 10 * MILLION)
    with begin() as session:
        prices.add_terms(
            session,
            qos="spot",
            factor_millionths=820_000,
            preempted=Preempted.FREE,
            starts=b.NOW - timedelta(days=1),
            now=b.NOW,
            person_id=None,
        )
    put(begin, Past(9), Past(9, qos="spot", group="cv"), Past(9, gpu_type="h100", group="cv"))
    put(begin, Past(8, qos="spot", group="cv", state="PREEMPTED"))
    found = ask(NORMAL, prices=ProposedPrices({"a100": 12 * MILLION}, {"spot": 500_000}))
    costs = {one.group: (one.cost_before, one.cost_after) for one in found.groups}
    assert costs == {
        "nlp": (20 * MILLION, 24 * MILLION),
        "cv": (16_400_000, 12 * MILLION),
    }
    assert found.unpriced == 1


def test_costs_are_exact_where_64_bits_are_not_enough(begin, ask):
    price(begin, "a100", 10**13 + 1)
    price(begin, "cpu", 7)
    put(begin, Past(100, hours=99.9997, gpus=1024, cpus=3))
    (group,) = ask(NORMAL).groups
    seconds = int(99.9997 * HOUR)
    expected = -(-1024 * seconds * (10**13 + 1) // HOUR) + -(-3 * seconds * 7 // HOUR)
    assert group.cost_before == group.cost_after == expected


def test_without_any_price_there_is_no_cost(begin, ask):
    put(begin, Past(5))
    (group,) = ask(NORMAL).groups
    assert (group.cost_before, group.cost_after) == (None, None)


minutes = st.integers(0, 300)
past_run = st.tuples(
    minutes, st.integers(1, 120), st.integers(1, 8), st.sampled_from("abc"), st.integers(0, 60)
)


@settings(
    max_examples=60, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture]
)
@given(runs=st.lists(past_run, max_size=25), limit=st.integers(1, 12), old=st.integers(1, 12))
def test_the_same_as_slowly_minute_by_minute(read, runs, limit, old):
    """Of each person: the columns, the window and the sums are right, whatever the runs."""
    began = int((b.NOW - timedelta(days=1)).timestamp())
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        rows = [
            (
                *(n, n, "dev", n, user, f"g{gpus % 3}", "a100", "normal", None, "COMPLETED"),
                *(began + (start - waited) * 60, began + (start - waited) * 60),
                *(began + start * 60, began + (start + length) * 60),
                *(length * 60, 0, length, 1, 1, gpus, "a100", None, 0, None, ""),
                *[None] * (len(COLUMNS) - 25),
            )
            for n, (start, length, gpus, user, waited) in enumerate(runs)
        ]
        blocks.save(
            folder,
            blocks.Manifest({0: blocks.write(folder, 0, rows)} if rows else {}, 1, b.NOW),
        )
        before = replace(NORMAL, max_tres_per_user=tres({GPU: old}))
        after = replace(NORMAL, max_tres_per_user=tres({GPU: limit}))
        found = replay([Item(before, after)], days=2, history=folder, read=read, now=b.NOW)
    expected = slowly(runs, old, limit) if old != limit else Effects(len(runs))
    if old == limit:
        assert found.limits == ()
        return
    assert only(found) == expected
    assert Counter({g.group: g.effects.runs for g in found.groups}) == Counter(
        f"g{gpus % 3}" for _, _, gpus, _, _ in runs
    )


def slowly(runs, old, limit):
    mine = [(n, *run) for n, run in enumerate(runs)]
    tighter = limit < old
    refused = sum(limit < gpus <= old for _, _, gpus, _, _ in runs)
    kept = [run for run in mine if run[3] <= (limit if tighter else old)]
    new = waits_slowly(kept, limit, eligible=not tighter)
    if tighter:
        left = {run[0]: 24 * 60 - run[1] for run in kept}  # until the end of the window
        moved = [60 * min(wait, left[n]) for n, wait in new.items() if wait]
        return Effects(len(runs), refused, len(moved), sum(moved))
    before = waits_slowly(kept, old, eligible=True)
    gained = [60 * min(run[5], before[run[0]] - new[run[0]]) for run in kept]
    gained = [seconds for seconds in gained if seconds > 0]
    return Effects(len(runs), refused, sooner=len(gained), sooner_seconds=sum(gained))


def waits_slowly(runs, limit, *, eligible):
    """Minutes that each waits; each person by itself, in order, minute by minute."""
    found, started = {}, {}

    def wanted(run):
        return run[1] - (run[5] if eligible else 0)

    for run in sorted(runs, key=lambda run: (wanted(run), run[0])):
        n, _, length, gpus, user, _ = run
        own = started.setdefault(user, [])
        at = max([wanted(run), *(start for start, _, _ in own)])
        while sum(held for s, long, held in own if s + long > at) + gpus > limit:
            at += 1
        own.append((at, length, gpus))
        found[n] = at - wanted(run)
    return found
