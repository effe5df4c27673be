"""kill -9 of the worker at 200 random points of an import and its settling: nothing is lost,
nothing is charged twice, and the sum is the same to the millionth.

The rows are real ones (../shared/traces); where these are absent the test skips and says so.
"""

import gzip
import os
import random
import signal
import time
from dataclasses import dataclass, replace
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest
from sqlalchemy import func, select

from gateway.core.sacct_frames import Dump
from gateway.core.sacct_text import SacctRow
from gateway.services import ingest, settle
from gateway.services.ingest_new import WIDTH, prepare, record_of
from gateway.services.verify import verify
from gateway.store.models import Run
from gateway.store.schema import upgrade
from gateway.store.uow import make_begin, make_engine
from gateway.testing import builders as b
from gateway.testing.money import balance, set_price
from gateway.wire import messages as m

TRACE = Path(__file__).resolve().parents[3] / "shared/traces/xdmod_phillips.sacct.psv.gz"
ROWS = 5000
KILLS = 200
NOW = datetime(2017, 1, 5, tzinfo=UTC)
BEGAN = NOW - timedelta(days=45)


@dataclass(frozen=True)
class Accounting:
    """The part of a broker that ingestion asks."""

    runs: tuple[m.RunRecord, ...]

    def accounting(self, *, since, until):
        found = tuple(r for r in self.runs if _began(r) <= until and (r.end_time or NOW) >= since)
        return m.Accounting(found, (), len(found))


def _began(run):
    return run.eligible_time or run.submit_time


@pytest.fixture(scope="module")
def records():
    if not TRACE.exists():
        pytest.skip("the traces of ../shared are not here")
    with gzip.open(TRACE, "rt", newline="\n") as lines:
        dump = Dump((line.removesuffix("\n") for line in lines), zone=UTC)
        rows = [item[:WIDTH] for item in dump if isinstance(item, SacctRow)]
    real = [record_of(job) for job in prepare(rows, cluster="dev", now=NOW).jobs]
    again = [replace(run, job_id=run.job_id + 10**7) for run in real[: ROWS - len(real)]]
    return (*real, *again)


def fresh(path, records):
    engine = make_engine(f"sqlite:///{path}")
    upgrade(engine)
    begin = make_begin(engine)
    for resource, price in (("a100", "3.5"), ("cpu", "0.01")):
        set_price(begin, resource, price, starts=BEGAN - timedelta(days=400))
    names = sorted({run.partition for run in records})
    b.add_cluster(begin, partitions=tuple(b.partition(name, gpu_types=("a100",)) for name in names))
    engine.dispose()


def work(path, records):
    """What the worker does, turn by turn, until there is nothing left to do."""
    engine = make_engine(f"sqlite:///{path}")
    begin = make_begin(engine)
    broker = Accounting(records)
    while True:
        report = ingest.ingest(
            begin=begin,
            broker=broker,
            cluster="dev",
            now=NOW,
            backfill=NOW - BEGAN,
            most_windows=3,
        )
        settle.settle(begin=begin, now=NOW, batch=20)
        if report.windows < 3:
            break
    engine.dispose()


def outcome(path):
    engine = make_engine(f"sqlite:///{path}")
    begin = make_begin(engine)
    verified = verify(read=begin)
    with begin() as session:
        groups = {row[0] for row in session.execute(select(Run.group))}
        runs = session.scalar(select(func.count()).select_from(Run))
    left = {group: balance(begin, group) for group in sorted(groups)}
    engine.dispose()
    return verified, runs, left


def killed_at(path, records, after):
    """Whether the worker was still at work when it was killed. A fork, since 200 new
    interpreters would take minutes."""
    child = os.fork()
    if child == 0:
        code = 1
        try:
            work(path, records)
            code = 0
        finally:
            os._exit(code)
    time.sleep(after)
    os.kill(child, signal.SIGKILL)
    _, status = os.waitpid(child, 0)
    return os.WIFSIGNALED(status)


@pytest.mark.filterwarnings("ignore:This process .* is multi-threaded:DeprecationWarning")
@pytest.mark.timeout(600)
def test_killed_at_200_points_the_sum_is_the_same_to_the_millionth(tmp_path, records):
    undisturbed, killed = tmp_path / "undisturbed.db", tmp_path / "killed.db"
    for path in (undisturbed, killed):
        fresh(path, records)
    began = time.monotonic()
    work(undisturbed, records)
    whole = time.monotonic() - began
    chance = random.Random(11)
    kills = sum(
        killed_at(killed, records, chance.uniform(0.0, whole / KILLS)) for _ in range(KILLS)
    )
    work(killed, records)
    expected, found = outcome(undisturbed), outcome(killed)
    assert found[0].broken == ()
    assert found[1:] == expected[1:]
    assert found[0].looked_at == expected[0].looked_at
    assert sum(expected[2].values()) < 0
    assert kills == KILLS, "the worker was done before it could be killed"
