"""The back-test: asks with what was known then, notices a planted leak, and scores by hand."""

import json
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path

import duckdb
import numpy as np
import pytest
from click.testing import CliRunner

from gateway.cli import main
from gateway.core.past_runs import COLUMNS
from gateway.core.wait_figures import Wait
from gateway.history.forecasting import backtest as module
from gateway.history.forecasting.backtest import (
    Leak,
    Score,
    TooFewJobs,
    backtest,
    changed_after,
)
from gateway.history.forecasting.features import Questions, Queue, questions
from gateway.history.forecasting.rows import NEVER, Rows, make, read
from gateway.history.forecasting.trace import read_trace
from gateway.history.importing.load import Given

SHARED = Path(__file__).resolve().parents[2].parent / "shared"
GRAHAM = SHARED / "traces" / "drac_graham_2021.csv.gz"
NOW = datetime(2026, 3, 2, 12, tzinfo=UTC)
DAY = 86_400


def past(number: int = 3000) -> Rows:
    """Twenty days of jobs whose wait follows their time limit and the group's luck of the day."""
    chance = np.random.default_rng(2)
    asked = np.sort(chance.integers(0, 20 * DAY, number) + 1_700_000_000)
    group = chance.integers(0, 4, number)
    luck = chance.lognormal(0, 0.5, (4, 21))[group, (asked - 1_700_000_000) // DAY]
    minutes = chance.choice([30, 600, 2880], number)
    wait = (minutes * 20 * luck * chance.lognormal(0, 0.4, number)).astype(np.int64)
    started = chance.random(number) > 0.03
    return make(
        {
            "asked": asked,
            "left": asked + wait,
            "started": started,
            "end": asked + wait + np.where(started, 5000, 0),
            "counts": np.ones(number, dtype=bool),
            "group": group.astype(str),
            "partition": np.full(number, "gpu"),
            "qos": np.random.default_rng(9).choice(["", "normal", "high"], number),
            "gpu_type": np.random.default_rng(8).choice(["", "a100", "h100"], number),
            "gpus": chance.choice([0, 1, 4, 8, 16], number),
            "nodes": np.ones(number, dtype=int),
            "cpus": np.full(number, 4),
            "minutes": minutes,
        }
    )


def test_forecasts_hold_as_often_as_they_say_and_beat_the_baselines() -> None:
    report = backtest(past())
    assert report.learned == 2100
    assert report.total.jobs + report.unstarted == 900
    assert report.unstarted > 10
    assert report.trained == len(range(report.since, int(past().asked[-1]) + 1, DAY))
    assert 0.4 < report.total.coverage[0] < 0.6
    assert 0.8 < report.total.coverage[1] < 0.97
    assert min(report.total.improvement) > 20
    assert sum(one.jobs for one in report.by_gpu_class.values()) == report.total.jobs
    assert set(report.by_gpu_class) == {"0", "1", "2-4", "5-8", ">8"}
    assert report.by_partition["gpu"] == report.total


def own_start(rows: Rows, _: Questions) -> "np.ndarray[tuple[int], np.dtype[np.int64]]":
    return rows.left


def wait_of_the_job_before(
    rows: Rows, _: Questions
) -> "np.ndarray[tuple[int], np.dtype[np.int64]]":
    """It was submitted before, but had not always started."""
    return np.concatenate([[0], (rows.left - rows.asked)[:-1]])


@pytest.mark.parametrize("leak", [own_start, wait_of_the_job_before])
def test_a_planted_leak_is_caught(leak: module.Extra) -> None:
    with pytest.raises(Leak):
        backtest(past(), extra=leak)


def test_a_harmless_feature_is_no_leak() -> None:
    backtest(past(), extra=lambda rows, _: rows.asked % 7)


@pytest.mark.parametrize("day", [3, 11, 17])
def test_no_feature_notices_a_changed_future(day: int) -> None:
    rows = past()
    moment = 1_700_000_000 + day * DAY
    other = changed_after(rows, moment)
    until = int(np.searchsorted(rows.asked, moment))
    waiting = (rows.left >= moment)[:until]
    runs = (rows.left < moment)[:until] & (rows.end >= moment)[:until]
    assert (rows.left != other.left)[:until][waiting].mean() > 0.99
    assert (rows.end != other.end)[:until][runs & rows.started[:until]].all()
    assert not (rows.minutes == other.minutes)[until:].all()
    one, two = (Queue.of(each).features(questions(each))[:until] for each in (rows, other))
    assert np.array_equal(one, two)


def test_baselines_and_losses_by_hand() -> None:
    """Waits of 10, 20, 30 s that have ended; the fourth is asked after them and waits 40 s."""
    rows = make(
        {
            "asked": np.array([0, 1, 2, 100]),
            "left": np.array([10, 21, 32, 140]),
            "end": np.array([11, 22, 33, 141]),
            "started": np.ones(4, dtype=bool),
            "counts": np.ones(4, dtype=bool),
            "group": np.full(4, "g"),
            "partition": np.array(["a", "a", "b", "a"]),
            "qos": np.full(4, ""),
            "gpu_type": np.full(4, ""),
            **{name: np.ones(4, dtype=int) for name in ("gpus", "nodes", "cpus", "minutes")},
        }
    )
    found = module._baseline(rows, rows.partition)
    assert found[3].tolist() == [10, 20]
    assert found[2].tolist() == [0, 0]  # nothing had started
    loss = module._pinball(np.array([40.0, 0.0]), np.array([[10.0, 20.0], [10.0, 20.0]]))
    assert loss == pytest.approx(((15 + 5) / 2, (18 + 2) / 2))
    score = Score(2, (0.5, 0.9), (6.0, 9.0), ((8.0, 10.0), (12.0, 9.0)))
    assert score.better == (8.0, 9.0)
    assert score.improvement == (25.0, 0.0)


def test_too_few_jobs_are_said() -> None:
    with pytest.raises(TooFewJobs):
        backtest(past(1))
    with pytest.raises(TooFewJobs):
        backtest(past(200))
    nobody = replace(past(500), started=np.zeros(500, dtype=bool))
    with pytest.raises(TooFewJobs):
        backtest(nobody)


def test_the_command_says_how_good_forecasts_were(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("SLUICE_HOME", str(tmp_path / "home"))
    rows, file = past(), tmp_path / "jobs.csv"
    lines = [
        "JobID,Submit,Eligible,Start,End,Account,Partition,NNodes,NCPUS,ReqGPUS,Timelimit,State"
    ]
    for at in range(len(rows)):
        asked, left, end = (
            datetime.fromtimestamp(int(one[at]), UTC).strftime("%Y-%m-%dT%H:%M:%S")
            for one in (rows.asked, rows.left, rows.end)
        )
        limit = f"{rows.minutes[at] // 60:02d}:{rows.minutes[at] % 60:02d}:00"
        state = "COMPLETED" if rows.started[at] else "CANCELLED"
        start = left if rows.started[at] else "Unknown"
        lines.append(
            f"{at + 1},{asked},{asked},{start},{end},g{rows.group[at]},gpu,1,4,{rows.gpus[at]},"
            f"{limit},{state}"
        )
    file.write_text("\n".join(lines) + "\n")
    answer = CliRunner().invoke(
        main, ["forecast", "backtest", str(file), "--timezone", "UTC", "--json"]
    )
    assert answer.exit_code == 0, answer.output
    facts = json.loads(answer.output)
    assert facts["leaks_checked"] is True
    assert facts["jobs"] == 3000
    assert facts["held"] == 0
    assert 0.4 < facts["total"]["p50"]["coverage"] < 0.6
    assert facts["total"]["p90"]["improvement_percent"] > 20
    shown = CliRunner().invoke(main, ["forecast", "backtest", str(file), "--train", "0.9"])
    assert "no forecast until then with it" in shown.output
    assert "partition gpu" in shown.output
    file.write_text("\n".join(lines[:150]) + "\n")
    few = CliRunner().invoke(main, ["forecast", "backtest", str(file)])
    assert few.exit_code == 1
    assert "No forecast could be made" in few.output


def row(**given: object) -> list[object]:
    one: dict[str, object] = {
        "slurm_id": 1,
        "group": "nlp",
        "partition": "gpu",
        "submit_time": NOW - timedelta(hours=5),
        "eligible_time": NOW - timedelta(hours=4),
        "start_time": NOW - timedelta(hours=3),
        "end_time": NOW - timedelta(hours=1),
        "gpus": 2,
        "nodes": 1,
        "cpus": 8,
        "limit_minutes": 600,
        "restarts": 0,
    } | given
    naive = {k: v.replace(tzinfo=None) if isinstance(v, datetime) else v for k, v in one.items()}
    return [naive.get(name) for name in COLUMNS]


def the_view(*rows: list[object]) -> duckdb.DuckDBPyConnection:
    connection = duckdb.connect()
    columns = ", ".join(f'"{name}" {kind.value}' for name, kind in COLUMNS.items())
    connection.execute(f"CREATE TABLE waits ({columns})")
    marks = ", ".join("?" for _ in COLUMNS)
    connection.executemany(f"INSERT INTO waits VALUES ({marks})", rows)
    return connection


def test_rows_of_the_view_are_read_by_what_they_are() -> None:
    hour = timedelta(hours=1)
    connection = the_view(
        row(),
        row(slurm_id=2, start_time=None, end_time=None, eligible_time=NOW - 2 * hour),  # waits
        row(slurm_id=3, start_time=None, end_time=NOW - hour, eligible_time=NOW - 2.5 * hour),
        row(slurm_id=4, eligible_time=None, start_time=None, end_time=None),  # held: not in line
        row(slurm_id=5, restarts=1, qos="normal"),
        row(slurm_id=6, cause_array_throttle=60),
        row(slurm_id=7, source="elsewhere"),
        row(slurm_id=8, limit_minutes=None, gpus=None, group=None, end_time=None),
        row(
            slurm_id=9,
            submit_time=NOW - timedelta(days=200),
            eligible_time=NOW - timedelta(days=200),
        ),
        row(slurm_id=10, eligible_time=NOW + hour, start_time=None, end_time=None),
    )
    rows = read(connection, now=NOW)
    assert len(rows) == 6
    assert rows.asked.tolist() == sorted(rows.asked.tolist())
    assert int((rows.left == NEVER).sum()) == 1
    assert int(rows.started.sum()) == 4
    assert int(rows.counts.sum()) == 4
    assert rows.minutes.min() == -1
    assert rows.groups.tolist() == ["", "nlp"]
    assert rows.qoses.tolist() == ["normal"]
    assert sorted(rows.qos.tolist()) == [-1] * 5 + [0]
    assert set((rows.left - rows.asked)[rows.started].tolist()) == {3600}
    by_submit = read(connection, now=NOW, wait=Wait.SUBMIT)
    assert set((by_submit.left - by_submit.asked)[by_submit.started].tolist()) == {7200}
    assert len(read(connection, now=NOW, most=2)) == 2


def test_the_real_trace_is_read_and_its_features_know_no_future() -> None:
    if not GRAHAM.is_file():
        pytest.skip("the traces beside the checkout are not here")
    given = Given(str(GRAHAM), "csv", "graham", "UTC", NOW)
    trace = read_trace(given, wait=Wait.SUBMIT)
    rows = trace.rows
    assert (len(rows), trace.held) == (171_584, 0)
    assert int((rows.left - rows.asked).sum()) == 24_749_366_102
    rows = rows.take(np.arange(0, 171_584, 7))
    moment = int(rows.asked[20_000])
    until = int(np.searchsorted(rows.asked, moment))
    one, two = (
        Queue.of(each).features(questions(each))[:until]
        for each in (rows, changed_after(rows, moment))
    )
    assert np.array_equal(one, two)
