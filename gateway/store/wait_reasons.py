"""What polls saw waiting jobs wait for, and when no poll looked. Seconds since 1970, UTC."""

from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from sqlalchemy import BigInteger, Select, String, bindparam, case, exists, literal, select
from sqlalchemy.orm import Session

from gateway.core.wait_causes import HELD_BY_GATE
from gateway.store.models import Job, table_of
from gateway.store.money_models import GateHeldJob
from gateway.store.upsert import insert_ignoring
from gateway.store.wait_models import PollGap, WaitReason

Looks = list[tuple[int, str | None]]  # as core.wait_causes.split takes them


@dataclass(frozen=True, slots=True)
class Look:
    """A poll saw a job wait, for another cause than before. `first_submit` is the job's, `submit`
    that of the run it waits for."""

    slurm_id: int
    first_submit: datetime
    submit: int
    since: int
    reason: str | None


_JOB, _REASON, _HELD, _GAP = map(table_of, (Job, WaitReason, GateHeldJob, PollGap))
_SAID = bindparam("reason", type_=String)
_FOUND = select(
    _JOB.c.id,
    bindparam("submit", type_=BigInteger),
    bindparam("since", type_=BigInteger),
    # The gate notes a hold before it asks for it.
    case(
        (
            (_SAID == "JobHeldAdmin") & exists().where(_HELD.c.job_id == _JOB.c.id),
            literal(HELD_BY_GATE),
        ),
        else_=_SAID,
    ),
).where(
    _JOB.c.slurm_id == bindparam("slurm_id"),
    _JOB.c.cluster == bindparam("cluster"),
    _JOB.c.submit_time == bindparam("first_submit"),
)


def put(session: Session, cluster: str, looks: Sequence[Look]) -> None:
    """Keep what a poll saw, beside the jobs' rows. The same look twice is one."""
    if not looks:
        return
    names = ["job_id", "submit", "since", "reason"]
    statement = insert_ignoring(session, _REASON).from_select(names, _FOUND)
    rows = [
        {
            "cluster": cluster,
            "slurm_id": look.slurm_id,
            "first_submit": look.first_submit,
            "submit": look.submit,
            "since": look.since,
            "reason": look.reason,
        }
        for look in looks
    ]
    session.connection().execute(statement, rows)


def put_gap(session: Session, cluster: str, *, since: datetime, until: datetime) -> None:
    """No poll read this cluster's queue from `since` to `until`."""
    row = {
        "cluster": cluster,
        "since": int(since.timestamp()),
        "until": int(until.timestamp()),
    }
    session.execute(insert_ignoring(session, _GAP), row)


def gaps(session: Session) -> dict[str, list[tuple[int, int]]]:
    """By cluster, oldest first; none over another."""
    found: dict[str, list[tuple[int, int]]] = defaultdict(list)
    query = select(_GAP.c.cluster, _GAP.c.since, _GAP.c.until).order_by(_GAP.c.since)
    for cluster, since, until in session.execute(query):
        found[cluster].append((since, until))
    return dict(found)


def between(session: Session, first: int, past: int) -> dict[tuple[int, int], Looks]:
    """Of jobs with first <= id < past, by (job id, submit time of the run it waited for), in order
    of time. A task of an array has first what the array's record, from which it split off, had
    until then."""
    of_array: dict[tuple[int, int], Looks] = defaultdict(list)
    own: dict[tuple[int, int], Looks] = defaultdict(list)
    bounds = {"first": first, "past": past}
    connection = session.connection()
    for found, query in ((of_array, _OF_ARRAYS), (own, _OWN)):
        for job_id, submit, since, reason in connection.execute(query, bounds):
            found[(job_id, submit)].append((since, reason))
    for key, looks in of_array.items():
        split_off = own[key][0][0] if own[key] else None
        own[key][:0] = [one for one in looks if split_off is None or one[0] < split_off]
    return dict(own)


_OWN: Select[Any] = (
    select(_REASON.c.job_id, _REASON.c.submit, _REASON.c.since, _REASON.c.reason)
    .where(_REASON.c.job_id >= bindparam("first"), _REASON.c.job_id < bindparam("past"))
    .order_by(_REASON.c.job_id, _REASON.c.submit, _REASON.c.since)
)
_ARRAY = _JOB.alias("array_record")
_OF_ARRAYS: Select[Any] = (
    select(_JOB.c.id, _REASON.c.submit, _REASON.c.since, _REASON.c.reason)
    .join_from(
        _JOB,
        _ARRAY,
        (_ARRAY.c.slurm_id == _JOB.c.array_job_id)
        & (_ARRAY.c.cluster == _JOB.c.cluster)
        & (_ARRAY.c.submit_time == _JOB.c.submit_time)
        & (_ARRAY.c.id != _JOB.c.id),
    )
    .join(_REASON, _REASON.c.job_id == _ARRAY.c.id)
    .where(
        _JOB.c.array_job_id.is_not(None),
        _JOB.c.id >= bindparam("first"),
        _JOB.c.id < bindparam("past"),
    )
    .order_by(_JOB.c.id, _REASON.c.submit, _REASON.c.since)
)
