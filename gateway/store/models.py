"""The tables. Nothing outside `store` imports this module.

Words: a submission is what a person asked for, a job what Slurm accepted, a run one stretch
of a job on nodes. `group` is a Slurm account.
"""

from datetime import datetime
from typing import Any, cast

from sqlalchemy import (
    JSON,
    BigInteger,
    CheckConstraint,
    ForeignKey,
    Index,
    MetaData,
    Table,
    Text,
    UniqueConstraint,
    text,
)
from sqlalchemy.orm import DeclarativeBase, Mapped, mapped_column

from gateway.store.types import UtcDateTime

NAMING = {
    "ix": "ix_%(table_name)s_%(column_0_N_name)s",
    "uq": "uq_%(table_name)s_%(column_0_N_name)s",
    "ck": "ck_%(table_name)s_%(constraint_name)s",
    "fk": "fk_%(table_name)s_%(column_0_N_name)s",
    "pk": "pk_%(table_name)s",
}


class Base(DeclarativeBase):
    """Names for constraints, so that migrations can speak of them on every database."""

    metadata = MetaData(naming_convention=NAMING)
    type_annotation_map = {  # noqa: RUF012
        datetime: UtcDateTime,
        dict[str, Any]: JSON,
        list[Any]: JSON,
    }


def table_of(model: type[Base]) -> Table:
    """The table itself, for statements that are built once and run a thousand times a minute:
    a statement over the class costs several times as much to run."""
    return cast(Table, model.__table__)


class Person(Base):
    """A portal account. It maps to one Unix account, and a Unix account to one person."""

    __tablename__ = "person"

    id: Mapped[int] = mapped_column(primary_key=True)
    login: Mapped[str] = mapped_column(unique=True)
    unix_user: Mapped[str] = mapped_column(unique=True)
    display_name: Mapped[str]
    password_hash: Mapped[str]
    role: Mapped[str]  # core.access.Role
    locale: Mapped[str | None]
    timezone: Mapped[str | None]
    created_at: Mapped[datetime]
    disabled_at: Mapped[datetime | None]


class SignIn(Base):
    """A server-side session: only the hash of its token is kept."""

    __tablename__ = "sign_in"

    id: Mapped[int] = mapped_column(primary_key=True)
    person_id: Mapped[int] = mapped_column(ForeignKey("person.id"), index=True)
    token_hash: Mapped[str] = mapped_column(unique=True)
    kind: Mapped[str]  # browser, api
    address: Mapped[str]
    agent: Mapped[str]
    created_at: Mapped[datetime]
    last_seen_at: Mapped[datetime]
    expires_at: Mapped[datetime]
    ended_at: Mapped[datetime | None]


class SignInFailure(Base):
    """One failed sign-in, by login and address: what the throttle counts."""

    __tablename__ = "sign_in_failure"
    __table_args__ = (Index(None, "key", "at"), Index(None, "at"))

    id: Mapped[int] = mapped_column(primary_key=True)
    key: Mapped[str]
    at: Mapped[datetime]


class Submission(Base):
    """What a person asked for. It ends as exactly one job, or as none.

    States: queued (not yet sent), sending (claimed), unknown (sent, no answer: look for the
    token), accepted, refused, withdrawn (by the person, before Slurm had it).
    """

    __tablename__ = "submission"
    __table_args__ = (
        UniqueConstraint("person_id", "form_key"),
        CheckConstraint(
            "state in ('queued','sending','unknown','accepted','refused','withdrawn')",
            name="state_known",
        ),
        Index(None, "state", "next_attempt_at"),
        Index(None, "person_id", "created_at"),
        Index(None, "person_id", "state", "created_at"),
        Index(
            "ix_submission_after_id",
            "after_id",
            sqlite_where=text("after_id is not null"),
            postgresql_where=text("after_id is not null"),
        ),
        Index(
            "ix_submission_person_id_run",
            "person_id",
            "run",
            sqlite_where=text("run is not null"),
            postgresql_where=text("run is not null"),
        ),
    )

    id: Mapped[int] = mapped_column(primary_key=True)
    token: Mapped[str] = mapped_column(unique=True)
    form_key: Mapped[str]
    person_id: Mapped[int] = mapped_column(ForeignKey("person.id"))
    cluster: Mapped[str]
    state: Mapped[str]
    template: Mapped[str]
    ask: Mapped[dict[str, Any]]  # core.ask.Ask, to load the form again
    request: Mapped[dict[str, Any]]  # wire SubmitRequest without its script
    script: Mapped[str] = mapped_column(Text)
    run: Mapped[str | None]  # the name typed for the run folder; None: made of the job's
    purpose: Mapped[str | None]  # smoke: a short trial; its `ask` is that of the long job
    # A smoke job's submission: this one is sent with its job's id, to start when it has passed.
    after_id: Mapped[int | None]  # no constraint: SQLite would have to make the table anew
    created_at: Mapped[datetime]
    attempts: Mapped[int] = mapped_column(default=0)
    next_attempt_at: Mapped[datetime | None]
    claimed_until: Mapped[datetime | None]
    sent_at: Mapped[datetime | None]  # before the first call: where a search begins
    error_code: Mapped[str | None]
    error_text: Mapped[str | None] = mapped_column(Text)
    job_id: Mapped[int | None] = mapped_column(ForeignKey("job.id"), index=True)


class Job(Base):
    """What Slurm accepted, kept in step by the shared poll and by accounting.

    `submit_time` is that of the first run; `last_submit_time` moves on a requeue. A Slurm job
    id can come again on a cluster that was cleared, so the id alone is never the key.
    """

    __tablename__ = "job"
    __table_args__ = (
        # The id first: it is looked for without the cluster too.
        UniqueConstraint("slurm_id", "cluster", "submit_time"),
        Index(None, "active", "slurm_id"),  # the poll: what is around
        # The list (queries/jobs.py): each filter can lead, newest first.
        Index(None, "submit_time"),
        Index(None, "state", "submit_time"),
        Index(None, "user", "submit_time"),
        Index(None, "user", "state", "submit_time"),
        Index(None, "group_name", "submit_time"),
        Index(None, "group_name", "state", "submit_time"),
        Index(None, "partition", "submit_time"),
        Index(None, "qos", "submit_time"),
        Index(None, "template", "submit_time"),
        # What ended jobs of a template took; those of plain sbatch have none.
        Index(
            "ix_job_template_times",
            "group_name",
            "template",
            "submit_time",
            sqlite_where=text("template is not null and not active"),
            postgresql_where=text("template is not null and not active"),
        ),
        # What ended and is not charged yet: the gate counts it.
        Index(
            "ix_job_uncharged",
            "end_time",
            sqlite_where=text("not active and not accounted"),
            postgresql_where=text("not active and not accounted"),
        ),
        # Jobs of the portal that run, and those that ended lately: their run folders are read.
        Index(
            "ix_job_started_token",
            "active",
            "end_time",
            sqlite_where=text("token is not null and start_time is not null"),
            postgresql_where=text("token is not null and start_time is not null"),
        ),
        # Smoke jobs that ended lately: what waits for them is sent away.
        Index(
            "ix_job_purpose_end_time",
            "end_time",
            sqlite_where=text("purpose is not null"),
            postgresql_where=text("purpose is not null"),
        ),
        # The operator class lets PostgreSQL look for a beginning whatever its collation.
        Index(None, "name", "submit_time", postgresql_ops={"name": "text_pattern_ops"}),
    )

    id: Mapped[int] = mapped_column(primary_key=True)
    cluster: Mapped[str]
    slurm_id: Mapped[int] = mapped_column(BigInteger)
    array_job_id: Mapped[int | None] = mapped_column(BigInteger, index=True)
    array_task: Mapped[int | None]
    array_tasks: Mapped[int | None]
    user: Mapped[str]
    uid: Mapped[int | None] = mapped_column(BigInteger)
    name: Mapped[str]
    group: Mapped[str] = mapped_column("group_name")
    partition: Mapped[str]
    qos: Mapped[str | None]
    template: Mapped[str | None]
    purpose: Mapped[str | None]  # smoke, as its submission says
    state: Mapped[str]
    active: Mapped[bool]
    reason: Mapped[str | None]
    submit_time: Mapped[datetime]
    last_submit_time: Mapped[datetime]
    eligible_time: Mapped[datetime | None]
    start_time: Mapped[datetime | None]
    end_time: Mapped[datetime | None]
    estimated_start: Mapped[datetime | None]
    time_limit_minutes: Mapped[int | None]
    nodes: Mapped[int]
    cpus: Mapped[int]
    gpus: Mapped[int]
    gpu_type: Mapped[str | None]
    req_gpu_type: Mapped[str | None]  # what was asked for; None: any would do, or nobody knows
    node_list: Mapped[str | None] = mapped_column(Text)
    priority: Mapped[int | None] = mapped_column(BigInteger)
    restarts: Mapped[int] = mapped_column(default=0)
    exit_code: Mapped[int | None]
    exit_signal: Mapped[int | None]
    working_directory: Mapped[str] = mapped_column(Text)
    output: Mapped[str | None] = mapped_column(Text)
    token: Mapped[str | None] = mapped_column(index=True)
    seen_at: Mapped[datetime]  # last time slurmctld or accounting spoke of it
    left_queue_at: Mapped[datetime | None] = mapped_column(index=True)  # open, yet not queued
    accounted: Mapped[bool] = mapped_column(default=False)  # accounting told the newest run's end


class Run(Base):
    """One stretch of a job on nodes, from accounting. A requeue opens another."""

    __tablename__ = "run"
    __table_args__ = (
        UniqueConstraint("cluster", "slurm_id", "submit_time"),
        CheckConstraint("elapsed_seconds >= 0", name="elapsed_not_negative"),
        Index(None, "qos", "end_time"),  # the newest of a QoS: how often they are preempted
        Index(
            "ix_run_to_settle",
            "id",
            sqlite_where=text("to_settle"),
            postgresql_where=text("to_settle"),
        ),
    )

    id: Mapped[int] = mapped_column(primary_key=True)
    job_id: Mapped[int] = mapped_column(ForeignKey("job.id"), index=True)
    cluster: Mapped[str]
    slurm_id: Mapped[int] = mapped_column(BigInteger)
    user: Mapped[str]
    group: Mapped[str] = mapped_column("group_name")
    partition: Mapped[str]
    qos: Mapped[str | None]
    state: Mapped[str]
    submit_time: Mapped[datetime]
    eligible_time: Mapped[datetime | None]
    start_time: Mapped[datetime]
    end_time: Mapped[datetime | None] = mapped_column(index=True)
    elapsed_seconds: Mapped[int]
    suspended_seconds: Mapped[int]
    nodes: Mapped[int]
    cpus: Mapped[int]
    gpus: Mapped[int | None]  # None: accounting does not say
    alloc_tres: Mapped[str] = mapped_column(Text)
    node_list: Mapped[str | None] = mapped_column(Text)
    exit_code: Mapped[int | None]
    exit_signal: Mapped[int | None]
    restarts: Mapped[int]
    cancelled_by: Mapped[str | None]  # who ended it, where Slurm says so
    seen_until: Mapped[datetime | None]  # the queue saw it running until then at least
    to_settle: Mapped[bool] = mapped_column(default=False)  # it ended, or changed, since its charge


class HeldRow(Base):
    """An accounting row that could not be understood: kept whole, for a person to look at."""

    __tablename__ = "held_row"

    id: Mapped[int] = mapped_column(primary_key=True)
    cluster: Mapped[str]
    fingerprint: Mapped[str] = mapped_column(unique=True)
    raw: Mapped[str] = mapped_column(Text)
    reason: Mapped[str]
    first_seen_at: Mapped[datetime]
    settled_at: Mapped[datetime | None]


class Event(Base):
    """Who did what to a job, and what Slurm said."""

    __tablename__ = "event"
    __table_args__ = (Index(None, "job_id", "at"), Index(None, "submission_id", "at"))

    id: Mapped[int] = mapped_column(primary_key=True)
    at: Mapped[datetime]
    person_id: Mapped[int | None] = mapped_column(ForeignKey("person.id"))
    job_id: Mapped[int | None] = mapped_column(ForeignKey("job.id"))
    submission_id: Mapped[int | None] = mapped_column(ForeignKey("submission.id"))
    kind: Mapped[str]
    detail: Mapped[dict[str, Any]]


class Poll(Base):
    """How one periodic read of Slurm went last, and how far it has come.

    `watermark` moves only in the transaction that stores what was read. `wanted_at` asks the
    worker for a read soon, once, however many ask.
    """

    __tablename__ = "poll"

    name: Mapped[str] = mapped_column(primary_key=True)
    tried_at: Mapped[datetime | None]
    succeeded_at: Mapped[datetime | None]
    error_code: Mapped[str | None]
    interval_seconds: Mapped[float | None]
    watermark: Mapped[datetime | None]
    wanted_at: Mapped[datetime | None]


class Lease(Base):
    """One holder at a time; who lets it expire has lost it."""

    __tablename__ = "lease"

    name: Mapped[str] = mapped_column(primary_key=True)
    holder: Mapped[str]
    expires_at: Mapped[datetime]


class NodeNow(Base):
    """The nodes as the last poll saw them; replaced whole."""

    __tablename__ = "node_now"

    name: Mapped[str] = mapped_column(primary_key=True)
    facts: Mapped[dict[str, Any]]  # wire Node


class PartitionNow(Base):
    """The partitions as the last poll saw them; replaced whole."""

    __tablename__ = "partition_now"

    name: Mapped[str] = mapped_column(primary_key=True)
    facts: Mapped[dict[str, Any]]  # wire Partition


class QosNow(Base):
    """The QoS as the last poll saw them; replaced whole."""

    __tablename__ = "qos_now"

    name: Mapped[str] = mapped_column(primary_key=True)
    facts: Mapped[dict[str, Any]]  # wire Qos


class AssociationNow(Base):
    """The associations as the last poll saw them; replaced whole."""

    __tablename__ = "association_now"
    __table_args__ = (Index(None, "user"), Index(None, "account"))

    id: Mapped[int] = mapped_column(primary_key=True)
    user: Mapped[str]
    account: Mapped[str]
    facts: Mapped[dict[str, Any]]  # wire Association


class QueueNow(Base):
    """The queue in sums, so that the cluster page never counts 100,000 rows."""

    __tablename__ = "queue_now"

    id: Mapped[int] = mapped_column(primary_key=True)
    partition: Mapped[str]
    gpu_type: Mapped[str | None]
    group: Mapped[str] = mapped_column("group_name")
    state: Mapped[str]
    reason: Mapped[str | None]
    jobs: Mapped[int]
    gpus: Mapped[int]
    oldest_eligible: Mapped[datetime | None]
