"""Run folders into tables: whatever they hold, whenever it is killed, each line once."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from datetime import timedelta
from typing import Any

import pytest
from sqlalchemy import func, select, update

from gateway.errors import BrokerRefused, BrokerSilent
from gateway.services import training
from gateway.services.clean_up import KEEP_TELEMETRY, clean_up
from gateway.store import models as t
from gateway.store import money_models as mm
from gateway.store import training_models as tm
from gateway.store.uow import Begin
from gateway.testing import builders as b
from gateway.testing.fakebroker import FakeBroker
from gateway.testing.training import RunFolder, add_portal_job, run_folder

SECOND = timedelta(seconds=1)
USER = "nlp-1"


@dataclass
class Site:
    begin: Begin
    broker: Any
    now: Any = b.NOW

    def turn(self, **options: Any) -> training.TrainingReport:
        """A turn of the worker, after the pause that the last one set."""
        self.now += timedelta(seconds=training.SLOWEST_SECONDS)
        given = {"begin": self.begin, "read": self.begin, "broker": self.broker, "now": self.now}
        return training.follow(**(given | options))

    def job(self, **facts: Any) -> int:
        return add_portal_job(self.begin, USER, **facts)

    def folder(self, job_id: int, run: str | None = None) -> RunFolder:
        return run_folder(self.begin, self.broker.files, job_id, run)

    def rows(self, model: Any) -> list[Any]:
        with self.begin() as session:
            return list(session.scalars(select(model)))

    def change(self, job_id: int, **values: Any) -> None:
        with self.begin() as session:
            session.execute(update(t.Job).where(t.Job.id == job_id).values(**values))


@pytest.fixture
def site(begin: Begin) -> Site:
    return Site(begin, FakeBroker(now=b.NOW))


def kinds(site: Site) -> list[str]:
    return [event.kind for event in site.rows(tm.TrainingEvent)]


def test_what_a_run_tells_comes_into_the_tables_once(site: Site) -> None:
    job = site.job()
    folder = site.folder(job)
    folder.event(b.NOW, "ready", world=2, step=0)
    for n in range(10):
        folder.metric(b.NOW + n * SECOND, n, loss=2.0, tokens=100, seconds=0.5)
        folder.look(b.NOW + n * SECOND, "a100-1", 50.0, 90.0)
    first = site.turn()
    folder.event(b.NOW + 20 * SECOND, "saved", step=9, seconds=1.5, bytes=10, path="/x")
    folder.metric(b.NOW + 9.5 * SECOND, 10, loss=1.0, tokens=100)
    second = site.turn()
    third = site.turn()

    assert (first.taken_up, first.lines, second.lines, third.lines) == (1, 21, 2, 0)
    assert kinds(site) == ["ready", "saved"]
    points = site.rows(tm.TrainingPoint)
    assert [(p.lines, p.first_step, p.last_step, p.tokens) for p in points] == [
        (5, 0, 4, 500),
        (6, 5, 10, 600),
    ]
    [minute] = site.rows(tm.TrainingMinute)
    assert minute.node == "a100-1"
    assert [(card[1], card[2]) for card in minute.cards] == [(10, 500.0), (10, 900.0)]


def test_a_named_run_and_an_element_of_an_array_have_folders_of_their_own(site: Site) -> None:
    named = site.job(run="long")
    element = site.job(run="long", array_job_id=70, array_task=3, slurm_id=73)
    site.folder(named, "long").event(b.NOW, "ready", world=1, step=1)
    site.folder(element, "long").event(b.NOW, "ready", world=1, step=2)
    assert site.broker.files.contents.keys() == {
        f"/home/{USER}/sluice-runs/long/events.jsonl",
        f"/home/{USER}/sluice-runs/long_3/events.jsonl",
    }
    site.turn()
    assert sorted((e.job_id, e.step) for e in site.rows(tm.TrainingEvent)) == [
        (named, 1),
        (element, 2),
    ]


def test_a_later_job_in_the_same_folder_passes_over_the_lines_of_the_first(site: Site) -> None:
    first, later = site.job(run="long"), site.job(run="long")
    site.folder(first, "long").event(b.NOW, "ready", world=1, step=0)
    site.folder(later, "long").event(b.NOW, "ready", world=1, step=50)
    site.turn()
    assert {(e.job_id, e.step) for e in site.rows(tm.TrainingEvent)} == {(first, 0), (later, 50)}


def test_a_torn_line_is_read_when_it_is_whole(site: Site) -> None:
    folder = site.folder(site.job())
    folder.event(b.NOW, "ready", world=1, step=0)
    whole = folder.files.contents[f"{folder.folder}/events.jsonl"].decode()
    folder.raw("events.jsonl", whole[:20])
    assert site.turn().lines == 1
    folder.raw("events.jsonl", whole[20:])
    assert site.turn().lines == 1


@pytest.mark.parametrize(
    "text",
    [
        "x" * 3_000_000 + "\n",
        '{"at": NaN, "kind": "saved", "job": "KEY"}\n',
        '{"at": 1e999, "kind": "saved", "job": "KEY"}\n',
        '{"at": ' + "9" * 3900 + ', "kind": "saved", "job": "KEY"}\n',
        '{"at": 99999999999, "kind": "saved", "job": "KEY"}\n',
        '["KEY"]\nnull\n\n\n{"job": "KEY"\n',
        "\x00\x01\ufffd" * 50 + "\n",
    ],
    ids=["ten-megabytes", "nan", "infinite", "huge", "future", "shapes", "binary"],
)
def test_hostile_lines_do_not_break_the_turn_nor_hide_what_follows(site: Site, text: str) -> None:
    folder = site.folder(site.job())
    folder.event(b.NOW, "ready", world=1, step=0)
    for file in ("events.jsonl", "metrics.jsonl", "telemetry/a100-1.jsonl"):
        folder.raw(file, text.replace("KEY", folder.key))
    folder.files.contents[f"{folder.folder}/events.jsonl"] += b"\xff\xfe\xff\n"
    folder.event(b.NOW, "done", step=5)
    for _ in range(5):
        site.turn()
    assert kinds(site) == ["ready", "done"]
    assert not site.rows(tm.TrainingPoint)


def test_a_file_that_is_written_anew_adds_only_what_is_newer(site: Site) -> None:
    folder = site.folder(site.job())
    folder.event(b.NOW, "ready", world=1, step=0)
    for n in range(9):
        folder.metric(b.NOW + n * SECOND, n, tokens=10)
    site.turn()
    path = f"{folder.folder}/metrics.jsonl"
    folder.files.write(path, USER, "")
    folder.metric(b.NOW + 8 * SECOND, 8, tokens=10)
    folder.metric(b.NOW + 9 * SECOND, 9, tokens=10)
    site.turn()
    assert sum(point.tokens for point in site.rows(tm.TrainingPoint)) == 100


def test_missing_files_are_no_error_and_are_looked_for_ever_less(site: Site) -> None:
    job = site.job()
    report = site.turn()
    assert (report.jobs, report.calls, report.error_code) == (1, 3, None)
    for _ in range(6):
        site.turn()
    [row] = site.rows(tm.TrainingFollow)
    assert row.job_id == job
    assert (row.due_at - site.now).total_seconds() == training.SLOWEST_SECONDS


def test_a_run_is_read_for_a_while_after_its_end_and_then_never(site: Site) -> None:
    job = site.job()
    folder = site.folder(job)
    folder.event(b.NOW, "ready", world=1, step=0)
    site.turn()
    site.change(job, active=False, state="COMPLETED", end_time=site.now)
    folder.event(site.now, "end", code=0, action="exit", reason="", step=5)
    site.turn()
    assert kinds(site) == ["ready", "end"]
    site.now += training.LINGER
    site.turn()
    [row] = site.rows(tm.TrainingFollow)
    assert row.due_at is None
    assert site.turn().jobs == 0


def test_one_that_has_ended_does_not_hold_up_those_that_run(site: Site) -> None:
    job = site.job()
    folder = site.folder(job)
    folder.event(site.now, "end", code=0, action="exit", reason="", step=5)
    site.turn()
    site.change(job, active=False, state="COMPLETED", end_time=site.now)
    site.turn()
    [row] = site.rows(tm.TrainingFollow)
    assert (row.due_at - site.now).total_seconds() == training.SLOWEST_SECONDS


def test_a_job_that_came_and_went_between_two_polls_is_read_too(site: Site) -> None:
    job = site.job(state="COMPLETED", end_time=b.NOW + SECOND)
    site.folder(job).event(b.NOW, "done", step=5)
    site.turn()
    assert kinds(site) == ["done"]


@pytest.mark.parametrize("facts", [{"token": None}, {"user": "nlp-2"}, {"start_time": None}])
def test_only_jobs_of_the_portal_that_have_started_are_read(
    site: Site, facts: dict[str, Any]
) -> None:
    """A job of somebody else that carries our token is not ours."""
    job = site.job()
    site.change(job, **facts)
    assert site.turn().taken_up == 0
    assert not site.broker.calls.count("read-file")


def test_files_are_read_as_their_owner_and_a_strangers_stay_shut(site: Site) -> None:
    folder = site.folder(site.job())
    folder.event(b.NOW, "ready", world=1, step=0)
    folder.files.owners[f"{folder.folder}/events.jsonl"] = "nlp-2"
    report = site.turn()
    assert (report.lines, report.error_code) == (0, None)


@dataclass
class Breaking:
    """A broker that fails for some paths."""

    inner: FakeBroker
    error: Exception
    where: Callable[[str], bool]

    def read_file(self, path: str, **options: Any) -> Any:
        if self.where(path):
            raise self.error
        return self.inner.read_file(path, **options)


def test_a_broker_that_does_not_answer_for_one_job_does_not_stop_the_others(site: Site) -> None:
    bad, good = site.job(name="bad"), site.job(name="good")
    site.folder(good).event(b.NOW, "ready", world=1, step=0)
    broken = Breaking(site.broker, BrokerSilent("no answer"), lambda path: "/bad-" in path)
    assert site.turn(broker=broken).error_code == "slurm_unknown"
    site.now -= timedelta(seconds=100)  # before the bad one is due again
    site.turn(broker=broken)
    assert kinds(site) == ["ready"]
    assert bad != good


def test_a_file_system_that_hangs_is_asked_once_a_turn(site: Site) -> None:
    folder = site.folder(site.job())
    folder.event(b.NOW, "ready", world=1, step=0)
    site.turn()
    hung = Breaking(site.broker, BrokerRefused("slow", code="file_timeout"), lambda _: True)
    assert site.turn(broker=hung).calls == 1


def test_the_turns_time_is_bounded_and_everyone_comes_to_their_turn(site: Site) -> None:
    jobs = [site.job(name=f"job-{n}") for n in range(12)]
    for job in jobs:
        site.folder(job).event(b.NOW, "ready", world=1, step=0)

    def watch() -> Iterator[float]:
        moment = 0.0
        while True:
            yield moment
            moment += 1.0

    heard: set[int] = set()
    for _ in range(3):
        ticks = watch()
        report = site.turn(stopwatch=lambda: next(ticks), budget_seconds=4.0)  # noqa: B023
        assert report.jobs == 4
        heard = {event.job_id for event in site.rows(tm.TrainingEvent)}
    assert heard == set(jobs)


def test_killed_before_its_commit_it_reads_the_same_again_and_nothing_twice(site: Site) -> None:
    folder = site.folder(site.job())
    folder.event(b.NOW, "ready", world=1, step=0)
    folder.metric(b.NOW, 1, tokens=7)
    commits = at = 0

    @contextmanager
    def killing() -> Iterator[Any]:
        nonlocal commits
        with site.begin() as session:
            yield session
            commits += 1
            if commits == at:
                raise KeyboardInterrupt

    # Taken up; taken up, then kept; kept, then set for the next turn.
    for at in (1, 2, 2):  # noqa: B007  # `killing` reads it
        commits = 0
        with pytest.raises(KeyboardInterrupt):
            site.turn(begin=killing)
    site.turn()
    assert kinds(site) == ["ready"]
    assert [point.tokens for point in site.rows(tm.TrainingPoint)] == [7]


def test_no_call_to_the_broker_is_made_inside_a_transaction(site: Site) -> None:
    from gateway.wire.guard import inside_transaction

    folder = site.folder(site.job())
    folder.event(b.NOW, "ready", world=1, step=0)
    asked = []

    def where(_: str) -> bool:
        asked.append(inside_transaction.get())
        return False

    site.turn(broker=Breaking(site.broker, RuntimeError(), where))
    assert asked
    assert not any(asked)


def test_the_saves_of_a_long_run_push_out_older_saves_and_nothing_else(
    site: Site, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("gateway.store.training.MOST_MANY", 3)
    folder = site.folder(site.job())
    folder.event(b.NOW, "ready", world=1, step=0)
    for n in range(9):
        folder.event(b.NOW + n * SECOND, "saved", step=n, seconds=1, bytes=1, path="/x")
    site.turn()
    assert [(e.kind, e.step) for e in site.rows(tm.TrainingEvent)] == [
        ("ready", 0),
        ("saved", 6),
        ("saved", 7),
        ("saved", 8),
    ]


def test_nothing_in_the_files_touches_money(site: Site) -> None:
    folder = site.folder(site.job())
    folder.event(b.NOW, "ready", world=1, step=0, amount=5, card_seconds=9, job_id=1)
    folder.metric(b.NOW, 1, tokens=2**60, cost=-5)
    site.turn()
    with site.begin() as session:
        for model in (mm.Entry, mm.Charge, mm.Hold, mm.Notice, t.Event):
            assert session.scalar(select(func.count()).select_from(model)) == 0


def test_old_telemetry_is_forgotten_and_the_steps_stay(site: Site) -> None:
    job = site.job()
    folder = site.folder(job)
    folder.event(b.NOW, "ready", world=1, step=0)
    folder.metric(b.NOW, 1)
    folder.look(b.NOW, "a100-1", 50.0)
    site.turn()
    site.change(job, active=False, state="COMPLETED", end_time=site.now)
    site.now += training.LINGER * 2
    site.turn()
    clean_up(begin=site.begin, now=site.now + KEEP_TELEMETRY - timedelta(days=1))
    assert len(site.rows(tm.TrainingMinute)) == 1
    clean_up(begin=site.begin, now=site.now + KEEP_TELEMETRY + timedelta(days=1))
    assert not site.rows(tm.TrainingMinute)
    assert len(site.rows(tm.TrainingPoint)) == 1


def test_of_very_many_nodes_all_are_read_in_some_turns(
    site: Site, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(training, "MOST_NODES", 3)
    job = site.job(node_list="n[1-8]")
    folder = site.folder(job)
    folder.event(b.NOW, "ready", world=1, step=0)
    for n in range(1, 9):
        folder.look(b.NOW, f"n{n}", 50.0)
    for _ in range(4):
        site.turn()
    assert {minute.node for minute in site.rows(tm.TrainingMinute)} == {
        f"n{n}" for n in range(1, 9)
    }


def test_lines_of_before_the_job_are_not_its_own(site: Site) -> None:
    """A cluster that was cleared counts from one again: the key alone is not enough."""
    folder = site.folder(site.job())
    old = replace(folder)
    old.event(b.NOW - timedelta(days=30), "done", step=9)
    folder.event(b.NOW, "ready", world=1, step=0)
    site.turn()
    assert kinds(site) == ["ready"]
