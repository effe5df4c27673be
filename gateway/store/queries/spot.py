"""What the runs of QoS that may be preempted say of it, summed up by the database; and the record
that the worker made of it last.

Only runs that began after `since` count: those that began earlier are known only because they lived
so long, and would make preemptions look rare.
"""

from collections.abc import Collection, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from sqlalchemy import (
    BigInteger,
    Subquery,
    case,
    cast,
    extract,
    func,
    literal_column,
    or_,
    select,
)
from sqlalchemy.orm import Session

from gateway.core.spot_record import HOURS, Cell, Edge, Length, Record, Sums
from gateway.core.tres import parse_tres, single_gpu_type
from gateway.store.models import Job, Run, table_of
from gateway.store.spot_models import SpotRecord

_R, _J, _RECORD = table_of(Run).c, table_of(Job).c, table_of(SpotRecord)
_HOUR, _MINUTE = 3600, 60
_PREEMPTED = "PREEMPTED"
UNKNOWN_TYPE = "gpu"  # accounting names no type: its cards are still cards

Key = tuple[str, str]  # QoS, GPU type


@dataclass(frozen=True, slots=True)
class Kept:
    """The record as the worker made it."""

    made_at: datetime
    records: tuple[Record, ...]


def preempted_qos(session: Session, *, since: datetime) -> frozenset[str]:
    """The QoS of runs that were preempted, for a site whose Slurm was never asked."""
    query = (
        select(_R.qos)
        .where(_R.end_time >= since, _R.state == _PREEMPTED, _R.qos.is_not(None))
        .distinct()
    )
    return frozenset(session.execute(query).scalars())


def sums(session: Session, qos: Collection[str], *, since: datetime, shift: int) -> dict[Key, Sums]:
    """By QoS and GPU type. `shift`: see core.spot_record.Sums."""
    found: dict[Key, Sums] = {}
    if not qos:
        return found
    runs = _runs(qos, since, shift)
    for key, row in _rows(session, _edges(runs, runs.c.began)):
        _sums(found, key).began.append(Edge(*row[:5]))
    for key, row in _rows(session, _edges(runs, runs.c.ended)):
        _sums(found, key).ended.append(Edge(*row))
    for key, (minutes, preempted, others) in _rows(session, _lengths(runs)):
        lengths = _sums(found, key).lengths
        before = lengths.get(minutes, (0, 0))
        lengths[minutes] = before[0] + preempted, before[1] + others
    for key, (person, first, hours) in _rows(session, _people(runs)):
        people = _sums(found, key).people
        own = {(first + n) % HOURS for n in range(hours + 1)}
        people[person] = people.get(person, frozenset()) | own
    for key, (requeues, seconds) in _rows(session, _requeues(runs)):
        _sums(found, key).requeues += requeues
        _sums(found, key).requeue_seconds += seconds
    return found


def kept_of(session: Session, qos: str, gpu_type: str) -> Record | None:
    """The record of one QoS and type, where the worker has made it."""
    found = session.scalar(
        select(_RECORD.c.facts).where(_RECORD.c.qos == qos, _RECORD.c.gpu_type == gpu_type)
    )
    return _parsed(found) if found else None


def kept(session: Session) -> Kept | None:
    """None: the worker has not made one yet."""
    rows = session.execute(
        select(_RECORD.c.facts, _RECORD.c.made_at).order_by(_RECORD.c.qos, _RECORD.c.gpu_type)
    ).all()
    if not rows:
        return None
    return Kept(rows[0].made_at, tuple(_parsed(row.facts) for row in rows))


def _sums(found: dict[Key, Sums], key: Key) -> Sums:
    return found.setdefault(key, Sums())


def _runs(qos: Collection[str], since: datetime, shift: int) -> Subquery:
    """One row a run on GPUs, with its moments in seconds. What runs still counts for as long as
    accounting has seen it."""
    began = cast(extract("epoch", _R.start_time), BigInteger) + shift
    kind = func.coalesce(_J.gpu_type, "")
    return (
        select(
            _R.qos.label("qos"),
            kind.label("kind"),
            case((kind == "", _R.alloc_tres), else_="").label("tres"),
            began.label("began"),
            (began + _R.elapsed_seconds).label("ended"),
            _R.elapsed_seconds.label("seconds"),
            _R.gpus.label("gpus"),
            _R.user.label("person"),
            case((_R.state == _PREEMPTED, 1), else_=0).label("event"),
            case((_R.restarts > 0, _R.start_time)).label("again"),
            _R.eligible_time.label("eligible"),
        )
        .join_from(table_of(Run), table_of(Job), _J.id == _R.job_id)
        .where(
            _R.qos.in_(sorted(name.lower() for name in qos)),  # as Slurm stores them
            or_(_R.end_time >= since, _R.end_time.is_(None)),
            _R.start_time >= since,
            _R.gpus > 0,
            _R.elapsed_seconds > 0,
        )
        .subquery("spot")
    )


def _edges(runs: Subquery, at: Any) -> Any:
    bucket, offset = at // _HOUR, at % _HOUR
    return _grouped(
        runs,
        (bucket,),
        func.count(),
        func.sum(offset),
        func.sum(runs.c.gpus),
        func.sum(runs.c.gpus * offset),
        func.sum(runs.c.event),
    )


def _lengths(runs: Subquery) -> Any:
    minutes = (runs.c.seconds + (_MINUTE - 1)) // _MINUTE
    return _grouped(runs, (minutes,), func.sum(runs.c.event), func.sum(1 - runs.c.event))


def _people(runs: Subquery) -> Any:
    """Hours of the day that somebody's runs touched, as a first one and how many follow."""
    first = runs.c.began // _HOUR
    follow = (runs.c.ended - 1) // _HOUR - first
    most = case((follow < HOURS - 1, follow), else_=HOURS - 1)
    return _grouped(runs, (runs.c.person, first % HOURS, most))


def _requeues(runs: Subquery) -> Any:
    again, eligible = (
        cast(extract("epoch", column), BigInteger) for column in (runs.c.again, runs.c.eligible)
    )
    waited = case((again >= eligible, again - eligible))
    return _grouped(runs, (), func.count(waited), func.coalesce(func.sum(waited), 0))


def _grouped(runs: Subquery, by: Sequence[Any], *sums: Any) -> Any:
    """By QoS, type and `by`, named by their place: PostgreSQL does not see that two equal
    expressions with bound numbers are one."""
    keys = [runs.c.qos, runs.c.kind, runs.c.tres, *by]
    places: list[Any] = [literal_column(str(n)) for n in range(1, len(keys) + 1)]
    wholes = [cast(one, BigInteger) if one is not runs.c.person else one for one in by]
    columns = [*keys[:3], *wholes, *(cast(one, BigInteger) for one in sums)]
    return select(*columns).group_by(*places)


def _rows(session: Session, query: Any) -> list[tuple[Key, tuple[Any, ...]]]:
    return [
        ((qos, kind or _kind_of(tres)), tuple(rest))
        for qos, kind, tres, *rest in session.execute(query)
    ]


def _kind_of(tres: str) -> str:
    try:
        return single_gpu_type(parse_tres(tres)) or UNKNOWN_TYPE
    except ValueError:
        return UNKNOWN_TYPE


def _parsed(facts: dict[str, Any]) -> Record:
    """As `store.spot.dump` wrote it."""
    return Record(
        qos=facts["qos"],
        gpu_type=facts["gpu_type"],
        since=datetime.fromisoformat(facts["since"]),
        until=datetime.fromisoformat(facts["until"]),
        runs=facts["runs"],
        whole=Cell(*facts["whole"]),
        hours=tuple(Cell(*cell) for cell in facts["hours"]),
        lengths=tuple(Length(*row) for row in facts["lengths"]),
        requeues=facts["requeues"],
        requeue_seconds=facts["requeue_seconds"],
    )
