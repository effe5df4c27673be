"""The gate in Slurm: shut without credit, opened with it, told when it did not take."""

from contextlib import suppress
from dataclasses import replace
from datetime import timedelta

import pytest

from gateway.core.credits import MILLION
from gateway.core.gate import Mode
from gateway.errors import BrokerRefused
from gateway.services import enforce, gate_checks
from gateway.services.verify import verify
from gateway.store import gate as gates
from gateway.store import ledger
from gateway.store import money_models as mm
from gateway.store.queries import gates as queries
from gateway.testing.fakebroker import FakeBroker
from gateway.testing.gated import ONE_HOUR, Gated
from gateway.testing.money import balance


@pytest.fixture
def gated(begin):
    return Gated(begin)


def test_a_group_without_credit_is_shut_for_plain_sbatch_and_the_others_are_not(gated):
    gated.give(5, "vision")
    gated.turn()
    assert gated.limits() == (0, 0)
    assert gated.limits("biolab") == (0, 0)
    assert gated.limits("vision") == (None, 300)
    with pytest.raises(BrokerRefused) as refused:
        gated.sbatch()
    assert refused.value.code == "group_submit_limit"
    gated.sbatch("vision-1", group="vision")
    assert "gate_closed:nlp:" in gated.told()


def test_credit_opens_the_gate_and_puts_the_sites_own_limits_back(gated):
    gated.own(submit=7, minutes=90)
    gated.turn()
    assert gated.limits() == (0, 0)
    gated.give(1)
    gated.turn()
    assert gated.limits() == (7, 60)
    gated.give(100)
    gated.turn()
    assert gated.limits() == (7, 90)
    assert "gate_closed:nlp:" not in gated.told()


def test_without_a_price_list_nothing_is_written(begin):
    gated = Gated(begin)
    with begin() as session:
        session.execute(mm.Price.__table__.delete())
    gated.turn()
    assert not [call for call in gated.broker.calls if "limits" in call]


def test_a_quiet_turn_asks_slurm_nothing(gated):
    gated.give(1)
    gated.turn()
    gated.again()
    calls = len(gated.broker.calls)
    gated.broker.now += timedelta(seconds=10)
    assert not gated.again().decided
    assert len(gated.broker.calls) == calls
    gated.broker.now += timedelta(seconds=60)
    assert gated.again().decided
    assert gated.broker.calls[calls:] == ["group-limits"]


def test_a_decision_that_takes_long_is_not_made_every_turn_but_within_half_a_minute(gated):
    ticks = iter(range(0, 10_000, 10))
    gated.stopwatch = lambda: float(next(ticks))
    assert gated.turn().decided
    gated.give(1)
    assert not gated.turn(seconds=15).decided
    assert gated.turn(seconds=15).decided


def test_a_submission_that_meets_a_shut_gate_is_let_through(gated):
    gated.give(1)
    gated.turn()
    gated.own(submit=0)  # shut by an earlier turn of the gate, as the submission sees it
    with gated.begin() as session:
        gates.put(session, "nlp", "", {"closed": True})
    found = gated.site.submit(ONE_HOUR)
    row = gated.site.submission(found)
    assert (row.state, row.error_code) == ("queued", "group_submit_limit")
    gated.turn()
    assert gated.limits()[0] is None
    gated.site.deliver_due()
    assert gated.site.submission(found).state == "accepted"
    gated.turn()
    assert gated.limits()[0] == 0
    assert verify(read=gated.begin).broken == ()


def test_a_submission_that_was_late_opens_the_gate_and_not_for_ever(gated):
    gated.give(1)
    gated.turn()
    gated.broker.unreachable = True
    found = gated.site.submit(ONE_HOUR)
    gated.broker.unreachable = False
    gated.turn(seconds=180)
    assert gated.limits()[0] == 0  # too old to be on its way
    gated.site.deliver_due()
    assert gated.site.submission(found).error_code == "group_submit_limit"
    gated.turn()
    assert gated.limits()[0] is None
    gated.own(submit=0)  # and a site that keeps it shut itself
    gated.broker.advance(700)
    gated.site.deliver_due()
    assert gated.site.submission(found).state == "refused"
    assert balance(gated.begin, "nlp") == MILLION


def test_a_refusal_for_a_submission_without_credit_stays_a_refusal(begin):
    gated = Gated(begin)
    with begin() as session:
        session.execute(mm.Price.__table__.delete())
    gated.own(submit=0)
    found = gated.site.submit(ONE_HOUR)
    assert gated.site.submission(found).state == "refused"


@pytest.mark.parametrize("fault", ["refused", "silent_before", "silent_after"])
def test_what_did_not_take_is_an_alarm_until_it_does(gated, fault):
    for group in ("vision", "biolab"):
        gated.give(1, group)
    gated.turn()
    gated.give(5)
    gated.turn()
    with gated.begin() as session:  # all spent
        (pot,) = ledger.pots(session, "nlp")
        session.execute(mm.Pot.__table__.update().where(mm.Pot.id == pot.id).values(left=0))
    if fault == "refused":
        gated.broker.refuse_next("access_denied")
    else:
        getattr(gated.broker, f"{fault}_next")()
    report = gated.turn()
    assert report.limits.failed == 1
    assert gated.row().error_code
    assert "gate_not_taken:nlp:" in gated.told()
    gated.turn(seconds=61)
    assert gated.limits() == (0, 0)
    assert gated.row().error_code is None
    assert "gate_not_taken:nlp:" not in gated.told()
    assert not [key for key in gated.told(gone=True) if "drift" in key]


def test_a_write_that_slurm_says_yes_to_and_does_not_keep_is_an_alarm(gated):
    real = gated.broker.set_group_limits
    gated.broker.set_group_limits = lambda asked: replace(real(asked), grp_submit_jobs=None)
    gated.turn()
    assert gated.row().error_code == "read_back_differs"
    assert "gate_not_taken:nlp:" in gated.told()


def test_an_unreachable_slurm_is_told_and_found_again(gated):
    gated.turn()
    gated.broker.unreachable = True
    gated.turn(poll=False, seconds=70)
    assert "gate_unread" in gated.told()
    gated.broker.unreachable = False
    gated.turn()
    assert "gate_unread" not in gated.told()


def test_a_limit_that_somebody_changed_is_set_again_and_told_once(gated):
    gated.turn()
    gated.own()
    gated.turn(seconds=70)
    assert gated.limits() == (0, 0)
    assert "gate_drift:nlp:" in gated.told()
    gated.turn(seconds=70)
    assert gated.told().count("gate_drift:nlp:") == 1
    gated.turn(seconds=86400 + 70)
    assert "gate_drift:nlp:" not in gated.told()


def test_a_limit_of_the_sites_own_that_changes_while_the_gate_is_open_is_kept(gated):
    gated.give(5)
    gated.turn()
    gated.own(submit=3, minutes=300)
    gated.turn(seconds=70)
    gated.turn(seconds=70)
    assert gated.limits() == (3, 300)
    assert gated.told() == [key for key in gated.told() if "drift" not in key]
    assert gated.row().before == {"submit": 3, "run_minutes": None}


class Killed(BaseException):
    """kill -9."""


def kill_at(broker, number, *, acted):
    """The process dies at this call of the broker, before it or once it has acted."""
    calls = 0
    name = "_act" if acted else "_ask"
    real = getattr(broker, name)

    def dying(*given):
        nonlocal calls
        calls += 1
        done = real(*given) if acted or calls != number else None
        if calls == number:
            raise Killed
        return done

    setattr(broker, name, dying)


@pytest.mark.parametrize("acted", [False, True])
@pytest.mark.parametrize("number", range(1, 7))
def test_killed_at_any_call_and_run_again_it_comes_to_the_same(begin, number, acted):
    gated = Gated(begin)
    gated.own(submit=7)
    gated.fill()
    job = gated.sbatch()
    gated.site.poll()
    kill_at(gated.broker, number, acted=acted)
    with suppress(Killed):
        gated.again()
    for name in ("_act", "_ask"):
        vars(gated.broker).pop(name, None)
    for _ in range(2):
        gated.memory = enforce.Memory()
        gated.turn()
    assert gated.limits() == (0, 0)
    assert gated.row().before == {"submit": 7, "run_minutes": None}
    assert gated.held() == [job]
    gated.give(1)
    gated.turn()
    assert gated.limits()[0] == 0  # the job has what was given
    assert not gated.job(job).held_by_admin
    assert not [key for key in gated.told(gone=True) if "drift" in key]


def test_a_member_above_the_cap_is_shut_alone_and_opened_when_it_goes(gated):
    gated.give(100)
    gated.cap("nlp-1", 1)
    gated.turn()
    assert gated.limits(user="nlp-1") == (None, 60)
    gated.sbatch()
    gated.turn()
    assert gated.limits(user="nlp-1")[0] == 0
    assert gated.limits()[0] is None
    assert "gate_closed:nlp:nlp-1" in gated.told()
    with pytest.raises(BrokerRefused):
        gated.sbatch()
    gated.sbatch("nlp-2")
    with gated.begin() as session:
        session.execute(mm.MemberCap.__table__.delete())
    gated.turn(seconds=70)
    assert gated.limits(user="nlp-1") == (None, None)
    assert gated.row(user="nlp-1") is None


def test_watching_only_says_what_it_would_do(begin):
    gated = Gated(begin, mode=Mode.WATCH)
    gated.fill()
    job = gated.sbatch()
    gated.turn()
    assert gated.limits() == (None, None)
    assert not gated.job(job).held_by_admin
    row = gated.row()
    assert (row.closed, row.reason, row.error_code) == (
        False,
        "not_enough_credit",
        enforce.WATCHED,
    )
    with begin() as session:
        (state,) = queries.gates(session, "nlp")
    assert (state.would_close, state.submit) == (True, 0)
    gated.mode = Mode.ENFORCE
    gated.turn(seconds=70)
    assert gated.limits() == (0, 0)
    assert gated.row().error_code is None


@pytest.mark.parametrize("mode", [Mode.WATCH, Mode.OFF])
def test_turned_off_the_gate_takes_back_what_it_set(gated, mode):
    gated.own(submit=7)
    gated.fill()
    job = gated.sbatch()
    gated.turn()
    gated.mode = mode
    gated.turn(seconds=70)
    gated.turn()
    assert gated.limits() == (7, None)
    assert not gated.job(job).held_by_admin
    assert gated.held() == []
    assert gated.told() == []
    if mode is Mode.OFF:
        assert gated.row() is None


def test_a_new_job_of_a_shut_group_is_a_leak_and_told(gated):
    gated.turn()
    gated.turn()
    gated.own()  # as if a QoS took the group's place
    gated.broker.advance(70)
    gated.sbatch(qos="spot")
    gated.broker.limits[("nlp", None)] = replace(
        gated.broker.limits[("nlp", None)], grp_submit_jobs=0, grp_gpu_run_minutes=0
    )
    gated.turn()
    assert "gate_leak:nlp" in gated.told()


def test_cards_that_nobody_priced_are_told_to_the_administrators(gated):
    gated.give(5)
    gated.turn()
    with gated.begin() as session:
        session.execute(mm.Price.__table__.delete().where(mm.Price.__table__.c.resource == "a100"))
    gated.sbatch()
    gated.turn()
    assert "gate_no_price:a100" in gated.told()
    assert gated.limits()[0] is None


# --- what Slurm counts ---


def checked(gated, **facts):
    gated.broker.facts = replace(gated.broker.facts, **facts)
    gated.broker.advance(700)
    return gate_checks.check(
        begin=gated.begin, read=gated.begin, broker=gated.broker, now=gated.site.now
    )


def test_what_slurm_does_not_count_or_enforce_is_told_once_each(gated):
    assert checked(gated)
    assert gated.told() == []
    checked(gated, tracked=("cpu",), enforced=("associations",), overriding_qos=("spot",))
    checked(gated)
    assert gated.told() == ["gpus_not_tracked", "limits_not_enforced", "qos_overrides"]
    assert not gate_checks.gpus_tracked(read=gated.begin)
    checked(gated, **{n: getattr(FakeBroker().facts, n) for n in FakeBroker().facts.__slots__})
    assert gated.told() == []
    assert gate_checks.gpus_tracked(read=gated.begin)


def test_until_slurm_has_said_what_it_counts_nothing_is_known(gated):
    gated.broker.unreachable = True
    assert not checked(gated)
    gated.broker.unreachable = False
    assert checked(gated)
