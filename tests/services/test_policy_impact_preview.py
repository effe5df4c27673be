"""The impact of a change, from what the polls have stored."""

from dataclasses import replace
from datetime import timedelta

from gateway.core.impact import Doubt, Effect, Impact
from gateway.core.policy_change import Item
from gateway.core.qos import GroupPolicy, Qos, tres
from gateway.services.policy_impact import preview
from gateway.store import accounting_facts, snapshot
from gateway.testing import builders as b
from gateway.wire import messages as m
from gateway.wire import policy as p

GPU = "gres/gpu"
NORMAL = Qos(name="normal")
NLP = GroupPolicy(name="nlp", qos=("normal", "spot"), max_wall_minutes=600)
WEEK = 7 * 86_400


def account(policy, parent=None, usable=()):
    return p.Account(policy, parent, "", "", (), usable or policy.qos)


def polled(begin, *accounts, people=(), qos=(NORMAL,), enforced=("limits",), half_life=WEEK):
    with begin() as session:
        snapshot.replace_policy(
            session, associations=people, qos=qos, accounts=accounts, fair_shares=()
        )
        facts = m.AccountingFacts((), enforced, half_life)
        accounting_facts.put(session, facts)


def judged(read, before, **changed):
    return preview([Item(before, replace(before, **changed))], read=read, now=b.NOW)


def effects(found):
    return {one.job.id: one.effect for field in found.fields for one in field.jobs}


def test_a_lower_limit_holds_who_waits(begin, read):
    b.add_job(begin, state="RUNNING", start_time=b.NOW)
    held = b.add_job(begin, reason="Priority", gpus=4)
    b.add_job(begin, qos="spot", gpus=4)
    b.add_job(begin, state="COMPLETED", gpus=4)
    found = judged(read, NORMAL, max_tres_per_user=tres({GPU: 4}))
    assert effects(found) == {held: Effect.WAITS}


def test_held_jobs_and_jobs_that_are_completing_are_left_out(begin, read):
    b.add_job(begin, state="COMPLETING", start_time=b.NOW, gpus=8)
    b.add_job(begin, reason="JobHeldUser")
    b.add_job(begin, reason="Dependency")
    fits = b.add_job(begin, gpus=4)
    assert effects(judged(read, NORMAL, grp_tres=tres({GPU: 4}))) == {}
    assert effects(judged(read, NORMAL, grp_tres=tres({GPU: 3}))) == {fits: Effect.WAITS}


def test_a_pending_array_counts_by_its_tasks(begin, read):
    b.add_job(begin, array_job_id=7, array_tasks=20)
    assert judged(read, NORMAL, grp_jobs=0).count(Effect.WAITS) == 20
    assert judged(read, NORMAL, grp_jobs=19).count(Effect.WAITS_LATER) == 20


def test_groups_below_are_inside(begin, read):
    sub = GroupPolicy(name="nlp-sub")
    polled(begin, account(NLP), account(sub, "nlp", NLP.qos), account(GroupPolicy(name="other")))
    below = b.add_job(begin, group="nlp-sub")
    b.add_job(begin, group="other")
    assert effects(judged(read, NLP, grp_jobs=0)) == {below: Effect.WAITS}


def test_a_list_that_is_taken_from_above_is_lost_with_it(begin, read):
    heir, own = GroupPolicy(name="heir"), GroupPolicy(name="own", qos=("spot",))
    polled(begin, account(NLP), account(heir, "nlp", NLP.qos), account(own, "nlp"))
    waits = b.add_job(begin, group="heir", qos="spot")
    b.add_job(begin, group="own", qos="spot")
    found = judged(read, NLP, qos=("normal",))
    assert effects(found) == {waits: Effect.WAITS}


def test_an_emptied_list_gives_what_is_above(begin, read):
    below = GroupPolicy(name="below", qos=("normal", "urgent"))
    polled(begin, account(NLP), account(below, "nlp"))
    urgent = b.add_job(begin, group="below", qos="urgent")
    b.add_job(begin, group="below", qos="normal")
    assert effects(judged(read, below, qos=())) == {urgent: Effect.WAITS}


def test_who_has_a_time_limit_of_their_own_keeps_it(begin, read):
    people = (
        b.association("ann", max_wall_minutes=600),
        b.association("bob", max_wall_minutes=6000),
    )
    polled(begin, account(NLP), people=people)
    held = b.add_job(begin, user="ann", time_limit_minutes=500)
    b.add_job(begin, user="bob", time_limit_minutes=500)
    assert effects(judged(read, NLP, max_wall_minutes=300)) == {held: Effect.WAITS}


def test_a_limit_from_above_is_nobodys_own(begin, read):
    sub = GroupPolicy(name="sub", qos=("normal",))
    people = (b.association("ann", "sub", max_wall_minutes=600),)
    polled(begin, account(NLP), account(sub, "nlp"), people=people)
    held = b.add_job(begin, user="ann", group="sub", time_limit_minutes=500)
    assert effects(judged(read, sub, max_wall_minutes=300)) == {held: Effect.WAITS}


def used(begin, days_ago, gpu_hours):
    job = b.add_job(begin, state="COMPLETED", gpus=1)
    end = b.NOW - timedelta(days=days_ago)
    facts = {"end_time": end, "start_time": end - timedelta(hours=gpu_hours), "gpus": 1}
    b.add_run(begin, job, elapsed_seconds=gpu_hours * 3600, **facts)


def test_a_group_limit_lowered_below_its_usage_says_that_running_jobs_may_be_killed(begin, read):
    """Case 23: 800 GPU-hours two weeks ago, half-life 14 days: Slurm counts some 400."""
    polled(begin, account(NLP), half_life=14 * 86_400)
    used(begin, 14, 800)
    running = b.add_job(begin, state="RUNNING", start_time=b.NOW - timedelta(minutes=30))
    found = judged(read, NLP, grp_tres_minutes=tres({GPU: 300 * 60}))
    assert effects(found) == {running: Effect.MAY_END}
    assert found.ends_jobs
    (doubt,) = found.unknown
    assert doubt.doubt is Doubt.USAGE
    assert 400 * 60 <= doubt.most <= 425 * 60
    assert not judged(read, NLP, grp_tres_minutes=tres({GPU: 430 * 60})).ends_jobs


def test_usage_that_does_not_decay_is_said_for_sure(begin, read):
    forever = replace(NORMAL, flags=("NoDecay",))
    polled(begin, account(NLP), qos=(forever,))
    used(begin, 14, 800)
    running = b.add_job(begin, state="RUNNING", start_time=b.NOW)
    found = judged(read, forever, grp_tres_minutes=tres({GPU: 800 * 60}))
    assert effects(found) == {running: Effect.ENDED}


def test_with_safe_nothing_is_ended(begin, read):
    polled(begin, account(NLP), enforced=("limits", "safe"))
    running = b.add_job(begin, state="RUNNING", start_time=b.NOW)
    found = judged(read, NLP, grp_tres_minutes=tres({GPU: 0}))
    assert effects(found) == {running: Effect.ABOVE}
    assert not found.ends_jobs


def test_until_slurm_has_said_what_it_enforces_jobs_may_end(begin, read):
    running = b.add_job(begin, state="RUNNING", start_time=b.NOW)
    found = judged(read, NORMAL, grp_tres_minutes=tres({GPU: 0}))
    assert effects(found) == {running: Effect.MAY_END}


def test_preemption_names_who_runs_there(begin, read):
    b.add_job(begin, qos="spot", state="RUNNING", start_time=b.NOW, gpus=8)
    b.add_job(begin)
    (found,) = judged(read, NORMAL, preempts=("spot",)).preemption
    assert (found.by, found.of, found.running, found.gpus, found.waiting) == (
        *("normal", "spot"),
        *(1, 8, 1),
    )


def test_what_moves_no_job_reads_none(begin, read):
    """The shares of all groups each night: a page of them must not wait for every open job."""

    def nothing():
        raise AssertionError("read")

    group, level = GroupPolicy(name="nlp"), Qos(name="normal")
    items = [Item(group, replace(group, shares=7)), Item(level, replace(level, priority=7))]
    assert preview(items, read=nothing, now=b.NOW) == Impact()
