"""Runs by blocks of their ids, for the columnar history, and the marks of what has changed."""

from collections import defaultdict
from collections.abc import Iterable, Sequence
from typing import Any, cast

from sqlalchemy import ColumnElement, bindparam, delete, func, insert, select
from sqlalchemy import Integer as SqlInteger
from sqlalchemy.ext.compiler import compiles
from sqlalchemy.orm import Session
from sqlalchemy.sql.functions import GenericFunction

from gateway.core.past_runs import COLUMNS, ColumnType, Row
from gateway.store.history_models import HistoryMark
from gateway.store.models import Job, Run, table_of
from gateway.store.money_models import Charge
from gateway.store.upsert import chunks

BLOCK = 16_384  # runs a block: made again in some 200 ms, and a million runs are 62 files

_RUN, _JOB, _CHARGE, _MARK = map(table_of, (Run, Job, Charge, HistoryMark))
_ADD = insert(_MARK)


class _Seconds(GenericFunction[int]):
    """Whole seconds since 1970 of a time: a million datetime objects would cost many seconds."""

    type = SqlInteger()
    inherit_cache = True
    name = "sluice_seconds"


@compiles(_Seconds, "sqlite")
def _on_sqlite(element: Any, compiler: Any, **kw: Any) -> str:
    return f"CAST(strftime('%s', {compiler.process(element.clauses, **kw)}) AS INTEGER)"


@compiles(_Seconds, "postgresql")
def _on_postgresql(element: Any, compiler: Any, **kw: Any) -> str:
    # Rounded down, as SQLite does it.
    return f"CAST(floor(extract(epoch FROM {compiler.process(element.clauses, **kw)})) AS BIGINT)"


def _column(name: str, kind: ColumnType) -> ColumnElement[Any]:
    elsewhere = {
        "run_id": _RUN.c.id,
        "template": _JOB.c.template,
        "limit_minutes": _JOB.c.time_limit_minutes,
        "gpu_type": _JOB.c.gpu_type,
        "charge": _CHARGE.c.amount,
        "group": _RUN.c.group_name,
    }
    found = elsewhere[name] if name in elsewhere else _RUN.c[name]
    return _Seconds(found) if kind is ColumnType.TIME else cast(ColumnElement[Any], found)


_ROWS = (
    select(*(_column(name, kind) for name, kind in COLUMNS.items()))
    .join_from(_RUN, _JOB, _JOB.c.id == _RUN.c.job_id)
    .outerjoin(_CHARGE, (_CHARGE.c.run_id == _RUN.c.id) & (_CHARGE.c.state == "posted"))
    .where(_RUN.c.id >= bindparam("first"), _RUN.c.id < bindparam("past"))
    .order_by(_RUN.c.id)
)
_HIGHEST = select(func.max(_RUN.c.id))
_NEXT = select(func.min(_RUN.c.id)).where(_RUN.c.id >= bindparam("first"))


def mark(session: Session, run_ids: Iterable[int]) -> None:
    """These runs were written in this transaction: their blocks are to be made again."""
    blocks = sorted({run_id // BLOCK for run_id in run_ids})
    if blocks:
        session.connection().execute(_ADD, [{"block": block} for block in blocks])


def mark_since(session: Session, highest: int | None) -> None:
    """The same for all runs with an id above `highest`, as it was before they were inserted."""
    now = highest_run(session)
    if now is not None and now != highest:
        mark(session, [*range((highest or 0) + 1, now, BLOCK), now])


def highest_run(session: Session) -> int | None:
    found: int | None = session.scalar(_HIGHEST)
    return found


def marks(session: Session) -> dict[int, list[int]]:
    """Ids of marks by block."""
    found: dict[int, list[int]] = defaultdict(list)
    for mark_id, block in session.execute(select(_MARK.c.id, _MARK.c.block)):
        found[block].append(mark_id)
    return dict(found)


def unmark(session: Session, mark_ids: Sequence[int]) -> None:
    """What was marked meanwhile has other ids, and stays."""
    for part in chunks(mark_ids):
        session.execute(delete(_MARK).where(_MARK.c.id.in_(part)))


def blocks(session: Session) -> list[int]:
    """All that hold a run: a hop from block to block."""
    found: list[int] = []
    run_id = session.scalar(_NEXT, {"first": 0})
    while run_id is not None:
        found.append(run_id // BLOCK)
        run_id = session.scalar(_NEXT, {"first": (found[-1] + 1) * BLOCK})
    return found


def rows(session: Session, block: int) -> list[Row]:
    """The runs of a block by id, in the order of core.past_runs.COLUMNS."""
    found = session.connection().execute(
        _ROWS, {"first": block * BLOCK, "past": (block + 1) * BLOCK}
    )
    return [tuple(row) for row in found]
