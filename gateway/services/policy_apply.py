"""Changes of policy, brought to Slurm: at once by who presses the button, later by the worker.

Safe to kill anywhere and to call again. `stopwatch` tells how much time passed since `now`, so
that a version is never older than the write that it tells of (see policy_drift).
"""

import time
from collections.abc import Callable
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import TYPE_CHECKING

from gateway.brokerclient.port import Broker
from gateway.core.access import Viewer
from gateway.core.notices import Kind
from gateway.core.policy_change import ChangeState, Source, outcome
from gateway.errors import NotFound
from gateway.services.policy_back import backwards
from gateway.services.policy_changes import FAILED
from gateway.services.policy_present import Present, of_slurm
from gateway.services.policy_send import CLAIM, Sender
from gateway.services.poll import BROKER_ERRORS, POLICY
from gateway.store import notices, policy, polls
from gateway.store.queries import policy_changes as rows
from gateway.store.uow import Begin

if TYPE_CHECKING:
    from sqlalchemy.orm import Session

# After a call without an answer the broker may still be at work for its kill time-out.
ASK_AGAIN = timedelta(seconds=30)
BACK = "policy_back:"


@dataclass(frozen=True, slots=True)
class DueReport:
    """What a turn of the worker did, by how each change stands after it."""

    states: tuple[tuple[int, ChangeState], ...] = ()


def apply(
    change_id: int,
    *,
    viewer: Viewer | None,
    begin: Begin,
    broker: Broker,
    now: datetime,
    stopwatch: Callable[[], float] = time.monotonic,
) -> ChangeState:
    """How the change stands afterwards: applied, partly, refused; unknown when Slurm gave no
    answer, approved or applying when it was not there (the worker goes on with both).

    What is not due, not approved, or just worked at by another is left as it is. NotFound.
    """
    turn = _Turn(begin, broker, _clock(now, stopwatch), viewer.person_id if viewer else None)
    return turn.apply(change_id)


def apply_due(
    *,
    begin: Begin,
    broker: Broker,
    now: datetime,
    read: Begin | None = None,
    stopwatch: Callable[[], float] = time.monotonic,
) -> DueReport:
    """What is approved and due, what was left half done, and the way back of what is at its end.
    What fails is told to the administrators."""
    with (read or begin)() as session:
        ended = policy.past_their_end(session, now=now)
        due = policy.due(session, now=now)
        late = policy.are_late(session, now=now)
    if late:
        with begin() as session:
            policy.lapse(session, now=now)
    turn = _Turn(begin, broker, _clock(now, stopwatch), None, tell=True)
    due += [back for change_id in ended if (back := turn.go_back(change_id)) is not None]
    return DueReport(tuple((change_id, turn.apply(change_id)) for change_id in due))


def _clock(now: datetime, stopwatch: Callable[[], float]) -> Callable[[], datetime]:
    began = stopwatch()
    return lambda: now + timedelta(seconds=max(0.0, stopwatch() - began))


@dataclass(frozen=True, slots=True)
class _Turn:
    begin: Begin
    broker: Broker
    clock: Callable[[], datetime]
    person_id: int | None
    tell: bool = False

    def apply(self, change_id: int) -> ChangeState:
        at = self.clock()
        with self.begin() as session:
            change = rows.change(session, change_id)
            if change is None:
                raise NotFound("no such change of policy")
            if not policy.claim(
                session, change_id, until=at + CLAIM, now=at, person_id=self.person_id
            ):
                return change.state
        try:
            Sender(change, self.begin, self.broker, self.clock).work()
        except BROKER_ERRORS:
            return self._finish(change_id, again_at=self.clock() + ASK_AGAIN)
        return self._finish(change_id, again_at=None)

    def _finish(self, change_id: int, *, again_at: datetime | None) -> ChangeState:
        at = self.clock()
        with self.begin() as session:
            change = rows.change(session, change_id)
            if change is None:
                raise NotFound("no such change of policy")
            state = outcome(row.state for row in change.items)
            closed = state not in (ChangeState.APPROVED, ChangeState.APPLYING, ChangeState.UNKNOWN)
            values = {"settled_at": at} if closed else {}
            is_ours = policy.move(session, change_id, state, values)
            policy.hold_claim(session, change_id, until=again_at)
            if closed and is_ours:
                polls.want(session, POLICY, now=at)
                _after(session, change, state, tell=self.tell, now=at)
        return state

    def go_back(self, change_id: int) -> int | None:
        """The change that takes it back, to be applied; None when all of it is back already, or
        when Slurm could not be asked."""
        with self.begin() as session:
            change = rows.change(session, change_id)
        if change is None:
            return None
        try:
            there = self._there()
        except BROKER_ERRORS:
            return None
        at, items = self.clock(), backwards(change, there)
        with self.begin() as session:
            if not items:
                policy.move(session, change_id, ChangeState.ENDED)
                return None
            new = policy.NewChange(
                key=f"{BACK}{change_id}",
                source=Source.SCHEDULE,
                state=ChangeState.APPROVED,
                reason=change.line.reason,
                person_id=change.line.author_id,
                proposed_at=at,
                needs_approval=False,
                starts_at=None,
                ends_at=None,
                about_id=change_id,
            )
            return policy.add(session, new, items)

    def _there(self) -> Present:
        """As Slurm says now: a read of the last minute could make a refusal out of nothing."""
        at, qos, accounts = self.clock(), self.broker.qos(), self.broker.accounts()
        with self.begin() as session:
            return of_slurm(qos, accounts, retired=rows.retired(session), polled_at=at)


def _after(
    session: "Session", change: rows.ChangeRow, state: ChangeState, *, tell: bool, now: datetime
) -> None:
    """What else follows from how a change ended, in the transaction that says so."""
    line = change.line
    if state is ChangeState.APPLIED:
        notices.over(session, [f"{FAILED}{change.id}"], now=now)
        if line.source is Source.SCHEDULE and line.about_id is not None:
            policy.move(session, line.about_id, ChangeState.ENDED)
        return
    back = line.source is Source.SCHEDULE
    if back or tell:
        first = next(row for row in change.items if row.code is not None)
        facts = {"change": change.id, "object": first.object, "code": first.code}
        notices.tell(
            session,
            f"{FAILED}{change.id}",
            kind=Kind.POLICY_NOT_BACK if back else Kind.POLICY_FAILED,
            facts=facts | ({"about": line.about_id} if back else {}),
            now=now,
        )
