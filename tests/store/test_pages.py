"""What the other pages read."""

from datetime import timedelta

import pytest

from gateway.core.node_states import in_service
from gateway.store import snapshot
from gateway.store.queries import job as job_queries
from gateway.store.queries.cluster import cluster
from gateway.store.queries.health import health, poll
from gateway.store.queries.people import choices, groups, members, people
from gateway.store.uow import Begin
from gateway.testing import builders as b
from gateway.testing.samples import fill


def test_a_job_comes_with_its_submission(begin: Begin, read: Begin) -> None:
    made = fill(begin)

    with read() as session:
        found = job_queries.job(session, made["RUNNING"])
        plain = job_queries.job(session, made["PENDING"])
        events = job_queries.events(session, job_id=made["RUNNING"])

    assert found is not None
    assert found.submission is not None
    assert found.submission.row.id == made["accepted"]
    assert found.submission.script.startswith("#!")
    assert found.submission.ask["template"] == "ddp"
    assert plain is not None
    assert plain.submission is None
    assert [event.kind for event in events] == ["submitted"]


def test_no_job_is_none(read: Begin) -> None:
    with read() as session:
        assert job_queries.job(session, 1) is None
        assert job_queries.job_by_slurm_id(session, 1) is None
        assert job_queries.submission(session, 1) is None
        assert job_queries.events(session) == ()


def test_of_two_jobs_with_one_slurm_id_the_newer_is_meant(begin: Begin, read: Begin) -> None:
    b.add_job(begin, slurm_id=7, submit_time=b.NOW - timedelta(days=400))
    newer = b.add_job(begin, slurm_id=7)
    elsewhere = b.add_job(begin, slurm_id=7, cluster="other", submit_time=b.NOW - timedelta(days=9))

    with read() as session:
        found = job_queries.job_by_slurm_id(session, 7)
        other = job_queries.job_by_slurm_id(session, 7, cluster="other")

    assert found is not None
    assert other is not None
    assert (found.row.id, other.row.id) == (newer, elsewhere)


def test_the_runs_of_a_requeued_job_come_in_order(begin: Begin, read: Begin) -> None:
    job_id = b.add_job(begin)
    second = b.add_run(begin, job_id, submit_time=b.NOW - timedelta(minutes=1))
    first = b.add_run(begin, job_id, state="PREEMPTED")

    with read() as session:
        assert [run.id for run in job_queries.runs(session, job_id)] == [first, second]


def test_submissions_without_a_job_are_those_on_their_way_and_lately_refused(
    begin: Begin, read: Begin
) -> None:
    person = b.add_person(begin)
    old = b.NOW - timedelta(days=8)
    shown = {
        b.add_submission(begin, person, state="queued", created_at=old),
        b.add_submission(begin, person, state="unknown"),
        b.add_submission(begin, person, state="refused", error_code="invalid_qos"),
    }
    b.add_submission(begin, person, state="refused", created_at=old)
    b.add_submission(begin, person, state="accepted")
    b.add_submission(begin, person, state="withdrawn")

    with read() as session:
        found = job_queries.open_submissions(session, person, now=b.NOW)
        asks = job_queries.recent_asks(session, person)

    assert {row.id for row in found} == shown
    assert {row.group for row in found} == {"nlp"}
    assert len(asks) == 6


def test_unused_cards_of_a_node_out_of_service_are_down_and_not_free(
    begin: Begin, read: Begin
) -> None:
    fill(begin)

    with read() as session:
        found = cluster(session)
        a100, rtx = found.types

    assert (a100.gpu_type, a100.total, a100.used, a100.free, a100.down) == ("a100", 24, 8, 10, 6)
    assert (a100.waiting_jobs, a100.waiting_gpus) == (4, 26)
    assert (rtx.used, rtx.free, rtx.down) == (0, 0, 8)
    assert [(one.word, one.gpus) for one in found.waiting_by_group] == [("vision", 24), ("nlp", 2)]
    assert found.waiting_by_reason[0].word == "QOSMaxGRESPerUser"
    assert found.queue_poll is not None
    assert found.queue_poll.succeeded_at == b.NOW


def test_running_jobs_do_not_wait(begin: Begin, read: Begin) -> None:
    b.add_waiting(begin, state="RUNNING")

    with read() as session:
        assert cluster(session).waiting_by_group == ()


@pytest.mark.parametrize(
    ("state", "serves"),
    [
        ("IDLE", True),
        ("MIXED+PLANNED", True),
        ("IDLE+CLOUD+POWERED_DOWN", True),
        ("IDLE+DRAIN", False),
        ("DOWN*", False),
        ("down", False),
        ("ALLOCATED+MAINTENANCE", False),
        ("IDLE+NOT_RESPONDING", False),
    ],
)
def test_a_nodes_words_say_whether_it_serves(state: str, serves: bool) -> None:
    assert in_service(state) is serves


def test_an_empty_store_is_an_empty_cluster(read: Begin) -> None:
    with read() as session:
        found = cluster(session)

    assert (found.types, found.nodes, found.queue_poll) == ((), (), None)


def test_what_the_poll_stored_comes_back_as_it_was(begin: Begin, read: Begin) -> None:
    given = b.qos("spot", preempts=("normal",), flags=("DenyOnLimit",))
    b.add_cluster(begin, qos_list=(given,))

    with read() as session:
        assert snapshot.qos(session) == (given,)


def test_health_counts_what_waits(begin: Begin, read: Begin) -> None:
    made = fill(begin)
    b.add_submission(begin, made["member"], state="unknown")

    with read() as session:
        found = health(session)
        queue, nothing = poll(session, "queue"), poll(session, "absent")

    assert [(row.state, row.number) for row in found.outbox] == [("queued", 1), ("unknown", 1)]
    assert (found.held, found.held_rows) == (0, ())
    assert queue is not None
    assert nothing is None


def test_people_groups_and_choices(begin: Begin, read: Begin) -> None:
    fill(begin)

    with read() as session:
        logins = [person.login for person in people(session)]
        rest = [person.login for person in people(session, after="member")]
        offered = choices(session)

        assert groups(session) == ("nlp", "vision")
        assert members(session, "vision") == ("stranger",)
    assert logins == sorted(logins)
    assert rest == ["operator", "stranger"]
    assert offered.partitions == ("a100", "debug", "rtx4090")
    assert offered.templates == ("ddp",)
