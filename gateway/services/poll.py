"""The shared poll: what slurmctld says now, stored once for everyone.

A job that is missing from the queue has not ended by that: it is marked as gone from the queue,
and accounting is asked (see ingest).
"""

from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta, tzinfo
from typing import TYPE_CHECKING

from gateway.brokerclient.port import Broker
from gateway.core.dataset_ahead import Planned
from gateway.errors import BrokerRefused, BrokerSilent, BrokerUnreachable, GatewayError
from gateway.services import link, poll_plan, requeues, wait_looks
from gateway.services.poll_plan import Plan
from gateway.services.wait_looks import Looker
from gateway.store import capacity, jobs, polls, snapshot, submissions
from gateway.store.uow import Begin
from gateway.store.upsert import chunks
from gateway.wire import messages as m

if TYPE_CHECKING:
    from sqlalchemy.orm import Session

QUEUE, CLUSTER, POLICY, ACCOUNTING = "queue", "cluster", "policy", "accounting"
PRIORITY = "priority"
ACCOUNTING_LATE = "accounting_late"
# What a read of Slurm can end in; anything else is a fault of ours and goes up.
BROKER_ERRORS = (BrokerRefused, BrokerUnreachable, BrokerSilent)

# A page waits for a job it has just submitted, so the first half minute is watched closely.
_FRESH = timedelta(seconds=30)
# Rows a transaction: short enough that a form's post waits for no more than a moment.
_ROWS = 2000


@dataclass(frozen=True, slots=True)
class PollReport:
    """`error_code` None: the read succeeded and is stored."""

    error_code: str | None = None
    jobs: int = 0
    added: int = 0
    changed: int = 0
    left: int = 0
    ended: int = 0
    duplicates: tuple[link.Duplicate, ...] = ()
    planned: tuple[Planned, ...] = ()


def poll_queue(
    *, begin: Begin, broker: Broker, cluster: str, now: datetime, read: Begin | None = None
) -> PollReport:
    """One read of the queue for everyone. Safe to kill anywhere and to run again.

    `read` compares without SQLite's write lock, where there is one.
    """
    with begin() as session:
        before = polls.get(session, QUEUE)
        polls.tried(session, QUEUE, at=now)
    try:
        queue = broker.queue()
    except BROKER_ERRORS as error:
        return _failed(begin, QUEUE, error)
    plan = _plan(read or begin, cluster, queue)
    seen = poll_plan.sightings(queue)
    looker = wait_looks.looker(broker, plan.reasons(), cluster=cluster, at=queue.taken_at)
    added, fresh = _add(begin, cluster, plan, seen, looker, now=now)
    changed = _change(begin, plan, looker, now=now)
    with begin() as session:
        looker.tell_gap(session, since=before.succeeded_at, until=now)
        left = _mark_left(session, plan, last_seen=before.succeeded_at, now=now)
        jobs.replace_queue_sums(session, poll_plan.sums(queue))
        polls.succeeded(session, QUEUE, began=now, at=now)
        if _somebody_waits(queue, now):
            polls.want(session, QUEUE, now=now + timedelta(milliseconds=1))
        if plan.ended or left:
            polls.want(session, ACCOUNTING, now=now)
        open_tokens = submissions.unsettled_tokens(session)
        unsure = link.twice(seen) | set(open_tokens)
        duplicates = link.link(session, _among(seen, unsure), cluster=cluster, now=now)
    return PollReport(
        jobs=len(queue.jobs),
        added=added,
        changed=changed,
        left=left,
        ended=plan.ended,
        duplicates=tuple(sorted({*fresh, *duplicates}, key=lambda one: one.slurm_id)),
        planned=poll_plan.planned(queue),
    )


def poll_cluster(*, begin: Begin, broker: Broker, now: datetime, zone: tzinfo = UTC) -> PollReport:
    """Nodes, partitions and reservations, replaced in one transaction; how many cards there are is
    kept for the day, which is one of `zone`."""
    with begin() as session:
        polls.tried(session, CLUSTER, at=now)
    try:
        nodes, partitions = broker.nodes(), broker.partitions()
        reservations = broker.reservations()
        _not_empty(nodes, partitions)
    except BROKER_ERRORS as error:
        return _failed(begin, CLUSTER, error)
    with begin() as session:
        snapshot.replace_cluster(
            session, nodes=nodes, partitions=partitions, reservations=reservations
        )
        capacity.note(session, now.astimezone(zone).date(), cards_of(nodes))
        polls.succeeded(session, CLUSTER, began=now, at=now)
    return PollReport()


def cards_of(nodes: Iterable[m.Node]) -> Counter[str]:
    """GPUs by type, in service or not; `gpu` where the node does not say which."""
    found = Counter[str]()
    for node in nodes:
        if node.gpus:
            found[node.gpu_type or "gpu"] += node.gpus
    return found


def poll_policy(*, begin: Begin, broker: Broker, now: datetime) -> PollReport:
    """Associations, QoS, accounts and fair shares, replaced in one transaction."""
    with begin() as session:
        polls.tried(session, POLICY, at=now)
    try:
        associations, qos = broker.associations(), broker.qos()
        accounts, fair_shares = broker.accounts(), broker.fair_shares()
        _not_empty(associations, qos, accounts)
    except BROKER_ERRORS as error:
        return _failed(begin, POLICY, error)
    with begin() as session:
        snapshot.replace_policy(
            session,
            associations=associations,
            qos=qos,
            accounts=accounts,
            fair_shares=fair_shares,
        )
        polls.succeeded(session, POLICY, began=now, at=now)
    return PollReport()


def poll_priority(*, begin: Begin, broker: Broker, now: datetime) -> PollReport:
    """Points of waiting jobs, replaced in one transaction. None is an answer: nobody waits."""
    with begin() as session:
        polls.tried(session, PRIORITY, at=now)
    try:
        priorities = broker.priorities()
    except BROKER_ERRORS as error:
        return _failed(begin, PRIORITY, error)
    with begin() as session:
        snapshot.replace_priorities(session, priorities)
        polls.succeeded(session, PRIORITY, began=now, at=now)
    return PollReport(jobs=len(priorities.jobs))


def _not_empty(*answers: tuple[object, ...]) -> None:
    """No cluster is without nodes or accounts: such an answer would lock everybody out."""
    if not all(answers):
        raise BrokerSilent("Slurm listed nothing", code="empty_answer")


def _failed(begin: Begin, name: str, error: GatewayError) -> PollReport:
    with begin() as session:
        polls.failed(session, name, code=error.code)
    return PollReport(error_code=error.code)


def _plan(read: Begin, cluster: str, queue: m.Queue) -> Plan:
    with read() as session:
        known = jobs.active(session, cluster)
        around = {job.slurm_id for job in known}
        # Ended a moment ago, requeued, or an id that has come again.
        others = sorted({job.job_id for job in queue.jobs} - around)
        known += jobs.by_slurm_ids(session, cluster, others)
        again = [job.job_id for job in poll_plan.strangers(queue, known)]
        ids = {job.id for job in known}
        known += [j for j in jobs.by_slurm_ids(session, cluster, again) if j.id not in ids]
    return poll_plan.make(queue, known)


def _add(
    begin: Begin, cluster: str, plan: Plan, seen: link.Seen, looker: Looker, *, now: datetime
) -> tuple[int, list[link.Duplicate]]:
    """New jobs, each joined to its submission in the transaction that makes its row."""
    added, duplicates = 0, list[link.Duplicate]()
    for part in chunks(plan.added, _ROWS):
        with begin() as session:
            more = {"cluster": cluster, "seen_at": now, "template": None}
            added += jobs.add_all(session, [facts | more for facts in part])
            looker.tell(session, map(wait_looks.of_added, part))
            tokens = {facts["token"] for facts in part}
            duplicates += link.link(session, _among(seen, tokens), cluster=cluster, now=now)
    return added, duplicates


def _among(seen: link.Seen, tokens: set[str]) -> link.Seen:
    return {token: seen[token] for token in tokens if token in seen}


def _change(begin: Begin, plan: Plan, looker: Looker, *, now: datetime) -> int:
    for part in chunks(plan.changed, _ROWS):
        ids = {row["id"] for row in part}
        with begin() as session:
            jobs.change(session, [row | {"seen_at": now} for row in part])
            looker.tell(session, map(plan.waiting.get, ids))
            requeues.tell(session, [one for one in plan.requeues if one.job_id in ids])
    return len(plan.changed)


def _mark_left(session: "Session", plan: Plan, *, last_seen: datetime | None, now: datetime) -> int:
    """Note when an open job went from the queue, and when it was last there.

    Rows that did not change are not written at each poll, so `seen_at` of an open job is only
    a lower bound until it goes.
    """
    gone = [job for job in plan.missing if job.left_queue_at is None]
    rows = [
        {"id": job.id, "left_queue_at": now, "seen_at": max(job.seen_at, last_seen or job.seen_at)}
        for job in gone
    ]
    jobs.change(session, rows)
    return len(gone)


def _somebody_waits(queue: m.Queue, now: datetime) -> bool:
    return any(
        job.comment is not None
        and link.is_ours(job.comment)
        and now - job.submit_time < _FRESH
        and job.state in {"PENDING", "CONFIGURING"}
        for job in queue.jobs
    )
