"""People of groups: added, removed with jobs that run, made leaders; cut off anywhere between."""

from dataclasses import replace
from datetime import timedelta

import pytest
from sqlalchemy import select

from gateway.core.credits import MILLION
from gateway.core.gate import Mode
from gateway.errors import BrokerRefused, NotFound, Refused
from gateway.services import credit, enforce, members
from gateway.services.membership import Outcome
from gateway.services.submit import InvalidAsk
from gateway.store import models as t
from gateway.store.people_models import MembershipChange
from gateway.testing import builders as b
from gateway.testing import money
from gateway.testing.contract_steps import Cast, request
from gateway.testing.portal import ask, portal
from gateway.wire import policy as p

CAST = Cast(user="vision-1", account="nlp")


@pytest.fixture
def site(begin):
    return portal(begin, user="vision-1")


@pytest.fixture
def acts(site):
    """The services with all that they need, but for whom and where."""

    class Acts:
        def __getattr__(self, name):
            have = {"begin": site.begin, "broker": site.broker, "now": site.now}
            return lambda *given, **more: getattr(members, name)(*given, **have, **more)

        def carry_on(self):
            return members.carry_on(
                begin=site.begin, read=site.begin, broker=site.broker, now=site.now
            )

    return Acts()


def place(site, group="nlp", user="vision-1"):
    return site.broker.policy.members.get((group, user))


def history(site):
    with site.begin() as session:
        query = select(t.Event.detail).where(t.Event.kind == "membership").order_by(t.Event.id)
        return [(one["wanted"], one["outcome"]) for one in session.scalars(query)]


def wishes(site):
    with site.begin() as session:
        query = select(MembershipChange.wanted, MembershipChange.state)
        return [tuple(row) for row in session.execute(query.order_by(MembershipChange.id))]


def added(site, acts):
    acts.add("nlp", "vision-1")
    site.poll_policy()
    site.poll()


def test_who_is_added_may_submit_at_once_and_the_history_says_who_did_it(site, acts):
    person = b.add_person(site.begin, "boss")
    done = acts.add("nlp", " vision-1 ", person_id=person)
    assert done == Outcome("vision-1", pending=False)
    site.broker.submit(request(CAST))
    with site.begin() as session:
        (event,) = session.scalars(select(t.Event).where(t.Event.kind == "membership"))
    assert (event.person_id, event.detail["group"]) == (person, "nlp")
    assert event.detail["before"]["partitions"] == []
    assert event.detail["after"]["partitions"] == [""]


def test_the_poll_is_asked_for_so_that_pages_show_it(site, acts):
    acts.add("nlp", "vision-1")
    with site.begin() as session:
        assert session.get_one(t.Poll, "policy").wanted_at == site.now


def test_a_login_stands_for_its_unix_account(site, acts):
    b.add_person(site.begin, "ada", unix_user="biolab-1")
    assert acts.add("nlp", "Ada").user == "biolab-1"
    assert place(site, user="biolab-1")


def test_a_name_that_is_two_people_is_asked_about(site, acts):
    b.add_person(site.begin, "biolab-1", unix_user="biolab-lead")
    b.add_person(site.begin, "ada", unix_user="biolab-1")
    with pytest.raises(Refused) as refused:
        acts.add("nlp", "biolab-1")
    assert (refused.value.code, refused.value.field) == ("member_ambiguous", "who")
    assert wishes(site) == []


@pytest.mark.parametrize("name", ["nobody-here", "root", "daemon", "", "a'--", "x account=root"])
def test_whom_there_is_not_is_refused_and_stays_refused(site, acts, name):
    with pytest.raises(Refused) as refused:
        acts.add("nlp", name)
    assert (refused.value.code, refused.value.field) == ("no_such_unix_user", "who")
    assert acts.carry_on() == 0
    assert [state for _, state in wishes(site)] == ["refused"]


def test_a_group_that_there_is_not_is_not_found(site, acts):
    for act in (
        lambda: acts.add("nosuch", "vision-1"),
        lambda: acts.remove("nosuch", "vision-1", cancel_waiting=False),
        lambda: acts.set_default("root", "vision-1"),
    ):
        with pytest.raises(NotFound):
            act()


def test_a_stranger_to_the_group_is_neither_removed_nor_made_its_leader(site, acts):
    for act in (
        lambda: acts.remove("nlp", "vision-1", cancel_waiting=False),
        lambda: acts.set_leader("nlp", "vision-1", leads=True),
        lambda: acts.set_default("nlp", "vision-1"),
    ):
        with pytest.raises(Refused) as refused:
            act()
        assert refused.value.code == "no_such_association"


def test_partitions_of_their_own_are_those_that_the_others_have(site, acts):
    for user in ("nlp-1", "nlp-2", "nlp-lead"):
        one = replace(place(site, user=user), partitions=("a100", "debug"))
        site.broker.policy.members[("nlp", user)] = one
    acts.add("nlp", "vision-1")
    assert place(site).partitions == ("a100", "debug")


def test_slurm_that_is_away_is_asked_again_by_the_worker(site, acts):
    site.broker.unreachable = True
    assert acts.add("nlp", "vision-1") == Outcome("vision-1", True, "slurm_unreachable")
    assert acts.carry_on() == 0
    site.broker.unreachable = False
    assert acts.carry_on() == 1
    assert place(site)
    assert history(site) == [("member", "done")]


@pytest.mark.parametrize("fault", ["silent_before_next", "silent_after_next"])
def test_an_answer_that_never_came_is_found_out(site, acts, fault):
    getattr(site.broker, fault)()
    assert acts.add("nlp", "vision-1").code == "slurm_unknown"
    assert acts.carry_on() == 1
    assert acts.carry_on() == 0
    assert place(site)
    assert history(site) == [("member", "done")]


def test_a_button_pressed_twice_is_one_wish(site, acts):
    site.broker.unreachable = True
    acts.add("nlp", "vision-1")
    acts.add("nlp", "vision-1")
    assert wishes(site) == [("member", "pending")]


def test_who_has_no_jobs_is_gone_at_once(site, acts):
    added(site, acts)
    done = acts.remove("nlp", "vision-1", cancel_waiting=False)
    assert not done.pending
    assert place(site) is None
    assert history(site) == [("member", "done"), ("absent", "done")]


def test_one_added_a_moment_ago_can_be_removed_before_the_poll(site, acts):
    acts.add("nlp", "vision-1")
    assert not acts.remove("nlp", "vision-1", cancel_waiting=False).pending


def test_who_leaves_with_a_job_is_shut_at_once_and_goes_with_it_and_the_group_pays(site, acts):
    money.one_credit_an_hour(site.begin)
    credit.top_up("nlp", 1000 * MILLION, begin=site.begin, now=site.now)
    added(site, acts)
    job = site.broker.submit(request(CAST, gpus_per_node=4, time_limit_minutes=120))
    site.work()
    done = acts.remove("nlp", "vision-1", cancel_waiting=False)
    assert (done.pending, done.code) == (True, "member_has_jobs")
    with pytest.raises(BrokerRefused) as refused:
        site.broker.submit(request(CAST))
    assert refused.value.code == "association_submit_limit"
    with pytest.raises(InvalidAsk) as invalid:
        site.submit(ask(group="nlp"))
    (problem,) = invalid.value.problems
    assert (problem.field, problem.code, problem.nearest) == ("group", "group_leaving", "vision")
    for _ in range(6):
        site.broker.advance(600)
        site.work()
        assert acts.carry_on() == 0
    assert place(site).closed
    site.broker.finish(job.job_id)
    site.work()
    assert acts.carry_on() == 1
    assert place(site) is None
    (run,) = site.runs()
    assert run.elapsed_seconds > 3500
    charge = -(-4 * run.elapsed_seconds * MILLION // 3600)
    assert money.entries_of(site.begin, "nlp")[-1] == ("charge", -charge)
    assert history(site)[-1] == ("absent", "done")


def test_while_their_jobs_run_slurm_is_not_asked_again_and_again(site, acts):
    added(site, acts)
    site.broker.submit(request(CAST, time_limit_minutes=120))
    site.poll()
    acts.remove("nlp", "vision-1", cancel_waiting=False)
    site.broker.calls.clear()
    for _ in range(100):
        acts.carry_on()
    assert site.broker.calls == []


def test_waiting_jobs_end_only_where_the_leader_said_so(site, acts):
    added(site, acts)
    wide = request(CAST, nodes=4, gpus_per_node=8)
    first = site.broker.submit(wide)
    site.broker.advance(1)
    waiting = [site.broker.submit(request(CAST, nodes=4, gpus_per_node=8)) for _ in range(2)]
    site.poll()
    kept = acts.remove("nlp", "vision-1", cancel_waiting=False)
    assert (kept.pending, kept.cancelled) == (True, 0)
    states = {job.job_id: job.state for job in site.broker.queue().jobs}
    assert [states[one.job_id] for one in waiting] == ["PENDING", "PENDING"]
    done = acts.remove("nlp", "vision-1", cancel_waiting=True)
    assert (done.pending, done.cancelled, done.left) == (True, 2, 0)
    states = {job.job_id: job.state for job in site.broker.queue().jobs}
    assert states[first.job_id] == "RUNNING"
    assert [states[one.job_id] for one in waiting] == ["CANCELLED", "CANCELLED"]


def test_to_add_them_again_undoes_the_removal_and_opens_the_group(site, acts):
    added(site, acts)
    site.broker.submit(request(CAST))
    site.poll()
    acts.remove("nlp", "vision-1", cancel_waiting=False)
    assert not acts.add("nlp", "vision-1").pending
    assert not place(site).closed
    site.broker.submit(request(CAST))
    assert acts.carry_on() == 0
    assert wishes(site) == [("member", "done"), ("absent", "undone"), ("member", "done")]


def test_whom_an_administrator_has_shut_out_stays_so_when_added_again(site, acts):
    added(site, acts)
    site.broker.set_member(p.SetMember("nlp", "vision-1", closed=True))
    acts.add("nlp", "vision-1")
    assert place(site).closed


def test_one_added_while_slurm_was_removing_them_is_put_back(site, acts):
    added(site, acts)
    removes = site.broker.remove_member

    def meanwhile(account, user):
        del site.broker.remove_member
        acts.add("nlp", "vision-1")
        return removes(account, user)

    site.broker.remove_member = meanwhile
    acts.remove("nlp", "vision-1", cancel_waiting=False)
    assert place(site) is None
    assert acts.carry_on() == 1
    assert place(site)


def test_a_default_group_that_is_left_hands_over_to_another(site, acts):
    assert place(site, user="nlp-2").is_default
    done = acts.remove("nlp", "nlp-2", cancel_waiting=False)
    assert not done.pending
    assert place(site, user="nlp-2") is None
    assert place(site, "vision", "nlp-2").is_default


def test_the_only_group_can_be_left_too(site, acts):
    assert not acts.remove("nlp", "nlp-1", cancel_waiting=False).pending
    assert place(site, user="nlp-1") is None


@pytest.mark.parametrize("after", [False, True])
@pytest.mark.parametrize("call", [1, 2, 3])
def test_a_removal_that_is_cut_off_anywhere_is_finished(site, acts, call, after):
    """nlp-2 has another group: closed, given another default, removed."""
    real, seen = site.broker._act, []

    def cut(name, act):
        seen.append(name)
        if len(seen) == call:
            (site.broker.silent_after_next if after else site.broker.silent_before_next)()
        return real(name, act)

    site.broker._act = cut
    assert acts.remove("nlp", "nlp-2", cancel_waiting=False).pending
    del site.broker._act
    assert acts.carry_on() == 1
    assert place(site, user="nlp-2") is None
    assert place(site, "vision", "nlp-2").is_default
    assert history(site) == [("absent", "done")]


def test_leaders_are_made_and_unmade(site, acts):
    acts.set_leader("nlp", "nlp-1", leads=True)
    assert place(site, user="nlp-1").is_coordinator
    acts.set_leader("nlp", "nlp-1", leads=False)
    assert not place(site, user="nlp-1").is_coordinator
    assert history(site) == [("leader", "done"), ("not_leader", "done")]


def test_ones_own_default_is_chosen(site, acts):
    acts.set_default("vision", "nlp-2")
    assert place(site, "vision", "nlp-2").is_default
    assert not place(site, "nlp", "nlp-2").is_default


def test_who_leaves_is_neither_made_a_leader_nor_has_it_as_the_default(site, acts):
    added(site, acts)
    site.broker.submit(request(CAST))
    site.poll()
    acts.remove("nlp", "vision-1", cancel_waiting=False)
    for act in (
        lambda: acts.set_leader("nlp", "vision-1", leads=True),
        lambda: acts.set_default("nlp", "vision-1"),
    ):
        with pytest.raises(Refused) as refused:
            act()
        assert refused.value.code == "group_leaving"


def test_a_yes_that_changed_nothing_is_no_yes(site, acts):
    site.broker.set_member = lambda asked: place(site, asked.account, asked.user)
    with pytest.raises(Refused) as refused:
        acts.set_leader("nlp", "nlp-1", leads=True)
    assert refused.value.code == "read_back_differs"
    assert history(site) == [("leader", "read_back_differs")]
    shut = acts.remove("nlp", "nlp-1", cancel_waiting=True)
    assert (shut.pending, shut.cancelled) == (False, 0)


def test_the_gate_and_a_closed_member_do_not_meet(site, acts):
    """The gate writes GrpSubmitJobs and GrpTRESRunMins, a removal MaxSubmitJobs."""
    money.one_credit_an_hour(site.begin)
    credit.top_up("nlp", 10 * MILLION, begin=site.begin, now=site.now)
    added(site, acts)
    site.broker.submit(request(CAST, time_limit_minutes=60))
    site.work()
    acts.remove("nlp", "vision-1", cancel_waiting=False)
    memory = enforce.Memory()
    for _ in range(3):
        enforce.enforce(
            begin=site.begin,
            read=site.begin,
            broker=site.broker,
            cluster=b.CLUSTER,
            memory=memory,
            now=site.now,
            mode=Mode.ENFORCE,
        )
        site.broker.advance(timedelta(minutes=1).total_seconds())
        site.work()
    assert place(site).closed
    acts.add("nlp", "vision-1")
    assert not place(site).closed
    assert site.broker.limits[("nlp", None)].grp_gpu_run_minutes is not None
