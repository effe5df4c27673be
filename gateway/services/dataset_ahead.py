"""Datasets on the nodes before a job starts there: a small job without cards copies them.

Backfill tells where and when it means to start a waiting job. The copying job runs as the same
person on those nodes, in the QoS that stands behind all others, and its limit ends before the
expected start: Slurm lets it in only where nobody is kept waiting by it. Once for a job and a set
of nodes, and `_PLANS` times for a job, whatever becomes of it; a job that starts early waits for
the rest of a copy under the copy's lock, as if it had begun it itself.
"""

import hashlib
from collections.abc import Sequence
from dataclasses import replace
from datetime import datetime
from typing import TYPE_CHECKING

import structlog

from gateway.core.ask import Ask
from gateway.core.dataset_ahead import Planned, copy_time, minutes_now
from gateway.core.datasets import FIELD
from gateway.core.offer import Offer, QosChoice
from gateway.errors import BrokerRefused, BrokerSilent, BrokerUnreachable, GatewayError, Refused
from gateway.services import site_jobs
from gateway.services.dataset_jobs import cpu_ask
from gateway.services.environments import NONE
from gateway.services.offer import offer as read_offer
from gateway.services.site_jobs import Desk, Outcome
from gateway.services.submit import InvalidAsk
from gateway.store import dataset_ahead as store
from gateway.store import events
from gateway.store.dataset_ahead import Waiting
from gateway.store.site_jobs import SiteJobRow

if TYPE_CHECKING:
    from sqlalchemy.orm import Session

log = structlog.get_logger(__name__)

TEMPLATE = "stage-dataset"
KIND = "dataset_ahead"
_PLANS = 3  # sets of nodes for a job: plans move with every job that comes or ends
_OPEN = 5  # at a time, of all
_ROOMY = 10  # a QoS that lets a person have fewer jobs has no place for this one


def copy_due(planned: Sequence[Planned], *, desk: Desk, now: datetime) -> int:
    """Send what is due; how many were sent. One that cannot be sent is left, and said in the log:
    the job copies its datasets itself when it starts."""
    near = {(one.token, one.slurm_id): one for one in planned if one.start > now}
    if not near:
        return 0
    with desk.read() as session:
        found = store.waiting(session, {token for token, _ in near})
        count = store.open_count(session, KIND)
    sent = 0
    for one in found:
        plan = near.get((one.token, one.slurm_id))
        if plan is None or count + sent >= _OPEN or len(plan.nodes) != one.nodes:
            continue
        copy = copy_time((part.bytes, part.read_mbps) for part in one.parts)
        minutes = minutes_now(copy, plan.start - now)
        if minutes is not None:
            sent += _sent(one, plan, minutes, desk=desk, now=now)
    return sent


def take_back_late(*, desk: Desk, now: datetime) -> int:
    """Cancel those that still wait while nobody needs them any more; how many."""
    with desk.read() as session:
        late = store.late(session, KIND, now=now)
    for one in late:
        try:
            desk.broker.cancel(one.slurm_id, user=one.user)
        except (BrokerRefused, BrokerSilent, BrokerUnreachable) as error:
            log.info("dataset_copy_not_cancelled", job=one.slurm_id, code=error.code)
    return len(late)


def finish(session: "Session", job: SiteJobRow, outcome: Outcome, now: datetime) -> None:
    """Whether it came to its end, in the history of the job that it was for."""
    if outcome.code is None:
        detail = {"about": job.facts.get("nodes", "")}
        _tell(session, "datasets_copied", int(job.facts["submission"]), detail, now)


def _sent(one: Waiting, plan: Planned, minutes: int, *, desk: Desk, now: datetime) -> bool:
    nodes = ",".join(plan.nodes)
    subject = f"submission {one.submission_id}"
    key = f"ahead-{one.submission_id}-{hashlib.sha256(nodes.encode()).hexdigest()[:24]}"
    with desk.read() as session:
        if site_jobs.is_known(session, one.person_id, key):
            return False
        if store.sent(session, KIND, subject) >= _PLANS:
            return False
        viewer = site_jobs.viewer_of(session, one.person_id)
    if viewer is None:
        return False
    facts = {"submission": one.submission_id, "nodes": nodes, "until": plan.start.isoformat()}
    try:
        site_jobs.start(
            KIND,
            subject,
            _ask(one, minutes, read_offer(viewer, begin=desk.read)),
            form_key=key,
            viewer=viewer,
            desk=desk,
            now=now,
            environments=(NONE,),
            facts=facts,
            on_nodes=nodes,
        )
    except (InvalidAsk, Refused, BrokerRefused) as no:
        log.info("datasets_not_copied_ahead", submission=one.submission_id, code=_code(no))
        return False
    with desk.begin() as session:
        _tell(session, "datasets_copying", one.submission_id, {"about": nodes}, now)
    return True


def _ask(one: Waiting, minutes: int, offer: Offer) -> Ask:
    """In the waiting job's own group and partition: its nodes may be in no other."""
    ask = cpu_ask(
        TEMPLATE,
        offer,
        name=f"copy-for-{one.slurm_id}",
        minutes=minutes,
        values={FIELD: " ".join(part.word for part in one.parts)},
        partition=one.partition,
        nodes=one.nodes,
        group=one.group,
    )
    return replace(ask, qos=_last_in_line(offer, one).name)


def _last_in_line(offer: Offer, one: Waiting) -> QosChoice:
    """Refused dataset_no_place where each QoS lets the person have but a few jobs: a place of
    their own would be taken from them."""
    group = offer.find_group(one.group)
    partition = group.find_partition(one.partition) if group else None
    roomy = [q for q in partition.qos if _is_roomy(q)] if partition else []
    if not roomy:
        raise Refused("dataset_no_place", login=offer.user)
    return min(roomy, key=lambda q: (q.priority, not q.preemptible, q.name))


def _is_roomy(qos: QosChoice) -> bool:
    most = (qos.limits.max_jobs, qos.limits.max_submit_jobs)
    return all(limit is None or limit >= _ROOMY for limit in most)


def _tell(
    session: "Session", kind: str, submission_id: int, detail: dict[str, object], now: datetime
) -> None:
    events.add(session, kind, at=now, submission_id=submission_id, detail=detail)


def _code(no: GatewayError) -> str:
    return no.problems[0].code if isinstance(no, InvalidAsk) and no.problems else no.code
