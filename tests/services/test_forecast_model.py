"""The model of waits: what it learns from, what it says, and that its file is safe to read."""

import subprocess
import sys
from collections.abc import Mapping
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import lightgbm
import numpy as np
import pytest

from gateway.core.forecast import Ask, Forecast, NoForecast
from gateway.history.forecasting import censored, trees
from gateway.history.forecasting.features import NAMES, Queue, questions
from gateway.history.forecasting.model import Model, remaining, train
from gateway.history.forecasting.rows import Rows, make, seconds
from gateway.history.forecasting.tallies import Latest, Tally

NOW = datetime(2026, 3, 2, 12, tzinfo=UTC)
HOUR, DAY = 3600, 86_400


def past(number: int = 4000, *, days: int = 20, slow: float = 1.0) -> Rows:
    """Jobs of two partitions; long time limits wait ten times as long, and from the last two days
    on all wait `slow` times as long. What is not over by NOW is not known."""
    chance = np.random.default_rng(11)
    now = seconds(NOW)
    asked = np.sort(now - chance.integers(1, days * DAY, number))
    long = chance.random(number) < 0.4
    drift = np.where(asked > now - 2 * DAY, slow, 1.0)
    wait = (chance.lognormal(7.5, 0.5, number) * np.where(long, 10, 1) * drift).astype(np.int64)
    return make(
        {
            "asked": asked,
            "left": asked + wait,
            "started": np.ones(number, dtype=bool),
            "end": asked + wait + 2 * HOUR,
            "counts": np.ones(number, dtype=bool),
            "group": chance.choice(["nlp", "vision", "robots"], number),
            "partition": np.where(chance.random(number) < 0.99, "gpu", "quiet"),
            "qos": np.random.default_rng(9).choice(["", "normal", "spot"], number),
            "gpu_type": np.random.default_rng(8).choice(["", "a100", "h100"], number),
            "gpus": chance.integers(0, 9, number),
            "nodes": np.ones(number, dtype=int),
            "cpus": np.full(number, 8),
            "minutes": np.where(long, 2880, 60),
        }
    ).known(now)


def ask(**given: Any) -> Ask:
    return Ask(
        **{
            "at": NOW,
            "group": "nlp",
            "partition": "gpu",
            "qos": None,
            "gpus": 1,
            "gpu_type": None,
            "nodes": 1,
            "cpus": 8,
            "limit_minutes": 60,
        }
        | given
    )


@pytest.fixture(scope="module")
def trained() -> tuple[Model, Queue]:
    rows = past()
    return train(rows, now=NOW), Queue.of(rows)


def test_long_limits_are_told_to_wait_longer(trained: tuple[Model, Queue]) -> None:
    model, queue = trained
    short, long = model.forecast([ask(), ask(limit_minutes=2880)], queue)
    assert isinstance(short, Forecast)
    assert isinstance(long, Forecast)
    assert 1200 < short.p50_s < 2700
    assert 12_000 < long.p50_s < 27_000
    assert short.p50_s < (short.p90_s or 0)
    assert short.jobs > 3000


def test_what_is_unknown_is_asked_about_too(trained: tuple[Model, Queue]) -> None:
    model, queue = trained
    [answer] = model.forecast([ask(group="nobody", limit_minutes=None, gpus=512)], queue)
    assert isinstance(answer, Forecast)


def test_a_partition_with_few_starts_gets_no_number(trained: tuple[Model, Queue]) -> None:
    model, queue = trained
    answers = model.forecast([ask(partition="quiet"), ask(partition="new"), ask()], queue)
    assert answers[:2] == [NoForecast.TOO_THIN, NoForecast.TOO_THIN]
    assert isinstance(answers[2], Forecast)
    assert model.forecast([], queue) == []


def of_two_qos() -> Rows:
    """All of one group in one partition: `normal` waits hours, `high` a few minutes."""
    chance, number, now = np.random.default_rng(4), 3000, seconds(NOW)
    asked = now - chance.integers(1, 20 * DAY, number)
    high = chance.random(number) < 0.2
    wait = np.where(high, 240, 5 * HOUR) * chance.lognormal(0, 0.4, number)
    ones = np.ones(number, dtype=int)
    return make(
        {
            "asked": asked,
            "left": asked + wait.astype(np.int64),
            "started": ones > 0,
            "end": asked + wait.astype(np.int64) + 2 * HOUR,
            "counts": ones > 0,
            "group": np.full(number, "nlp"),
            "partition": np.full(number, "gpu"),
            "qos": np.where(high, "high", "normal"),
            "gpu_type": np.full(number, ""),
            "gpus": ones,
            "nodes": ones,
            "cpus": 8 * ones,
            "minutes": 60 * ones,
        }
    ).known(now)


def test_a_qos_that_starts_in_minutes_is_told_from_one_that_takes_hours() -> None:
    rows = of_two_qos()
    model, queue = train(rows, now=NOW), Queue.of(rows)
    high, normal, new, none = model.forecast(
        [ask(qos=qos) for qos in ("high", "normal", "new", None)], queue
    )
    assert isinstance(high, Forecast)
    assert isinstance(normal, Forecast)
    assert 150 < high.p50_s < 400
    assert 4 * HOUR < normal.p50_s < 6 * HOUR
    assert (high.p90_s or 0) < normal.p50_s
    # Nobody has waited so: a number would be the trees' guess at what they have not seen.
    assert new is none is NoForecast.TOO_THIN


def of_types(shares: Mapping[str, float]) -> Rows:
    """All of one group in one partition: an A100 waits minutes, an H100 hours, either one half of
    an hour. `shares` of those who asked for which."""
    chance, number, now = np.random.default_rng(4), 4000, seconds(NOW)
    asked = now - chance.integers(1, 20 * DAY, number)
    kind = chance.choice(list(shares), number, p=list(shares.values()))
    usual = np.select([kind == "a100", kind == "h100"], [240, 5 * HOUR], 1800)
    wait = (usual * chance.lognormal(0, 0.4, number)).astype(np.int64)
    ones = np.ones(number, dtype=int)
    return make(
        {
            "asked": asked,
            "left": asked + wait,
            "started": ones > 0,
            "end": asked + wait + 2 * HOUR,
            "counts": ones > 0,
            "group": np.full(number, "nlp"),
            "partition": np.full(number, "gpu"),
            "qos": np.full(number, ""),
            "gpu_type": kind,
            "gpus": ones,
            "nodes": ones,
            "cpus": 8 * ones,
            "minutes": 60 * ones,
        }
    ).known(now)


def by_type(shares: Mapping[str, float], *kinds: str | None) -> list[Forecast | NoForecast]:
    rows = of_types(shares)
    asks = [ask(gpu_type=kind) for kind in kinds]
    return train(rows, now=NOW).forecast(asks, Queue.of(rows))


def test_a_type_that_starts_in_minutes_is_told_from_one_that_takes_hours() -> None:
    shares = {"a100": 0.3, "h100": 0.3, "": 0.397, "b200": 0.003}
    a100, h100, either, few, new = by_type(shares, "a100", "h100", None, "b200", "never")
    assert isinstance(a100, Forecast)
    assert isinstance(h100, Forecast)
    assert isinstance(either, Forecast)
    assert 150 < a100.p50_s < 400
    assert 4 * HOUR < h100.p50_s < 6 * HOUR
    assert 1200 < either.p50_s < 2700
    assert few is new is NoForecast.TOO_THIN


@pytest.mark.parametrize("shares", [{"": 1.0}, {"a100": 1.0}, {"": 0.998, "a100": 0.002}])
def test_where_one_type_alone_is_named_naming_it_makes_no_difference(
    shares: Mapping[str, float],
) -> None:
    named, either = by_type(shares, "a100", None)
    assert isinstance(named, Forecast)
    assert named == either


def test_another_type_where_one_alone_is_named_is_not_guessed() -> None:
    [other] = by_type({"": 0.5, "a100": 0.5}, "h100")
    assert other is NoForecast.TOO_THIN


def test_where_no_job_has_a_qos_that_of_the_form_does_not_matter() -> None:
    rows = of_two_qos()
    rows = replace(rows, qos=np.full(len(rows), -1), qoses=rows.qoses[:0])
    model, queue = train(rows, now=NOW), Queue.of(rows)
    named, none = model.forecast([ask(qos="normal"), ask()], queue)
    assert isinstance(named, Forecast)
    assert named == none


def test_rows_without_a_qos_say_nothing_of_one() -> None:
    """So that a file without QoS is learned from as if nobody knew of them."""
    rows = replace(of_two_qos(), qos=np.full(len(of_two_qos()), -1))
    features = Queue.of(rows).features(questions(rows))
    assert {name for place, name in enumerate(NAMES) if (features[:, place] == -1).all()} == {
        name for name in NAMES if "qos" in name or "gpu_type" in name
    }


def test_two_days_are_too_few_to_know_how_good_forecasts_are() -> None:
    rows = past(days=2)
    model = train(rows, now=NOW)
    assert model.fits
    assert model.shifts is None
    assert model.forecast([ask()], Queue.of(rows)) == [NoForecast.TOO_THIN]


def test_no_history_at_all_is_too_thin() -> None:
    rows = past().take(np.zeros(0, dtype=np.int64))
    assert train(rows, now=NOW).forecast([ask()], Queue.of(rows)) == [NoForecast.TOO_THIN]


def test_waits_that_grow_are_followed_by_the_calibration() -> None:
    """Jobs that still wait count as longer: otherwise the quick ones alone would be seen."""
    steady, slower = train(past(), now=NOW), train(past(slow=8), now=NOW)
    assert steady.shifts is not None
    assert slower.shifts is not None
    assert abs(steady.shifts[1]) < 0.3
    assert slower.shifts[1] > 0.8


def test_who_has_waited_is_told_what_is_left(trained: tuple[Model, Queue]) -> None:
    model, queue = trained
    waits = [
        model.forecast([ask(submitted=NOW - timedelta(seconds=passed))], queue)[0]
        for passed in (0, 600, 3600, 10 * DAY)
    ]
    found = [one for one in waits if isinstance(one, Forecast)]
    assert len(found) == 4
    # After an hour of a wait of half an hour the best guess is no longer half an hour in all.
    assert found[2].p50_s > 0
    assert found[3].p50_s > found[2].p50_s
    assert all(one.p50_s <= (one.p90_s or 0) for one in found)


def test_what_is_left_is_the_whole_wait_for_who_has_not_waited() -> None:
    waits = np.array([[1000.0, 9000.0], [0.0, 50.0]])
    assert remaining(waits, np.zeros(2)) == pytest.approx(waits, abs=0.01)
    # Half of them wait longer than 1,000 s, and half of those longer than where a quarter is left.
    later = remaining(waits, np.array([1000.0, 0.0]))[0]
    assert 0 < later[0] < 9000 < later[1] + 1000


def test_the_file_gives_the_same_answers_and_no_library_of_trees_is_loaded(
    trained: tuple[Model, Queue], tmp_path: Path
) -> None:
    model, queue = trained
    model.save(tmp_path)
    asks = [ask(gpus=gpus, limit_minutes=minutes) for gpus in range(9) for minutes in (60, 2880)]
    assert Model.load(tmp_path).forecast(asks, queue) == model.forecast(asks, queue)
    code = (
        "import sys, pathlib; from gateway.history.forecasting.model import Model;"
        "Model.load(pathlib.Path(sys.argv[1]));"
        "print(sorted({'lightgbm', 'scipy', 'duckdb', 'sqlalchemy'} & set(sys.modules)))"
    )
    argv = [sys.executable, "-c", code, str(tmp_path)]
    assert subprocess.run(argv, check=True, capture_output=True, text=True).stdout == "[]\n"


def test_a_file_with_objects_in_it_is_refused(tmp_path: Path) -> None:
    """An array of objects is a pickle, which could run code."""
    np.savez(tmp_path / "model.npz", facts=np.array([{"shape": 1}], dtype=object))
    with pytest.raises(ValueError, match="allow_pickle"):
        Model.load(tmp_path)


def test_a_model_trained_each_hour_keeps_one_fit_a_day() -> None:
    rows, model = past(number=2500), None
    for hours in range(3, 0, -1):
        model = train(rows, now=NOW - timedelta(hours=hours), before=model)
    assert model is not None
    assert len(model.fits) <= 6


def test_the_same_rows_make_the_same_model() -> None:
    one, other = (train(past(number=2000), now=NOW) for _ in range(2))
    features = Queue.of(past(number=2000)).features(questions(past(number=2000)))
    assert np.array_equal(one.waits(features), other.waits(features))


@pytest.mark.parametrize("constant", [False, True])
def test_our_walk_through_the_trees_gives_what_lightgbm_gives(constant: bool) -> None:
    chance = np.random.default_rng(3)
    features = chance.normal(size=(3000, 6)).astype(np.float32)
    target = np.ones(3000) if constant else features[:, 0] * 3 + np.abs(features[:, 1])
    settings = {"objective": "quantile", "alpha": 0.9, "verbosity": -1, "num_threads": 1}
    booster = lightgbm.train(settings, lightgbm.Dataset(features, target), 30)
    ours = trees.parse(booster.model_to_string())
    assert ours.predict(features) == pytest.approx(booster.predict(features), abs=1e-12)
    assert len(ours.predict(features[:0])) == 0


def test_features_of_a_moment_need_nothing_that_came_later() -> None:
    rows = past(number=1500)
    features = Queue.of(rows).features(questions(rows))
    moment = int(rows.asked[1000])
    then = rows.known(moment)
    assert np.array_equal(Queue.of(then).features(questions(then)), features[: len(then)])


def test_the_queue_is_counted_as_one_would_by_hand() -> None:
    rows = past(number=800)
    features = Queue.of(rows).features(questions(rows))
    column = {name: features[:, place] for place, name in enumerate(NAMES)}
    for place in range(0, 800, 37):
        at = rows.asked[place]
        waits = (rows.asked < at) & (rows.left >= at)
        runs = rows.started & (rows.left < at) & (rows.end >= at)
        same = rows.group == rows.group[place]
        assert column["all_waiting"][place] == waits.sum()
        assert column["all_running"][place] == runs.sum()
        assert column["group_waiting"][place] == (waits & same).sum()
        assert (
            column["group_partition_running"][place]
            == (runs & same & (rows.partition == rows.partition[place])).sum()
        )
        mine = rows.qos == rows.qos[place]
        here = mine & (rows.partition == rows.partition[place])
        told = rows.qos[place] >= 0
        assert column["qos_waiting"][place] == ((waits & mine).sum() if told else -1)
        assert column["partition_qos_running"][place] == ((runs & here).sum() if told else -1)
        typed = (rows.partition == rows.partition[place]) & (rows.gpu_type == rows.gpu_type[place])
        expected = (waits & typed).sum() if rows.gpu_type[place] >= 0 else -1
        assert column["partition_gpu_type_waiting"][place] == expected
        ages = at - rows.asked[waits & same]
        expected = ages.mean() if len(ages) else -1
        assert column["group_mean_age"][place] == pytest.approx(expected, rel=1e-6)
        done = rows.started & (rows.left < at) & (rows.left >= at - 7 * DAY)
        last = np.argsort(rows.left[done], kind="stable")[-200:]
        lately = np.sort((rows.left - rows.asked)[done][last])
        if len(lately):
            assert column["all_q50"][place] == lately[int(np.ceil(0.5 * len(lately))) - 1]


def test_tallies_and_latest_of_no_events_are_nothing() -> None:
    none, one = np.zeros(0, dtype=np.int64), np.zeros(1, dtype=np.int64)
    assert Tally.of(none, none, np.zeros((0, 1))).before(one, one + 5).tolist() == [[0.0]]
    found = Latest.of(none, none, none).quantiles(one, one + 5, (0.5,), last=3)
    assert found.tolist() == [[-1.0]]


def test_kaplan_meier_by_hand() -> None:
    """Ends at 1, 3, 5; known to be longer than 2 and 4: 4/5, then 4/5 x 2/3, then 0."""
    values = np.array([1, 2, 3, 4, 5])
    seen = np.array([True, False, True, False, True])
    _, longer = censored.survival(values, seen)
    assert longer == pytest.approx([0.8, 0.8, 0.8 * 2 / 3, 0.8 * 2 / 3, 0])
    assert [censored.quantile(values, seen, share) for share in (0.2, 0.4, 0.9)] == [1, 3, 5]
    # The curve does not fall so far: the largest that is known.
    assert censored.quantile(values, np.array([True] + [False] * 4), 0.9) == 5
    with pytest.raises(ValueError, match="nothing"):
        censored.quantile(values[:0], seen[:0], 0.5)
    # The one that ended at 3 stands for itself and for a third of the one cut off at 2, and so on.
    assert censored.weights(values, seen) == pytest.approx([1, 0, 4 / 3, 0, 8 / 3])


def test_a_clock_that_was_set_back_makes_no_negative_wait() -> None:
    rows = past(number=300)
    columns = {name: getattr(rows, name) for name in ("asked", "end", "started", "counts")}
    numbers = {name: getattr(rows, name) for name in ("gpus", "nodes", "cpus", "minutes")}
    names = {"group": rows.groups[rows.group], "partition": rows.partitions[rows.partition]}
    names |= {"qos": np.full(300, ""), "gpu_type": np.full(300, "")}
    back = make(columns | numbers | names | {"left": rows.asked - 50})
    assert (back.left == back.asked).all()
