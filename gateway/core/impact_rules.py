"""Judge a change of policy by the jobs that are there (core.impact says what comes out).

Jobs of a limit's key are taken as Slurm takes them: by priority, those that cannot start passed
over. A pending array is judged by its next task.
"""

from collections import defaultdict
from collections.abc import Iterator, Sequence
from datetime import datetime

from gateway.core import limit_rules as rules
from gateway.core.impact import (
    ActiveJob,
    Affected,
    Doubt,
    Effect,
    FieldImpact,
    Impact,
    Preemption,
    Site,
    Unknown,
)
from gateway.core.impact_limits import Limit, inside
from gateway.core.policy_change import Item, Of
from gateway.core.qos import Change

_TOLD = frozenset({"qos", "preempts"})  # in a way of their own
QOS_GONE = "InvalidQOS"  # Slurm's reason for a job whose group may not use its QoS


def impact(
    items: Sequence[Item], jobs: Sequence[ActiveJob], *, site: Site, now: datetime
) -> Impact:
    """All items applied together, on open jobs in any order."""
    queue = sorted(jobs, key=lambda job: (-job.priority, job.submit_time, job.slurm_id))
    fields: list[FieldImpact] = []
    unknown: list[Unknown] = []
    preemption: list[Preemption] = []
    meant = _meant(items, queue, site)
    for item, own in zip(items, meant, strict=True):
        for change in item.changes:
            for found in _judged(item, change, own, site, now):
                (fields if isinstance(found, FieldImpact) else unknown).append(found)  # type: ignore[arg-type]
            preemption += _preemption(item, change, queue)
    return Impact(tuple(fields), tuple(unknown), tuple(preemption))


def _meant(
    items: Sequence[Item], queue: Sequence[ActiveJob], site: Site
) -> Iterator[Sequence[ActiveJob]]:
    """The jobs that each item speaks of, in their order: not every job is held against all."""
    by_qos: dict[str, list[ActiveJob]] = defaultdict(list)
    by_group: dict[str, list[ActiveJob]] = defaultdict(list)
    for job in queue:
        by_qos[job.qos].append(job)
        by_group[job.group].append(job)
    for item in items:
        groups = inside(site, item.name)
        if item.of is Of.QOS:
            yield by_qos[item.name]
        elif len(groups) == 1:
            yield by_group[next(iter(groups))]
        else:
            yield [job for job in queue if job.group in groups]


def is_judged(item: Item) -> bool:
    """Whether anything can be said of what it does to jobs."""
    return any(
        change.field.key not in rules.QUIET or change.field.key in _TOLD for change in item.changes
    )


def _judged(
    item: Item, change: Change, queue: Sequence[ActiveJob], site: Site, now: datetime
) -> Iterator[FieldImpact | Unknown]:
    key = change.field.key
    if key == "qos" and item.of is Of.GROUP:
        yield _qos_list(item, change, queue, site)
    elif key in rules.RULES:
        for number in rules.limit_changes(change):
            yield from Limit.of(item, number, site=site, now=now).judge(queue)
    elif key not in rules.QUIET:
        yield Unknown(item.of, item.name, change.field, None, Doubt.UNJUDGED)


def _qos_list(item: Item, change: Change, queue: Sequence[ActiveJob], site: Site) -> FieldImpact:
    """Jobs in a QoS that their group loses wait for good, those that run go on."""
    lists = site.lists[item.name]
    found = []
    for job in queue:
        if job.group not in lists.groups:
            continue
        if job.qos in lists.lost:
            effect = Effect.ABOVE if job.running else Effect.WAITS
        elif job.qos in lists.after and not job.running and job.reason == QOS_GONE:
            effect = Effect.LET_GO
        else:
            continue
        reason = QOS_GONE if effect is Effect.WAITS else None
        found.append(Affected(effect, job, reason, item.name, None, None))
    facts = (item.of, item.name, change.field, None, None, None)
    return FieldImpact(*facts, tuple(found), _sorted(lists.lost))


def _preemption(item: Item, change: Change, queue: Sequence[ActiveJob]) -> list[Preemption]:
    if change.field.key != "preempts":
        return []
    waiting = sum(job.tasks for job in queue if job.qos == item.name and not job.running)
    new = _sorted(frozenset(_names(change.after)) - frozenset(_names(change.before)))
    found = []
    for name in new:
        running = [job for job in queue if job.qos == name and job.running]
        gpus = sum(job.gpus for job in running)
        found.append(Preemption(item.name, name, len(running), gpus, waiting))
    return found


def _names(found: object) -> tuple[str, ...]:
    return found if isinstance(found, tuple) else ()


def _sorted(names: frozenset[str]) -> tuple[str, ...]:
    return tuple(sorted(names))
