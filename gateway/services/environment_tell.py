"""Environments and their checks as programs read them: the same for the command and the API."""

from collections.abc import Sequence
from typing import Any

from gateway.core.env_check import dump_steps, read_steps
from gateway.core.environments import to_table
from gateway.services.environment_checks import Cell, Matrix
from gateway.services.environment_publish import Entry
from gateway.store.environments import CheckRow


def matrix_facts(found: Matrix) -> dict[str, Any]:
    """All that is offered to this person, with the newest check of each pair."""
    return {
        "gpu_types": list(found.gpu_types),
        "environments": [entry_facts(one.entry, one.cells) for one in found.lines],
    }


def entry_facts(entry: Entry, cells: Sequence[Cell]) -> dict[str, Any]:
    """`source` is file or published; times are UTC."""
    row = entry.row
    return {
        **to_table(entry.environment),
        "group": entry.environment.group or None,
        "source": "file" if row is None else "published",
        "changed_at": row.changed_at.isoformat() if row else None,
        "changed_by": row.changed_by if row else None,
        "retired_at": row.retired_at.isoformat() if row and row.retired_at else None,
        "checks": [cell_facts(cell) for cell in cells],
    }


def cell_facts(cell: Cell) -> dict[str, Any]:
    """`state` is ok, failed, changed, not_sent, open or never; `code` says why."""
    return {
        "gpu_type": cell.gpu_type,
        "state": state_of(cell),
        "code": cell.not_sent or (cell.check.code if cell.check else None),
        "job_id": cell.job.job_id if cell.job else None,
        "newest": check_facts(cell.check) if cell.check else None,
    }


def check_facts(check: CheckRow) -> dict[str, Any]:
    """Seconds of the whole, and of each step."""
    return {
        "at": check.at.isoformat(),
        "ok": check.ok,
        "code": check.code,
        "driver": check.driver,
        "capability": check.capability,
        "seconds": check.seconds,
        "found": check.found,
        "steps": dump_steps(read_steps(check.steps)),
    }


def state_of(cell: Cell) -> str:
    if cell.open_job is not None:
        return "open"
    if cell.not_sent is not None:
        return "not_sent"
    if cell.check is None:
        return "never"
    if not cell.check.ok:
        return "failed"
    return "changed" if cell.changed else "ok"
