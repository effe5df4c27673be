"""People of groups: added, removed, made leaders, given another default.

Each act is stored as a wish before Slurm is asked (store.memberships), and its line in the history
is written with the answer: killed anywhere, the next turn of the worker carries it out. Who may is
for the caller to ask.

One who leaves with jobs that wait or run is closed at once: the portal's form and Slurm refuse new
jobs. Those that are there go on and are charged to the group; the association goes with the last.
"""

from dataclasses import replace
from datetime import datetime
from typing import TYPE_CHECKING, Any

from gateway.brokerclient.port import Broker
from gateway.core.states import parse_state
from gateway.errors import BrokerRefused, BrokerSilent, BrokerUnreachable, NotFound, Refused
from gateway.services.membership import GONE, Outcome, carry_out, close
from gateway.store import events, memberships, people, polls, snapshot
from gateway.store.memberships import ChangeRow, OpenJob, Wanted
from gateway.store.queries import group_credit
from gateway.store.uow import Begin

if TYPE_CHECKING:
    from sqlalchemy.orm import Session

HAS_JOBS = "member_has_jobs"  # why somebody who leaves has not gone yet
_BROKER_ERRORS = (BrokerRefused, BrokerUnreachable, BrokerSilent)


def add(
    group: str,
    name: str,
    *,
    begin: Begin,
    broker: Broker,
    now: datetime,
    person_id: int | None = None,
) -> Outcome:
    """By Unix account or by login. Undoes a removal that is pending. Refused at `who`:
    no_such_unix_user, member_ambiguous, member_letter_case."""
    with begin() as session:
        _require_group(session, group)
        user = _unix_user(session, name.strip())
        row = memberships.ask(session, group, user, Wanted.MEMBER, now=now, person_id=person_id)
    return carry_out(row, begin=begin, broker=broker, now=now)


def remove(
    group: str,
    user: str,
    *,
    cancel_waiting: bool,
    begin: Begin,
    broker: Broker,
    now: datetime,
    person_id: int | None = None,
) -> Outcome:
    """Closed at once, gone when the last job has ended. `cancel_waiting`: jobs that wait are
    cancelled, once no new ones can come. Refused: no_such_association."""
    with begin() as session:
        _require_member(session, group, user)
        row = memberships.ask(session, group, user, Wanted.ABSENT, now=now, person_id=person_id)
    ended = _cancel_waiting(row, begin=begin, broker=broker, now=now) if cancel_waiting else []
    found = carry_out(row, begin=begin, broker=broker, now=now)
    return replace(found, cancelled=ended.count(True), left=ended.count(False))


def set_leader(
    group: str,
    user: str,
    *,
    leads: bool,
    begin: Begin,
    broker: Broker,
    now: datetime,
    person_id: int | None = None,
) -> Outcome:
    """Make somebody a leader of the group, or one no more. Refused: no_such_association,
    group_leaving."""
    wanted = Wanted.LEADER if leads else Wanted.NOT_LEADER
    with begin() as session:
        _require_member(session, group, user)
        _require_staying(session, group, user)
        row = memberships.ask(session, group, user, wanted, now=now, person_id=person_id)
    return carry_out(row, begin=begin, broker=broker, now=now)


def set_default(
    group: str,
    user: str,
    *,
    begin: Begin,
    broker: Broker,
    now: datetime,
    person_id: int | None = None,
) -> Outcome:
    """The group that this person's jobs go to when they name none. Refused: not_a_member,
    group_leaving."""
    with begin() as session:
        _require_member(session, group, user)
        _require_staying(session, group, user)
        row = memberships.ask(session, group, user, Wanted.DEFAULT, now=now, person_id=person_id)
    return carry_out(row, begin=begin, broker=broker, now=now)


def carry_on(*, begin: Begin, read: Begin, broker: Broker, now: datetime) -> int:
    """The worker's turn: what is pending and can be so now; how many are done. One who leaves is
    asked about when the portal sees no job of theirs any more."""
    with read() as session:
        due = [row for row in memberships.pending(session) if not _has_jobs(session, row)]
    done = 0
    for row in due:
        try:
            outcome = carry_out(row, begin=begin, broker=broker, now=now)
        except Refused:
            continue  # told in the history
        if outcome.code in {BrokerUnreachable.code, BrokerSilent.code}:
            return done  # nobody is there: the others would only wait as long
        done += not outcome.pending
    return done


def waiting_jobs(session: "Session", group: str, user: str) -> list[OpenJob]:
    found = memberships.open_jobs(session, group, user)
    return [job for job in found if parse_state(job.state)[0].is_pending]


def _has_jobs(session: "Session", row: ChangeRow) -> bool:
    """One who is not closed yet comes first of all, whatever runs."""
    if row.wanted is not Wanted.ABSENT or row.closed_at is None:
        return False
    return bool(memberships.open_jobs(session, row.group, row.user))


def _cancel_waiting(row: ChangeRow, *, begin: Begin, broker: Broker, now: datetime) -> list[bool]:
    """Whether each was cancelled. None of it before Slurm has shut the group for this person:
    others would come in their place."""
    try:
        shut = close(row, begin=begin, broker=broker, now=now)
    except _BROKER_ERRORS:
        return []  # the removal itself tells why
    if shut is None or not shut.closed:
        return []
    with begin() as session:
        waiting = waiting_jobs(session, row.group, row.user)
    return [_cancel(job, row, begin=begin, broker=broker, now=now) for job in waiting]


def _cancel(job: OpenJob, row: ChangeRow, *, begin: Begin, broker: Broker, now: datetime) -> bool:
    outcome = "done"
    try:
        broker.cancel(job.slurm_id, user=row.user)
    except _BROKER_ERRORS as error:
        outcome = error.code
    told: dict[str, Any] = {"person_id": row.person_id, "detail": {"outcome": outcome}}
    with begin() as session:
        events.add(session, "cancel", at=now, job_id=job.id, **told)
        polls.want(session, "queue", now=now)
    return outcome == "done"


def _unix_user(session: "Session", name: str) -> str:
    """A login stands for its Unix account, unless another person has that name on the cluster."""
    by_login = people.by_login(session, name.lower())
    if by_login is None or by_login.unix_user == name:
        return name
    if people.has_unix_user(session, name):
        raise Refused("member_ambiguous", field="who", name=name)
    return by_login.unix_user


def _require_group(session: "Session", group: str) -> None:
    if not group_credit.known(session, group):
        raise NotFound(f"no group {group}")


def _require_member(session: "Session", group: str, user: str) -> None:
    """One who was added a moment ago counts, although no poll has seen it yet."""
    _require_group(session, group)
    seen = any(one.user == user for one in snapshot.associations_in(session, group))
    if not seen and not memberships.was_added(session, group, user):
        raise Refused(GONE)


def _require_staying(session: "Session", group: str, user: str) -> None:
    if group in memberships.leaving(session, user):
        raise Refused("group_leaving", group=group)
