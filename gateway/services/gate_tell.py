"""What is told of the gate's limits: to the group, and to administrators when not taken."""

from datetime import datetime, timedelta
from typing import TYPE_CHECKING, Any

from gateway.core.gate import Limits, Ruling
from gateway.core.notices import Kind
from gateway.store import gate as gates
from gateway.store import notices
from gateway.store.gate import GateRow

if TYPE_CHECKING:
    from sqlalchemy.orm import Session

Key = tuple[str, str]  # group and member; no member: the whole group

_DRIFT_TOLD_FOR = timedelta(days=1)
_UNREAD = "gate_unread"


def unread(session: "Session", code: str, *, now: datetime) -> None:
    """Nobody knows what Slurm enforces."""
    notices.tell(session, _UNREAD, kind=Kind.GATE_UNREAD, facts={"code": code}, now=now)


def is_read(session: "Session", *, now: datetime) -> None:
    notices.over(session, [_UNREAD], now=now)


def taken(session: "Session", key: Key, *, now: datetime) -> None:
    notices.over(session, [_alarm(key)], now=now)


def left(session: "Session", key: Key, *, now: datetime) -> None:
    """The gate has no say there any more."""
    gates.drop(session, *key)
    notices.over(session, [_alarm(key), _closed(key)], now=now)


def not_taken(session: "Session", key: Key, code: str, *, now: datetime) -> None:
    """The alarm: what was wanted is not so."""
    facts = {"group": key[0], "user": key[1], "code": code}
    notices.tell(session, _alarm(key), kind=Kind.GATE_NOT_TAKEN, facts=facts, now=now)


def closed(
    session: "Session", key: Key, ruling: Ruling, row: GateRow | None, *, now: datetime
) -> None:
    """To the group, when it changes."""
    if row is not None and row.closed == ruling.closed:
        return
    if not ruling.closed:
        notices.over(session, [_closed(key)], now=now)
        return
    group, user = key
    kind = Kind.GATE_MEMBER if user else Kind.GATE_CLOSED
    facts = {"user": user} if user else {}
    notices.tell(session, _closed(key), kind=kind, facts=facts, now=now, group=group)


def drifted(
    session: "Session", key: Key, found: Limits, set_again: Limits, *, now: datetime
) -> None:
    """Somebody else changed a limit that the gate had set."""
    facts: dict[str, Any] = {"group": key[0], "user": key[1]}
    facts |= {"found": _words(found), "set": _words(set_again)}
    name = f"gate_drift:{key[0]}:{key[1]}"
    notices.tell(session, name, kind=Kind.GATE_DRIFT, facts=facts, now=now)


def forget_drift(session: "Session", *, now: datetime) -> None:
    """Told for a day."""
    told = notices.open_keys(session, [Kind.GATE_DRIFT])
    notices.over(session, [k for k, at in told.items() if now - at > _DRIFT_TOLD_FOR], now=now)


def _words(limits: Limits) -> str:
    """As sacctmgr spells them."""
    submit = -1 if limits.submit is None else limits.submit
    minutes = -1 if limits.run_minutes is None else limits.run_minutes
    return f"GrpSubmitJobs={submit} GrpTRESRunMins=gres/gpu={minutes}"


def _alarm(key: Key) -> str:
    return f"gate_not_taken:{key[0]}:{key[1]}"


def _closed(key: Key) -> str:
    return f"gate_closed:{key[0]}:{key[1]}"
