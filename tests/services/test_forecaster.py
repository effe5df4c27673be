"""What answers about the start: the files the worker leaves, and what is said without them."""

from datetime import UTC, datetime, timedelta
from pathlib import Path

import numpy as np
import pytest

from gateway.core.forecast import Ask, Forecast, NoForecast
from gateway.history.forecasting import features, model, moment, rows
from gateway.services.forecaster import FOLDER, Answers, Forecaster

NOW = datetime(2026, 3, 2, 12, tzinfo=UTC)
DAYS = 20


def past() -> rows.Rows:
    """Waits of an hour or so in a100, of a day in h100; none in quiet."""
    chance = np.random.default_rng(5)
    number, now = 3000, rows.seconds(NOW)
    large = chance.random(number) < 0.3
    asked = now - chance.integers(0, DAYS * 86400, number)
    wait = chance.lognormal(np.where(large, 11, 8), 0.6).astype(int)
    left = np.where(asked + wait < now, asked + wait, rows.NEVER)
    end = np.where(left + 7200 < now, left + 7200, rows.NEVER)
    return rows.make(
        {
            "asked": asked,
            "left": left,
            "started": left < rows.NEVER,
            "end": end,
            "counts": np.ones(number, dtype=bool),
            "group": chance.choice(["nlp", "vision"], number),
            "partition": np.where(large, "h100", "a100"),
            "qos": np.random.default_rng(9).choice(["", "normal", "high"], number),
            "gpu_type": np.full(number, ""),
            "gpus": chance.integers(1, 9, number),
            "nodes": np.ones(number, dtype=int),
            "cpus": np.full(number, 8),
            "minutes": np.full(number, 600),
        }
    )


@pytest.fixture(scope="module")
def learned() -> tuple[model.Model, features.Queue]:
    found = past()
    return model.train(found, now=NOW), features.Queue.of(found)


@pytest.fixture
def folder(tmp_path: Path, learned: tuple[model.Model, features.Queue]) -> Path:
    learned[0].save(tmp_path / FOLDER)
    moment.Moment.at(learned[1], rows.seconds(NOW)).save(tmp_path / FOLDER / "queue.npz")
    return tmp_path


def ask(partition: str = "a100", **values: object) -> Ask:
    given = {"group": "nlp", "qos": None, "gpus": 4, "gpu_type": None, "nodes": 1, "cpus": 8}
    return Ask(at=NOW, partition=partition, limit_minutes=600, **(given | values))  # type: ignore[arg-type]


def test_a_web_process_answers_as_the_whole_queue_does(
    folder: Path, learned: tuple[model.Model, features.Queue]
) -> None:
    asks = [ask(), ask("h100"), ask(gpus=1), ask(group="nobody"), ask("quiet")]
    asks[3:3] = [ask("h100", qos=qos) for qos in ("normal", "high", "never seen")]
    whole = Answers(*learned).forecast(asks)
    assert Forecaster(folder).forecast(asks) == whole
    short, long = whole[:2]
    assert isinstance(short, Forecast)
    assert isinstance(long, Forecast)
    assert short.p50_s * 3 < long.p50_s
    assert whole[-1] is NoForecast.TOO_THIN


def test_nothing_learned_is_no_number(tmp_path: Path) -> None:
    assert Forecaster(tmp_path).forecast([ask()]) == [NoForecast.NO_HISTORY]
    assert Forecaster(tmp_path).version is None


def test_a_new_file_is_read_and_a_broken_one_leaves_the_last(folder: Path) -> None:
    forecaster = Forecaster(folder)
    first = forecaster.forecast([ask()])
    assert forecaster.version == "2026-03-02T12:00Z"
    file = folder / FOLDER / "model.npz"
    good = file.read_bytes()
    file.write_bytes(b"nothing")
    assert forecaster.forecast([ask()]) == first
    assert Forecaster(folder).forecast([ask()]) == [NoForecast.NO_HISTORY]
    file.write_bytes(good)
    assert Forecaster(folder).forecast([ask()]) == first


def test_a_job_that_waits_is_asked_about_with_what_it_has_waited(
    learned: tuple[model.Model, features.Queue],
) -> None:
    waited = ask(submitted=NOW - timedelta(hours=5))
    (fresh, late) = Answers(*learned).forecast([ask(), waited])
    assert isinstance(fresh, Forecast)
    assert isinstance(late, Forecast)
    assert late.p50_s != fresh.p50_s
