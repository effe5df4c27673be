"""Finding jobs within a bound, whatever is asked and however the values are spread.

One condition leads along its index, newest first; the others are judged row by row. Which
one leads is not left to the database: without statistics it cannot know how often a value
occurs. Each that could lead is asked how far its next LOOKED_AT jobs reach, and the one that
reaches furthest, the rarest, leads. The jobs up to there are the window: only they are
judged, so that no page costs more than that, and the answer says how far it looked.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from sqlalchemy import BigInteger, bindparam, column, text
from sqlalchemy.orm import Session

from gateway.store.queries.filters import JobFilters, Scope
from gateway.store.queries.leads import Lead, Leads, leads
from gateway.store.types import UtcDateTime

LOOKED_AT = 4_000


@dataclass(frozen=True, slots=True)
class Place:
    """A place in the order of submit time and id."""

    at: datetime
    id: int


@dataclass(frozen=True, slots=True)
class Found:
    """`looked_to`: jobs beyond it were not looked at. None: all were."""

    places: tuple[Place, ...]
    looked_to: datetime | None


@dataclass(frozen=True, slots=True)
class Counted:
    """`number` of them; `more` when that is only where counting stopped."""

    number: int
    more: bool


@dataclass(frozen=True, slots=True)
class _Way:
    """In which direction, from where, between which times."""

    newest_first: bool
    bounds: tuple[str, ...]
    values: dict[str, Any]

    @property
    def order(self) -> str:
        way = "DESC" if self.newest_first else "ASC"
        return f"ORDER BY submit_time {way}, id {way}"


def find(
    session: Session,
    scope: Scope,
    filters: JobFilters,
    *,
    limit: int,
    newest_first: bool = True,
    after: Place | None = None,
) -> Found:
    """The next `limit` jobs on the way, from its beginning or from behind a place."""
    known = leads(scope, filters, dialect=session.get_bind().dialect.name)
    way = _way(filters, newest_first=newest_first, after=after)
    lead, edge = _choose(session, known, way)
    values = known.values | way.values
    bounds = list(way.bounds)
    if edge is not None:
        values["edge"] = edge
        bounds.append(f"submit_time {'>=' if newest_first else '<='} :edge")
    arms = _arms("id, submit_time", lead, bounds)
    values["limit"] = limit * 2 if lead.doubles else limit
    rows = _run(session, f"{arms} {way.order} LIMIT :limit", values)
    places = dict.fromkeys(Place(at, id_) for id_, at in rows)
    return Found(tuple(places)[:limit], edge)


def count(session: Session, scope: Scope, filters: JobFilters, *, most: int) -> Counted:
    """How many there are: exact up to `most`, and as far as one window reaches."""
    known = leads(scope, filters, dialect=session.get_bind().dialect.name)
    exact = next((lead for lead in known.leads if lead.is_exact), None)
    if exact is None:
        return counted(find(session, scope, filters, limit=most + 1), most=most)
    way = _way(filters, newest_first=True, after=None)
    arms = _arms("id", exact, list(way.bounds))
    ids = "DISTINCT id" if exact.doubles else "id"
    limit = (most + 1) * 2 if exact.doubles else most + 1
    [(number, _)] = _run(
        session,
        f"SELECT count({ids}), NULL FROM ({arms} LIMIT :limit) AS few",  # noqa: S608
        known.values | way.values | {"limit": limit},
    )
    return Counted(min(number, most), number > most)


def counted(found: Found, *, most: int) -> Counted:
    """The same from jobs found from the beginning on, with a limit of `most` + 1."""
    number = len(found.places)
    return Counted(min(number, most), number > most or found.looked_to is not None)


def is_exact(scope: Scope, filters: JobFilters) -> bool:
    """Whether one index answers it all, so that counting needs no window."""
    return any(lead.is_exact for lead in leads(scope, filters, dialect="sqlite").leads)


def _choose(session: Session, known: Leads, way: _Way) -> tuple[Lead, datetime | None]:
    """Who leads, and where its window ends; None when it can be walked to its end."""
    for lead in known.leads:
        if lead.is_exact:
            return lead, None
    best: tuple[Lead, datetime] | None = None
    for lead in known.leads:
        edge = _edge(session, lead, known.values, way)
        if edge is None:
            return lead, None
        further = best is None or (edge < best[1]) == way.newest_first
        if lead.in_order and further:
            best = lead, edge
    assert best is not None  # the walk along all jobs can always lead
    return best


def _edge(session: Session, lead: Lead, values: dict[str, Any], way: _Way) -> datetime | None:
    """The time of the job that is LOOKED_AT further on; None when there are not so many."""
    arms = _arms("id, submit_time", lead, list(way.bounds), judge=False)
    # Without an order from the index, only whether there are so many: sorting costs all.
    order = way.order if lead.in_order else ""
    rows = _run(
        session, f"{arms} {order} LIMIT 1 OFFSET :skip", values | way.values | {"skip": LOOKED_AT}
    )
    return rows[0][1] if rows else None


def _arms(columns: str, lead: Lead, bounds: Sequence[str], *, judge: bool = True) -> str:
    rest = [*bounds, *(lead.judged if judge else ())]
    return " UNION ALL ".join(
        f"SELECT {columns} FROM job WHERE {' AND '.join([arm, *rest])}"  # noqa: S608
        for arm in lead.arms
    )


def _way(filters: JobFilters, *, newest_first: bool, after: Place | None) -> _Way:
    bounds: list[str] = []
    values: dict[str, Any] = {}
    if filters.since is not None:
        bounds.append("submit_time >= :since")
        values["since"] = filters.since
    if filters.until is not None:
        bounds.append("submit_time < :until")
        values["until"] = filters.until
    if after is not None:
        sign = "<" if newest_first else ">"
        bounds.append(f"submit_time {sign}= :at")
        bounds.append(f"(submit_time {sign} :at OR id {sign} :after)")
        values |= {"at": after.at, "after": after.id}
    return _Way(newest_first, tuple(bounds), values)


def _run(session: Session, sql: str, values: dict[str, Any]) -> Sequence[Any]:
    times = [
        bindparam(name, type_=UtcDateTime())
        for name, value in values.items()
        if isinstance(value, datetime) and f":{name}" in sql
    ]
    statement = (
        text(sql)
        .bindparams(*times)
        .columns(column("id", BigInteger), column("submit_time", UtcDateTime()))
    )
    return session.execute(statement, values).all()
