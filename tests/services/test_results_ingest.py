"""Metrics under names of one's own, from the folder and from the output, into the tables once."""

import math
from dataclasses import dataclass
from datetime import timedelta
from typing import Any

import pytest

from gateway.core.results import MOST_CELLS, MOST_NAMES, Result
from gateway.services import results, training
from gateway.store import models as t
from gateway.store import results as store
from gateway.store.uow import Begin
from gateway.testing import builders as b
from gateway.testing.fakebroker import FakeBroker
from gateway.testing.training import RunFolder, add_portal_job, run_folder

USER = "nlp-1"
OUTPUT = f"/home/{USER}/train-1.out"
SECOND = timedelta(seconds=1)


@dataclass
class Site:
    begin: Begin
    broker: Any
    now: Any = b.NOW

    def turn(self) -> training.TrainingReport:
        self.now += timedelta(seconds=training.SLOWEST_SECONDS)
        return training.follow(
            begin=self.begin, read=self.begin, broker=self.broker, now=self.now, budget_seconds=60
        )

    def job(self, **facts: Any) -> int:
        return add_portal_job(self.begin, USER, **({"output": OUTPUT} | facts))

    def prints(self, text: str | bytes) -> None:
        files = self.broker.files
        raw = text if isinstance(text, bytes) else text.encode()
        files.contents[OUTPUT] = files.contents.get(OUTPUT, b"") + raw
        files.owners[OUTPUT] = USER

    def folder(self, job_id: int) -> RunFolder:
        return run_folder(self.begin, self.broker.files, job_id)

    def results(self, job_id: int) -> dict[str, Result]:
        with self.begin() as session:
            return {one.name: one for one in results.last(session, job_id)}

    def curve(self, job_id: int, name: str) -> Any:
        with self.begin() as session:
            return store.curves(session, job_id, [name])[0]


@pytest.fixture
def site(begin: Begin) -> Site:
    return Site(begin, FakeBroker(now=b.NOW))


def test_printed_lines_are_results_once(site: Site) -> None:
    job = site.job()
    site.prints("hello\n::metric loss=0.5 acc=0.25 step=1\n")
    site.turn()
    site.prints("::metric loss=0.25 acc=0.5 step=2\nbye\n")
    site.turn()
    site.turn()
    loss, acc = site.results(job)["loss"], site.results(job)["acc"]
    assert (loss.count, loss.last, loss.step, loss.low, loss.high) == (2, 0.25, 2, 0.25, 0.5)
    assert (loss.best, acc.best) == ((0.25, 2), (0.5, 2))
    cells = site.curve(job, "loss").by_step.cells
    assert [(cell.step, cell.last) for cell in cells] == [(1, 0.5), (2, 0.25)]
    assert loss.at is not None
    assert b.NOW.timestamp() < loss.at <= site.now.timestamp()


def test_lines_of_the_folder_are_results_beside_the_trainings_own(site: Site) -> None:
    job = site.job()
    folder = site.folder(job)
    folder.metric(b.NOW, 7, loss=2.0, tokens=100, seconds=1.0, **{"val/acc": 0.5, "note": "x"})
    folder.line("metrics.jsonl", b.NOW + SECOND, reward=3)  # without a step
    site.turn()
    found = site.results(job)
    assert found.keys() == {"loss", "val/acc", "reward"}
    assert (found["reward"].step, found["reward"].last) == (None, 3.0)
    assert site.curve(job, "reward").by_step.cells == ()


def test_what_is_no_finite_number_is_counted_and_not_kept(site: Site) -> None:
    job = site.job()
    site.prints("::metric loss=1 step=1\n::metric loss=nan step=2\n::metric loss=inf\n")
    site.prints("::metric loss=1e400\n::metric loss=-Infinity\n::metric loss=2 step=3\n")
    folder = site.folder(job)
    folder.raw(
        "metrics.jsonl", f'{{"at": {b.NOW.timestamp()}, "job": "{folder.key}", "acc": NaN}}\n'
    )
    folder.raw(
        "metrics.jsonl", f'{{"at": {b.NOW.timestamp()}, "job": "{folder.key}", "acc": 1e400}}\n'
    )
    site.turn()
    found = site.results(job)
    assert (found["loss"].count, found["loss"].odd, found["loss"].last) == (2, 4, 2.0)
    assert (found["acc"].count, found["acc"].odd, found["acc"].last) == (0, 2, None)


def test_hostile_lines_are_passed_over_and_hide_nothing(site: Site) -> None:
    job = site.job()
    names = ["<b>x</b>=1", "a b=1", "é=1", "a;b=1", "=1", "a=", "a=1_0", "a=0x1", "x" * 65 + "=1"]
    site.prints("".join(f"::metric {name}\n" for name in names))
    site.prints(b"\xff\xfe\x00\x01" * 100_000 + b"\n")
    site.prints("50%\r100%\r::metric after=1\r\n[default0]:::metric ranked=2\n")
    site.prints("said ::metric quoted=1\n::metric " + "y=1 " * 2000 + "\n::metric step=1e300 s=1\n")
    for _ in range(3):
        site.turn()
    found = {name: one.last for name, one in site.results(job).items()}
    assert found == {"after": 1.0, "ranked": 2.0, "s": 1.0, "b": 1.0}


def test_a_line_that_is_cut_is_read_when_it_is_whole(site: Site) -> None:
    job = site.job()
    site.prints("::metric loss=0.1")
    site.turn()
    assert site.results(job) == {}
    site.prints("25 step=4\n::met")
    site.turn()
    site.prints("ric loss=0.5 step=5\n")
    site.turn()
    assert (site.results(job)["loss"].count, site.results(job)["loss"].low) == (2, 0.125)


def test_a_hundred_thousand_lines_stay_small_and_none_is_lost(site: Site) -> None:
    job = site.job()
    site.prints("".join(f"::metric loss={1000 / (n + 1):.6f} step={n}\n" for n in range(100_000)))
    turns = 0
    while site.turn().lines:
        turns += 1
        assert turns < 20
    found, curve = site.results(job)["loss"], site.curve(job, "loss")
    assert (found.count, found.step, found.high) == (100_000, 99_999, 1000.0)
    assert len(curve.by_step.cells) <= MOST_CELLS
    assert len(curve.by_time.cells) <= MOST_CELLS
    assert sum(cell.count for cell in curve.by_step.cells) == 100_000


def test_a_restart_that_repeats_steps_counts_instead_of_what_was_before(site: Site) -> None:
    job = site.job()
    folder = site.folder(job)
    for step in range(10):
        folder.metric(b.NOW + step * SECOND, step, acc=0.1)
    folder.restart = 1
    with site.begin() as session:
        session.get_one(t.Job, job).restarts = 1
    for step in range(5, 8):
        folder.metric(b.NOW + (20 + step) * SECOND, step, acc=0.9)
    site.turn()
    cells = site.curve(job, "acc").by_step.cells
    assert [cell.mean for cell in cells] == [0.1] * 5 + [0.9] * 3 + [0.1] * 2
    assert {cell.count for cell in cells} == {1}


def test_no_more_names_than_are_kept_and_it_is_said(site: Site) -> None:
    job = site.job()
    for n in range(100):
        site.prints(f"::metric m{n}={n}\n")
    site.turn()
    with site.begin() as session:
        assert store.gap(session, job).names == 100 - MOST_NAMES
    assert len(site.results(job)) == MOST_NAMES


def test_an_output_that_outgrows_the_reading_is_caught_up_with_and_it_is_said(
    site: Site, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(training, "MOST_BEHIND_BYTES", 10_000)
    monkeypatch.setattr(training, "CAUGHT_UP_BYTES", 1_000)
    job = site.job()
    site.prints("::metric a=1\n" + "noise\n" * 10_000 + "::metric a=2\n")
    site.turn()
    with site.begin() as session:
        assert store.gap(session, job).skipped_bytes == 60_026 - 1_000
    assert (site.results(job)["a"].count, site.results(job)["a"].last) == (1, 2.0)


def test_an_output_that_a_restart_wrote_anew_is_read_from_its_beginning(site: Site) -> None:
    job = site.job()
    site.prints("::metric a=1\n::metric a=2\n")
    site.turn()
    site.broker.files.contents[OUTPUT] = b"::metric a=3\n"
    site.turn()
    assert (site.results(job)["a"].count, site.results(job)["a"].last) == (3, 3.0)


def test_the_largest_numbers_do_not_break_the_means(site: Site) -> None:
    job = site.job()
    site.prints(
        "::metric a=1.7e308 step=1\n::metric a=-1.7e308 step=1\n::metric a=1.7e308 step=1\n"
    )
    site.turn()
    [cell] = site.curve(job, "a").by_step.cells
    assert math.isfinite(cell.mean)
    assert (cell.low, cell.high, cell.count) == (-1.7e308, 1.7e308, 3)
