"""The job list: one page of rows, how many there are, and where the next page begins."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime, timedelta
from typing import Any

from sqlalchemy import ColumnElement, bindparam, case, func, select
from sqlalchemy.orm import Session

from gateway.store.models import Job
from gateway.store.queries.filters import JobFilters, Scope, Sort, StateClass
from gateway.store.queries.search import Counted, Found, Place, count, counted, find, is_exact

COUNTED = 1_000
SORTED = 1_000
LARGEST_PAGE = 200
_FAR = 2**62  # beyond every id
_LAST_MICROS = 2**53  # in the year 2255, which datetime still takes


@dataclass(frozen=True, slots=True)
class JobRow:
    """A job in a list."""

    id: int
    cluster: str
    slurm_id: int
    array_job_id: int | None
    array_task: int | None
    array_tasks: int | None
    user: str
    name: str
    group: str
    partition: str
    qos: str | None
    template: str | None
    state: str
    active: bool
    reason: str | None
    submit_time: datetime
    eligible_time: datetime | None
    start_time: datetime | None
    end_time: datetime | None
    estimated_start: datetime | None
    time_limit_minutes: int | None
    nodes: int
    cpus: int
    gpus: int
    gpu_type: str | None
    node_list: str | None
    restarts: int
    exit_code: int | None
    exit_signal: int | None
    purpose: str | None


@dataclass(frozen=True, slots=True)
class JobPage:
    """`counted` is for all pages together. `looked_to`: jobs submitted before it were not looked
    at yet; `next` goes on there, even when this page is not full. `sorted_among`: only so many
    of the newest were put in order, when there are more."""

    rows: tuple[JobRow, ...]
    counted: Counted
    next: str | None
    previous: str | None
    looked_to: datetime | None = None
    sorted_among: int | None = None


@dataclass(frozen=True, slots=True)
class ClassCounts:
    """The numbers in the header's chips."""

    pending: Counted
    running: Counted
    failed: Counted  # submitted in the last week
    ended: Counted


def job_page(
    session: Session,
    scope: Scope,
    filters: JobFilters = JobFilters(),  # noqa: B008  # frozen
    *,
    now: datetime,
    sort: Sort = Sort.SUBMIT,
    descending: bool = True,
    cursor: str | None = None,
    limit: int = 50,
) -> JobPage:
    """One page. `cursor` is a former page's `next` or `previous`; a broken one is the start."""
    limit = max(1, min(limit, LARGEST_PAGE))
    if sort is not Sort.SUBMIT:
        return _sorted_page(
            session,
            scope,
            filters,
            now,
            sort=sort,
            descending=descending,
            cursor=cursor,
            limit=limit,
        )
    place, back = _parse_cursor(cursor)
    page = None
    if place is not None and back:
        page = _page_before(session, scope, filters, place, descending=descending, limit=limit)
        place = None
    if page is None and place is None and descending and not is_exact(scope, filters):
        # One walk both counts and fills the page.
        found = find(session, scope, filters, limit=COUNTED + 1)
        page = _page(session, found, None, descending=True, limit=limit)
        return replace(page, counted=counted(found, most=COUNTED))
    if page is None:
        found = find(session, scope, filters, limit=limit + 1, newest_first=descending, after=place)
        page = _page(session, found, place, descending=descending, limit=limit)
    return replace(page, counted=count(session, scope, filters, most=COUNTED))


def class_counts(session: Session, scope: Scope, *, now: datetime) -> ClassCounts:
    """How many of the jobs in scope wait, run, have failed lately, have ended."""

    def number(word: StateClass, since: datetime | None = None) -> Counted:
        filters = JobFilters(states=(word,), since=since)
        return count(session, scope, filters, most=COUNTED)

    return ClassCounts(
        pending=number(StateClass.PENDING),
        running=number(StateClass.RUNNING),
        failed=number(StateClass.FAILED, now - timedelta(days=7)),
        ended=number(StateClass.ENDED),
    )


def _page(
    session: Session, found: Found, place: Place | None, *, descending: bool, limit: int
) -> JobPage:
    shown = found.places[:limit]
    return JobPage(
        rows=_rows(session, [one.id for one in shown]),
        counted=Counted(0, more=False),
        next=_next(found, shown, descending=descending, limit=limit),
        previous=_cursor("b", shown[0] if shown else place) if place is not None else None,
        looked_to=found.looked_to if len(found.places) <= limit else None,
    )


def _next(found: Found, shown: Sequence[Place], *, descending: bool, limit: int) -> str | None:
    if len(found.places) > limit:
        return _cursor("a", shown[-1])
    if found.looked_to is None:
        return None
    # The window took in every job of that very moment: go on behind all of them.
    return _cursor("a", Place(found.looked_to, 0 if descending else _FAR))


def _page_before(
    session: Session,
    scope: Scope,
    filters: JobFilters,
    place: Place,
    *,
    descending: bool,
    limit: int,
) -> JobPage | None:
    """None when there is no whole page before it: then the first page is the answer."""
    found = find(session, scope, filters, limit=limit + 1, newest_first=not descending, after=place)
    if len(found.places) <= limit and found.looked_to is None:
        return None
    shown = tuple(reversed(found.places[:limit]))
    begin = shown[0] if len(found.places) > limit else None
    beyond = begin or Place(found.looked_to or place.at, _FAR if descending else 0)
    return JobPage(
        rows=_rows(session, [one.id for one in shown]),
        counted=Counted(0, more=False),
        next=_cursor("a", shown[-1] if shown else place),
        previous=_cursor("b", beyond),
        looked_to=found.looked_to if begin is None else None,
    )


def _sorted_page(
    session: Session,
    scope: Scope,
    filters: JobFilters,
    now: datetime,
    *,
    sort: Sort,
    descending: bool,
    cursor: str | None,
    limit: int,
) -> JobPage:
    found = find(session, scope, filters, limit=SORTED + 1)
    more = len(found.places) > SORTED or found.looked_to is not None
    ids = [one.id for one in found.places[:SORTED]]
    offset = min(_parse_offset(cursor), len(ids))
    key = _sort_key(sort, now, dialect=session.get_bind().dialect.name)
    order = key.desc() if descending else key.asc()
    query = (
        select(Job.id)
        .where(Job.id.in_(bindparam("ids", expanding=True)))
        .order_by(order.nulls_last(), Job.id.desc())
        .limit(limit)
        .offset(offset)
    )
    shown = list(session.scalars(query, {"ids": ids}))
    return JobPage(
        rows=_rows(session, shown),
        counted=Counted(len(ids), more),
        next=f"o{offset + limit}" if offset + limit < len(ids) else None,
        previous=f"o{max(0, offset - limit)}" if offset else None,
        sorted_among=len(ids) if more else None,
        looked_to=found.looked_to,
    )


def _sort_key(sort: Sort, now: datetime, *, dialect: str) -> ColumnElement[Any]:
    # What Slurm calls the end of a running job is only its limit.
    end = case((Job.active.is_(True), now), else_=Job.end_time)
    started = func.coalesce(Job.start_time, case((Job.active.is_(True), now), else_=None))
    match sort:
        case Sort.SUBMIT:
            return Job.submit_time.expression
        case Sort.START:
            return Job.start_time.expression
        case Sort.WAIT:
            return _between(Job.eligible_time, started, dialect=dialect)
        case Sort.RUN_TIME:
            return _between(Job.start_time, end, dialect=dialect)
        case Sort.GPUS:
            return Job.gpus.expression


def _between(earlier: Any, later: Any, *, dialect: str) -> ColumnElement[Any]:
    if dialect == "sqlite":
        return func.julianday(later) - func.julianday(earlier)
    return func.extract("epoch", later) - func.extract("epoch", earlier)


_ROW = [getattr(Job, name) for name in JobRow.__dataclass_fields__]


def _rows(session: Session, ids: Sequence[int]) -> tuple[JobRow, ...]:
    """The rows of these jobs, in their order."""
    if not ids:
        return ()
    query = select(*_ROW).where(Job.id.in_(bindparam("ids", expanding=True)))
    found = {row[0]: JobRow(*row) for row in session.execute(query, {"ids": list(ids)})}
    return tuple(found[id_] for id_ in ids if id_ in found)


def _cursor(kind: str, place: Place | None) -> str | None:
    if place is None:
        return None
    micros = (place.at - datetime(1970, 1, 1, tzinfo=UTC)) // timedelta(microseconds=1)
    return f"{kind}{micros}.{place.id}"


def _parse_cursor(cursor: str | None) -> tuple[Place | None, bool]:
    """The place, and whether the page before it is meant."""
    kind, text = (cursor or "")[:1], (cursor or "")[1:]
    micros, _, id_ = text.partition(".")
    if kind not in {"a", "b"} or not _digits(micros) or not _digits(id_):
        return None, False
    if int(micros) > _LAST_MICROS:
        return None, False
    at = datetime(1970, 1, 1, tzinfo=UTC) + timedelta(microseconds=int(micros))
    return Place(at, int(id_)), kind == "b"


def _parse_offset(cursor: str | None) -> int:
    text = (cursor or "").removeprefix("o")
    return int(text) if _digits(text) else 0


def _digits(text: str) -> bool:
    return len(text) < 20 and text.isascii() and text.isdigit() and int(text) <= _FAR
