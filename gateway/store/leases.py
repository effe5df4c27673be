"""Leases: one holder at a time, whoever else asks."""

from datetime import datetime

from sqlalchemy import delete, select, update
from sqlalchemy.orm import Session

from gateway.store.models import Lease
from gateway.store.upsert import insert_named_if_new


def take(session: Session, name: str, *, holder: str, now: datetime, until: datetime) -> bool:
    """Take or renew the lease; False while somebody else holds it. Hosts' clocks must agree
    to a few seconds: the lease lives much longer than that."""
    if insert_named_if_new(
        session, Lease.__table__, {"name": name, "holder": holder, "expires_at": until}
    ):
        return True
    statement = (
        update(Lease)
        .where(Lease.name == name, (Lease.holder == holder) | (Lease.expires_at < now))
        .values(holder=holder, expires_at=until)
        .execution_options(synchronize_session=False)
    )
    return bool(getattr(session.execute(statement), "rowcount", 0))


def is_held(session: Session, name: str, *, holder: str, now: datetime) -> bool:
    """Does `holder` hold it still? Asked inside each transaction of the leader."""
    query = select(Lease.name).where(
        Lease.name == name, Lease.holder == holder, Lease.expires_at > now
    )
    return session.execute(query).scalar() is not None


def give_up(session: Session, name: str, *, holder: str) -> None:
    """Let a standby take over at once."""
    session.execute(
        delete(Lease)
        .where(Lease.name == name, Lease.holder == holder)
        .execution_options(synchronize_session=False)
    )
