"""The tables of applications. Nothing outside `store` imports this module."""

from datetime import datetime

from sqlalchemy import ForeignKey
from sqlalchemy.orm import Mapped, mapped_column

from gateway.store.models import Base


class App(Base):
    """Where the door of an application is, as its owner's own file said. A row is there once it was
    ready or has guests; its job says whether it still runs."""

    __tablename__ = "app"

    submission_id: Mapped[int] = mapped_column(ForeignKey("submission.id"), primary_key=True)
    address: Mapped[str | None]  # of a node; None: not ready yet
    port: Mapped[int | None]
    key: Mapped[str | None]
    ready_at: Mapped[datetime | None]


class AppGuest(Base):
    """Who else may open it, named by its owner. Only who has agreed to trust the owner gets in."""

    __tablename__ = "app_guest"

    submission_id: Mapped[int] = mapped_column(ForeignKey("app.submission_id"), primary_key=True)
    person_id: Mapped[int] = mapped_column(ForeignKey("person.id"), primary_key=True, index=True)
    added_at: Mapped[datetime]
    agreed_at: Mapped[datetime | None]
