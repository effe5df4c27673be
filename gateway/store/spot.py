"""Keep the preemption record that the worker made, whole."""

from collections.abc import Iterable
from dataclasses import astuple
from datetime import datetime
from typing import Any

from sqlalchemy import delete, func, insert, select
from sqlalchemy.orm import Session

from gateway.core.spot_record import Cell, Record
from gateway.store.models import table_of
from gateway.store.spot_models import SpotRecord

_RECORD = table_of(SpotRecord)


def made_at(session: Session) -> datetime | None:
    found: datetime | None = session.scalar(select(func.max(_RECORD.c.made_at)))
    return found


def replace(session: Session, records: Iterable[Record], *, now: datetime) -> None:
    """All of it at once; of the whole numbers of each hour, also of hours with few people."""
    session.execute(delete(_RECORD))
    rows = [
        {"qos": one.qos, "gpu_type": one.gpu_type, "facts": dump(one), "made_at": now}
        for one in records
    ]
    if rows:
        session.execute(insert(_RECORD), rows)


def dump(record: Record) -> dict[str, Any]:
    return {
        "qos": record.qos,
        "gpu_type": record.gpu_type,
        "since": record.since.isoformat(),
        "until": record.until.isoformat(),
        "runs": record.runs,
        "whole": astuple(record.whole),
        "hours": [astuple(cell or Cell()) for cell in record.hours],
        "lengths": [astuple(row) for row in record.lengths],
        "requeues": record.requeues,
        "requeue_seconds": record.requeue_seconds,
    }
