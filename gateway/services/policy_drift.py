"""Drift: what Slurm has and no version says. It is shown, adopted or set back, never overwritten.

The first sight of an object is its version 1, without a word; a QoS that appears later, when
versions of others are there, was made behind the portal's back. A snapshot whose read began
before a version was written says nothing of that object.
"""

from dataclasses import dataclass
from datetime import datetime
from enum import StrEnum
from typing import TYPE_CHECKING

from gateway.core.access import Viewer
from gateway.core.notices import Kind
from gateway.core.policy_change import Item, Of, Source, object_name
from gateway.core.qos import Change, Policy, changes
from gateway.errors import Refused
from gateway.services import policy_changes
from gateway.services.policy_retire import retire
from gateway.services.poll import POLICY
from gateway.store import notices, policy, polls, snapshot
from gateway.store.queries import policy_changes as rows
from gateway.store.queries.policy_changes import VersionRow
from gateway.store.uow import Begin

if TYPE_CHECKING:
    from sqlalchemy.orm import Session

_KEY = "policy_drift:"


class How(StrEnum):
    CHANGED = "changed"
    VANISHED = "vanished"
    APPEARED = "appeared"


@dataclass(frozen=True, slots=True)
class Drift:
    """`ours` is the newest version, `theirs` what Slurm has; one of both may be None.
    `since` None: seen, and not told yet."""

    of: Of
    name: str
    how: How
    version: int | None
    ours: Policy | None
    theirs: Policy | None
    since: datetime | None

    @property
    def object(self) -> str:
        return object_name(self.of, self.name)

    @property
    def changes(self) -> tuple[Change, ...]:
        """From ours to theirs, where both are there."""
        return changes(self.ours, self.theirs) if self.ours and self.theirs else ()


def find(session: "Session") -> tuple[Drift, ...]:
    """By kind and name."""
    return _look(session).drifts


def look(*, begin: Begin, read: Begin, now: datetime) -> int:
    """The worker's, after each poll of policy: first sights become versions, drift is told until
    it is over. How much drift there is."""
    with read() as session:
        seen = _look(session)
        told = notices.open_keys(session, (Kind.POLICY_DRIFT,))
        news = {_key(one) for one in seen.drifts} != set(told) - seen.unsure
        if not seen.first and not news:
            return len(seen.drifts)
    with begin() as session:
        _keep(session, seen := _look(session), now=now)
    return len(seen.drifts)


def adopt(of: Of, name: str, *, viewer: Viewer | None, begin: Begin, now: datetime) -> int:
    """What Slurm has becomes the newest version, whose number is returned.
    Refused policy_no_drift."""
    with begin() as session:
        drift = _of(session, of, name)
        notices.over(session, [_key(drift)], now=now)
        return policy.add_version(
            session,
            of,
            name,
            drift.theirs,
            before=drift.ours,
            source=Source.ADOPTED,
            at=now,
            person_id=viewer.person_id if viewer else None,
        )


def restore(
    of: Of,
    name: str,
    *,
    viewer: Viewer | None,
    reason: str,
    second_approval: bool,
    key: str,
    begin: Begin,
    now: datetime,
    replacement: str | None = None,
) -> int:
    """A change that sets Slurm back to the newest version: its id, to be applied like others.

    A QoS that appeared retires (`replacement`: see policy_retire). Refused policy_no_drift, and
    policy_cannot_restore for an account that is gone; others as `propose` and `retire`.
    """
    with begin() as session:
        drift = _of(session, of, name)
    if drift.how is How.APPEARED:
        items = retire(name, replacement=replacement, begin=begin)
    elif drift.ours is None or (drift.theirs is None and of is Of.GROUP):
        raise Refused("policy_cannot_restore", object=drift.object)
    else:
        items = (Item(drift.theirs, drift.ours),)
    return policy_changes.propose(
        items,
        viewer=viewer,
        reason=reason,
        source=Source.RESTORED,
        second_approval=second_approval,
        key=key,
        begin=begin,
        now=now,
    )


@dataclass(frozen=True, slots=True)
class _Seen:
    """`unsure`: keys of objects of which the snapshot says nothing."""

    drifts: tuple[Drift, ...]
    first: tuple[Policy, ...]
    unsure: frozenset[str]
    polled_at: datetime | None


def _look(session: "Session") -> _Seen:
    polled_at = polls.get(session, POLICY).succeeded_at
    if polled_at is None:
        return _Seen((), (), frozenset(), None)
    newest = rows.newest(session)
    since = notices.open_keys(session, (Kind.POLICY_DRIFT,))
    unsure = rows.in_flight(session) | {
        which for which, version in newest.items() if version.at >= polled_at
    }
    there: dict[tuple[Of, str], Policy] = {
        **{(Of.QOS, one.name): one for one in snapshot.qos(session)},
        **{(Of.GROUP, one.policy.name): one.policy for one in snapshot.accounts(session)},
    }
    known = {of for of, _ in newest}
    drifts, first = list[Drift](), list[Policy]()
    for which in sorted((newest.keys() | there.keys()) - unsure):
        ours, theirs = newest.get(which), there.get(which)
        if ours is None and theirs is not None and (which[0] is Of.GROUP or Of.QOS not in known):
            first.append(theirs)
        elif (ours.policy if ours else None) != theirs:
            key = _KEY + object_name(*which)
            drifts.append(_drift(which, ours, theirs, since.get(key)))
    keys = frozenset(_KEY + object_name(*which) for which in unsure)
    return _Seen(tuple(drifts), tuple(first), keys, polled_at)


def _drift(
    which: tuple[Of, str], ours: VersionRow | None, theirs: Policy | None, since: datetime | None
) -> Drift:
    was = ours.policy if ours else None
    how = How.VANISHED if theirs is None else How.APPEARED if was is None else How.CHANGED
    return Drift(*which, how, ours.number if ours else None, was, theirs, since)


def _keep(session: "Session", seen: _Seen, *, now: datetime) -> None:
    for found in seen.first:
        # As of the read: what is written to Slurm later is later.
        at = seen.polled_at or now
        one = Item(None, found)
        policy.add_version(
            session, one.of, one.name, found, before=None, source=Source.FOUND, at=at
        )
    for drift in seen.drifts:
        fields = [change.field.key for change in drift.changes]
        facts = {"object": drift.object, "how": drift.how.value, "fields": ", ".join(fields)}
        notices.tell(session, _key(drift), kind=Kind.POLICY_DRIFT, facts=facts, now=now)
    told = set(notices.open_keys(session, (Kind.POLICY_DRIFT,)))
    notices.over(session, told - {_key(one) for one in seen.drifts} - seen.unsure, now=now)


def _of(session: "Session", of: Of, name: str) -> Drift:
    for drift in find(session):
        if (drift.of, drift.name) == (of, name):
            return drift
    raise Refused("policy_no_drift", object=object_name(of, name))


def _key(drift: Drift) -> str:
    return _KEY + drift.object
