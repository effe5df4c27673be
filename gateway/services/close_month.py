"""Close a month: compare the ledger with Slurm's accounting, and keep what was found.

Nothing is changed in the ledger. What is corrected later for a run of the month is shown beside
what was found when it was closed.
"""

from dataclasses import asdict, dataclass
from datetime import datetime, tzinfo
from typing import TYPE_CHECKING, Any

from gateway.core.closing import Compared, Difference, Kind, Sums, compare
from gateway.core.months import month_bounds
from gateway.errors import NotFound, Refused
from gateway.store import closed_months
from gateway.store.queries import close as reads
from gateway.store.queries.close import ClosedRow, Correction
from gateway.store.uow import Begin

if TYPE_CHECKING:
    from sqlalchemy.orm import Session


@dataclass(frozen=True, slots=True)
class Closed:
    """`not_told` counts what may still come to light of the month; `corrections` came after it
    was closed; `earlier` are former closings, with how many differences each had."""

    month: str
    at: datetime
    total: Sums
    groups: tuple[Sums, ...]
    differences: tuple[Difference, ...]
    not_told: dict[str, int]
    corrections: tuple[Correction, ...]
    earlier: tuple[tuple[str, int], ...]


def close(
    month: str,
    *,
    begin: Begin,
    read: Begin,
    now: datetime,
    zone: tzinfo,
    suspended: bool,
    again: bool = False,
    person_id: int | None = None,
) -> Closed:
    """Close `2026-11` of the site's zone. `suspended`: the site bills suspended time.

    Refused: bad_month, month_not_over, and month_closed unless `again`.
    """
    since, until = _bounds(month, zone)
    if until > now:
        raise Refused("month_not_over", month=month)
    with read() as session:
        before = reads.closed(session, month)
        if before is not None and not again:
            raise Refused("month_closed", month=month)
        found = compare(
            reads.lines(session, since=since, until=until, suspended=suspended),
            charging_began=reads.charging_began(session),
        )
        totals = _totals(found, reads.not_told(session, until=until), before)
    with begin() as session:
        at_once = reads.closed(session, month)
        if (at_once and at_once.at) != (before and before.at):
            raise Refused("month_closed", month=month)  # by somebody at the same time
        differences = [_dumped(one) for one in found.differences]
        closed_months.put(
            session, month, totals=totals, differences=differences, now=now, person_id=person_id
        )
        return shown(session, month, zone=zone)


def shown(session: "Session", month: str, *, zone: tzinfo) -> Closed:
    """A closed month, with what was corrected since. NotFound."""
    row = reads.closed(session, month)
    if row is None:
        raise NotFound(f"no closed month {month}")
    since, until = _bounds(month, zone)
    later = reads.corrections(session, since=since, until=until, after=row.at)
    return Closed(
        month=month,
        at=row.at,
        total=Sums(**row.totals["total"]),
        groups=tuple(Sums(**group) for group in row.totals["groups"]),
        differences=tuple(_parsed(one) for one in row.differences),
        not_told=row.totals["not_told"],
        corrections=tuple(later),
        earlier=tuple((one["at"], one["differences"]) for one in row.totals["earlier"]),
    )


def _bounds(month: str, zone: tzinfo) -> tuple[datetime, datetime]:
    try:
        return month_bounds(month, zone)
    except ValueError as error:
        raise Refused("bad_month", field="month") from error


def _totals(found: Compared, not_told: dict[str, int], before: ClosedRow | None) -> dict[str, Any]:
    earlier: list[Any] = []
    if before is not None:
        was = {"at": before.at.isoformat(), "differences": len(before.differences)}
        earlier = [*before.totals["earlier"], was]
    return {
        "total": asdict(found.total),
        "groups": [asdict(group) for group in found.groups],
        "not_told": not_told,
        "earlier": earlier,
    }


def _dumped(one: Difference) -> dict[str, Any]:
    return asdict(one) | {"kind": one.kind.value, "end": one.end.isoformat()}


def _parsed(one: dict[str, Any]) -> Difference:
    changed = {"kind": Kind(one["kind"]), "end": datetime.fromisoformat(one["end"])}
    return Difference(**(one | changed))
