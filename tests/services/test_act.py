"""Acts: who may, what Slurm said, and a line in the history whatever happened."""

from contextlib import contextmanager
from dataclasses import replace

import pytest
from sqlalchemy import select

from gateway.core.access import Role
from gateway.errors import (
    BrokerRefused,
    BrokerSilent,
    BrokerUnreachable,
    Busy,
    NotFound,
    Refused,
)
from gateway.services import act as acting
from gateway.services import output
from gateway.store import models as t
from gateway.store import polls
from gateway.testing import builders as b
from gateway.testing.portal import portal


@pytest.fixture
def site(begin):
    site = portal(begin)
    site.submit()
    return site


def act(site, action, *, viewer=None, job_id=1, **given):
    acting.act(
        job_id,
        action,
        viewer=viewer or site.viewer,
        begin=site.begin,
        broker=site.broker,
        now=site.now,
        **given,
    )


def history(site):
    with site.begin() as session:
        rows = session.scalars(select(t.Event).where(t.Event.job_id == 1).order_by(t.Event.id))
        return [(row.kind, row.person_id, row.detail) for row in rows if row.kind != "accepted"]


def runs(site):
    site.broker.advance(5)
    site.poll()


LEADER = b.viewer("nlp-lead", person_id=None, leads=("nlp",))
COLLEAGUE = b.viewer("nlp-2", person_id=None, groups=("nlp",))
STRANGER = b.viewer("vision-1", person_id=None, groups=("vision",))
ADMINISTRATOR = b.viewer("admin", person_id=None, groups=(), role=Role.ADMINISTRATOR)


def test_the_owner_cancels(site):
    act(site, "cancel")
    assert site.broker.jobs[1].state == "CANCELLED"
    assert history(site) == [("cancel", site.viewer.person_id, {"outcome": "done"})]


@pytest.mark.parametrize("viewer", [LEADER, ADMINISTRATOR])
def test_a_leader_and_an_administrator_may_act(site, viewer):
    act(site, "cancel", viewer=viewer)
    assert site.broker.jobs[1].state == "CANCELLED"


def test_a_colleague_may_look_but_not_act(site):
    with pytest.raises(Refused) as refused:
        act(site, "cancel", viewer=COLLEAGUE)
    assert refused.value.code == "not_yours_to_act"


def test_a_stranger_learns_nothing(site):
    with pytest.raises(NotFound):
        act(site, "cancel", viewer=STRANGER)
    with pytest.raises(NotFound):
        act(site, "cancel", job_id=99)


def test_hold_and_release(site):
    act(site, "hold")
    assert site.broker.jobs[1].eligible is None
    act(site, "release")
    assert site.broker.jobs[1].eligible is not None


def test_a_running_job_is_not_held(site):
    runs(site)
    with pytest.raises(Refused) as refused:
        act(site, "hold")
    assert refused.value.code == "job_not_waiting"


def test_requeue(site):
    runs(site)
    act(site, "requeue")
    assert site.broker.jobs[1].restarts == 1


def test_a_shorter_time_limit(site):
    act(site, "set_time_limit", minutes=30)
    assert site.broker.jobs[1].time_limit_minutes == 30
    assert history(site)[0][2] == {"outcome": "done", "minutes": 30}


@pytest.mark.parametrize(
    ("minutes", "code"),
    [(None, "time_limit_empty"), (0, "time_limit_empty"), (10**7, "time_limit_too_long")],
)
def test_a_time_limit_that_is_none(site, minutes, code):
    with pytest.raises(Refused) as refused:
        act(site, "set_time_limit", minutes=minutes)
    assert refused.value.code == code


def test_a_job_that_is_over(site):
    runs(site)
    site.broker.finish(1)
    site.poll()
    with pytest.raises(Refused) as refused:
        act(site, "cancel")
    assert refused.value.code == "already_ended"


def test_an_unknown_action_is_not_found(site):
    with pytest.raises(NotFound):
        act(site, "explode")


def test_a_no_is_told_and_noted(site):
    site.broker.refuse_next("job_in_transition")
    with pytest.raises(BrokerRefused):
        act(site, "cancel")
    assert history(site)[0][2] == {"outcome": "job_in_transition"}


def test_silence_is_told_and_noted(site):
    site.broker.silent_after_next()
    with pytest.raises(BrokerSilent):
        act(site, "cancel")
    assert history(site)[0][2] == {"outcome": "unknown"}


def test_nobody_there_is_told_and_noted(site):
    site.broker.unreachable = True
    with pytest.raises(BrokerUnreachable):
        act(site, "cancel")
    assert history(site)[0][2] == {"outcome": "slurm_unreachable"}


def test_an_act_asks_for_a_poll_soon(site):
    site.poll()
    site.broker.advance(60)
    site.poll()
    act(site, "cancel")
    with site.begin() as session:
        assert polls.get(session, "queue").wanted_at is not None


def test_what_slurm_does_not_have_is_taken_back(begin):
    site = portal(begin)
    site.broker.unreachable = True
    submission_id = site.submit()
    acting.withdraw(submission_id, viewer=site.viewer, begin=begin, now=site.now)
    site.broker.unreachable = False
    site.run_outbox(seconds=300)
    assert site.submission(submission_id).state == "withdrawn"
    assert site.broker.jobs == {}


@pytest.mark.parametrize("fault", ["accepted", "unknown"])
def test_what_slurm_may_have_is_not_taken_back(begin, fault):
    site = portal(begin)
    if fault == "unknown":
        site.broker.silent_before_next()
    submission_id = site.submit()
    with pytest.raises(Refused) as refused:
        acting.withdraw(submission_id, viewer=site.viewer, begin=begin, now=site.now)
    assert refused.value.code == "already_sent"


def test_anothers_submission_is_not_found(begin):
    site = portal(begin)
    site.broker.unreachable = True
    submission_id = site.submit()
    other = replace(site.viewer, person_id=99)
    for wrong in (submission_id, 99):
        with pytest.raises(NotFound):
            acting.withdraw(wrong, viewer=other, begin=begin, now=site.now)


def read(site, viewer=None, offset=0, job_id=1):
    return output.read(
        job_id, viewer=viewer or site.viewer, begin=site.begin, broker=site.broker, offset=offset
    )


def test_the_owner_reads_the_output(site):
    runs(site)
    chunk = read(site)
    assert chunk.text.startswith("job 1 on a100-1")
    assert read(site, offset=chunk.next_offset).text == ""


@pytest.mark.parametrize("viewer", [LEADER, COLLEAGUE, ADMINISTRATOR])
def test_files_stay_the_owners(site, viewer):
    with pytest.raises(Refused) as refused:
        read(site, viewer)
    assert refused.value.code == "not_owner_of_files"


def test_the_output_of_a_stranger_is_not_found(site):
    with pytest.raises(NotFound):
        read(site, STRANGER)
    with pytest.raises(NotFound):
        read(site, job_id=99)


def test_a_job_that_has_written_nothing_yet_reads_as_empty(site):
    site.broker.files.contents.clear()
    chunk = read(site, offset=-100)
    assert (chunk.text, chunk.offset, chunk.next_offset, chunk.size) == ("", 0, -100, 0)


def test_an_output_that_is_gone_after_the_end(site):
    runs(site)
    site.broker.finish(1)
    site.poll()
    site.broker.files.contents.clear()
    with pytest.raises(BrokerRefused) as refused:
        read(site)
    assert refused.value.code == "file_missing"


def test_an_output_that_slurm_did_not_name(begin):
    site = portal(begin)
    job_id = b.add_job(begin, user="nlp-1", output=None)
    with pytest.raises(Refused) as refused:
        read(site, job_id=job_id)
    assert refused.value.code == "output_unknown"


def test_a_database_that_is_busy_afterwards_does_not_ask_for_the_act_again(site):
    """Told to try again, a person would requeue the job a second time."""
    runs(site)
    begun = []

    @contextmanager
    def busy_from_the_second_on():
        begun.append(1)
        if len(begun) > 1:
            raise Busy("locked")
        with site.begin() as session:
            yield session

    def requeue():
        acting.act(
            1,
            "requeue",
            viewer=site.viewer,
            begin=busy_from_the_second_on,
            broker=site.broker,
            now=site.now,
        )

    requeue()
    assert len(begun) == 2
    assert site.broker.jobs[1].restarts == 1
    begun.clear()
    site.broker.refuse_next("job_in_transition")
    with pytest.raises(BrokerRefused):
        requeue()


def test_a_fault_of_ours_is_noted_as_unknown(site):
    def breaks(*_, **__):
        raise ZeroDivisionError

    site.broker.cancel = breaks
    with pytest.raises(ZeroDivisionError):
        act(site, "cancel")
    assert history(site)[0][2] == {"outcome": "unknown"}
