"""Accounting records of jobs that the store does not know, as rows to insert.

The same facts as ingest_plan gives for one record at a time (a test compares the two), without
an object, a question and a statement for each.
"""

from collections.abc import Iterable, Sequence
from dataclasses import fields
from datetime import UTC, datetime
from functools import lru_cache
from operator import attrgetter
from typing import Any, NamedTuple

from gateway.core.identity import token_in
from gateway.core.states import JobState, parse_state
from gateway.core.tres import gpu_count, parse_tres, single_gpu_type
from gateway.store.new_jobs import JOB, NONE
from gateway.wire import messages as m

_NAMES = tuple(field.name for field in fields(m.RunRecord))
_TIMES = tuple(_NAMES.index(f"{name}_time") for name in ("submit", "eligible", "start", "end"))
WIDTH = len(_NAMES)  # a prepared job begins with the fields of its record
TOKEN = JOB.index("token")
values_of = attrgetter(*_NAMES)


class Prepared(NamedTuple):
    """Rows for store.new_jobs: plain texts and numbers, so that they can cross processes."""

    jobs: list[tuple[Any, ...]]
    runs: list[tuple[Any, ...]]


class _State(NamedTuple):
    text: str
    active: int
    over: int
    holds_nodes: bool


def prepare(
    records: Iterable[Sequence[Any]], *, cluster: str, now: datetime, into: Prepared | None = None
) -> Prepared:
    """Records, as tuples of a RunRecord's fields, made into rows."""
    prepared = into or Prepared([], [])
    add_job, add_run = prepared.jobs.append, prepared.runs.append
    seen_now = _stamp(now)
    for record in records:
        (
            job_id, user, uid, name, account, partition, qos, state_text, submit, eligible, start,
            end, elapsed, suspended, limit, nodes, cpus, alloc, req, node_list, code, signal,
            restarts, reason, folder, comment, array_id, task, cancelled_by, tasks,
        ) = record  # fmt: skip
        state = _state(state_text)
        gpus, gpu_type, held_gpus, asked_type = _gpus(alloc, req)
        submitted = _stamp(submit)
        started = NONE if start is None else _stamp(start)
        open_seen = submitted if start is None else started
        token = token_in(comment) if comment else None
        add_job(
            (
                job_id,
                user,
                NONE if uid is None else uid,
                name,
                account,
                partition,
                NONE if qos is None else qos,
                state.text,
                submitted,
                NONE if eligible is None else _stamp(eligible),
                started,
                NONE if end is None else _stamp(end),
                elapsed,
                suspended,
                NONE if limit is None else limit,
                nodes,
                cpus,
                alloc,
                req,
                NONE if node_list is None else node_list,
                NONE if code is None else code,
                NONE if signal is None else signal,
                restarts,
                NONE if reason is None else reason,
                folder,
                NONE if comment is None else comment,
                NONE if array_id is None else array_id,
                NONE if task is None else task,
                NONE if cancelled_by is None else cancelled_by,
                NONE if tasks is None else tasks,
                cluster,
                state.active,
                gpus,
                gpu_type,
                asked_type,
                NONE if token is None else token,
                seen_now if state.over else open_seen,
                state.over,
            )
        )
        if start is not None and state.holds_nodes:
            add_run(
                (
                    job_id,
                    cluster,
                    submitted,
                    state.over,
                    elapsed if elapsed > 0 else 0,
                    suspended if suspended > 0 else 0,
                    held_gpus,
                    alloc,
                    NONE if cancelled_by is None else cancelled_by,
                )
            )
    return prepared


def record_of(job: Sequence[Any]) -> m.RunRecord:
    """The record that a prepared job was made of."""
    values: list[Any] = [None if value == NONE else value for value in job[:WIDTH]]
    for place in _TIMES:
        if values[place] is not None:
            values[place] = datetime.fromisoformat(values[place]).replace(tzinfo=UTC)
    return m.RunRecord(*values)


def most_gpus(alloc: str, req: str) -> int:
    """The larger of the two counts that rows have of a job's cards."""
    shown, _, held, _ = _gpus(alloc, req)
    return max(shown, held) if isinstance(held, int) else shown


@lru_cache(4096)
def _state(text: str) -> _State:
    state = parse_state(text)[0]
    shown = text if state is JobState.UNKNOWN else state.value
    active = not (state.is_ended or state is JobState.PREEMPTED)
    return _State(shown, int(active), int(state.ends_run), state.is_active or state.ends_run)


@lru_cache(16384)
def _gpus(alloc: str, req: str) -> tuple[int, str, int | str, str]:
    """What the job shows, what its run held, and of which type it was to be."""
    shown, kind = requested_gpus(alloc, req)
    held, asked = held_gpus(alloc, req), asked_gpu_type(req)
    return (
        shown,
        NONE if kind is None else kind,
        NONE if held is None else held,
        NONE if asked is None else asked,
    )


def asked_gpu_type(req: str) -> str | None:
    """The type that was asked for; None where any would do. Never what was given: nobody knew
    that before the start, and forecasts learn from it."""
    try:
        return single_gpu_type(parse_tres(req))
    except ValueError:
        return None


def requested_gpus(alloc: str, req: str) -> tuple[int, str | None]:
    """The GPUs to show for the job: allocated, else what was asked for."""
    for text in (alloc, req):
        try:
            tres = parse_tres(text)
        except ValueError:
            continue
        if gpu_count(tres)[0]:
            return gpu_count(tres)[0], single_gpu_type(tres)
    return 0, None


def held_gpus(alloc: str, req: str) -> int | None:
    """GPUs that the run held. None when accounting cannot say: requested is not used, but a
    job that asked for GPUs and was given none on record is unknown, not free; nor is there a
    number below none."""
    try:
        held = gpu_count(parse_tres(alloc))[0]
        asked = gpu_count(parse_tres(req))[0]
    except ValueError:
        return None
    return None if held < 0 or (held == 0 and asked) else held


@lru_cache(65536)
def _stamp(time: datetime) -> str:
    """As SQLite keeps a time here: UTC, to the microsecond, without a zone."""
    return time.astimezone(UTC).replace(tzinfo=None).isoformat(" ", "microseconds")
