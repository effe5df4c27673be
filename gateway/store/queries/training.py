"""What training runs told, for pages. Seconds are those since 1970, UTC."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from decimal import Decimal
from typing import Any

from sqlalchemy import Table, func, select
from sqlalchemy.orm import Session

from gateway.core.training.lines import Event
from gateway.core.training.sums import IDLE_PERCENT, CardMinute, Point, load
from gateway.store import money_models as mm
from gateway.store import training_models as tm
from gateway.store.models import Job, Person, Run, Submission, table_of
from gateway.store.queries.jobs import JobRow
from gateway.store.upsert import chunks

MOST_JOBS = 20  # of one run: the newest
MOST_EVENTS = 5000
MOST_IDLE = 20_000

_FOLLOW, _EVENT = table_of(tm.TrainingFollow), table_of(tm.TrainingEvent)
_POINT, _MINUTE = table_of(tm.TrainingPoint), table_of(tm.TrainingMinute)
# How the places of a point become one.
_HOW: Mapping[str, Any] = {
    **dict.fromkeys(("first_at", "first_step"), func.min),
    **dict.fromkeys(("last_at", "last_step", "peak_bytes"), func.max),
}


@dataclass(frozen=True, slots=True)
class LinkedJob:
    """A job of the same run: of the same person, run name and working folder."""

    row: JobRow
    last_submit_time: datetime


@dataclass(frozen=True, slots=True)
class Brief:
    """What the head of a job's page shows. `saves`: seconds and steps of the last checkpoints;
    `stall`: the last word of the stall guard, if no step followed it."""

    heard_at: datetime | None
    saves: tuple[tuple[float, int], ...]
    stall: Event | None


@dataclass(frozen=True, slots=True)
class Use:
    """The cards of all nodes in the seconds from `at` on: percent, and bytes of one card."""

    at: int
    util: float | None
    util_low: float | None
    util_high: float | None
    mem: int | None


@dataclass(frozen=True, slots=True)
class NodeNow:
    """A node at its last look."""

    node: str
    last_at: float
    procs: int | None
    expected: int | None
    cards: tuple[CardMinute, ...]


@dataclass(frozen=True, slots=True)
class RuleRow:
    """The group's rule; `at` None: nobody has set one."""

    on_stall: str
    at: datetime | None
    by: str | None


def is_followed(session: Session, job_id: int) -> bool:
    """Whether its run folder is read, or was."""
    query = select(_FOLLOW.c.job_id).where(_FOLLOW.c.job_id == job_id)
    return session.scalar(query) is not None


def brief(session: Session, job_id: int, *, saves: int = 200) -> Brief | None:
    """None for a job that has told nothing."""
    heard = session.scalar(select(_FOLLOW.c.heard_at).where(_FOLLOW.c.job_id == job_id))
    if heard is None:
        return None
    mine = _EVENT.c.job_id == job_id
    saved = select(_EVENT.c.at, _EVENT.c.step).where(
        mine, _EVENT.c.kind == "saved", _EVENT.c.step.is_not(None)
    )
    rows = session.execute(saved.order_by(_EVENT.c.at.desc()).limit(saves)).all()
    return Brief(heard, tuple((row[0], row[1]) for row in reversed(rows)), _stall(session, job_id))


def linked(session: Session, job_id: int) -> tuple[str | None, tuple[LinkedJob, ...]]:
    """The run's name that was typed, and its jobs, the oldest first. A job without a name is a
    run of its own."""
    columns = [*(getattr(Job, name) for name in JobRow.__dataclass_fields__), Job.last_submit_time]
    own = session.execute(
        select(
            Submission.run, Submission.person_id, Job.working_directory, Job.array_task, Job.user
        )
        .join(Job, Job.token == Submission.token)
        .join(Person, (Person.id == Submission.person_id) & (Person.unix_user == Job.user))
        .where(Job.id == job_id)
    ).one_or_none()
    query = select(*columns).where(Job.id == job_id)
    if own is not None and own[0]:
        task = Job.array_task.is_(None) if own[3] is None else Job.array_task == own[3]
        query = (
            select(*columns)
            .join(Submission, Submission.token == Job.token)
            .where(Submission.person_id == own[1], Submission.run == own[0])
            .where(Job.working_directory == own[2], Job.user == own[4], task)
        )
    rows = session.execute(query.order_by(Job.submit_time.desc(), Job.id.desc()).limit(MOST_JOBS))
    found = [LinkedJob(JobRow(*tuple(row)[:-1]), row[-1]) for row in rows]
    return own[0] if own else None, tuple(reversed(found))


def events(session: Session, job_ids: Sequence[int]) -> dict[int, list[Event]]:
    """Of each job the newest, in the order of time."""
    found: dict[int, list[Event]] = {}
    columns = [_EVENT.c[name] for name in Event.__slots__]
    for job_id in job_ids:
        query = select(*columns).where(_EVENT.c.job_id == job_id)
        rows = session.execute(
            query.order_by(_EVENT.c.at.desc(), _EVENT.c.id.desc()).limit(MOST_EVENTS)
        )
        found[job_id] = [Event(*tuple(row)) for row in rows][::-1]
    return found


def points(session: Session, job_id: int, *, places: int) -> list[Point]:
    """Its metrics, in about so many sums over its whole time, in the order of time."""
    wide = _width(session, _POINT, job_id, places)
    at = (_POINT.c.at // wide * wide).label("place")
    sums = (_HOW.get(name, func.sum)(_POINT.c[name]) for name in Point.__slots__[2:])
    query = (
        select(_POINT.c.restart, at, *sums)
        .where(_POINT.c.job_id == job_id)
        .group_by(_POINT.c.restart, at)
        .order_by(at.desc(), _POINT.c.restart.desc())
        .limit(places * 3)  # each restart may add a place or two
    )
    rows = session.execute(query).all()
    return [Point(*_numbers(row)) for row in reversed(rows)]


def use_of_cards(session: Session, job_id: int, *, places: int) -> list[Use]:
    wide = max(60, _width(session, _MINUTE, job_id, places))
    at = (_MINUTE.c.at // wide * wide).label("place")
    query = (
        select(
            at,
            func.avg(_MINUTE.c.util),
            func.min(_MINUTE.c.util_low),
            func.max(_MINUTE.c.util_high),
            func.max(_MINUTE.c.mem),
        )
        .where(_MINUTE.c.job_id == job_id)
        .group_by(at)
        .order_by(at)
    )
    return [Use(*tuple(row)) for row in session.execute(query)]


def idle_minutes(session: Session, job_id: int) -> list[tuple[float, float]]:
    """The minutes in which no card of any node that told of itself did anything."""
    query = (
        select(_MINUTE.c.at)
        .where(_MINUTE.c.job_id == job_id)
        .group_by(_MINUTE.c.at)
        .having(func.max(_MINUTE.c.util_high) < IDLE_PERCENT)
        .order_by(_MINUTE.c.at)
        .limit(MOST_IDLE)
    )
    return [(float(at), float(at + 60)) for at in session.scalars(query)]


def nodes_now(session: Session, job_id: int, *, since: float) -> list[NodeNow]:
    """Each node's last minute that began after `since`."""
    query = (
        select(_MINUTE.c.node, *(_MINUTE.c[name] for name in NodeNow.__slots__[1:]))
        .where(_MINUTE.c.job_id == job_id, _MINUTE.c.at > since)
        .order_by(_MINUTE.c.at)
    )
    last: dict[str, NodeNow] = {}
    for node, at, procs, expected, cards in session.execute(query):
        last[node] = NodeNow(node, at, procs, expected, load(cards))
    return [last[node] for node in sorted(last)]


def charged(session: Session, job_ids: Iterable[int]) -> dict[int, int]:
    """Card-seconds of the runs that were charged, by the run's id."""
    found: dict[int, int] = {}
    for part in chunks(sorted(set(job_ids))):
        query = (
            select(mm.Charge.run_id, mm.Charge.card_seconds)
            .join(Run, Run.id == mm.Charge.run_id)
            .where(Run.job_id.in_(part), mm.Charge.state == "posted")
        )
        found |= {row[0]: row[1] for row in session.execute(query)}
    return found


def rule(session: Session, group: str) -> RuleRow:
    query = (
        select(tm.GroupRule.on_stall, tm.GroupRule.at, Person.display_name)
        .outerjoin(Person, Person.id == tm.GroupRule.person_id)
        .where(tm.GroupRule.group == group)
    )
    found = session.execute(query).one_or_none()
    return RuleRow(found[0], found[1], found[2]) if found else RuleRow("nothing", None, None)


def _stall(session: Session, job_id: int) -> Event | None:
    columns = [_EVENT.c[name] for name in Event.__slots__]
    query = select(*columns).where(_EVENT.c.job_id == job_id, _EVENT.c.kind == "stall")
    found = session.execute(query.order_by(_EVENT.c.at.desc()).limit(1)).one_or_none()
    if found is None:
        return None
    stall = Event(*tuple(found))
    step = select(func.max(_POINT.c.last_at)).where(_POINT.c.job_id == job_id)
    return stall if (session.scalar(step) or 0.0) <= stall.at else None


def _width(session: Session, table: Table, job_id: int, places: int) -> int:
    """Seconds of a place, so that there are at most about so many."""
    ends = select(func.min(table.c.at), func.max(table.c.at)).where(table.c.job_id == job_id)
    first, last = session.execute(ends).one()
    return max(1, -(-((last or 0) - (first or 0)) // places))


def _numbers(row: Iterable[Any]) -> list[Any]:
    """PostgreSQL sums whole numbers as decimals."""
    return [int(one) if isinstance(one, Decimal) else one for one in row]
