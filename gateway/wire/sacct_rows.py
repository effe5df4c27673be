"""One row of `sacct --json` as a RunRecord. The shapes of 22.05 to 26.05 are all read.

Nothing is guessed: a row that cannot be understood is kept as it came, with the reason.
"""

import json
from collections.abc import Mapping
from datetime import UTC, datetime
from typing import Any

from gateway.core.arrays import tasks_told
from gateway.core.states import JobState
from gateway.wire import messages as m

Uids = Mapping[tuple[int, int], int]  # (job id, submit epoch) -> numeric uid
_NOBODY = frozenset({"", "None assigned", "None"})
_INFINITE = 0xFFFFFFFF  # older releases print the raw number of "no limit"
_NOT_SET = 0xFFFFFFFE
_BASE_STATES = frozenset(state.value for state in JobState if state.is_base)


def read_row(row: Any, uids: Uids) -> m.RunRecord | m.HeldRow:
    """The record, or the row held for review."""
    try:
        return _record(row, uids)
    except Exception as error:  # whatever is wrong with it: a row is never dropped
        reason = f"{type(error).__name__}: {error}"
        return m.HeldRow(raw=json.dumps(row, ensure_ascii=True), reason=reason)


def row_key(row: Any) -> str:
    """Equal for one row that two queries gave."""
    return json.dumps(row, sort_keys=True, ensure_ascii=True)


def cluster_of(row: Any) -> str | None:
    """The cluster that a row names; rows of slurmrestd and of sacct do. Raises TypeError or
    ValueError where that is no text."""
    return _text(row.get("cluster")) if isinstance(row, dict) else None


def _record(row: Mapping[str, Any], uids: Uids) -> m.RunRecord:
    job_id, time = _id(row["job_id"]), row["time"]
    if not job_id:
        raise ValueError("no job id")
    submitted = _whole(time["submission"])
    code, signal = _exit(row["exit_code"])
    array_id, array_task, array_tasks = _array(row["array"])
    return m.RunRecord(
        job_id=job_id,
        user=_user(row),
        uid=uids.get((job_id, submitted)),
        name=_text(row["name"]) or "",
        account=_text(row["account"]) or "",
        partition=_text(row["partition"]) or "",
        qos=_text(row["qos"]),
        state=_state(row["state"]["current"]),
        submit_time=_required_time(submitted),
        eligible_time=_time(time["eligible"]),
        start_time=_time(time["start"]),
        end_time=_time(time["end"]),
        elapsed_seconds=_at_least_zero(time["elapsed"]),
        suspended_seconds=_at_least_zero(time["suspended"]),
        time_limit_minutes=_limit(time["limit"]),
        nodes=_at_least_zero(row["allocation_nodes"]),
        cpus=_cpus(row),
        alloc_tres=_tres(row["tres"]["allocated"]),
        req_tres=_tres(row["tres"]["requested"]),
        node_list=None if row["nodes"] in _NOBODY else _text(row["nodes"]),
        exit_code=code,
        exit_signal=signal,
        restarts=_at_least_zero(row.get("restart_cnt", 0)),
        reason=_reason(row["state"].get("reason")),
        working_directory=_text(row["working_directory"]) or "",
        comment=_text(row["comment"].get("job")),
        array_job_id=array_id,
        array_task=array_task,
        cancelled_by=_text(row.get("kill_request_user")),
        array_tasks=array_tasks,
    )


def _user(row: Mapping[str, Any]) -> str:
    user = _text(row.get("user")) or _text(row["association"].get("user"))
    if not user:
        raise ValueError("no user")
    return user


def _state(current: Any) -> str:
    """A list since 23.11, a word before. A flag stands for the whole, as `sacct` prints it:
    ["PENDING", "REQUEUED"] is a run that a requeue ended."""
    states = [current] if isinstance(current, str) else current
    if not isinstance(states, list) or not states:
        raise ValueError(f"no state: {current!r}")
    if not all(isinstance(state, str) and state for state in states):
        raise ValueError(f"no state: {current!r}")
    base = [state for state in states if state in _BASE_STATES]
    flags = [state for state in states if state not in _BASE_STATES]
    return str((flags or base)[0])


def _reason(value: Any) -> str | None:
    reason = _text(value)
    return None if reason == "None" else reason


def _exit(exit_code: Mapping[str, Any]) -> tuple[int | None, int | None]:
    signal = exit_code.get("signal") or {}
    # 22.05 and 23.02 call the number signal_id, later ones give an object.
    raw = signal.get("id", signal.get("signal_id")) if isinstance(signal, dict) else None
    number = _number(raw)
    return _number(exit_code.get("return_code")), number or None


def _array(array: Mapping[str, Any]) -> tuple[int | None, int | None, int | None]:
    """The array, the task of it, or of how many tasks that have not started the row tells."""
    array_id = _id(array["job_id"]) or None
    if array_id is None:
        return None, None, None
    task, listed = _number(array.get("task_id")), _text(array.get("task"))
    return array_id, task, tasks_told(listed) if listed and task is None else None


def _limit(limit: Any) -> int | None:
    """Minutes; None for no limit and for one that is not decided yet."""
    number = _number(limit)
    if number is not None and number < 0:
        raise ValueError(f"negative: {number}")
    return None if number in (None, _INFINITE, _NOT_SET) else number


def _number(value: Any) -> int | None:
    """A plain number, or {set, infinite, number}; None when it is not set."""
    if value is None:
        return None
    if isinstance(value, dict):
        told, endless = value.get("set", False), value.get("infinite", False)
        if type(told) is not bool or type(endless) is not bool:
            raise ValueError(f"not a number: {value!r}")
        if endless or not told:
            return None
        value = value["number"]
    return _whole(value)


def _whole(value: Any) -> int:
    if type(value) is not int:
        raise ValueError(f"not a whole number: {value!r}")
    return value


def _id(value: Any) -> int:
    """Slurm counts jobs in 32 bits."""
    number = _at_least_zero(value)
    if number >= 2**32:
        raise ValueError(f"no job id: {number}")
    return number


def _at_least_zero(value: Any) -> int:
    number = _whole(value)
    if number < 0:
        raise ValueError(f"negative: {number}")
    return number


def _time(epoch: Any) -> datetime | None:
    seconds = _whole(epoch)
    # Slurm gives 0 for a start or end that has not come, and -1 or its "not set" for others.
    return None if seconds <= 0 or seconds in (_INFINITE, _NOT_SET) else _required_time(seconds)


def _required_time(seconds: int) -> datetime:
    if seconds <= 0:
        raise ValueError("no time of submission")
    return datetime.fromtimestamp(seconds, UTC)


def _cpus(row: Mapping[str, Any]) -> int:
    for side in ("allocated", "requested"):
        for item in row["tres"][side]:
            if item["type"] == "cpu":
                return _at_least_zero(item["count"])
    return _at_least_zero(row["required"]["CPUs"])


def _tres(items: Any) -> str:
    """Pairs by comma, as `sacct -P` prints them. -2 is Slurm's "not counted" (energy)."""
    if not isinstance(items, list):
        raise TypeError(f"not a list of resources: {items!r}")
    pairs = []
    for item in items:
        kind, of = _text(item["type"]), _text(item["name"])
        if kind is None:
            raise ValueError("a resource without a type")
        name = f"{kind}/{of}" if of else kind
        if "," in name or "=" in name:
            raise ValueError(f"not a resource name: {name!r}")
        # 22.05 prints null for an energy that nobody counted.
        count = -2 if item["count"] is None and item["type"] == "energy" else item["count"]
        if _whole(count) >= 0:
            pairs.append(f"{name}={count}")
    return ",".join(pairs)


def _text(value: Any) -> str | None:
    if value is None or value == "":
        return None
    if not isinstance(value, str):
        raise TypeError(f"not a text: {value!r}")
    # Lone surrogates stand for bytes that were no UTF-8; they cannot be sent on as they are.
    return value.encode("utf-8", "surrogateescape").decode("utf-8", "replace")
