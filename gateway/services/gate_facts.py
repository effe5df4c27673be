"""Reads what the gate decides by, as values of `core.gate`."""

from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta, tzinfo
from typing import TYPE_CHECKING, TypedDict

from gateway.core import gate
from gateway.core.gate import Group, Member, Sending
from gateway.core.gate_cost import OpenJob, Shape
from gateway.core.ledger import AtZero
from gateway.core.months import month_start
from gateway.core.pricing import PriceList
from gateway.core.states import parse_state
from gateway.store import gate as gates
from gateway.store import gate_facts, ledger, polls, prices, snapshot
from gateway.store.gate import GateRow, HeldJob
from gateway.store.gate_facts import JobRow
from gateway.store.ledger import AccountRow
from gateway.wire import messages as m

if TYPE_CHECKING:
    from sqlalchemy.orm import Session

# A submission this young may still be on its way to Slurm.
ON_ITS_WAY = timedelta(minutes=2)
# What Slurm says at a gate that is shut; such a submission waits until it is let through.
TURNED_AWAY = "group_submit_limit"
# Accounting that tells of an end later than this is found by `reconcile`, not waited for.
_UNCHARGED_FOR = timedelta(days=1)
_WARNING_MINUTES = 30


@dataclass(frozen=True, slots=True)
class Facts:
    """One moment. `jobs` are the rows behind the groups' jobs, by id."""

    prices: PriceList
    groups: tuple[Group, ...]
    jobs: Mapping[int, JobRow]
    gates: Mapping[tuple[str, str], GateRow]
    held: Mapping[int, HeldJob]
    polled_at: datetime | None


def read(session: "Session", *, cluster: str, zone: tzinfo, now: datetime) -> Facts | None:
    """None while the site has no prices in force: then nothing is written either."""
    price_list = prices.load(session)
    if not price_list.is_on(now):
        return None
    rows = gate_facts.open_jobs(session, cluster, ended_since=now - _UNCHARGED_FOR)
    since = price_list.begins or now
    rows += gate_facts.uncharged(session, cluster, since=since)
    jobs = _jobs(session, rows, now=now)
    accounts, kept = gate_facts.accounts(session), gate_facts.kept(session)
    sending: dict[str, list[Sending]] = defaultdict(list)
    on_its_way = gate_facts.sending(session, since=now - ON_ITS_WAY, waiting_code=TURNED_AWAY)
    for one in on_its_way:
        sending[one.group].append(Sending(one.user, one.card_minutes))
    members: dict[str, list[Member]] = defaultdict(list)
    for cap in gate_facts.caps(session, since=month_start(now, zone)):
        members[cap.group].append(Member(cap.user, cap.per_month - cap.spent))
    found = tuple(
        Group(
            name=name,
            pots=gate.usable(ledger.pots(session, name), now=now),
            kept=kept.get(name, 0),
            jobs=tuple(jobs.get(name, ())),
            sending=tuple(sending.get(name, ())),
            members=tuple(members.get(name, ())),
            **_rules(accounts.get(name)),
        )
        for name in gate_facts.groups(session)
    )
    return Facts(
        prices=price_list,
        groups=found,
        jobs={row.id: row for row in rows},
        gates=gates.gates(session),
        held=gates.held_jobs(session),
        polled_at=polls.get(session, "queue").succeeded_at,
    )


class _Rules(TypedDict):
    at_zero: AtZero
    overdraft: int
    warning_minutes: int


def _rules(account: AccountRow | None) -> _Rules:
    """Those of a group that never had credit are the ones an account begins with."""
    if account is None:
        return _Rules(at_zero=AtZero.HOLD, overdraft=0, warning_minutes=_WARNING_MINUTES)
    return _Rules(
        at_zero=AtZero(account.at_zero),
        overdraft=account.overdraft,
        warning_minutes=account.warning_minutes,
    )


def _jobs(
    session: "Session", rows: Sequence[JobRow], *, now: datetime
) -> Mapping[str, list[OpenJob]]:
    partitions = {one.name: one for one in snapshot.partitions(session)}
    longer = [
        row.id
        for row in rows
        if row.held is not None and _minutes(row, partitions) != row.asked_minutes
    ]
    paid_for = gate_facts.limits_paid_for(session, longer)
    found: dict[str, list[OpenJob]] = defaultdict(list)
    for row in rows:
        job = open_job(row, partitions, paid_for.get(row.id, 0), now=now)
        if job is not None:
            found[row.group].append(job)
    return found


def open_job(
    row: JobRow, partitions: Mapping[str, m.Partition], paid_for: int, *, now: datetime
) -> OpenJob | None:
    """None for what has never started and does not wait any more."""
    waits = row.active and parse_state(row.state)[0].is_pending
    # The queue no longer has it: it used its nodes until then, whatever accounting will say.
    ended = row.left_queue_at if row.active else row.end_time
    if ended is not None and (waits or row.start_time is None):
        return None
    if not row.active and ended is None:
        return None
    held = row.held is not None
    short = (row.per_task or 0) - (row.held or 0) if held and row.tasks == 1 and waits else 0
    return OpenJob(
        id=row.id,
        user=row.user,
        order=(row.submit_time, row.slurm_id),
        kinds=_kinds(row, partitions),
        gpus=row.gpus,
        cpus=row.cpus,
        qos=row.qos,
        minutes=_minutes(row, partitions),
        # Slurm cuts a long list of tasks: then each task is counted once it has started.
        tasks=(row.array_tasks or 1) if waits and row.array_task is None else 1,
        started=None if waits else row.start_time or now,
        ended=ended,
        covered_minutes=max(row.asked_minutes or 0, paid_for) if held else 0,
        shortage=max(0, short),
        paid=_paid(row, partitions) if held else None,
    )


def _paid(row: JobRow, partitions: Mapping[str, m.Partition]) -> Shape | None:
    """What the hold was for: a waiting job can be given other cards by plain scontrol."""
    asked = row.asked or {}
    nodes, per_node = asked.get("nodes"), asked.get("gpus_per_node")
    if nodes is None or per_node is None:
        return None
    of = partitions.get(str(asked.get("partition")))
    kinds = (asked["gpu_type"],) if asked.get("gpu_type") else of.gpu_types if of else ()
    cpus = nodes * int(asked.get("cpus_per_task") or 1)
    # Slurm itself gives some more than asked, whole cores and the like.
    cpus = row.cpus if row.cpus <= 2 * cpus else cpus
    return Shape(tuple(kinds), nodes * per_node, cpus, asked.get("qos"))


def _of(row: JobRow, partitions: Mapping[str, m.Partition]) -> list[m.Partition]:
    """A waiting job may name several, by comma."""
    return [partitions[name] for name in row.partition.split(",") if name in partitions]


def _kinds(row: JobRow, partitions: Mapping[str, m.Partition]) -> tuple[str, ...]:
    if row.gpu_type:
        return (row.gpu_type,)
    return tuple(sorted({kind for one in _of(row, partitions) for kind in one.gpu_types}))


def _minutes(row: JobRow, partitions: Mapping[str, m.Partition]) -> int | None:
    if row.time_limit_minutes is not None:
        return row.time_limit_minutes
    caps = [one.max_time_minutes for one in _of(row, partitions)]
    longest = [cap for cap in caps if cap is not None]
    return max(longest) if longest and len(longest) == len(caps) else None
