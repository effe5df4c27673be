"""One job, with all that its page shows; and what a person asked for that is no job yet."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any

from sqlalchemy import ColumnElement, Row, bindparam, or_, select
from sqlalchemy.orm import Session

from gateway.store import submissions
from gateway.store.models import Event, Job, Person, Run, Submission, table_of
from gateway.store.queries.jobs import JobRow

MOST_RUNS = 200
MOST_EVENTS = 200
MOST_SUBMISSIONS = 50
REFUSED_SHOWN = timedelta(days=7)


@dataclass(frozen=True, slots=True)
class SubmissionRow:
    """What a person asked for, in a list. It is no job, or not yet."""

    id: int
    person_id: int
    state: str
    template: str
    created_at: datetime
    attempts: int
    next_attempt_at: datetime | None
    error_code: str | None
    error_text: str | None
    job_id: int | None
    name: str
    group: str
    partition: str

    @property
    def stage(self) -> str:
        """Its state; `after_smoke` while it is not to be sent yet, for its smoke job."""
        waits = self.state == "queued" and self.next_attempt_at is None
        return "after_smoke" if waits else self.state


@dataclass(frozen=True, slots=True)
class SubmissionDetail:
    """With what loads the form again (`ask`), the script as it was sent, and the task list of
    an array."""

    row: SubmissionRow
    ask: Mapping[str, Any]
    script: str
    sent_at: datetime | None
    array: str | None


@dataclass(frozen=True, slots=True)
class JobDetail:
    """`submission` is None for a job that did not come through the portal."""

    row: JobRow
    uid: int | None
    last_submit_time: datetime
    priority: int | None
    working_directory: str
    output: str | None
    seen_at: datetime
    left_queue_at: datetime | None
    submission: SubmissionDetail | None


@dataclass(frozen=True, slots=True)
class RunRow:
    """One stretch of a job on nodes."""

    id: int
    state: str
    submit_time: datetime
    eligible_time: datetime | None
    start_time: datetime
    end_time: datetime | None
    elapsed_seconds: int
    suspended_seconds: int
    nodes: int
    cpus: int
    gpus: int | None
    node_list: str | None
    exit_code: int | None
    exit_signal: int | None
    restarts: int


@dataclass(frozen=True, slots=True)
class EventRow:
    """Who did what. `by` is None for what Slurm or the portal did."""

    at: datetime
    kind: str
    detail: Mapping[str, Any]
    by: str | None


_TABLE = table_of(Submission)
_SUBMISSION = select(_TABLE).where(_TABLE.c.id == bindparam("of"))


def job(session: Session, job_id: int) -> JobDetail | None:
    return _detail(session, session.get(Job, job_id))


def job_by_slurm_id(
    session: Session, slurm_id: int, *, cluster: str | None = None
) -> JobDetail | None:
    """The newest with this id: a cluster that was cleared counts from one again."""
    query = select(Job).where(Job.slurm_id == slurm_id)
    if cluster is not None:
        query = query.where(Job.cluster == cluster)
    return _detail(session, session.scalar(query.order_by(Job.submit_time.desc()).limit(1)))


def runs(session: Session, job_id: int) -> tuple[RunRow, ...]:
    """From the first to the last; of very many, the last MOST_RUNS."""
    columns = [getattr(Run, name) for name in RunRow.__dataclass_fields__]
    query = (
        select(*columns)
        .where(Run.job_id == job_id)
        .order_by(Run.submit_time.desc(), Run.id.desc())
        .limit(MOST_RUNS)
    )
    return tuple(RunRow(*row) for row in reversed(session.execute(query).all()))


def events(
    session: Session, *, job_id: int | None = None, submission_id: int | None = None
) -> tuple[EventRow, ...]:
    """What happened to a job, or to a submission, or to both; from the first to the last."""
    wanted: list[ColumnElement[bool]] = []
    if job_id is not None:
        wanted.append(Event.job_id == job_id)
    if submission_id is not None:
        wanted.append(Event.submission_id == submission_id)
    if not wanted:
        return ()
    query = (
        select(Event.at, Event.kind, Event.detail, Person.display_name)
        .outerjoin(Person, Person.id == Event.person_id)
        .where(or_(*wanted))
        .order_by(Event.at.desc(), Event.id.desc())
        .limit(MOST_EVENTS)
    )
    return tuple(EventRow(*row) for row in reversed(session.execute(query).all()))


def open_submissions(
    session: Session, person_id: int, *, now: datetime
) -> tuple[SubmissionRow, ...]:
    """A person's own that are on their way or unknown, and those lately refused; newest first."""
    found: list[Submission] = []
    # A state at a time: each is then a short walk along one index, in order.
    for state in ("queued", "sending", "unknown", "refused"):
        query = (
            select(Submission)
            .where(Submission.person_id == person_id, Submission.state == state)
            .order_by(Submission.created_at.desc(), Submission.id.desc())
            .limit(MOST_SUBMISSIONS)
        )
        if state == "refused":
            query = query.where(Submission.created_at > now - REFUSED_SHOWN)
        found += session.scalars(query)
    found.sort(key=lambda one: (one.created_at, one.id), reverse=True)
    return tuple(_submission_row(one) for one in found[:MOST_SUBMISSIONS])


def submission(session: Session, submission_id: int) -> SubmissionDetail | None:
    found = session.execute(_SUBMISSION, {"of": submission_id}).one_or_none()
    return _submission_detail(found)


def recent_asks(session: Session, person_id: int, *, limit: int = 10) -> tuple[SubmissionRow, ...]:
    """A person's last submissions whatever became of them: forms to load again."""
    query = (
        select(Submission)
        .where(Submission.person_id == person_id, Submission.purpose.is_(None))
        .order_by(Submission.created_at.desc(), Submission.id.desc())
        .limit(min(limit, MOST_SUBMISSIONS))
    )
    return tuple(_submission_row(one) for one in session.scalars(query))


_ROW: Sequence[str] = tuple(JobRow.__dataclass_fields__)


def _detail(session: Session, found: Job | None) -> JobDetail | None:
    if found is None:
        return None
    submission_id = submissions.id_of_job(session, found.id)
    asked = None if submission_id is None else session.get(Submission, submission_id)
    return JobDetail(
        row=JobRow(**{name: getattr(found, name) for name in _ROW}),
        uid=found.uid,
        last_submit_time=found.last_submit_time,
        priority=found.priority,
        working_directory=found.working_directory,
        output=found.output,
        seen_at=found.seen_at,
        left_queue_at=found.left_queue_at,
        submission=_submission_detail(asked),
    )


def _submission_detail(found: Submission | Row[Any] | None) -> SubmissionDetail | None:
    if found is None:
        return None
    return SubmissionDetail(
        row=_submission_row(found),
        ask=found.ask,
        script=found.script,
        sent_at=found.sent_at,
        array=found.request.get("array"),
    )


def _submission_row(one: Submission | Row[Any]) -> SubmissionRow:
    return SubmissionRow(
        id=one.id,
        person_id=one.person_id,
        state=one.state,
        template=one.template,
        created_at=one.created_at,
        attempts=one.attempts,
        next_attempt_at=one.next_attempt_at,
        error_code=one.error_code,
        error_text=one.error_text,
        job_id=one.job_id,
        name=str(one.request.get("name", "")),
        group=str(one.request.get("account", "")),
        partition=str(one.request.get("partition", "")),
    )
