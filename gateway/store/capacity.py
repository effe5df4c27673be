"""How many cards of each type there were on each day, as polls of the nodes saw it."""

from collections.abc import Mapping
from datetime import date

from sqlalchemy import select
from sqlalchemy.orm import Session

from gateway.core.usage_figures import Capacity
from gateway.store.capacity_models import GpuCapacityDay


def note(session: Session, day: date, gpus: Mapping[str, int]) -> None:
    """Keep the most of the day. Writes only what is new: polls come every half minute."""
    of_day = select(GpuCapacityDay).where(GpuCapacityDay.day == day)
    known = {row.gpu_type: row for row in session.scalars(of_day)}
    for gpu_type, number in gpus.items():
        if gpu_type not in known:
            session.add(GpuCapacityDay(day=day, gpu_type=gpu_type, gpus=number))
        elif known[gpu_type].gpus < number:
            known[gpu_type].gpus = number


def between(session: Session, first: date, last: date) -> list[Capacity]:
    """Of the days from `first` to `last`, and of the first counted day after them, which is the
    best that one knows of days before it."""
    after = select(GpuCapacityDay.day).where(GpuCapacityDay.day > last)
    following = session.scalar(after.order_by(GpuCapacityDay.day).limit(1))
    rows = session.scalars(
        select(GpuCapacityDay)
        .where(GpuCapacityDay.day >= first, GpuCapacityDay.day <= (following or last))
        .order_by(GpuCapacityDay.day, GpuCapacityDay.gpu_type)
    )
    return [Capacity(row.day, row.gpu_type, row.gpus) for row in rows]
