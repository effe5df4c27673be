"""The worker keeps the columnar history in step with runs that end."""

from datetime import timedelta

from gateway.history import reading
from gateway.store.uow import make_begin
from gateway.testing.database import database
from gateway.testing.portal import CLUSTER, portal
from gateway.worker.jobs import JOBS, Context

MINUTE = 60


def rows(folder, columns="state, end_time, gpus", view="runs"):
    with reading.runs(folder) as connection:
        return connection.execute(f"SELECT {columns} FROM {view}").fetchall()


def test_a_job_is_one_row_at_each_moment_and_ends_in_the_history_within_a_minute(tmp_path):
    """The worker's jobs, each in its own time, on a Slurm that is made up."""
    counts = []
    with database(tmp_path) as engine:
        begin, folder = make_begin(engine), tmp_path / "history"
        site = portal(begin)
        context = Context(
            begin=begin,
            read=make_begin(engine, read_only=True),
            broker=site.broker,
            cluster=CLUSTER,
            poll_seconds=15.0,
            ingest_seconds=30.0,
            clock=lambda: site.now,
            stopwatch=lambda: 0.0,
            history=folder,
        )
        site.submit()
        (job,) = site.broker.queue().jobs
        due = {one.name: site.now for one in JOBS}

        def work(seconds):
            for second in range(seconds):
                site.broker.advance(1)
                for one in JOBS:
                    if site.now >= due[one.name]:
                        due[one.name] = site.now + timedelta(seconds=one.seconds)
                        one.run(context)
                if second % 5 == 0:
                    counts.append(len(rows(folder, view="waits")))

        work(90)
        assert rows(folder, "start_time IS NOT NULL, end_time", "waits") == [(True, None)]
        site.broker.finish(job.job_id)
        ended = site.now
        work(MINUTE)
        ((state, end, gpus),) = rows(folder)
    assert (state, gpus) == ("COMPLETED", 8)
    assert counts == [0] * counts.count(0) + [1] * counts.count(1)
    assert counts.count(0) <= 7
    assert abs(end - ended.replace(tzinfo=None)) <= timedelta(seconds=1)
