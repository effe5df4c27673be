"""Real jobs wait behind others on a real Slurm: both forecasts are kept, made anew, and compared
with the start.

What the site's model learned from is made up; the queue, Slurm's plan and the starts are real. One
run: the jobs are released as soon as Slurm has planned them.
"""

import time
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path

import numpy as np
import pytest

from gateway.core.forecast import ForecastSource
from gateway.core.wait_sight import Sight
from gateway.history.forecasting import features, model, rows
from gateway.services import forecast_keep, forecast_record
from gateway.services.forecaster import Answers
from gateway.store.queries import forecasts as reads
from gateway.store.queries.job import job_by_slurm_id
from gateway.store.uow import Begin, make_begin
from gateway.testing.database import database
from gateway.testing.portal import Portal, portal

pytestmark = pytest.mark.slurm


@pytest.fixture
def begin(tmp_path: Path) -> Iterator[Begin]:
    with database(tmp_path) as engine:
        yield make_begin(engine)


@pytest.fixture
def site(begin, broker, cluster_site) -> Portal:
    return portal(begin, broker=broker, clock=lambda: datetime.now(UTC))


def learned() -> Answers:
    """Jobs of 20 days in `debug`, most of which waited some minutes."""
    now, number, chance = datetime.now(UTC), 3000, np.random.default_rng(3)
    asked = rows.seconds(now) - chance.integers(0, 20 * 86400, number)
    left = asked + chance.lognormal(5, 1, number).astype(int)
    over = left < rows.seconds(now)
    left = np.where(over, left, rows.NEVER)
    past = rows.make(
        {
            "asked": asked,
            "left": left,
            "started": over,
            "end": np.where(over, left + 60, rows.NEVER),
            "counts": np.ones(number, dtype=bool),
            "group": np.full(number, "nlp"),
            "partition": np.full(number, "debug"),
            "qos": np.full(number, "normal"),
            "gpu_type": np.full(number, ""),
            "gpus": chance.integers(1, 3, number),
            "nodes": np.ones(number, dtype=int),
            "cpus": np.full(number, 2),
            "minutes": np.full(number, 5),
        }
    )
    return Answers(model.train(past, now=now), features.Queue.of(past))


def sbatch(cluster, seconds: int) -> int:
    words = ["sbatch", "--parsable", "--chdir=/tmp", "--output=/dev/null", "--time=5"]
    words += ["--partition=debug", "--gpus-per-node=2", f"--wrap=sleep {seconds}"]
    done = cluster.run(words, user="nlp-1")
    assert done.returncode == 0, done.stderr
    return int(done.stdout.split(";")[0])


def until(site: Portal, true, seconds: float = 90.0) -> None:
    end = time.monotonic() + seconds
    while True:
        site.work()
        if true():
            return
        assert time.monotonic() < end
        time.sleep(1)


def test_forecasts_of_waiting_jobs_meet_their_starts(cluster, site):
    answers = learned()
    first = sbatch(cluster, 300)
    try:
        until(site, lambda: row(site, first).start_time is not None)
        second = sbatch(cluster, 1)
        until(site, lambda: row(site, second).estimated_start is not None)
        before = site.now
        renew(site, answers)
        job = row(site, second).id
        shown = newest(site, job)
        assert set(shown) == set(ForecastSource)
        assert all(one.p50_at is not None and one.p50_at >= before for one in shown.values())
        assert shown[ForecastSource.HISTORY].p90_at > shown[ForecastSource.HISTORY].p50_at
        renew(site, answers)
        assert newest(site, job)[ForecastSource.HISTORY].made_at > before
    finally:
        cluster.run(["scancel", str(first)])
    until(site, lambda: row(site, second).start_time is not None)
    renew(site, answers)
    assert newest(site, job) == {}
    asked = reads.Asked(before - timedelta(minutes=1), site.now)
    whole = forecast_record.record(
        asked, sight=Sight(1, all=True, user="", groups=()), read=site.begin, now=site.now
    ).whole
    for score in (whole.ours, whole.slurm):
        assert score is not None
        assert (score.forecasts, score.started) == (1, 1)  # made twice, kept once
    # Slurm planned with the whole limit of the first, which ended before.
    (told,) = (one for one in history(site, job) if one.source is ForecastSource.SLURM)
    assert row(site, second).start_time < told.p50_at
    until(site, lambda: not row(site, second).active)


def row(site: Portal, slurm_id: int):
    with site.begin() as session:
        found = job_by_slurm_id(session, slurm_id)
    return found.row if found is not None else Nothing


class Nothing:
    start_time = estimated_start = None
    active = True


def renew(site: Portal, answers: Answers) -> None:
    forecast_keep.renew(forecaster=answers, begin=site.begin, read=site.begin, now=site.now)


def newest(site: Portal, job_id: int):
    with site.begin() as session:
        return reads.newest(session, job_id)


def history(site: Portal, job_id: int):
    with site.begin() as session:
        return reads.of_job(session, job_id, None)
