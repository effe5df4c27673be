"""The tables of snapshots. Nothing outside `store` imports this module."""

from datetime import datetime
from typing import Any

from sqlalchemy import BigInteger, CheckConstraint, ForeignKey, Index, Text
from sqlalchemy.orm import Mapped, mapped_column

from gateway.store.models import Base


class Snapshot(Base):
    """What a person added to a base, as they saved it. `document` is core.snapshots.Document; it
    was read from the owner's own folder, and `digest` is the SHA-256 of its bytes.

    `shared`: none; group (`group` says which); asked (for the site; an administrator has not agreed
    yet); site. A deleted one stays until its owner's next save has removed its files.
    """

    __tablename__ = "snapshot"
    __table_args__ = (
        CheckConstraint("shared in ('none','group','asked','site')", name="shared_known"),
        Index(None, "person_id", "saved_at"),
        Index(None, "shared", "group_name"),
        Index(None, "base"),
    )

    id: Mapped[int] = mapped_column(primary_key=True)
    digest: Mapped[str] = mapped_column(unique=True)
    person_id: Mapped[int] = mapped_column(ForeignKey("person.id"))
    folder: Mapped[str]  # the owner's store, with documents/ and layers/ in it
    name: Mapped[str]
    note: Mapped[str] = mapped_column(Text)
    base: Mapped[str]  # the environment's name
    job: Mapped[str | None]  # the job's key, as the file says
    bytes: Mapped[int] = mapped_column(BigInteger)  # of all its layers, compressed
    new_bytes: Mapped[int] = mapped_column(BigInteger)  # of the layer that it was the first to need
    reachable: Mapped[bool]  # others may enter the folders above the store
    document: Mapped[dict[str, Any]]
    words: Mapped[str] = mapped_column(Text)  # what a search looks at
    saved_at: Mapped[datetime]
    seen_at: Mapped[datetime]
    shared: Mapped[str]
    group: Mapped[str | None] = mapped_column("group_name")
    deleted_at: Mapped[datetime | None]


class SnapshotBase(Base):
    """What a base looks like now, as a check of the site's own saw it; never what people say."""

    __tablename__ = "snapshot_base"

    name: Mapped[str] = mapped_column(primary_key=True)
    fingerprint: Mapped[str]
    changed_at: Mapped[datetime]
    seen_at: Mapped[datetime]


class SnapshotLook(Base):
    """When a person's store was read last, and why it could not be (`code`)."""

    __tablename__ = "snapshot_look"

    person_id: Mapped[int] = mapped_column(ForeignKey("person.id"), primary_key=True)
    at: Mapped[datetime]
    code: Mapped[str | None]
