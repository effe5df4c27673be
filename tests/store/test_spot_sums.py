"""The sums of the preemption record as the database makes them, against the runs one by one."""

from datetime import UTC, timedelta
from zoneinfo import ZoneInfo

from gateway.core.spot_record import ALL_TYPES, record
from gateway.store import spot
from gateway.store.models import Run
from gateway.store.queries import spot as reads
from gateway.store.uow import Begin
from gateway.testing import builders as b
from gateway.testing.builders import NOW
from gateway.testing.spot_samples import PEOPLE, fill_spot

SINCE = NOW - timedelta(days=90)
HOUR = timedelta(hours=1)


def ran(begin: Begin, *, began: timedelta, length: timedelta, **values: object) -> None:
    """A job of one run in spot."""
    own = {"qos": "spot", "gpus": 2} | values
    job_only = {"gpu_type": own.pop("gpu_type", "a100")}
    start = NOW - began
    job = b.add_job(begin, state="COMPLETED", **{k: own[k] for k in ("qos", "gpus")}, **job_only)
    b.add_run(
        begin,
        job,
        submit_time=start - HOUR,
        start_time=start,
        **({"end_time": start + length, "elapsed_seconds": int(length.total_seconds())} | own),
    )


def sums(begin: Begin, **values: object):
    with begin() as session:
        return reads.sums(session, ["Spot"], **({"since": SINCE, "shift": 0} | values))


def test_the_sums_are_those_of_the_runs(begin: Begin) -> None:
    fill_spot(begin, now=NOW, cluster="c", runs=400)
    found = sums(begin)
    assert set(found) == {("spot", "a100"), ("spot", "rtx4090")}
    made = [
        record(*key, one, since=SINCE, until=NOW, zone=ZoneInfo("Asia/Shanghai"))
        for key, one in found.items()
    ]
    with begin() as session:
        runs = session.query(Run).all()
        known = [(run.elapsed_seconds, run.gpus or 0, run.state) for run in runs]
    assert sum(one.runs for one in made) == 400
    assert sum(one.whole.seconds for one in made) == sum(seconds for seconds, _, _ in known)
    assert sum(one.whole.card_seconds for one in made) == sum(s * n for s, n, _ in known)
    assert sum(one.whole.events for one in made) == sum(s == "PREEMPTED" for _, _, s in known)
    assert sum(one.requeues for one in made) == sum(run.restarts > 0 for run in runs)
    assert {one.whole.people for one in made} == {len(PEOPLE)}
    lengths = {-(-seconds // 60) for seconds, _, _ in known}
    assert {row.minutes for one in made for row in one.lengths} == lengths


def test_only_runs_on_gpus_of_these_qos_that_began_in_the_window(begin: Begin) -> None:
    ran(begin, began=3 * HOUR, length=HOUR)
    ran(begin, began=3 * HOUR, length=HOUR, qos="normal")
    ran(begin, began=3 * HOUR, length=HOUR, gpus=0)
    ran(begin, began=timedelta(days=91), length=timedelta(days=90))
    ran(begin, began=3 * HOUR, length=timedelta())
    found = sums(begin)
    assert {key: len(one.began) for key, one in found.items()} == {("spot", "a100"): 1}
    assert sums(begin, since=NOW) == {}


def test_a_run_on_nodes_counts_as_far_as_accounting_has_seen_it(begin: Begin) -> None:
    ran(begin, began=5 * HOUR, length=HOUR, end_time=None, elapsed_seconds=7200, state="RUNNING")
    made = record("spot", "a100", sums(begin)["spot", "a100"], since=SINCE, until=NOW, zone=UTC)
    assert (made.whole.seconds, made.whole.events) == (7200, 0)
    assert [(one.minutes, one.preempted, one.others) for one in made.lengths] == [(120, 0, 1)]


def test_the_type_is_the_jobs_or_what_the_run_was_given(begin: Begin) -> None:
    tres = "cpu=4,gres/gpu=2,gres/gpu:h100=2"
    ran(begin, began=3 * HOUR, length=HOUR, gpu_type=None, alloc_tres=tres)
    ran(begin, began=3 * HOUR, length=HOUR, gpu_type=None)
    ran(begin, began=3 * HOUR, length=HOUR, gpu_type=None, alloc_tres="no such thing")
    found = sums(begin)
    assert {kind: sum(edge.count for edge in one.began) for (_, kind), one in found.items()} == {
        "h100": 1,
        "gpu": 2,
    }


def test_the_wait_after_a_preemption(begin: Begin) -> None:
    start = NOW - 3 * HOUR
    ran(begin, began=3 * HOUR, length=HOUR, restarts=1, eligible_time=start - timedelta(minutes=7))
    ran(begin, began=3 * HOUR, length=HOUR, restarts=0, eligible_time=start - 9 * HOUR)
    ran(begin, began=3 * HOUR, length=HOUR, restarts=2, eligible_time=None)
    found = sums(begin)["spot", "a100"]
    assert (found.requeues, found.requeue_seconds) == (1, 420)


def test_without_a_word_from_slurm_the_qos_of_preempted_runs_count(begin: Begin) -> None:
    ran(begin, began=3 * HOUR, length=HOUR, qos="scavenger", state="PREEMPTED")
    ran(begin, began=3 * HOUR, length=HOUR)
    with begin() as session:
        assert reads.preempted_qos(session, since=SINCE) == {"scavenger"}


def test_the_record_is_kept_whole_and_replaced(begin: Begin) -> None:
    fill_spot(begin, now=NOW, cluster="c", runs=60)
    made = tuple(
        record(*key, one, since=SINCE, until=NOW, zone=UTC)
        for key, one in sorted(sums(begin).items())
    )
    with begin() as session:
        assert reads.kept(session) is None
        assert spot.made_at(session) is None
        spot.replace(session, made, now=NOW)
        spot.replace(session, made, now=NOW + HOUR)
    with begin() as session:
        kept = reads.kept(session)
        assert kept is not None
        assert (kept.records, kept.made_at) == (made, NOW + HOUR)
        assert spot.made_at(session) == NOW + HOUR
        assert reads.kept_of(session, "spot", "a100") == made[0]
        assert reads.kept_of(session, "spot", ALL_TYPES) is None
        spot.replace(session, (), now=NOW)
    with begin() as session:
        assert reads.kept(session) is None
