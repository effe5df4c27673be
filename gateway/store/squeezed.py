"""Prepared rows (new_jobs) without what a whole batch has alike: fewer values to move and bind."""

from collections.abc import Sequence
from functools import lru_cache
from typing import Any, NamedTuple

from sqlalchemy.orm import Session

from gateway.store import history, new_jobs
from gateway.store.new_jobs import JOB, NONE, RUN, insert_job, insert_run


class Squeezed(NamedTuple):
    """`alike` are places whose value is the same in each row: none at all, or a number. `kept`
    are those that are bound, `nullable` those of them where a value may be none, and `aside`
    holds the columns that the statement does not use."""

    alike: tuple[tuple[int, Any], ...]
    kept: tuple[int, ...]
    nullable: tuple[int, ...]
    rows: list[tuple[Any, ...]]
    aside: list[tuple[Any, ...]]


NOTHING = Squeezed((), (), (), [], [])
_UNUSED = tuple(place for place, name in enumerate(JOB) if name is None)


def squeeze_jobs(rows: Sequence[tuple[Any, ...]]) -> Squeezed:
    return _squeeze(rows, _UNUSED)


def squeeze_runs(rows: Sequence[tuple[Any, ...]]) -> Squeezed:
    return _squeeze(rows, ())


def _squeeze(rows: Sequence[tuple[Any, ...]], unused: Sequence[int]) -> Squeezed:
    if not rows:
        return NOTHING
    columns = list(zip(*rows, strict=True))
    alike: list[tuple[int, Any]] = []
    kept: list[int] = []
    for place, column in enumerate(columns):
        value = column[0]
        if place in unused:
            continue
        # A text is a user's: it is always bound. The first place is the id, which tells rows apart.
        if place and (value == NONE or type(value) is int) and column.count(value) == len(column):
            alike.append((place, value))
        else:
            kept.append(place)
    return Squeezed(
        tuple(alike),
        tuple(kept),
        tuple(place for place in kept if NONE in columns[place]),
        list(zip(*(columns[place] for place in kept), strict=True)),
        list(zip(*(columns[place] for place in unused), strict=True)),
    )


def expand_jobs(given: Squeezed) -> list[tuple[Any, ...]]:
    return _expand(given, _UNUSED, len(JOB))


def expand_runs(given: Squeezed) -> list[tuple[Any, ...]]:
    return _expand(given, (), len(RUN))


def _expand(given: Squeezed, unused: Sequence[int], width: int) -> list[tuple[Any, ...]]:
    rows = []
    whole: list[Any] = [None] * width
    for place, value in given.alike:
        whole[place] = value
    for number, row in enumerate(given.rows):
        for place, value in zip(given.kept, row, strict=True):
            whole[place] = value
        for place in unused:
            whole[place] = given.aside[number][unused.index(place)]
        rows.append(tuple(whole))
    return rows


def put(session: Session, jobs: Squeezed, runs: Squeezed) -> None:
    """As new_jobs.put."""
    if not jobs.rows:
        return
    connection = session.connection()
    if connection.dialect.name != "sqlite":
        new_jobs.put(session, expand_jobs(jobs), expand_runs(runs))
        return
    before = history.highest(session)
    driver: Any = connection.connection.driver_connection
    driver.executemany(_job_statement(jobs.alike, jobs.kept, jobs.nullable), jobs.rows)
    if runs.rows:
        driver.executemany(_run_statement(runs.alike, runs.kept, runs.nullable), runs.rows)
    history.mark_since(session, before)


@lru_cache(64)
def _job_statement(
    alike: tuple[tuple[int, Any], ...], kept: tuple[int, ...], nullable: tuple[int, ...]
) -> str:
    return insert_job(_marks(JOB, alike, kept, nullable))


@lru_cache(64)
def _run_statement(
    alike: tuple[tuple[int, Any], ...], kept: tuple[int, ...], nullable: tuple[int, ...]
) -> str:
    return insert_run(_marks(RUN, alike, kept, nullable))


def _marks(
    names: Sequence[str | None],
    alike: tuple[tuple[int, Any], ...],
    kept: tuple[int, ...],
    nullable: tuple[int, ...],
) -> dict[str, str]:
    """What stands in the statement for each column: a mark, or the value of all rows."""
    marks: dict[str, str] = {}
    for number, place in enumerate(kept, start=1):
        mark = f"?{number}"
        marks[names[place] or ""] = new_jobs.or_null(mark) if place in nullable else mark
    for place, value in alike:
        marks[names[place] or ""] = "NULL" if value == NONE else str(int(value))
    return marks
