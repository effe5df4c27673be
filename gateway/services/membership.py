"""A wish about a person's place in a group, carried out in Slurm: send, read back, history.

Safe to kill and to call again: each verb of the broker does nothing where it is so already.
"""

from dataclasses import dataclass
from datetime import datetime
from typing import TYPE_CHECKING, Any

from gateway.brokerclient.port import Broker
from gateway.errors import BrokerRefused, BrokerSilent, BrokerUnreachable, Refused
from gateway.store import events, memberships, polls, snapshot
from gateway.store.memberships import ChangeRow, Wanted
from gateway.store.uow import Begin
from gateway.wire import codec
from gateway.wire import policy as p

if TYPE_CHECKING:
    from sqlalchemy.orm import Session

HISTORY = "membership"
GONE = "no_such_association"
_DIFFERS = "read_back_differs"
# What the broker says of a Unix account that nobody may be added by.
_NOBODY = frozenset({"unknown_user", "root_refused", "system_account", "bad_user"})


@dataclass(frozen=True, slots=True)
class Outcome:
    """`pending`: not so yet, for the reason `code`; the worker carries on. `cancelled` are waiting
    jobs that were cancelled with a removal, `left` those that could not be."""

    user: str
    pending: bool
    code: str | None = None
    cancelled: int = 0
    left: int = 0


def carry_out(row: ChangeRow, *, begin: Begin, broker: Broker, now: datetime) -> Outcome:
    """Send it, compare what comes back, write the history. Refused when Slurm says no for good."""
    with begin() as session:
        before = _seen(session, row.group, row.user)
    code: str | None = None
    try:
        after = _send(row, begin=begin, broker=broker, now=now)
        if not _is_so(row, after):
            code = _DIFFERS
    except BrokerRefused as error:
        after, code = None, error.code
    except (BrokerUnreachable, BrokerSilent) as error:
        return _later(row, error.code, begin=begin)
    if code is not None and row.wanted is Wanted.ABSENT:
        # Closed already, and never let in again by a no: it stays wanted until somebody undoes it.
        return _later(row, code, begin=begin)
    _conclude(row, before, after, code, begin=begin, now=now)
    if code is None:
        return Outcome(row.user, pending=False)
    field = "who" if row.wanted is Wanted.MEMBER else None
    raise Refused("no_such_unix_user" if code in _NOBODY else code, field=field)


def _send(row: ChangeRow, *, begin: Begin, broker: Broker, now: datetime) -> p.Membership:
    group, user = row.group, row.user
    match row.wanted:
        case Wanted.MEMBER:
            back = broker.add_member(group, user)
            if row.reopens and back.closed:
                back = broker.set_member(p.SetMember(group, user, closed=False))
            return back
        case Wanted.ABSENT:
            shut = close(row, begin=begin, broker=broker, now=now)
            if shut is not None and shut.is_default:
                _give_other_default(row, begin=begin, broker=broker)
            return _removed(row, broker)
        case Wanted.LEADER | Wanted.NOT_LEADER:
            leads = row.wanted is Wanted.LEADER
            return broker.set_member(p.SetMember(group, user, is_coordinator=leads))
        case Wanted.DEFAULT:
            return broker.set_member(p.SetMember(group, user, is_default=True))


def close(row: ChangeRow, *, begin: Begin, broker: Broker, now: datetime) -> p.Membership | None:
    """Shut this person out of the group for new jobs. None: Slurm has nothing to shut."""
    try:
        shut = broker.set_member(p.SetMember(row.group, row.user, closed=True))
    except BrokerRefused as error:
        if error.code != GONE:
            raise
        return None
    if shut.closed:
        with begin() as session:
            memberships.closed(session, row.id, at=now)
    return shut


def _give_other_default(row: ChangeRow, *, begin: Begin, broker: Broker) -> None:
    """Slurm keeps a person's default account as long as they have others."""
    with begin() as session:
        mine = snapshot.associations_of(session, row.user)
        leaving = memberships.leaving(session, row.user) | {row.group}
    others = sorted({one.account for one in mine} - leaving)
    if others:
        broker.set_member(p.SetMember(others[0], row.user, is_default=True))


def _removed(row: ChangeRow, broker: Broker) -> p.Membership:
    try:
        return broker.remove_member(row.group, row.user)
    except BrokerRefused as error:
        if error.code != GONE:
            raise
        gone = {"is_coordinator": False, "is_default": False, "closed": False}
        return p.Membership(row.group, row.user, (), **gone)


def _is_so(row: ChangeRow, after: p.Membership) -> bool:
    match row.wanted:
        case Wanted.MEMBER:
            return bool(after.partitions) and not (row.reopens and after.closed)
        case Wanted.ABSENT:
            return not after.partitions and not after.is_coordinator
        case Wanted.LEADER:
            return after.is_coordinator
        case Wanted.NOT_LEADER:
            return not after.is_coordinator
        case Wanted.DEFAULT:
            return after.is_default


def _later(row: ChangeRow, code: str, *, begin: Begin) -> Outcome:
    with begin() as session:
        memberships.waits(session, row.id, code=code)
    return Outcome(row.user, pending=True, code=code)


def _conclude(
    row: ChangeRow,
    before: dict[str, Any],
    after: p.Membership | None,
    code: str | None,
    *,
    begin: Begin,
    now: datetime,
) -> None:
    state = "done" if code is None else "refused"
    detail = {"group": row.group, "user": row.user, "wanted": row.wanted.value}
    more = {"outcome": code or state, "before": before, "after": codec.dump(after)}
    with begin() as session:
        if memberships.finish(session, row.id, state=state, code=code, now=now):
            events.add(session, HISTORY, at=now, person_id=row.person_id, detail={**detail, **more})
            polls.want(session, "policy", now=now)
        elif memberships.get(session, row.id).state == "undone":
            # Somebody added them again while Slurm was removing them.
            memberships.again(session, row.group, row.user)


def _seen(session: "Session", group: str, user: str) -> dict[str, Any]:
    """The person's place as the last poll saw it, for the history."""
    rows = [one for one in snapshot.associations_in(session, group) if one.user == user]
    return {
        "partitions": [one.partition or "" for one in rows],
        "is_coordinator": any(one.is_coordinator for one in rows),
        "is_default": any(one.is_default_account for one in rows),
    }
