"""What the runs of QoS that may be preempted say of it, summed up; and the record that the worker
made of it last.

Only runs that began after `since` count: those that began earlier are known only because they lived
so long, and would make preemptions look rare.
"""

from collections.abc import Collection
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from sqlalchemy import (
    BigInteger,
    Select,
    case,
    cast,
    extract,
    func,
    or_,
    select,
)
from sqlalchemy.orm import Session

from gateway.core.spot_record import HOURS, Cell, Edge, Length, Record, Sums, together
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
    """By QoS and GPU type, in one walk over the runs: to have the database group them five ways
    takes five times as long. `shift`: see core.spot_record.Sums."""
    if not qos:
        return {}
    found: dict[tuple[str, str, str], _Adding] = {}
    rows = session.execute(_runs(qos, since, shift).execution_options(yield_per=10_000))
    for row in rows:
        key = row[:3]
        adding = found.get(key)
        if adding is None:
            adding = found[key] = _Adding()
        adding.add(row[3:])
    parts: dict[Key, list[Sums]] = {}
    for (name, kind, tres), adding in found.items():
        parts.setdefault((name, kind or _kind_of(tres)), []).append(adding.sums())
    return {key: together(each) for key, each in parts.items()}


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


class _Adding:
    """The sums of one QoS and type while they are made."""

    def __init__(self) -> None:
        self._began: dict[int, list[int]] = {}
        self._ended: dict[int, list[int]] = {}
        self._lengths: dict[int, list[int]] = {}
        self._touched: set[tuple[str, int, int]] = set()
        self._requeues = self._waited = 0

    def add(self, run: tuple[int, int, int, str, int, int | None]) -> None:
        """A row as `_runs` has it, after the key."""
        began, seconds, gpus, person, event, waited = run
        ended = began + seconds
        for edges, at in ((self._began, began), (self._ended, ended)):
            bucket, offset = divmod(at, _HOUR)
            edge = edges.get(bucket)
            if edge is None:
                edge = edges[bucket] = [0, 0, 0, 0, 0]
            edge[0] += 1
            edge[1] += offset
            edge[2] += gpus
            edge[3] += gpus * offset
            edge[4] += event
        minutes = -(-seconds // _MINUTE)
        length = self._lengths.get(minutes)
        if length is None:
            length = self._lengths[minutes] = [0, 0]
        length[1 - event] += 1
        first = began // _HOUR
        self._touched.add((person, first % HOURS, min((ended - 1) // _HOUR - first, HOURS - 1)))
        if waited is not None and waited >= 0:
            self._requeues += 1
            self._waited += waited

    def sums(self) -> Sums:
        people: dict[str, set[int]] = {}
        for person, first, follow in self._touched:
            hours = ((first + n) % HOURS for n in range(follow + 1))
            people.setdefault(person, set()).update(hours)
        return Sums(
            began=[Edge(bucket, *edge[:4]) for bucket, edge in self._began.items()],
            ended=[Edge(bucket, *edge) for bucket, edge in self._ended.items()],
            lengths={minutes: (one[0], one[1]) for minutes, one in self._lengths.items()},
            people={person: frozenset(hours) for person, hours in people.items()},
            requeues=self._requeues,
            requeue_seconds=self._waited,
        )


def _runs(qos: Collection[str], since: datetime, shift: int) -> Select[Any]:
    """One row a run on GPUs, with its moments in seconds. What runs still counts for as long as
    accounting has seen it."""
    began = cast(extract("epoch", _R.start_time), BigInteger)
    eligible = cast(extract("epoch", _R.eligible_time), BigInteger)
    kind = func.coalesce(_J.gpu_type, "")
    return (
        select(
            _R.qos,
            kind,
            case((kind == "", _R.alloc_tres), else_=""),
            began + shift,
            _R.elapsed_seconds,
            _R.gpus,
            _R.user,
            case((_R.state == _PREEMPTED, 1), else_=0),
            case((_R.restarts > 0, began - eligible)),
        )
        .join_from(table_of(Run), table_of(Job), _J.id == _R.job_id)
        .where(
            _R.qos.in_(sorted(name.lower() for name in qos)),  # as Slurm stores them
            or_(_R.end_time >= since, _R.end_time.is_(None)),
            _R.start_time >= since,
            _R.gpus > 0,
            _R.elapsed_seconds > 0,
        )
    )


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
