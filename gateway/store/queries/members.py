"""The people of a group as the last poll of Slurm saw them, and what has been changed since."""

from collections.abc import Iterable
from dataclasses import dataclass, replace
from datetime import UTC, datetime

from sqlalchemy import select
from sqlalchemy.orm import Session

from gateway.core.states import parse_state
from gateway.store import memberships, polls
from gateway.store.memberships import ChangeRow, Wanted
from gateway.store.models import AssociationNow, Person

_NEVER = datetime(1970, 1, 1, tzinfo=UTC)


@dataclass(frozen=True, slots=True)
class MemberLine:
    """`default` is the group that this person's jobs go to when they name none. `partitions` are
    empty where one association covers all. `wish` is what is wanted and not so yet."""

    user: str
    display_name: str | None  # None: no account in the portal
    leads: bool = False
    default: str | None = None
    partitions: tuple[str, ...] = ()
    waiting: int = 0
    running: int = 0
    wish: ChangeRow | None = None

    @property
    def leaving(self) -> bool:
        return self.wish is not None and self.wish.wanted is Wanted.ABSENT


def members(session: Session, group: str) -> list[MemberLine]:
    """Leaders first, then by name; those who are being added as well."""
    found = _seen(session, group)
    polled = polls.get(session, "policy").succeeded_at or _NEVER
    for change in memberships.done_since(session, group, polled):
        _overlay(found, change)
    for wish in memberships.pending(session, group):
        if wish.user in found or wish.wanted is Wanted.MEMBER:
            found[wish.user] = replace(found.get(wish.user) or _new(wish.user), wish=wish)
    names, counts = _names(session, found), memberships.open_counts(session, group)
    lines = []
    for user, line in found.items():
        waiting, running = _jobs(counts.get(user, {}))
        name = names.get(user)
        lines.append(replace(line, display_name=name, waiting=waiting, running=running))
    return sorted(lines, key=lambda line: (not line.leads, line.user))


def member(session: Session, group: str, user: str) -> MemberLine | None:
    return next((line for line in members(session, group) if line.user == user), None)


def _seen(session: Session, group: str) -> dict[str, MemberLine]:
    found: dict[str, MemberLine] = {}
    inside = select(AssociationNow.user).where(AssociationNow.account == group)
    query = select(AssociationNow.facts).where(AssociationNow.user.in_(inside))
    for facts in session.scalars(query.order_by(AssociationNow.id)):
        user = facts["user"]
        line = found.get(user) or _new(user)
        if facts["is_default_account"]:
            line = replace(line, default=facts["account"])
        if facts["account"] == group:
            named = (facts["partition"],) if facts["partition"] else ()
            partitions = (*line.partitions, *named)
            leads = line.leads or facts["is_coordinator"]
            line = replace(line, leads=leads, partitions=partitions)
        found[user] = line
    return found


def _overlay(found: dict[str, MemberLine], change: ChangeRow) -> None:
    """The page after an act shows what Slurm has said, before the poll does."""
    line = found.get(change.user) or _new(change.user)
    match change.wanted:
        case Wanted.MEMBER:
            found[change.user] = line
        case Wanted.ABSENT:
            found.pop(change.user, None)
        case Wanted.LEADER | Wanted.NOT_LEADER:
            found[change.user] = replace(line, leads=change.wanted is Wanted.LEADER)
        case Wanted.DEFAULT if change.user in found:
            found[change.user] = replace(line, default=change.group)
        case Wanted.DEFAULT:
            pass  # of somebody in other groups


def _new(user: str) -> MemberLine:
    return MemberLine(user, None)


def _names(session: Session, users: Iterable[str]) -> dict[str, str]:
    query = select(Person.unix_user, Person.display_name).where(Person.unix_user.in_(list(users)))
    return {row[0]: row[1] for row in session.execute(query)}


def _jobs(states: dict[str, int]) -> tuple[int, int]:
    """How many wait, and how many run."""
    waiting = sum(n for state, n in states.items() if parse_state(state)[0].is_pending)
    return waiting, sum(states.values()) - waiting
