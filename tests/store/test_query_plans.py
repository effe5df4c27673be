"""The bench needs a million jobs; that each statement walks an index can be seen with none."""

from collections.abc import Iterator
from typing import Any

import pytest
from sqlalchemy import Engine, event, text

from gateway.store import smoke
from gateway.store import training as following
from gateway.store.queries import costs, measured, preemptions, training
from gateway.store.queries.cluster import cluster
from gateway.store.queries.filters import JobFilters, Scope, Sort
from gateway.store.queries.job import open_submissions
from gateway.store.queries.jobs import class_counts, job_page
from gateway.store.queries.people import choices
from gateway.store.uow import Begin
from gateway.testing import builders as b
from gateway.testing.training import add_portal_job

SCOPES = [Scope.mine("member"), Scope.of_groups(("nlp", "vision"), "member"), Scope.all()]
FILTERS = [
    JobFilters(),
    JobFilters(states=("active",)),
    JobFilters(states=("FAILED",), group="nlp", user="member"),
    JobFilters(partition="a100", qos="normal", template="ddp", since=b.NOW),
    JobFilters(name="train"),
    JobFilters(name="*train"),
    JobFilters(slurm_id=7),
]


@pytest.fixture
def statements(engine: Engine) -> Iterator[list[tuple[str, Any]]]:
    if engine.dialect.name != "sqlite":
        pytest.skip("these are SQLite's plans")
    seen: list[tuple[str, Any]] = []

    def note(_c: Any, _cursor: Any, sql: str, values: Any, *_: Any) -> None:
        seen.append((sql, values))

    event.listen(engine, "before_cursor_execute", note)
    yield seen
    event.remove(engine, "before_cursor_execute", note)


def plans(
    engine: Engine, statements: list[tuple[str, Any]], *, about: str = "FROM job"
) -> Iterator[tuple[str, str]]:
    wanted = [(sql, values) for sql, values in statements if about in sql.replace(" \n", " ")]
    with engine.connect() as connection:
        for sql, values in wanted:
            for row in connection.exec_driver_sql(f"EXPLAIN QUERY PLAN {sql}", values):
                yield sql, str(row[3])


@pytest.mark.parametrize("cursor", [None, "a1700000000000000.5", "b1700000000000000.5"])
def test_no_page_of_the_list_reads_the_whole_table_or_sorts_it(
    engine: Engine, read: Begin, statements: list[tuple[str, Any]], cursor: str | None
) -> None:
    with read() as session:
        for scope in SCOPES:
            for filters in FILTERS:
                job_page(session, scope, filters, now=b.NOW, cursor=cursor)
            job_page(session, scope, now=b.NOW, sort=Sort.GPUS)
            class_counts(session, scope, now=b.NOW)
        choices(session)
        cluster(session)

    found = list(plans(engine, statements))

    assert found
    for sql, step in found:
        assert step != "SCAN job", sql
        few = "slurm_id" in sql or "name >=" in sql or "job.id IN" in sql
        assert few or "TEMP B-TREE FOR ORDER BY" not in step, (sql, step)


def test_the_costs_of_a_list_and_of_a_job_walk_indexes(
    engine: Engine, read: Begin, statements: list[tuple[str, Any]]
) -> None:
    with read() as session:
        costs.of_jobs(session, [1, 2, 3])
        costs.of_job(session, 1)
        costs.of_submission(session, 1)
        costs.credit(session, ["nlp", "vision"], now=b.NOW)
        costs.default_group(session, "member")
    found = list(plans(engine, statements, about="FROM"))
    assert found
    for sql, step in found:
        assert not step.startswith("SCAN") or step.startswith(("SCAN anon", "SCAN CONSTANT")), (
            sql,
            step,
        )


def test_a_persons_open_submissions_are_found_by_their_state(
    engine: Engine, read: Begin, statements: list[tuple[str, Any]]
) -> None:
    with read() as session:
        open_submissions(session, 1, now=b.NOW)
    found = list(plans(engine, statements, about="FROM submission"))

    assert len(found) == 4
    for sql, step in found:
        assert "person_id_state_created_at" in step, (sql, step)


def test_what_training_runs_told_is_found_by_indexes(
    engine: Engine, begin: Begin, read: Begin, statements: list[tuple[str, Any]]
) -> None:
    job = add_portal_job(begin, run="long")
    statements.clear()
    with read() as session:
        following.unknown(session, ended_since=b.NOW, limit=10)
        following.due(session, now=b.NOW, limit=10)
        following.cursors(session, [job])
        training.brief(session, job)
        training.linked(session, job)
        training.events(session, [job])
        training.points(session, job, places=100)
        training.use_of_cards(session, job, places=100)
        training.idle_minutes(session, job)
        training.nodes_now(session, job, since=0.0)
        training.charged(session, [job])
        training.rule(session, "nlp")
    found = list(plans(engine, statements, about="FROM"))
    assert found
    for sql, step in found:
        assert not step.startswith("SCAN"), (sql, step)
    started = [step for sql, step in found if "start_time IS NOT NULL" in sql]
    assert any("ix_job_started_token" in step for step in started)
    charts = [step for sql, step in found if "avg(" in sql or "HAVING" in sql]
    assert all("COVERING INDEX ix_training_minute_sums" in s for s in charts if "SEARCH" in s)


def test_the_database_has_no_statistics_that_a_plan_could_lean_on(engine: Engine) -> None:
    """ANALYZE would make plans depend on when it ran."""
    if engine.dialect.name != "sqlite":
        pytest.skip("PostgreSQL keeps its own")
    with engine.connect() as connection:
        found = connection.execute(
            text("select count(*) from sqlite_master where name like 'sqlite_stat%'")
        )
        assert found.scalar() == 0


def test_what_the_planner_and_the_smoke_jobs_ask_walks_an_index(
    engine: Engine, begin: Begin, read: Begin, statements: list[tuple[str, Any]]
) -> None:
    person = b.add_person(begin)
    first = b.add_job(begin, purpose="smoke", state="FAILED", end_time=b.NOW)
    smoke_id = b.add_submission(begin, person, purpose="smoke", job_id=first, state="accepted")
    b.add_submission(begin, person, after_id=smoke_id, job_id=b.add_job(begin), state="accepted")
    statements.clear()
    with read() as session:
        preemptions.of_qos(session, ["spot"])
        measured.ended(session)
        smoke.waiting(session)
        assert len(smoke.stranded(session, since=b.NOW)) == 1
    asked = list(statements)
    found = [
        plan
        for about in ("FROM run", "FROM job", "FROM submission")
        for _, plan in plans(engine, asked, about=about)
    ]
    indexes = ["ix_run_qos_end_time", "ix_job_started_token"]
    indexes += ["ix_job_purpose_end_time", "ix_submission_after_id"]
    assert [index for index in indexes if not any(index in plan for plan in found)] == []
    assert not [plan for plan in found if plan.startswith("SCAN")], found
