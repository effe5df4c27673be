"""One worker acts at a time: a lease in the database, asked again in each transaction."""

from collections.abc import Iterator
from contextlib import contextmanager
from datetime import datetime, timedelta
from typing import TYPE_CHECKING

from gateway.errors import GatewayError
from gateway.store import leases
from gateway.store.uow import Begin

if TYPE_CHECKING:
    from collections.abc import Callable

    from sqlalchemy.orm import Session

NAME = "worker"
TERM = timedelta(seconds=20)
RENEW_SECONDS = 5.0


class LeaseLost(GatewayError):
    """Another worker leads now: this transaction is rolled back, and the job ends."""

    code = "lease_lost"


class Leader:
    """This process's hold on the lease. `holder` is unlike that of any other process."""

    def __init__(self, *, holder: str, begin: Begin, clock: "Callable[[], datetime]") -> None:
        self._holder = holder
        self._begin = begin
        self._clock = clock
        self._until: datetime | None = None

    def renew(self) -> bool:
        """Take or keep the lease; False when another process has it."""
        now = self._clock()
        with self._begin() as session:
            got = leases.take(session, NAME, holder=self._holder, now=now, until=now + TERM)
        self._until = now + TERM if got else None
        return got

    def leads(self) -> bool:
        """Without a look into the database: did the last renewal give us this moment?"""
        return self._until is not None and self._clock() < self._until

    def give_up(self) -> None:
        """At an orderly end, so that a standby need not wait."""
        self._until = None
        with self._begin() as session:
            leases.give_up(session, NAME, holder=self._holder)

    @contextmanager
    def begin(self) -> "Iterator[Session]":
        """A transaction that only the leader can commit: asked at its start and at its end."""
        with self._begin() as session:
            self._require(session)
            yield session
            self._require(session)

    def _require(self, session: "Session") -> None:
        if not leases.is_held(session, NAME, holder=self._holder, now=self._clock()):
            self._until = None
            raise LeaseLost(self._holder)
