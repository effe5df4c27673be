"""Jobs and runs: what the poll and accounting compare, and the rows they write."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from sqlalchemy import bindparam, delete, func, insert, select, update
from sqlalchemy.orm import Session

from gateway.store import history
from gateway.store.models import HeldRow, Job, QueueNow, Run, table_of
from gateway.store.upsert import chunks, insert_if_new, insert_ignoring

# What slurmctld and accounting may change about a job, in the order of `KnownJob.facts`.
FACTS = (
    "array_job_id",
    "array_task",
    "array_tasks",
    "user",
    "uid",
    "name",
    "group",
    "partition",
    "qos",
    "state",
    "active",
    "reason",
    "last_submit_time",
    "eligible_time",
    "start_time",
    "end_time",
    "estimated_start",
    "time_limit_minutes",
    "nodes",
    "cpus",
    "gpus",
    "gpu_type",
    "req_gpu_type",
    "node_list",
    "priority",
    "restarts",
    "exit_code",
    "exit_signal",
    "working_directory",
    "output",
    "token",
)
PLACE = {name: place for place, name in enumerate(FACTS)}
# What the columnar history has no column for, or what moves too often for it.
_NOT_IN_HISTORY = frozenset(
    {"id", "seen_at", "left_queue_at", "accounted", "submit_time", "priority", "estimated_start"}
    | {"array_job_id", "array_task", "uid", "name", "node_list", "exit_code", "exit_signal"}
    | {"working_directory", "output", "token", "purpose"}
)

RUN_FACTS = (
    "job_id",
    "user",
    "group",
    "partition",
    "qos",
    "state",
    "eligible_time",
    "start_time",
    "end_time",
    "elapsed_seconds",
    "suspended_seconds",
    "nodes",
    "cpus",
    "gpus",
    "alloc_tres",
    "node_list",
    "exit_code",
    "exit_signal",
    "restarts",
    "cancelled_by",
)


@dataclass(slots=True)
class KnownJob:
    """A job's row as it is. Not frozen: an import that finds three runs of one job in a batch
    brings it up to date as it goes."""

    id: int
    slurm_id: int
    submit_time: datetime
    seen_at: datetime
    left_queue_at: datetime | None
    facts: tuple[Any, ...]
    accounted: bool = False

    def get(self, name: str) -> Any:
        return self.facts[PLACE[name]]


@dataclass(frozen=True, slots=True)
class JobOwner:
    """What acting on a job, or reading its files, needs."""

    id: int
    cluster: str
    slurm_id: int
    array_job_id: int | None
    user: str
    group: str
    name: str
    state: str
    active: bool
    output: str | None
    working_directory: str
    time_limit_minutes: int | None


# Columns of the table, not of the class: for 100,000 rows the ORM's loading costs seconds.
_COLUMNS = table_of(Job).c
_KNOWN = (
    _COLUMNS.id,
    _COLUMNS.slurm_id,
    _COLUMNS.submit_time,
    _COLUMNS.seen_at,
    _COLUMNS.left_queue_at,
    *(_COLUMNS["group_name" if name == "group" else name] for name in FACTS),
    _COLUMNS.accounted,
)
_ID_OF = (
    select(_COLUMNS.id)
    .where(
        _COLUMNS.cluster == bindparam("cluster"),
        _COLUMNS.slurm_id == bindparam("slurm_id"),
        (_COLUMNS.submit_time == bindparam("at")) | (_COLUMNS.last_submit_time == bindparam("at")),
    )
    .order_by(_COLUMNS.id.desc())
    .limit(1)
)


def active(session: Session, cluster: str) -> list[KnownJob]:
    """Every open job in one select: the poll compares 100,000 of them."""
    return _known(session, select(*_KNOWN).where(Job.active.is_(True), Job.cluster == cluster))


def left_queue(
    session: Session, cluster: str, *, since: datetime | None, limit: int
) -> list[KnownJob]:
    """Open jobs that the queue no longer has, those unheard of for longest first."""
    query = select(*_KNOWN).where(Job.active.is_(True), Job.cluster == cluster)
    went = Job.left_queue_at.is_not(None) if since is None else Job.left_queue_at >= since
    return _known(session, query.where(went).order_by(Job.left_queue_at).limit(limit))


def by_slurm_ids(session: Session, cluster: str, slurm_ids: Sequence[int]) -> list[KnownJob]:
    """All rows under these ids, ended ones and those of an earlier life of the cluster too."""
    found: list[KnownJob] = []
    for part in chunks(slurm_ids):
        query = select(*_KNOWN).where(Job.cluster == cluster, Job.slurm_id.in_(part))
        found += _known(session, query)
    return found


def owner(session: Session, job_id: int) -> JobOwner | None:
    columns = [getattr(Job, name) for name in JobOwner.__slots__]
    found = session.execute(select(*columns).where(Job.id == job_id)).one_or_none()
    return JobOwner(*found) if found else None


def add(session: Session, row: dict[str, Any]) -> int | None:
    """Insert one job; None when somebody has made the row already."""
    job_id = insert_if_new(session, Job.__table__, _by_column(row))
    history.mark(session, [] if job_id is None else [job_id])
    return job_id


def add_all(session: Session, rows: Sequence[dict[str, Any]]) -> int:
    """Insert many at once; those that somebody has made already are left as they are."""
    if not rows:
        return 0
    statement = insert_ignoring(session, Job.__table__)
    before = history.highest(session)
    result = session.connection().execute(statement, [_by_column(row) for row in rows])
    history.mark_since(session, before)
    return result.rowcount if result.rowcount >= 0 else len(rows)


def clusters(session: Session) -> list[str]:
    """The names of clusters that jobs are stored under: a hop from name to name."""
    found: list[str] = []
    query = select(func.min(Job.cluster)).where(Job.cluster > bindparam("after"))
    name = session.scalar(query, {"after": ""})
    while name is not None:
        found.append(name)
        name = session.scalar(query, {"after": name})
    return found


def id_of(session: Session, *, cluster: str, slurm_id: int, submit_time: datetime) -> int | None:
    """The job's row, found by its first or its latest submit time."""
    key = {"cluster": cluster, "slurm_id": slurm_id, "at": submit_time}
    found: int | None = session.execute(_ID_OF, key).scalar()
    return found


def change(session: Session, changes: Sequence[dict[str, Any]]) -> None:
    """Write rows of `id` and any columns. Rows with the same columns go in one statement."""
    by_shape: dict[tuple[str, ...], list[dict[str, Any]]] = {}
    for row in changes:
        by_shape.setdefault(tuple(sorted(row)), []).append(row)
    for shape, rows in by_shape.items():
        values: dict[Any, Any] = {
            getattr(Job, name): bindparam(f"to_{name}") for name in shape if name != "id"
        }
        statement = update(Job).where(Job.id == bindparam("at_id")).values(values)
        session.connection().execute(statement, [_bound(row) for row in rows])
    history.mark(session, [row["id"] for row in changes if not row.keys() <= _NOT_IN_HISTORY])


def tell_tasks(
    session: Session, array_id: int, *, cluster: str, user: str, token: str, told: dict[str, Any]
) -> None:
    """What is known of an array, for those of its tasks that do not say it yet."""
    tasks = (
        Job.array_job_id == array_id,
        Job.cluster == cluster,
        Job.user == user,
        Job.token == token,
        Job.template.is_(None),
    )
    history.mark(session, session.scalars(select(Job.id).where(*tasks)))
    session.execute(update(Job).where(*tasks).values(told))


def hold_row(
    session: Session, *, cluster: str, fingerprint: str, raw: str, reason: str, now: datetime
) -> bool:
    """Keep a row for a person to look at; False when it is kept already."""
    row = {
        "cluster": cluster,
        "fingerprint": fingerprint,
        "raw": raw,
        "reason": reason,
        "first_seen_at": now,
    }
    return insert_if_new(session, HeldRow.__table__, row) is not None


def runs_by_slurm_ids(
    session: Session, cluster: str, slurm_ids: Sequence[int]
) -> dict[tuple[int, datetime], dict[str, Any]]:
    """Runs by their key (Slurm id, submit time), with all that accounting may change."""
    facts = [getattr(Run, name).label(name) for name in RUN_FACTS]
    columns = [Run.id, Run.slurm_id, Run.submit_time, Run.seen_until, *facts]
    found: dict[tuple[int, datetime], dict[str, Any]] = {}
    for part in chunks(slurm_ids):
        query = select(*columns).where(Run.cluster == cluster, Run.slurm_id.in_(part))
        for row in session.execute(query).mappings():
            found[(row["slurm_id"], row["submit_time"])] = dict(row)
    return found


def put_run(session: Session, row: dict[str, Any], *, before: dict[str, Any] | None) -> bool:
    """Store a run once; True when anything changed. One that ended, or changed after its end,
    is to be settled."""
    if before is None:
        made = _by_column(row) | {"to_settle": row["end_time"] is not None}
        run_id = insert_if_new(session, Run.__table__, made)
        history.mark(session, [] if run_id is None else [row["job_id"]])
        return run_id is not None
    if row["end_time"] is None and before["end_time"] is not None:
        return False  # an end that was told, or that a person decided, is not taken back
    changed = {name: row[name] for name in RUN_FACTS if row[name] != before[name]}
    if row["seen_until"] and not before["seen_until"]:
        changed["seen_until"] = row["seen_until"]
    if not changed:
        return False
    changed["to_settle"] = row["end_time"] is not None
    values = {getattr(Run, name): value for name, value in changed.items()}
    statement = update(Run).where(Run.id == before["id"]).values(values)
    session.execute(statement.execution_options(synchronize_session=False))
    history.mark(session, [before["job_id"], row["job_id"]])
    return True


def replace_queue_sums(session: Session, rows: Iterable[dict[str, Any]]) -> None:
    """The queue in sums; nothing is written when nothing has changed."""
    names = ("partition", "gpu_type", "group", "state", "reason", "jobs", "gpus", "oldest_eligible")
    columns = [getattr(QueueNow, name) for name in names]
    fresh = [tuple(row[name] for name in names) for row in rows]
    before = [tuple(row) for row in session.execute(select(*columns))]
    if sorted(before, key=repr) == sorted(fresh, key=repr):
        return
    session.execute(delete(QueueNow))
    if fresh:
        made = [_by_column(dict(zip(names, row, strict=True))) for row in fresh]
        session.connection().execute(insert(QueueNow), made)


def _known(session: Session, query: Any) -> list[KnownJob]:
    return [
        KnownJob(r[0], r[1], r[2], r[3], r[4], tuple(r[5:-1]), r[-1])
        for r in session.connection().execute(query)
    ]


def _by_column(row: dict[str, Any]) -> dict[str, Any]:
    """`group` is a word of SQL, so its column has another name."""
    return {("group_name" if name == "group" else name): value for name, value in row.items()}


def _bound(row: dict[str, Any]) -> dict[str, Any]:
    return {("at_id" if name == "id" else f"to_{name}"): value for name, value in row.items()}
