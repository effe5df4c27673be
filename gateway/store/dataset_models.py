"""The tables of the catalogue of datasets. Nothing outside `store` imports this module.

A dataset is a name under which versions of read-only data are published; a version is a folder
that every node sees, named by the SHA-256 of its manifest. What submissions used stays on record
whatever becomes of the version.
"""

from datetime import datetime
from typing import Any

from sqlalchemy import BigInteger, CheckConstraint, Double, ForeignKey, Text, UniqueConstraint
from sqlalchemy.orm import Mapped, mapped_column

from gateway.store.models import Base


class Dataset(Base):
    """`group` is set for a group's own, whose leaders publish it; else administrators do.

    `visibility`: everyone uses it; `listed`: everyone sees that it exists, readers use it;
    `groups`: only readers see it.
    """

    __tablename__ = "dataset"
    __table_args__ = (
        CheckConstraint("visibility in ('everyone','listed','groups')", name="visibility_known"),
    )

    id: Mapped[int] = mapped_column(primary_key=True)
    name: Mapped[str] = mapped_column(unique=True)
    title: Mapped[str]
    licence: Mapped[str]
    description: Mapped[str] = mapped_column(Text)
    visibility: Mapped[str]
    group: Mapped[str | None] = mapped_column("group_name")
    owner_id: Mapped[int] = mapped_column(ForeignKey("person.id"))
    created_at: Mapped[datetime]


class DatasetReader(Base):
    """Who may use one that is not for everyone: a group, or a person by Unix account."""

    __tablename__ = "dataset_reader"
    __table_args__ = (CheckConstraint("kind in ('group','person')", name="kind_known"),)

    dataset_id: Mapped[int] = mapped_column(ForeignKey("dataset.id"), primary_key=True)
    kind: Mapped[str] = mapped_column(primary_key=True)
    name: Mapped[str] = mapped_column(primary_key=True)


class DatasetVersion(Base):
    """`manifest_path` is a file that the nodes see, whose SHA-256 is `manifest`. `parent_id` is
    the version that this one was made from, by `made_by` (a recipe or a job, in words)."""

    __tablename__ = "dataset_version"
    __table_args__ = (
        UniqueConstraint("dataset_id", "version"),
        CheckConstraint(
            "state in ('draft','requested','published','withdrawn')", name="state_known"
        ),
        CheckConstraint("health in ('unknown','good','damaged','failed')", name="health_known"),
    )

    id: Mapped[int] = mapped_column(primary_key=True)
    dataset_id: Mapped[int] = mapped_column(ForeignKey("dataset.id"))
    version: Mapped[int]
    path: Mapped[str] = mapped_column(Text)
    state: Mapped[str]
    bytes: Mapped[int | None] = mapped_column(BigInteger)
    files: Mapped[int | None] = mapped_column(BigInteger)
    manifest: Mapped[str | None]
    manifest_path: Mapped[str] = mapped_column(Text)
    note: Mapped[str] = mapped_column(Text)
    parent_id: Mapped[int | None] = mapped_column(ForeignKey("dataset_version.id"))
    made_by: Mapped[str] = mapped_column(Text)
    created_by: Mapped[int] = mapped_column(ForeignKey("person.id"))
    created_at: Mapped[datetime]
    decided_by: Mapped[int | None] = mapped_column(ForeignKey("person.id"))
    published_at: Mapped[datetime | None]
    withdrawn_at: Mapped[datetime | None]
    withdrawn_why: Mapped[str] = mapped_column(Text)
    health: Mapped[str]
    checked_at: Mapped[datetime | None]
    read_mbps: Mapped[float | None] = mapped_column(Double)  # MB (10^6 bytes) a second, measured


class DatasetCheck(Base):
    """A verification that ended: `facts` are core.datasets.Report. `site_job` names its job."""

    __tablename__ = "dataset_check"

    id: Mapped[int] = mapped_column(primary_key=True)
    version_id: Mapped[int] = mapped_column(ForeignKey("dataset_version.id"), index=True)
    site_job: Mapped[int | None]
    at: Mapped[datetime]
    health: Mapped[str]
    facts: Mapped[dict[str, Any]]


class DatasetRequest(Base):
    """Somebody wants access (of a group or of themselves), or a dataset that is not there."""

    __tablename__ = "dataset_request"
    __table_args__ = (
        CheckConstraint("kind in ('access','new')", name="kind_known"),
        CheckConstraint("state in ('open','granted','refused')", name="state_known"),
    )

    id: Mapped[int] = mapped_column(primary_key=True)
    kind: Mapped[str]
    state: Mapped[str] = mapped_column(index=True)
    dataset_id: Mapped[int | None] = mapped_column(ForeignKey("dataset.id"))
    person_id: Mapped[int] = mapped_column(ForeignKey("person.id"))
    group: Mapped[str | None] = mapped_column("group_name")  # None: for the person alone
    text: Mapped[str] = mapped_column(Text)
    at: Mapped[datetime]
    answer: Mapped[str] = mapped_column(Text)
    decided_by: Mapped[int | None] = mapped_column(ForeignKey("person.id"))
    decided_at: Mapped[datetime | None]


class DatasetUse(Base):
    """What a submission was sent with."""

    __tablename__ = "dataset_use"

    submission_id: Mapped[int] = mapped_column(ForeignKey("submission.id"), primary_key=True)
    version_id: Mapped[int] = mapped_column(
        ForeignKey("dataset_version.id"), primary_key=True, index=True
    )
