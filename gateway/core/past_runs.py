"""The columns of the job history, in the order of a row."""

from enum import StrEnum
from typing import Any

from gateway.core.wait_causes import Cause


class ColumnType(StrEnum):
    INTEGER = "BIGINT"
    TEXT = "VARCHAR"
    TIME = "TIMESTAMP"  # UTC; a row holds whole seconds since 1970


_INTEGER, _TEXT, _TIME = ColumnType.INTEGER, ColumnType.TEXT, ColumnType.TIME

# One row a run, and one a job that never started or waits: docs/engineering/waits.md tells them
# apart. Any may be null where Slurm, or the price list, says nothing. `charge` is what was posted,
# in millionths of the currency, refunds not taken off; `limit_minutes` the time limit; `gpu_type`
# what was given, `req_gpu_type` what was asked for (null: any would do). `source` is
# the name of an imported set. `seen_at`, `cause_now`: until when the seconds of a row that waits
# are counted in `cause_*`, and what it waits for since then.
COLUMNS: dict[str, ColumnType] = {
    "run_id": _INTEGER,
    "job_id": _INTEGER,
    "cluster": _TEXT,
    "slurm_id": _INTEGER,
    "user": _TEXT,
    "group": _TEXT,
    "partition": _TEXT,
    "qos": _TEXT,
    "template": _TEXT,
    "state": _TEXT,
    "submit_time": _TIME,
    "eligible_time": _TIME,
    "start_time": _TIME,
    "end_time": _TIME,
    "elapsed_seconds": _INTEGER,
    "suspended_seconds": _INTEGER,
    "limit_minutes": _INTEGER,
    "nodes": _INTEGER,
    "cpus": _INTEGER,
    "gpus": _INTEGER,
    "gpu_type": _TEXT,
    "req_gpu_type": _TEXT,
    "restarts": _INTEGER,
    "charge": _INTEGER,
    "alloc_tres": _TEXT,
    "source": _TEXT,
    "priority": _INTEGER,
    "seen_at": _TIME,
    "cause_now": _TEXT,
    **{f"cause_{cause}": _INTEGER for cause in Cause},
}
Row = tuple[Any, ...]  # in the order of COLUMNS
