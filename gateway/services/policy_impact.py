"""What a change of policy would do to the jobs that are there, from the database alone."""

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import date, datetime
from typing import TYPE_CHECKING

from gateway.core.caps import KEYS, Way
from gateway.core.impact import Impact, PastUsage, QosLists, Site
from gateway.core.impact_rules import impact, is_judged
from gateway.core.policy_change import Item, Of
from gateway.core.qos import GroupPolicy, Qos
from gateway.core.tres import GPU
from gateway.store import accounting_facts, snapshot
from gateway.store.queries import active_jobs
from gateway.store.queries.active_jobs import DayOfRuns
from gateway.store.uow import Begin
from gateway.wire import messages as m
from gateway.wire.policy import Account

if TYPE_CHECKING:
    from sqlalchemy.orm import Session

_MINUTE, _DAY = 60, 86_400.0
_MILLION = 1_000_000
_SAFE = "safe"
# The limits that a person's association may have of their own, as the poll reads them.
_OWN = frozenset({"max_jobs", "max_wall_minutes"})


def preview(items: Sequence[Item], *, read: Begin, now: datetime) -> Impact:
    """The jobs that would wait, be ended, be let go; see core.impact. Asks Slurm nothing."""
    judged = [item for item in items if is_judged(item)]
    if not judged:  # the shares of all groups, each night
        return Impact()
    with read() as session:
        qos = qos_afterwards(items, snapshot.qos(session))
        site = _site(session, judged, qos, now=now)
        names = {of: [item.name for item in judged if item.of is of] for of in Of}
        groups = set().union(*(site.inside[name] for name in names[Of.GROUP]))
        preempted = (name for item in judged for name in _preempted(item))
        jobs = active_jobs.open_jobs(session, qos={*names[Of.QOS], *preempted}, groups=groups)
    return impact(judged, jobs, site=site, now=now)


def inside(accounts: Sequence[Account], group: str) -> frozenset[str]:
    """A group and those below it."""
    found = {group}
    below = [account for account in accounts if account.parent is not None]
    while more := {a.policy.name for a in below if a.parent in found} - found:
        found |= more
    return frozenset(found)


def qos_lists(item: Item, accounts: Sequence[Account]) -> QosLists:
    """A group without a list of its own takes that of the group above."""
    known = {account.policy.name: account for account in accounts}
    account = known.get(item.name)
    above = known.get(account.parent or "") if account else None
    inherited = above.usable_qos if above else ()
    before, after = item.before, item.after
    assert isinstance(after, GroupPolicy)
    return QosLists(
        frozenset((before.qos if isinstance(before, GroupPolicy) else ()) or inherited),
        frozenset(after.qos or inherited),
        inside([one for one in accounts if not one.policy.qos], item.name),
    )


def qos_afterwards(items: Iterable[Item], known: Iterable[Qos]) -> dict[str, Qos]:
    """Each QoS as it will be, by name."""
    changed = {item.name: item.after for item in items if isinstance(item.after, Qos)}
    return {qos.name: qos for qos in known} | changed


def _site(
    session: "Session", items: Sequence[Item], qos: Mapping[str, Qos], *, now: datetime
) -> Site:
    facts = accounting_facts.get(session)
    accounts = snapshot.accounts(session)
    groups = {item.name: inside(accounts, item.name) for item in items if item.of is Of.GROUP}
    standing = frozenset(item.object for item in items if _stands(item, facts))
    usage = {}
    for item in items:
        if any(KEYS.get(c.field.key, (None,))[0] is Way.SPENT for c in item.changes):
            decay = None if facts is None or item.object in standing else facts
            half_life = decay.priority_decay_half_life_seconds if decay else None
            left = _Left(half_life, now.date(), qos)
            usage[item.object] = _usage(session, item, groups, left)
    return Site(
        qos=qos,
        lists={i.name: qos_lists(i, accounts) for i in items if i.of is Of.GROUP},
        inside=groups,
        own=_own_limits(session, items, groups, accounts),
        usage=usage,
        never_decays=standing,
        ends_running=None if facts is None else _SAFE not in facts.enforced,
    )


def _stands(item: Item, facts: m.AccountingFacts | None) -> bool:
    """Whether Slurm never lets this object's usage decay."""
    if isinstance(item.after, Qos) and "NoDecay" in item.after.flags:
        return True
    return facts is not None and facts.priority_decay_half_life_seconds is None


def _preempted(item: Item) -> tuple[str, ...]:
    return item.after.preempts if isinstance(item.after, Qos) else ()


def _own_limits(
    session: "Session",
    items: Sequence[Item],
    groups: Mapping[str, frozenset[str]],
    accounts: Sequence[Account],
) -> dict[tuple[str, str], frozenset[tuple[str, str]]]:
    """People whose association says something else than what their group gives it."""
    found = {}
    for item in items:
        keys = {change.field.key for change in item.changes} & _OWN
        if item.of is Of.QOS or not keys:
            continue
        people = [
            one for name in groups[item.name] for one in snapshot.associations_in(session, name)
        ]
        for key in keys:
            given = _given(item.name, key, accounts)
            found[item.name, key] = frozenset(
                (one.account, one.user) for one in people if getattr(one, key) != given
            )
    return found


def _given(group: str, key: str, accounts: Sequence[Account]) -> int | None:
    """What people of a group get who have nothing of their own: the group's, or from above."""
    known = {account.policy.name: account for account in accounts}
    at = known.get(group)
    while at is not None:
        limit: int | None = getattr(at.policy, key)
        if limit is not None:
            return limit
        at = known.get(at.parent or "")
    return None


@dataclass(frozen=True, slots=True)
class _Left:
    """What part of a day's usage Slurm still counts: each day's runs are taken as if they had
    ended at its end, which is never less than what Slurm counts of them."""

    half_life: int | None
    today: date
    qos: Mapping[str, Qos]

    def of(self, row: DayOfRuns) -> float:
        known = self.qos.get(row.qos or "")
        factor = known.usage_factor_millionths / _MILLION if known else 1.0
        if self.half_life is None:
            return factor
        age = max(0, (self.today - row.day).days - 1) * _DAY
        return float(factor * 0.5 ** (age / self.half_life))


def _usage(
    session: "Session", item: Item, groups: Mapping[str, frozenset[str]], left: _Left
) -> PastUsage:
    name = item.name if item.of is Of.QOS else None
    seconds: dict[str, float] = defaultdict(float)
    wall = 0.0
    for row in active_jobs.ended_by_day(session, qos=name, groups=groups.get(item.name, ())):
        part = left.of(row)
        wall += row.seconds * part
        for tres, used in _by_resource(row).items():
            seconds[tres] += used * part
    minutes = {tres: int(used) // _MINUTE for tres, used in seconds.items()}
    return PastUsage(minutes, int(wall) // _MINUTE)


def _by_resource(row: DayOfRuns) -> dict[str, int]:
    found = {"cpu": row.cpu_seconds, "node": row.node_seconds, GPU: row.gpu_seconds}
    if row.gpu_type:
        found[f"{GPU}:{row.gpu_type}"] = row.gpu_seconds
    return found
