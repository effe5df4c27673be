"""Two months of a small site's money, settled day by day: for pages and for a look by hand."""

from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any

from sqlalchemy import func, insert, select

from gateway.services import credit, lend, prices, settle
from gateway.services import review as reviews
from gateway.store import models as t
from gateway.store.uow import Begin
from gateway.testing import builders as b
from gateway.testing import money

DAYS = 60
MILLION = 1_000_000
_HOUR = timedelta(hours=1)


@dataclass(frozen=True, slots=True)
class Filled:
    """What a test or a look needs to find again."""

    offer_id: int
    loan_id: int
    review_run: int
    runs: int


def fill_money(begin: Begin, *, now: datetime, runs: int = 300) -> Filled:
    """Prices rtx4090 1.2 and a100 3.5, spot 0.82, a weekly package at 0.9, a trial grant of 10,
    a loan, a campaign, `runs` settled runs of nlp, and some that wait in the review."""
    first = now - timedelta(days=DAYS)
    _prices(begin, first)
    offer = prices.add_offer("weekly-rtx4090", "rtx4090", "0.9", begin=begin, now=first)
    prices.add_offer("monthly-a100", "a100", "3.1", days=30, begin=begin, now=first)
    _credit(begin, first, now, offer)
    _runs(begin, first, now, runs)
    credit.grant(
        "nlp",
        10 * MILLION,
        reason="trial",
        begin=begin,
        now=now - timedelta(hours=2),
        expires=now + timedelta(days=5),
        note="welcome",
        key="trial",
    )
    loan = lend.lend(
        "vision",
        "nlp",
        300 * MILLION,
        due=now + timedelta(days=9),
        begin=begin,
        now=now - timedelta(hours=1),
        key="sample",
    )
    review_run = _in_review(begin, now)
    settle.settle(begin=begin, now=now)
    reviews.find_lost(begin=begin, now=now)
    return Filled(offer, loan, review_run, runs)


def _prices(begin: Begin, first: datetime) -> None:
    for resource, per_hour in (("rtx4090", "1.2"), ("a100", "3.5")):
        money.set_price(begin, resource, per_hour, starts=first)
        prices.set_price(
            resource,
            {"rtx4090": "2.19", "a100": "8.4"}[resource],
            list_name="cloud",
            starts=first,
            begin=begin,
            now=first,
        )
    prices.set_terms("spot", "0.82", preempted="free", starts=first, begin=begin, now=first)
    later = max(b.NOW, first) + timedelta(days=90)
    prices.set_price("a100", "3.3", starts=later, begin=begin, now=first)


def _credit(begin: Begin, first: datetime, now: datetime, offer: int) -> None:
    for group, amount in (("nlp", 9000), ("vision", 25_000)):
        credit.top_up(group, amount * MILLION, begin=begin, now=first, key=f"s-{group}")
    credit.grant(
        "nlp",
        500 * MILLION,
        reason="project",
        begin=begin,
        now=now - timedelta(days=1),
        expires=now + timedelta(days=120),
        carry_over_millionths=MILLION // 2,
        note="The project's second year, agreed with the steering committee in February",
        key="project",
    )
    credit.buy_package("nlp", offer, 100, begin=begin, now=now - timedelta(days=2), key="week")
    credit.add_campaign(
        "SPRING-2026", 50 * MILLION, days=30, stock=20, begin=begin, now=now - timedelta(days=9)
    )


def _runs(begin: Begin, first: datetime, now: datetime, runs: int) -> None:
    """Settled day by day, as the worker would have."""
    with begin() as session:
        next_job = (session.scalar(select(func.max(t.Job.id))) or 0) + 1
        next_id = (session.scalar(select(func.max(t.Job.slurm_id))) or 0) + 1
    done = 0
    for day in range(DAYS):
        until = first + timedelta(days=day + 1)
        many = runs * (day + 1) // DAYS - done
        rows = [_run(done + n, next_job + done + n, next_id + done + n, until) for n in range(many)]
        done += many
        if not rows:
            continue
        with begin() as session:
            session.execute(insert(t.Job), [job for job, _ in rows])
            session.execute(insert(t.Run), [run for _, run in rows])
        settle.settle(begin=begin, now=min(until, now - timedelta(minutes=1)))


def _run(number: int, job_id: int, slurm_id: int, until: datetime) -> tuple[Any, Any]:
    """A job and its run, told apart by their number alone: the same each time."""
    kind = "a100" if number % 3 else "rtx4090"
    gpus = (1, 2, 4, 8)[number % 4]
    seconds = 1800 + number * 977 % 18_000
    end = until - timedelta(minutes=5 + number * 37 % 600)
    state = "NODE_FAIL" if number % 41 == 40 else ("FAILED" if number % 11 == 10 else "COMPLETED")
    name = "pretrain-" + "very-long-name-" * 4 if number % 29 == 0 else f"train-{number}"
    start = end - timedelta(seconds=seconds)
    shared = {
        "cluster": b.CLUSTER,
        "slurm_id": slurm_id,
        "user": ("member", "colleague", "leader")[number % 7 % 3],
        "group": "nlp",
        "partition": kind,
        "qos": "spot" if number % 5 == 0 else "normal",
        "state": state,
        "submit_time": start - _HOUR,
        "eligible_time": start - _HOUR,
        "start_time": start,
        "end_time": end,
        "nodes": 1,
        "cpus": gpus * 8,
        "gpus": gpus,
        "exit_code": 0,
        "exit_signal": 0,
    }
    return _job(shared, job_id, name), _run_of(shared, job_id, seconds)


def _job(shared: dict[str, Any], job_id: int, name: str) -> dict[str, Any]:
    start, end, kind = shared["start_time"], shared["end_time"], shared["partition"]
    return shared | {
        "id": job_id,
        "uid": 20001,
        "name": name,
        "template": "ddp",
        "active": False,
        "accounted": True,
        "last_submit_time": start - _HOUR,
        "time_limit_minutes": 720,
        "gpu_type": kind,
        "working_directory": "/home/member",
        "output": None,
        "seen_at": end,
        "left_queue_at": end,
    }


def _run_of(shared: dict[str, Any], job_id: int, seconds: int) -> dict[str, Any]:
    kind, gpus = shared["partition"], shared["gpus"]
    return shared | {
        "job_id": job_id,
        "elapsed_seconds": seconds,
        "suspended_seconds": 0,
        "alloc_tres": f"billing={gpus * 8},cpu={gpus * 8},gres/gpu:{kind}={gpus},gres/gpu={gpus}",
        "node_list": f"{kind}-1",
        "restarts": 0,
        "to_settle": True,
    }


def _in_review(begin: Begin, now: datetime) -> int:
    """A run without an end, last seen after 27 hours of its limit of 24; one whose record was
    mended to nothing; one whose GPUs nobody counted; one of a type without a price."""
    start = now - timedelta(days=4)
    seen = start + timedelta(hours=26, minutes=58)
    common = {"user": "colleague", "gpus": 8, "time_limit_minutes": 1440, "active": False}
    common |= {"start_time": start, "left_queue_at": seen, "seen_at": seen, "accounted": True}
    lost = b.add_job(begin, name="pretrain", state="RUNNING", **common)
    lost_run = b.add_run(
        begin,
        lost,
        state="RUNNING",
        start_time=start,
        end_time=None,
        elapsed_seconds=7_430_400,
        seen_until=seen,
        alloc_tres="billing=64,cpu=64,gres/gpu:a100=8,gres/gpu=8,mem=512G,node=1",
    )
    mended = b.add_job(begin, name="mended", state="COMPLETED", **common, end_time=start)
    b.add_run(
        begin,
        mended,
        start_time=start,
        end_time=start,
        elapsed_seconds=0,
        seen_until=seen,
        to_settle=True,
    )
    uncounted = b.add_job(begin, name="uncounted", state="COMPLETED", end_time=now)
    b.add_run(begin, uncounted, gpus=None, alloc_tres="cpu=8,node=1", to_settle=True)
    unpriced = b.add_job(begin, name="unpriced", state="COMPLETED", end_time=now, gpu_type="h100")
    tres = "cpu=8,gres/gpu:h100=2,gres/gpu=2,node=1"
    b.add_run(begin, unpriced, gpus=2, alloc_tres=tres, to_settle=True)
    return lost_run
