"""What training runs told, as it is read from their folders: who is due, how far each file was
read, and what was in it."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass
from datetime import datetime
from typing import Any

from sqlalchemy import ColumnElement, and_, bindparam, delete, exists, insert, select, update
from sqlalchemy.orm import Session

from gateway.core.results import Reading
from gateway.core.training.lines import Event
from gateway.core.training.sums import CardMinute, Minute, Point, add, dump, join, load
from gateway.store import results
from gateway.store import training_models as tm
from gateway.store.models import Job, Person, Submission, table_of
from gateway.store.upsert import chunks, insert_ignoring

_FOLLOW, _CURSOR = table_of(tm.TrainingFollow), table_of(tm.TrainingCursor)
_EVENT, _POINT = table_of(tm.TrainingEvent), table_of(tm.TrainingPoint)
_MINUTE = table_of(tm.TrainingMinute)

# The saves of a long run are many, and only the newest matter; a hostile file has more of the rest.
MANY = ("save_begin", "saved", "save_failed", "pruned", "uploaded", "upload_failed")
MOST_MANY, MOST_OTHERS = 4000, 1000


@dataclass(frozen=True, slots=True)
class Followed:
    """A job whose folder is due to be read. `run` is the name that was typed for it."""

    job_id: int
    user: str
    slurm_id: int
    array_job_id: int | None
    array_task: int | None
    name: str
    working_directory: str
    node_list: str | None
    restarts: int
    submit_time: datetime
    start_time: datetime | None
    output: str | None
    active: bool
    end_time: datetime | None
    run: str | None
    quiet: int
    turn: int
    metrics_from: float | None


@dataclass(frozen=True, slots=True)
class Place:
    """Whose a job is, and what says where its run folder lies."""

    user: str
    group: str
    slurm_id: int
    array_job_id: int | None
    array_task: int | None
    name: str
    working_directory: str
    run: str | None


@dataclass(frozen=True, slots=True)
class Cursor:
    """How far a file was read: see training_models."""

    offset: int = 0
    last_at: float | None = None
    floor_at: float | None = None


@dataclass(frozen=True, slots=True)
class Told:
    """What one turn found in a job's files. `moved`: file, where it was, where it is now;
    `skipped` bytes of its output were given up."""

    job_id: int
    moved: Sequence[tuple[str, Cursor, Cursor]]
    events: Sequence[Event]
    points: Mapping[tuple[int, int], Point]
    minutes: Mapping[str, Mapping[int, Minute]]
    metrics_from: float | None
    readings: Sequence[Reading]
    skipped: int
    at: datetime


@dataclass(frozen=True, slots=True)
class Again:
    """When a job is looked at next; `due_at` None: never."""

    job_id: int
    due_at: datetime | None
    quiet: int
    turn: int
    heard: bool


_ASKED = and_(Submission.token == Job.token, Job.token.is_not(None))
# Anyone may write our token into a comment: it counts for the one who asked alone.
_OWNER = and_(Person.id == Submission.person_id, Person.unix_user == Job.user)
_DUE = (
    select(
        Job.id,
        Job.user,
        Job.slurm_id,
        Job.array_job_id,
        Job.array_task,
        Job.name,
        Job.working_directory,
        Job.node_list,
        Job.restarts,
        Job.submit_time,
        Job.start_time,
        Job.output,
        Job.active,
        Job.end_time,
        Submission.run,
        tm.TrainingFollow.quiet,
        tm.TrainingFollow.turn,
        tm.TrainingFollow.metrics_from,
    )
    .select_from(tm.TrainingFollow)
    .join(Job, Job.id == tm.TrainingFollow.job_id)
    .outerjoin(Submission, _ASKED)
    .where(tm.TrainingFollow.due_at <= bindparam("now", type_=_FOLLOW.c.due_at.type))
    .order_by(tm.TrainingFollow.due_at)
    .limit(bindparam("limit"))
)


def place(session: Session, job_id: int) -> Place | None:
    columns = [getattr(Job, name) for name in Place.__slots__ if name != "run"]
    query = select(*columns, Submission.run).outerjoin(Submission, _ASKED).where(Job.id == job_id)
    found = session.execute(query).one_or_none()
    return Place(*tuple(found)) if found else None


def unknown(session: Session, *, ended_since: datetime, limit: int) -> list[int]:
    """The portal's jobs that have started, and those that ended lately, and are not followed."""
    running = _unknown(Job.active.is_(True), limit)
    ended = _unknown(and_(Job.active.is_(False), Job.end_time >= ended_since), limit)
    return [*session.scalars(running), *session.scalars(ended)]


def take_up(session: Session, job_ids: Sequence[int], *, now: datetime) -> None:
    """From now on their folders are read."""
    rows = [{"job_id": job_id, "due_at": now, "quiet": 0, "turn": 0} for job_id in job_ids]
    if rows:
        session.connection().execute(insert_ignoring(session, _FOLLOW), rows)


def due(session: Session, *, now: datetime, limit: int) -> list[Followed]:
    """Those that wait longest first."""
    return [Followed(*tuple(row)) for row in session.execute(_DUE, {"now": now, "limit": limit})]


def cursors(session: Session, job_ids: Iterable[int]) -> dict[int, dict[str, Cursor]]:
    """By job and file; a file that was never read has none."""
    columns = (_CURSOR.c.job_id, _CURSOR.c.file, *(_CURSOR.c[n] for n in Cursor.__slots__))
    found: dict[int, dict[str, Cursor]] = {}
    for part in chunks(sorted(set(job_ids))):
        for job_id, file, *rest in session.execute(
            select(*columns).where(_CURSOR.c.job_id.in_(part))
        ):
            found.setdefault(job_id, {})[file] = Cursor(*rest)
    return found


def keep(session: Session, told: Told) -> bool:
    """Store what was read, and move the cursors with it. False, and nothing is stored, when a
    cursor is not where it was: somebody else has read the same."""
    before = cursors(session, [told.job_id]).get(told.job_id, {})
    if any(before.get(file, Cursor()) != was for file, was, _ in told.moved):
        return False
    for file, _, now in told.moved:
        _move(session, told.job_id, file, now, known=file in before)
    _add_events(session, told.job_id, told.events)
    _add_points(session, told.job_id, told.points)
    for node, minutes in told.minutes.items():
        _add_minutes(session, told.job_id, node, minutes)
    results.add(session, told.job_id, told.readings, skipped=told.skipped, now=told.at)
    if told.metrics_from is not None:
        first = _FOLLOW.c.metrics_from.is_(None)
        session.execute(
            update(_FOLLOW)
            .where(_FOLLOW.c.job_id == told.job_id, first)
            .values(metrics_from=told.metrics_from)
        )
    return True


def look_again(session: Session, rows: Iterable[Again], *, now: datetime) -> None:
    """Set when each is due next."""
    for heard in (True, False):
        values: dict[str, Any] = {name: bindparam(f"to_{name}") for name in _NEXT}
        if heard:
            values["heard_at"] = now
        statement = update(_FOLLOW).where(_FOLLOW.c.job_id == bindparam("of")).values(values)
        given = [
            {"of": one.job_id, **{f"to_{name}": getattr(one, name) for name in _NEXT}}
            for one in rows
            if one.heard is heard
        ]
        if given:
            session.connection().execute(statement, given)


_NEXT = ("due_at", "quiet", "turn")


def forget_minutes(session: Session, *, before: datetime, limit: int = 200) -> int:
    """Drop the telemetry of runs that were last heard of before then; their steps and events stay.
    Answers how many runs it were."""
    old = (
        select(_FOLLOW.c.job_id)
        .where(_FOLLOW.c.heard_at < before, _FOLLOW.c.due_at.is_(None))
        .where(exists().where(_MINUTE.c.job_id == _FOLLOW.c.job_id))
        .limit(limit)
    )
    ids = list(session.scalars(old))
    for part in chunks(ids):
        session.execute(delete(_MINUTE).where(_MINUTE.c.job_id.in_(part)))
    return len(ids)


def on_stall(session: Session, groups: Sequence[str]) -> dict[str, str]:
    """The rule of each: nothing, hold or requeue."""
    query = select(tm.GroupRule.group, tm.GroupRule.on_stall).where(tm.GroupRule.group.in_(groups))
    return dict.fromkeys(groups, "nothing") | {row[0]: row[1] for row in session.execute(query)}


def set_on_stall(
    session: Session, group: str, rule: str, *, now: datetime, person_id: int | None
) -> None:
    table = table_of(tm.GroupRule)
    session.execute(delete(table).where(table.c.group_name == group))
    row = {"group_name": group, "on_stall": rule, "at": now, "person_id": person_id}
    session.execute(insert(table), row)


def _unknown(which: ColumnElement[bool], limit: int) -> Any:
    return (
        select(Job.id)
        .join(Submission, _ASKED)
        .join(Person, _OWNER)
        .where(which, Job.token.is_not(None), Job.start_time.is_not(None))
        .where(~exists().where(_FOLLOW.c.job_id == Job.id))
        .limit(limit)
    )


def _move(session: Session, job_id: int, file: str, to: Cursor, *, known: bool) -> None:
    if known:
        where = and_(_CURSOR.c.job_id == job_id, _CURSOR.c.file == file)
        session.execute(update(_CURSOR).where(where).values(**asdict(to)))
    else:
        session.execute(insert(_CURSOR), {"job_id": job_id, "file": file, **asdict(to)})


def _add_events(session: Session, job_id: int, found: Sequence[Event]) -> None:
    if not found:
        return
    rows = [{"job_id": job_id, **asdict(one)} for one in found]
    session.connection().execute(insert(_EVENT), rows)
    for many, most in ((True, MOST_MANY), (False, MOST_OTHERS)):
        kinds = _EVENT.c.kind.in_(MANY) if many else _EVENT.c.kind.not_in(MANY)
        mine = and_(_EVENT.c.job_id == job_id, kinds)
        order = _EVENT.c.id.desc()
        last = session.scalar(select(_EVENT.c.id).where(mine).order_by(order).offset(most).limit(1))
        if last is not None:
            session.execute(delete(_EVENT).where(mine, _EVENT.c.id <= last))


def _add_points(session: Session, job_id: int, found: Mapping[tuple[int, int], Point]) -> None:
    """Each joined with what is there of it already."""
    names = Point.__slots__
    for part in chunks(sorted(found)):
        places = and_(_POINT.c.job_id == job_id, _POINT.c.at.in_({at for _, at in part}))
        known = session.execute(select(*(_POINT.c[name] for name in names)).where(places))
        merged = {key: found[key] for key in part}
        for row in known:
            point = Point(*row)
            key = point.restart, point.at
            if key in merged:
                merged[key] = add(point, merged[key])
                here = and_(_POINT.c.restart == point.restart, _POINT.c.at == point.at)
                session.execute(delete(_POINT).where(_POINT.c.job_id == job_id, here))
        rows = [{"job_id": job_id, **asdict(point)} for point in merged.values()]
        session.connection().execute(insert(_POINT), rows)


def _add_minutes(session: Session, job_id: int, node: str, found: Mapping[int, Minute]) -> None:
    mine = and_(_MINUTE.c.job_id == job_id, _MINUTE.c.node == node)
    for part in chunks(sorted(found)):
        here = and_(mine, _MINUTE.c.at.in_(part))
        merged = {at: found[at] for at in part}
        for row in session.execute(select(*MINUTE_COLUMNS).where(here)):
            minute = minute_of(row)
            merged[minute.at] = join(minute, merged[minute.at])
        session.execute(delete(_MINUTE).where(here))
        rows = [{"job_id": job_id, "node": node, **_minute_row(one)} for one in merged.values()]
        session.connection().execute(insert(_MINUTE), rows)


MINUTE_COLUMNS = tuple(_MINUTE.c[name] for name in ("at", "last_at", "procs", "expected", "cards"))


def minute_of(row: Any) -> Minute:
    """From MINUTE_COLUMNS."""
    cards: tuple[CardMinute, ...] = load(row[4])
    return Minute(row[0], row[1], row[2], row[3], cards)


def _minute_row(one: Minute) -> dict[str, Any]:
    used = one.utils
    return {
        "at": one.at,
        "last_at": one.last_at,
        "procs": one.procs,
        "expected": one.expected,
        "util": sum(used) / len(used) if used else None,
        "util_low": min(used, default=None),
        "util_high": max(used, default=None),
        "mem": max((card.mem_max for card in one.cards), default=None),
        "cards": dump(one.cards),
    }
