"""Months that were closed: what was found then."""

from datetime import datetime
from typing import Any

from sqlalchemy.orm import Session

from gateway.store import money_models as mm


def put(
    session: Session,
    month: str,
    *,
    totals: dict[str, Any],
    differences: list[Any],
    now: datetime,
    person_id: int | None,
) -> None:
    """Keep it, in place of what an earlier closing found."""
    row = session.get(mm.ClosedMonth, month)
    if row is None:
        row = mm.ClosedMonth(month=month)
        session.add(row)
    row.at, row.totals, row.differences, row.person_id = now, totals, differences, person_id
