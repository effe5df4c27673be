"""Which open jobs a change of policy would hold, end or let go."""

from dataclasses import replace
from datetime import UTC, datetime, timedelta

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from gateway.core.impact import ActiveJob, Doubt, Effect, PastUsage, QosLists, Site
from gateway.core.impact_rules import impact
from gateway.core.limit_rules import QUIET, RULES
from gateway.core.policy_change import Item
from gateway.core.qos import FIELDS, GROUP_FIELDS, GroupPolicy, Kind, Qos, tres
from gateway.core.reason_limits import LIMITS, word_of
from gateway.core.reasons import REASONS

NOW = datetime(2026, 3, 2, 9, 0, tzinfo=UTC)
GPU = "gres/gpu"
FIELD_OF = {field.key: field for field in (*FIELDS, *GROUP_FIELDS)}
NORMAL, NLP = Qos(name="normal"), GroupPolicy(name="nlp", qos=("normal", "spot"))
SITE = Site(
    qos={"normal": NORMAL, "spot": Qos(name="spot")},
    inside={"nlp": frozenset({"nlp", "nlp-sub"})},
    ends_running=True,
)


def job(number, **values):
    facts = {
        "id": number,
        "slurm_id": 1000 + number,
        "user": "ann",
        "group": "nlp",
        "qos": "normal",
        "partition": "a100",
        "running": False,
        "blocked": False,
        "reason": "Priority",
        "priority": 1000 - number,
        "submit_time": NOW - timedelta(hours=1),
        "start_time": None,
        "time_limit_minutes": 60,
        "nodes": 1,
        "cpus": 8,
        "gpus": 2,
        "gpu_type": "a100",
    }
    return ActiveJob(**(facts | values))


def running(number, **values):
    facts = {"running": True, "reason": None, "start_time": NOW - timedelta(minutes=30)}
    return job(number, **(facts | values))


def judge(jobs, before=NORMAL, *, site=SITE, **changed):
    return impact([Item(before, replace(before, **changed))], jobs, site=site, now=NOW)


def effects(found):
    return {one.job.id: one.effect for field in found.fields for one in field.jobs}


def reasons(found):
    return {one.job.id: one.reason for field in found.fields for one in field.jobs if one.reason}


def test_each_field_has_a_rule_or_is_told_not_to_be_judged():
    unjudged = {"flags", "limit_factor_millionths", "usage_threshold_millionths", "min_priority"}
    assert {field.key for field in (*FIELDS, *GROUP_FIELDS)} == {*RULES, *QUIET, *unjudged}


@pytest.mark.parametrize("key", sorted(RULES))
@pytest.mark.parametrize("name", ["cpu", "node", "gres/gpu", "gres/gpu:a100"])
def test_each_reason_is_a_word_of_slurm(key, name):
    holders = {one.holder for one in LIMITS.values() if one.key == key}
    tres = name if FIELD_OF[key].kind is Kind.TRES else None
    assert {word_of(holder, key, tres) for holder in holders} <= REASONS


def test_a_lower_limit_lets_run_what_runs_and_holds_what_is_too_much():
    jobs = [running(1, gpus=4), running(2, gpus=4), job(3), job(4, user="bob")]
    found = judge(jobs, max_tres_per_user=tres({GPU: 6}))
    assert effects(found) == {1: Effect.ABOVE, 2: Effect.ABOVE, 3: Effect.WAITS}
    assert reasons(found) == {3: "QOSMaxGRESPerUser"}


def test_what_stands_ahead_takes_the_room_first():
    jobs = [running(1), job(2), job(3), job(4, priority=5000)]
    found = judge(jobs, grp_tres=tres({GPU: 6}))
    assert effects(found) == {3: Effect.WAITS_LATER}  # 4 goes first, then 2


def test_what_waited_before_is_not_held_by_the_change():
    before = replace(NORMAL, grp_jobs=1)
    jobs = [running(1), job(2, reason="QOSGrpJobsLimit")]
    assert effects(judge(jobs, before, grp_jobs=0)) == {1: Effect.ABOVE}


def test_a_lifted_limit_lets_go_of_as_many_as_then_fit():
    before = replace(NORMAL, grp_tres=tres({GPU: 2}))
    jobs = [running(1), job(2, reason="QOSGrpGRES"), job(3, reason="QOSGrpGRES")]
    assert effects(judge(jobs, before, grp_tres=tres({GPU: 4}))) == {2: Effect.LET_GO}
    assert effects(judge(jobs, before, grp_tres=())) == {2: Effect.LET_GO, 3: Effect.LET_GO}


def test_the_two_spellings_of_a_reason_are_one():
    before = replace(NORMAL, grp_tres=tres({"cpu": 8}))
    jobs = [running(1), job(2, reason="(QOSGrpCPULimit)"), job(3, reason="QOSGrpCpuLimit, x")]
    assert set(effects(judge(jobs, before, grp_tres=()))) == {2, 3}


def test_a_blocked_job_waits_for_something_else():
    assert effects(judge([job(1, blocked=True)], grp_jobs=0)) == {}


def test_a_job_too_long_waits_for_good_and_a_running_one_goes_on():
    found = judge([job(1), running(2), job(3, time_limit_minutes=None)], max_wall_minutes=30)
    assert effects(found) == {1: Effect.WAITS, 2: Effect.ABOVE}
    assert reasons(found) == {1: "QOSMaxWallDurationPerJobLimit"}


def test_each_node_of_a_job_is_compared():
    jobs = [job(1, nodes=2, gpus=16), job(2, nodes=1, gpus=8)]
    assert set(effects(judge(jobs, max_tres_per_node=tres({GPU: 7})))) == {1, 2}
    assert effects(judge(jobs, max_tres_per_node=tres({GPU: 8}))) == {}


def test_a_job_below_the_least_waits():
    found = judge([job(1, gpus=0), job(2)], min_tres_per_job=tres({GPU: 1}))
    assert effects(found) == {1: Effect.WAITS}


def test_minutes_of_a_job_end_it_only_without_safe():
    jobs = [running(1, gpus=4), running(2, gpus=1), job(3, gpus=4)]
    changed = {"max_tres_minutes_per_job": tres({GPU: 100})}  # 1 has used 120, 2 can come to 60
    assert effects(judge(jobs, **changed)) == {1: Effect.ENDED, 3: Effect.WAITS}
    safe = replace(SITE, ends_running=False)
    assert effects(judge(jobs, site=safe, **changed)) == {1: Effect.ABOVE, 3: Effect.WAITS}
    unknown = replace(SITE, ends_running=None)
    assert effects(judge(jobs, site=unknown, **changed))[1] is Effect.MAY_END


def test_a_running_job_that_will_reach_its_minutes_may_end():
    found = judge([running(1, gpus=4)], max_tres_minutes_per_job=tres({GPU: 150}))
    assert effects(found) == {1: Effect.MAY_END}
    assert found.ends_jobs


def test_usage_that_decays_is_only_known_to_slurm():
    usage = {"qos:normal": PastUsage({GPU: 48_000})}
    site = replace(SITE, usage=usage)
    found = judge([running(1), job(2)], site=site, grp_tres_minutes=tres({GPU: 40_000}))
    assert effects(found) == {1: Effect.MAY_END}
    (doubt,) = found.unknown
    assert (doubt.doubt, doubt.most, doubt.limit) == (Doubt.USAGE, 48_060, 40_000)


def test_usage_below_the_limit_ends_nothing():
    found = judge([running(1)], grp_tres_minutes=tres({GPU: 61}))
    assert (effects(found), found.unknown) == ({}, ())


@pytest.mark.parametrize(("limit", "stands"), [(60, True), (0, False)])
def test_usage_that_stands_and_a_limit_of_nothing_end_for_sure(limit, stands):
    site = replace(SITE, never_decays=frozenset({"qos:normal"} if stands else ()))
    found = judge([running(1), job(2)], site=site, grp_tres_minutes=tres({GPU: limit}))
    assert effects(found) == {1: Effect.ENDED, 2: Effect.WAITS}
    assert reasons(found) == {2: "QOSGrpGRESMinutes"}


def test_wall_time_of_all_jobs_counts_with_the_usage_factor():
    double = replace(NORMAL, usage_factor_millionths=2_000_000)
    site = replace(SITE, qos={"normal": double}, never_decays=frozenset({"qos:normal"}))
    assert set(effects(judge([running(1)], double, site=site, grp_wall_minutes=60))) == {1}
    assert effects(judge([running(1)], double, site=site, grp_wall_minutes=61)) == {}


def test_run_minutes_count_what_is_left_of_the_time_limit():
    jobs = [running(1), job(2)]  # 2 GPUs x 30 minutes left, 2 GPUs x 60 minutes
    changed = {"grp_tres_run_minutes": tres({GPU: 179})}
    assert effects(judge(jobs, **changed)) == {2: Effect.WAITS}
    assert effects(judge(jobs, grp_tres_run_minutes=tres({GPU: 180}))) == {}


def test_a_limit_of_the_qos_goes_before_the_groups():
    own = replace(NORMAL, grp_tres=tres({GPU: 100}))
    jobs = [job(1), job(2, qos="spot"), job(3, group="nlp-sub", qos="spot")]
    site = replace(SITE, qos={"normal": own, "spot": Qos(name="spot")})
    found = judge(jobs, NLP, site=site, grp_tres=tres({GPU: 1}))
    assert reasons(found) == {2: "AssocGrpGRES", 3: "AssocGrpGRES"}


def test_who_has_a_limit_of_their_own_does_not_meet_the_groups():
    own = frozenset({("nlp", "ann")})
    site = replace(SITE, own={("nlp", "max_wall_minutes"): own})
    jobs = [job(1), job(2, user="bob")]
    assert set(effects(judge(jobs, NLP, site=site, max_wall_minutes=30))) == {2}


def test_a_qos_that_is_lost_holds_and_one_that_comes_back_lets_go():
    lists = QosLists(frozenset({"normal", "spot"}), frozenset({"normal"}), frozenset({"nlp"}))
    jobs = [
        job(1, qos="spot"),
        running(2, qos="spot"),
        job(3),
        job(4, reason="InvalidQOS"),
        job(5, qos="spot", group="vision"),
    ]
    site = replace(SITE, lists={"nlp": lists})
    found = judge(jobs, NLP, site=site, qos=("normal",))
    assert effects(found) == {1: Effect.WAITS, 2: Effect.ABOVE, 4: Effect.LET_GO}
    assert reasons(found) == {1: "InvalidQOS"}
    assert found.fields[0].lost == ("spot",)


def test_who_could_now_be_pushed_off_by_whom():
    jobs = [running(1, qos="spot", gpus=8), job(2), job(3, tasks=4)]
    found = judge(jobs, preempts=("spot",))
    (pushed,) = found.preemption
    assert (pushed.by, pushed.of, pushed.running, pushed.gpus, pushed.waiting) == (
        *("normal", "spot"),
        *(1, 8, 5),
    )


@pytest.mark.parametrize("name", ["mem", "billing", "license/matlab"])
def test_what_the_job_table_does_not_hold_is_not_known(name):
    found = judge([job(1)], grp_tres=tres({name: 1}))
    assert [one.doubt for one in found.unknown] == [Doubt.TRES]
    assert found.fields == ()


def test_a_card_of_no_known_type_is_not_known():
    found = judge([job(1, gpu_type=None), job(2)], grp_tres=tres({"gres/gpu:a100": 1}))
    assert [one.doubt for one in found.unknown] == [Doubt.TRES]
    assert effects(found) == {2: Effect.WAITS}


def test_what_no_rule_speaks_of_is_said():
    found = judge([job(1)], flags=("DenyOnLimit",), priority=7, max_submit_per_user=1)
    assert [(one.field.key, one.doubt) for one in found.unknown] == [("flags", Doubt.UNJUDGED)]


def test_a_job_counts_once_and_an_array_by_its_tasks():
    changed = {"grp_jobs": 0, "max_wall_minutes": 1}
    found = judge([job(1), job(2, tasks=10)], **changed)
    assert found.count(Effect.WAITS) == 11


jobs = st.lists(
    st.builds(
        lambda number, gpus, runs, user: (running if runs else job)(number, gpus=gpus, user=user),
        st.integers(1, 10**6),
        st.integers(0, 8),
        st.booleans(),
        st.sampled_from("abc"),
    ),
    unique_by=lambda one: one.id,
    max_size=30,
)
limits = st.integers(0, 40)


@given(jobs, limits, limits)
@example([job(1, gpus=8, user="a"), job(2, gpus=1, user="a")], 8, 1)
def test_a_lower_limit_holds_no_fewer(found, one, other):
    """But for those that wait for others before them, which a lower limit may hold instead."""
    low, high = sorted((one, other))
    held = effects(judge(found, max_tres_per_user=tres({GPU: high})))
    few = {number for number, effect in held.items() if effect is not Effect.WAITS_LATER}
    assert few <= set(effects(judge(found, max_tres_per_user=tres({GPU: low}))))


@given(jobs, limits)
def test_what_is_not_held_fits(found, limit):
    """Slurm starts all that are not named, in the order of the queue, and is within the limit."""
    held = effects(judge(found, grp_tres=tres({GPU: limit})))
    used = sum(one.gpus for one in found if one.running)
    started = sum(one.gpus for one in found if not one.running and one.id not in held)
    assert started == 0 or used + started <= limit
