"""The tables of environments, their checks, and the portal's own jobs. Nothing outside `store`
imports this module."""

from datetime import datetime
from typing import Any

from sqlalchemy import CheckConstraint, Double, ForeignKey, Index, UniqueConstraint, text
from sqlalchemy.orm import Mapped, mapped_column

from gateway.store.models import Base


class PublishedEnvironment(Base):
    """What was published in the portal: `document` is core.environments' table without facts.

    A retired one is not offered any more and keeps its name: old jobs and recipes speak of it.
    """

    __tablename__ = "environment"

    id: Mapped[int] = mapped_column(primary_key=True)
    name: Mapped[str] = mapped_column(unique=True)
    group: Mapped[str] = mapped_column("group_name")  # empty: the site's
    document: Mapped[dict[str, Any]]
    created_at: Mapped[datetime]
    changed_at: Mapped[datetime]
    person_id: Mapped[int] = mapped_column(ForeignKey("person.id"))  # who changed it last
    retired_at: Mapped[datetime | None]


class EnvironmentFacts(Base):
    """What is known of an environment of this name, the file's or a published one."""

    __tablename__ = "environment_facts"

    name: Mapped[str] = mapped_column(primary_key=True)
    facts: Mapped[dict[str, Any]]  # core.env_facts
    at: Mapped[datetime]
    person_id: Mapped[int] = mapped_column(ForeignKey("person.id"))


class SiteJob(Base):
    """A job of the portal itself. `subject` is what it is about, in its kind's words.

    States: open; done (its result was handed to its kind); failed, with `code`. One of a kind and
    subject is open at a time. `submission_id` None: it was about to be sent; its `form_key` finds
    the submission, if there is one.
    """

    __tablename__ = "site_job"
    __table_args__ = (
        CheckConstraint("state in ('open','done','failed')", name="state_known"),
        UniqueConstraint("person_id", "form_key"),
        Index(
            "ix_site_job_open",
            "kind",
            "subject",
            unique=True,
            sqlite_where=text("state = 'open'"),
            postgresql_where=text("state = 'open'"),
        ),
        Index(None, "kind", "subject", "created_at"),
    )

    id: Mapped[int] = mapped_column(primary_key=True)
    kind: Mapped[str]
    subject: Mapped[str]
    form_key: Mapped[str]
    person_id: Mapped[int] = mapped_column(ForeignKey("person.id"))  # as whom it runs
    submission_id: Mapped[int | None] = mapped_column(ForeignKey("submission.id"), unique=True)
    state: Mapped[str]
    code: Mapped[str | None]
    facts: Mapped[dict[str, Any]]  # what its kind wants to know again when it is over
    result: Mapped[dict[str, Any] | None]
    created_at: Mapped[datetime]
    ended_at: Mapped[datetime | None]


class EnvironmentCheck(Base):
    """How an environment did on a type of GPU; the newest of each pair counts.

    `found` are core.env_facts as the job saw them, `steps` what it tried. `fingerprint` is that of
    the environment's text when the check began.
    """

    __tablename__ = "environment_check"
    __table_args__ = (Index(None, "environment", "gpu_type", "at"),)

    id: Mapped[int] = mapped_column(primary_key=True)
    environment: Mapped[str]
    gpu_type: Mapped[str]  # empty: without a GPU
    site_job_id: Mapped[int] = mapped_column(ForeignKey("site_job.id"), unique=True)
    at: Mapped[datetime]
    ok: Mapped[bool]
    code: Mapped[str | None]
    fingerprint: Mapped[str]
    driver: Mapped[str]
    capability: Mapped[str]
    seconds: Mapped[float] = mapped_column(Double)
    found: Mapped[dict[str, Any]]
    steps: Mapped[list[Any]]
