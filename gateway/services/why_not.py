"""Why a job does not start yet, from what the last polls saw. Slurm is not asked."""

from collections.abc import Iterable
from datetime import timedelta
from functools import lru_cache
from typing import TYPE_CHECKING

from gateway.core.access import Viewer, job_rights
from gateway.core.arrays import job_number
from gateway.core.caps import KEYS, Cap, Holder, Level, Shape, Way, Who, caps_of, never
from gateway.core.hostlist import expand
from gateway.core.maintenance import Clash, clash
from gateway.core.node_states import in_service
from gateway.core.offer import GroupChoice, PartitionChoice, build_offer, levels_of
from gateway.core.reason_limits import limit_of
from gateway.core.reasons import reason_key
from gateway.core.states import JobState, parse_state
from gateway.core.tres import GPU
from gateway.core.usage import FreeNode, Running, Whose
from gateway.core.whyhelp import Choice, Trial
from gateway.core.whynot import Facts, Job, Out, Why, why
from gateway.store import snapshot
from gateway.store.queries import gates, waiting
from gateway.store.queries.policy_changes import retired
from gateway.wire import messages as m

if TYPE_CHECKING:
    from datetime import datetime

    from sqlalchemy.orm import Session

    from gateway.store.queries.job import JobDetail
    from gateway.store.queries.jobs import JobRow
    from gateway.store.queries.waiting import RunningRow

_MOST_OUT = 8


def why_not(
    session: "Session", detail: "JobDetail", *, viewer: Viewer, now: "datetime"
) -> Why | None:
    """None for a job that does not wait. `viewer` must be allowed to see it."""
    job = detail.row
    if not job.active or not parse_state(job.state)[0].is_pending:
        return None
    nodes = snapshot.nodes(session)
    trial = _trial(session, job, nodes, viewer=viewer, now=now)
    part = next((p for p in snapshot.partitions(session) if p.name == job.partition), None)
    facts = Facts(
        trial=trial,
        state=part.state if part else None,
        queued=_queued(session, job, trial.caps),
        out=tuple(_out(nodes, job.partition))[:_MOST_OUT],
        clash=_clash(session, job, trial.shape, nodes, now),
        begins=job.eligible_time,
        after=_after(session, detail),
        at_once=_at_once(detail),
    )
    return why(Job(job.id, job.partition), job.reason, facts)


def _trial(
    session: "Session",
    job: "JobRow",
    nodes: tuple[m.Node, ...],
    *,
    viewer: Viewer,
    now: "datetime",
) -> Trial:
    """The limits as the job's owner has them, whoever reads."""
    accounts, levels = snapshot.accounts(session), snapshot.qos(session)
    own_group = job.group.casefold()
    associations = snapshot.associations_of(session, job.user)
    offer = build_offer(
        job.user,
        [one for one in associations if one.account.casefold() == own_group],
        snapshot.partitions(session),
        levels,
        nodes,
        accounts=accounts,
        retired=retired(session) - {(job.qos or "").casefold()},  # what it is in limits it still
    )
    group = offer.find_group(job.group)
    place = group.find_partition(job.partition) if group else None
    gated, gate_caps = _gate(session, job)
    own = place.find_qos(job.qos or "") if place else None
    plain = own.limits.caps if own else _left(job, levels, levels_of(job.group, accounts))
    choices = {
        one.name: Choice((*one.limits.caps, *gate_caps), one.limits.max_minutes, one.priority)
        for one in (place.qos if place else ())
    }
    counted = [*plain, *(cap for choice in choices.values() for cap in choice.caps)]
    shape = shape_of(job)
    return Trial(
        whose=Whose(job.user, job.group),
        shape=shape,
        own_qos=own.name if own else "",
        now=now,
        caps=(*plain, *gate_caps),
        running=tuple(_running(session, job, counted, viewer)),
        nodes=tuple(_free(nodes, job.partition)),
        qos=choices,
        partitions=tuple(_elsewhere(group, job, shape)),
        max_minutes=own.limits.max_minutes if own else None,
        max_nodes=own.limits.max_nodes if own else None,
        gated=gated,
    )


def shape_of(job: "JobRow") -> Shape:
    """What the job asks for; of an array what each task does."""
    nodes = max(1, job.nodes)
    return Shape(
        nodes=nodes,
        gpus_per_node=-(-job.gpus // nodes),
        gpu_type=job.gpu_type,
        cpus=-(-job.cpus // nodes) if job.cpus else None,
        minutes=job.time_limit_minutes,
    )


def _left(job: "JobRow", qos: Iterable[m.Qos], groups: tuple[Level, ...]) -> tuple[Cap, ...]:
    """The limits of a QoS that the owner may no longer choose: it still limits the job."""
    wanted = (job.qos or "").casefold()
    return next((caps_of(one, None, groups) for one in qos if one.name.casefold() == wanted), ())


def _gate(session: "Session", job: "JobRow") -> tuple[bool, tuple[Cap, ...]]:
    """Whether the portal holds this job or shuts its group, and the limits that it has set."""
    rows = [one for one in gates.gates(session, job.group) if one.user in {"", job.user}]
    gated = gates.why_held(session, job.id) is not None or any(one.closed for one in rows)
    own = frozenset({job.group})
    caps: list[Cap] = []
    for one in rows:
        if not one.user and one.run_minutes is not None:
            key = "grp_tres_run_minutes"
            caps.append(Cap(Holder.GROUP, job.group, key, GPU, one.run_minutes, own))
        if not one.user and one.submit is not None:
            caps.append(Cap(Holder.GROUP, job.group, "grp_submit_jobs", "jobs", one.submit, own))
    return gated, tuple(caps)


def _running(
    session: "Session", job: "JobRow", caps: Iterable[Cap], viewer: Viewer
) -> Iterable[Running]:
    """Those that can count against a limit or stand on the partition's nodes, no others."""
    groups, qos = {job.group}, set[str]()
    for cap in caps:
        groups |= cap.accounts
        if cap.holder is Holder.QOS and cap.who is Who.ALL:
            qos.add(cap.name)
    rows = waiting.running(
        session, job.cluster, partition=job.partition, user=job.user, groups=groups, qos=qos
    )
    pairs = {(row.user, row.group) for row in rows}
    seen = {pair for pair in pairs if job_rights(viewer, user=pair[0], group=pair[1]).see}
    return (_run(row, viewer, seen) for row in rows if _is_active(row.state))


@lru_cache(maxsize=64)
def _is_active(state: str) -> bool:
    """Ten thousand jobs share a few states."""
    return parse_state(state)[0].is_active


def _run(row: "RunningRow", viewer: Viewer, seen: set[tuple[str, str]]) -> Running:
    limit = row.time_limit_minutes
    return Running(
        id=row.id,
        number=job_number(row.slurm_id, row.array_job_id, row.array_task),
        user=row.user,
        group=row.group,
        qos=row.qos or "",
        gpus=row.gpus,
        gpu_type=row.gpu_type,
        cpus=row.cpus,
        nodes=_nodes(row.node_list or ""),
        ends=None if limit is None else row.start_time + timedelta(minutes=limit),
        seen=(row.user, row.group) in seen,
        own=row.user == viewer.unix_user,
        completing=parse_state(row.state)[0] is JobState.COMPLETING,
    )


@lru_cache(maxsize=4096)
def _nodes(node_list: str) -> frozenset[str]:
    return frozenset(expand(node_list))


def _free(nodes: Iterable[m.Node], partition: str) -> Iterable[FreeNode]:
    for node in nodes:
        if partition in node.partitions and in_service(node.state):
            free = max(0, node.gpus - node.gpus_used)
            cpus = max(0, node.cpus - node.cpus_used)
            yield FreeNode(node.name, node.gpu_type, free, cpus)


def _out(nodes: Iterable[m.Node], partition: str) -> Iterable[Out]:
    for node in nodes:
        if partition in node.partitions and not in_service(node.state):
            yield Out(node.name, node.state, node.reason)


def _elsewhere(group: GroupChoice | None, job: "JobRow", shape: Shape) -> Iterable[str]:
    """Other partitions of the group that are open and can hold the job as it is."""
    for part in group.partitions if group else ():
        if part.name != job.partition and part.is_up and _holds(part, job.qos or "", shape):
            yield part.name


def _holds(part: PartitionChoice, qos: str, shape: Shape) -> bool:
    level = part.find_qos(qos)
    if level is None or never(level.limits.caps, shape):
        return False
    limits, minutes = level.limits, shape.minutes
    if limits.max_minutes is not None and (minutes is None or minutes > limits.max_minutes):
        return False
    if (limits.max_nodes or part.nodes) < shape.nodes or part.nodes < shape.nodes:
        return False
    if (shape.cpus or 0) > (part.cpus_per_node or 0):
        return False
    kinds = [kind for kind in part.gpus if shape.gpu_type in {None, kind.name}]
    fit = sum(kind.nodes for kind in kinds if kind.per_node >= shape.gpus_per_node)
    return not shape.gpus_per_node or fit >= shape.nodes


def _queued(session: "Session", job: "JobRow", caps: Iterable[Cap]) -> int | None:
    """How many wait or run where the reason's limit counts those."""
    named = limit_of(job.reason)
    if named is None or named.key not in KEYS or KEYS[named.key][0] is not Way.QUEUED:
        return None
    _, who = KEYS[named.key]
    return waiting.queued(
        session,
        job.cluster,
        user=job.user if who is Who.PERSON else None,
        groups=_counting(job, named.holder, who, caps),
        qos=job.qos if named.holder is Holder.QOS else None,
    )


def _counting(job: "JobRow", holder: Holder, who: Who, caps: Iterable[Cap]) -> frozenset[str]:
    if who is Who.ALL and holder is Holder.QOS:
        return frozenset()
    found = (cap.accounts for cap in caps if cap.key == "grp_submit_jobs" and cap.accounts)
    return next(found, frozenset({job.group})) if who is Who.ALL else frozenset({job.group})


def _clash(
    session: "Session", job: "JobRow", shape: Shape, nodes: tuple[m.Node, ...], now: "datetime"
) -> Clash | None:
    if reason_key(job.reason) not in {"nodes_unavailable", "priority", "resources"}:
        return None
    return clash(
        shape,
        partition=job.partition,
        nodes=nodes,
        reservations=snapshot.reservations(session),
        user=job.user,
        group=job.group,
        now=now,
    )


def _after(session: "Session", detail: "JobDetail") -> str | None:
    if detail.submission is None or not reason_key(detail.row.reason).startswith("dependency"):
        return None
    found = waiting.waits_for(session, detail.submission.row.id)
    if found is None:
        return None
    return job_number(found.slurm_id, found.array_job_id, found.array_task)


def _at_once(detail: "JobDetail") -> int | None:
    array = detail.submission.array if detail.submission else None
    most = (array or "").partition("%")[2]
    return int(most) if most.isdigit() else None
