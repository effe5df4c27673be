"""What the gate does to jobs: it holds and lifts, gives a last stretch; a longer limit is paid."""

import pytest

from gateway.core.credits import MILLION
from gateway.errors import BrokerRefused, BrokerSilent
from gateway.services import act
from gateway.services.submit import InvalidAsk
from gateway.services.verify import verify
from gateway.store import ledger
from gateway.store.queries import gates as queries
from gateway.testing.gated import ONE_HOUR, Gated
from gateway.testing.money import balance


@pytest.fixture
def gated(begin):
    return Gated(begin)


def test_a_waiting_job_that_cannot_be_paid_is_held_and_starts_with_credit(gated):
    gated.fill()
    job = gated.sbatch()
    gated.turn()
    assert gated.job(job).held_by_admin
    with gated.begin() as session:
        (line,) = queries.held(session, "nlp")
        assert queries.why_held(session, line.job_id) == "not_enough_credit"
        assert queries.why_held(session, line.job_id + 1) is None
    assert line.slurm_id == job
    assert "gate_held:nlp" in gated.told()
    gated.turn()
    assert gated.broker.calls.count("hold-admin") == 1
    gated.give(1)
    gated.turn()
    assert not gated.job(job).held_by_admin
    assert gated.held() == []
    gated.broker.finish(1)
    assert gated.job(job).state == "RUNNING"
    gated.turn()
    assert "gate_held:nlp" not in gated.told()


def test_a_hold_that_is_not_ours_is_left_alone(gated):
    gated.fill()
    own, admins = gated.sbatch(), gated.sbatch()
    gated.broker.hold(own, user="nlp-1")
    gated.broker.hold_admin(admins, user="nlp-1")
    gated.turn()
    gated.give(10)
    gated.turn()
    assert gated.held() == []
    assert gated.job(own).eligible is None
    assert gated.job(admins).held_by_admin


def test_a_paid_submission_starts_though_its_hold_took_the_last_credit(gated):
    gated.give(1)
    gated.turn()
    gated.site.submit(ONE_HOUR)
    gated.turn()
    assert gated.limits() == (0, 60)
    assert [job.state for job in gated.broker.jobs.values()] == ["RUNNING"]


def test_a_burst_between_two_turns_starts_no_more_than_the_credit_pays(gated):
    gated.give(2)
    gated.turn()
    for _ in range(8):
        gated.sbatch()
    gated.broker.advance(5)
    assert [job.state for job in gated.broker.jobs.values()].count("RUNNING") == 2
    gated.turn()
    assert len(gated.held()) == 6
    assert gated.limits()[0] == 0


def test_what_plain_jobs_may_cost_is_not_offered_to_the_portal(gated):
    gated.give(3)
    gated.turn()
    gated.sbatch(minutes=120)
    gated.turn()
    with gated.begin() as session:
        account = ledger.account(session, "nlp")
    assert account.committed == 2 * MILLION
    gated.site.submit(ONE_HOUR, key="fits")
    with pytest.raises(InvalidAsk):
        gated.site.submit(ONE_HOUR, key="does-not")


def test_killed_between_the_hold_and_its_note_the_job_is_known_for_ours(gated):
    gated.fill()
    job = gated.sbatch()
    gated.broker.silent_after_next()
    real = gated.broker.set_group_limits
    gated.broker.set_group_limits = lambda asked: after_limits(gated, real, asked)
    gated.turn()
    gated.broker.set_group_limits = real
    gated.turn()
    assert gated.held() == [job]
    gated.give(1)
    gated.turn()
    assert not gated.job(job).held_by_admin


def after_limits(gated, real, asked):
    """Limits are no matter of this test: the fault is for the hold."""
    faults, gated.broker._faults = gated.broker._faults, []
    try:
        return real(asked)
    finally:
        gated.broker._faults = faults


def test_at_zero_a_running_job_gets_a_last_stretch_once(gated):
    gated.give(10)
    gated.rules(at_zero="stop", warning_minutes=15)
    gated.turn()
    job = gated.sbatch(minutes=600)
    gated.turn(seconds=600)
    assert gated.job(job).time_limit_minutes == 600
    gated.spend(20)
    report = gated.turn()
    assert report.jobs.stopped == 1
    limit = gated.job(job).time_limit_minutes
    assert 10 + 15 <= limit <= 12 + 15
    gated.turn(seconds=300)
    assert gated.job(job).time_limit_minutes == limit
    assert [key for key in gated.told() if key.startswith("gate_stop:")]
    gated.broker.advance(1200)
    assert gated.job(job).state == "TIMEOUT"
    gated.turn()
    gated.site.ingest()
    gated.site.settle()
    gated.turn()
    assert not [key for key in gated.told() if key.startswith("gate_stop:")]


@pytest.mark.parametrize("at_zero", ["hold", "finish"])
def test_at_zero_other_rules_let_it_run(gated, at_zero):
    gated.give(10)
    gated.rules(at_zero=at_zero, overdraft=100 * MILLION)
    gated.turn()
    job = gated.sbatch(minutes=600)
    gated.turn()
    gated.spend(20)
    gated.turn()
    assert gated.job(job).time_limit_minutes == 600
    assert gated.job(job).state == "RUNNING"


def test_a_job_that_ended_counts_until_it_is_charged(gated):
    gated.give(1)
    gated.turn()
    job = gated.sbatch()
    gated.turn(seconds=1800)
    gated.broker.finish(job)
    gated.turn()
    with gated.begin() as session:
        committed = ledger.account(session, "nlp").committed
    assert 400_000 < committed < 600_000
    gated.site.ingest()
    gated.turn()
    gated.site.settle()
    gated.turn()
    with gated.begin() as session:
        assert ledger.account(session, "nlp").committed == 0
    assert 400_000 < balance(gated.begin, "nlp") < 600_000


# --- a longer limit ---


def longer(gated, minutes):
    job_id = gated.site.jobs()[-1].id
    act.act(
        job_id,
        "set_time_limit",
        viewer=gated.site.viewer,
        begin=gated.begin,
        broker=gated.broker,
        now=gated.site.now,
        minutes=minutes,
    )


@pytest.fixture
def waiting(gated):
    """A paid job that waits for cards, with 2 left beside its hold of 1."""
    gated.fill()
    gated.give(3)
    gated.turn()
    gated.site.submit(ONE_HOUR)
    gated.turn()
    return gated


def test_a_longer_limit_is_held_for_first(waiting):
    longer(waiting, 120)
    assert balance(waiting.begin, "nlp") == MILLION
    assert max(job.time_limit_minutes for job in waiting.broker.jobs.values()) >= 120
    longer(waiting, 60)
    longer(waiting, 120)  # was held for already
    assert balance(waiting.begin, "nlp") == MILLION
    waiting.turn()
    assert waiting.held() == []


def test_a_longer_limit_that_cannot_be_paid_is_refused_before_slurm_is_asked(waiting):
    with pytest.raises(act.Refused) as refused:
        longer(waiting, 600)
    assert refused.value.code == "not_enough_credit"
    assert "set-time-limit" not in waiting.broker.calls
    assert balance(waiting.begin, "nlp") == 2 * MILLION


def test_a_refusal_by_slurm_gives_it_back_and_silence_does_not(waiting):
    waiting.broker.refuse_next("time_limit_raise")
    with pytest.raises(BrokerRefused):
        longer(waiting, 120)
    assert balance(waiting.begin, "nlp") == 2 * MILLION
    waiting.broker.silent_after_next()
    with pytest.raises(BrokerSilent):
        longer(waiting, 120)
    assert balance(waiting.begin, "nlp") == MILLION
    assert verify(read=waiting.begin).broken == ()


def test_a_limit_that_was_raised_past_the_portal_is_held_behind_the_gate(waiting):
    job = max(waiting.broker.jobs)
    waiting.broker.set_time_limit(job, user="nlp-1", minutes=600)
    waiting.turn()
    assert waiting.held() == [job]
    waiting.broker.set_time_limit(job, user="nlp-1", minutes=60)
    waiting.turn()
    assert waiting.held() == []


def test_a_hold_that_slurm_refuses_is_an_alarm_until_it_is_held(gated):
    gated.fill()
    gated.turn()
    gated.give(0.5)
    gated.turn()
    job = gated.sbatch()
    gated.site.poll()
    gated.broker.refuse_next("access_denied")
    gated.again()
    assert gated.held() == []
    assert "gate_not_taken:nlp:jobs:" in gated.told()
    gated.turn()
    assert gated.held() == [job]
    assert "gate_not_taken:nlp:jobs:" not in gated.told()


def test_a_job_that_moved_on_is_forgotten(gated):
    gated.fill()
    gated.give(0.5)
    gated.turn()
    job = gated.sbatch()
    gated.site.poll()
    gated.broker.finish(job, "CANCELLED")
    gated.again()
    assert gated.held() == []
    assert not [key for key in gated.told() if "jobs:" in key]


def test_a_held_job_that_ends_is_forgotten(gated):
    gated.fill()
    job = gated.sbatch()
    gated.turn()
    assert gated.held() == [job]
    gated.broker.finish(job, "CANCELLED")
    gated.turn()
    assert gated.held() == []


@pytest.mark.parametrize("fault", ["refuse_next", "silent_before_next", "silent_after_next"])
def test_a_release_without_a_yes_is_tried_again(gated, fault):
    gated.fill()
    job = gated.sbatch()
    gated.turn()
    gated.give(1)
    real = gated.broker.set_group_limits
    gated.broker.set_group_limits = lambda asked: after_limits(gated, real, asked)
    made = getattr(gated.broker, fault)
    made("access_denied") if fault == "refuse_next" else made()
    gated.turn()
    gated.turn()
    gated.turn()
    assert not gated.job(job).held_by_admin
    assert gated.held() == []


@pytest.mark.parametrize("fault", ["refuse_next", "silent_before_next", "silent_after_next"])
def test_a_last_stretch_without_a_yes_is_tried_again(gated, fault):
    gated.give(10)
    gated.rules(at_zero="stop", warning_minutes=15)
    gated.turn()
    job = gated.sbatch(minutes=600)
    gated.turn(seconds=600)
    gated.spend(20)
    real = gated.broker.set_group_limits
    gated.broker.set_group_limits = lambda asked: after_limits(gated, real, asked)
    made = getattr(gated.broker, fault)
    made("access_denied") if fault == "refuse_next" else made()
    gated.turn()
    gated.turn()
    assert 25 <= gated.job(job).time_limit_minutes <= 28


def test_slurm_away_in_the_middle_leaves_no_note_behind(gated):
    gated.fill()
    gated.give(0.5)
    gated.turn()
    job = gated.sbatch()
    gated.site.poll()
    gated.broker.unreachable = True
    gated.again()
    assert gated.held() == []
    gated.broker.unreachable = False
    gated.turn()
    assert gated.held() == [job]
