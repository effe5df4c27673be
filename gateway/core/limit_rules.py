"""Slurm's reason for who waits for which limit, and the single numbers of a change of limits.

What each limit is compared with stands in `core.caps`.

Sources: sacctmgr(1), resource_limits.html, and a cluster of 26.05 that was asked (policy.md).
"""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from gateway.core.caps import qos_key
from gateway.core.qos import Change, Field, Kind, Policy, Qos, limit_of
from gateway.core.reasons import REASONS
from gateway.core.tres import GPU


@dataclass(frozen=True, slots=True)
class Rule:
    """Slurm's words for a limit of a QoS and of a group, with {} for the kind of resource."""

    qos_reason: str
    group_reason: str = ""


RULES: dict[str, Rule] = {
    "grp_tres": Rule("QOSGrp{}", "AssocGrp{}"),
    "grp_tres_minutes": Rule("QOSGrp{}Minutes", "AssocGrp{}Minutes"),
    "grp_tres_run_minutes": Rule("QOSGrp{}RunMinutes"),
    "grp_jobs": Rule("QOSGrpJobsLimit", "AssocGrpJobsLimit"),
    "grp_wall_minutes": Rule("QOSGrpWallLimit", "AssocGrpWallLimit"),
    "max_tres_per_account": Rule("Max{}PerAccount"),
    "max_tres_run_minutes_per_account": Rule("Max{}RunMinsPerAccount"),
    "max_jobs_per_account": Rule("MaxJobsPerAccount"),
    "max_tres_per_user": Rule("QOSMax{}PerUser"),
    "max_tres_run_minutes_per_user": Rule("Max{}RunMinsPerUser"),
    "max_jobs_per_user": Rule("QOSMaxJobsPerUserLimit"),
    "max_jobs": Rule("", "AssocMaxJobsLimit"),
    "max_tres_per_job": Rule("QOSMax{}PerJob", "AssocMax{}PerJob"),
    "max_tres_per_node": Rule("QOSMax{}PerNode"),
    "max_tres_minutes_per_job": Rule("QOSMax{}MinutesPerJob", "AssocMax{}MinutesPerJob"),
    "max_wall_minutes": Rule("QOSMaxWallDurationPerJobLimit", "AssocMaxWallDurationPerJobLimit"),
    "min_tres_per_job": Rule("QOSMin{}"),
}
# What holds, ends and lets go no job that is there: it counts at submit, for the order in the
# queue, for money, or is told in a way of its own (QoS lists, preemption).
QUIET = frozenset(
    {
        "description",
        "priority",
        "usage_factor_millionths",
        "preempts",
        "preempt_mode",
        "preempt_exempt_seconds",
        "grace_seconds",
        "grp_jobs_accrue",
        "grp_submit_jobs",
        "max_jobs_accrue_per_account",
        "max_submit_per_account",
        "max_jobs_accrue_per_user",
        "max_submit_per_user",
        "max_submit_jobs",
        "qos",
        "default_qos",
        "shares",
    }
)
_WORDS = {"cpu": "Cpu", "mem": "Mem", "node": "Node", "billing": "Billing", "energy": "Energy"}


@dataclass(frozen=True, slots=True)
class LimitChange:
    """One number of a changed field: of one resource, or the field's own. None: no limit."""

    field: Field
    tres: str | None
    before: int | None
    after: int | None


def limit_changes(change: Change) -> Iterator[LimitChange]:
    """The numbers in which a field with a rule differs."""
    if change.field.kind is not Kind.TRES:
        before, after = change.before, change.after
        assert before is None or isinstance(before, int)
        assert after is None or isinstance(after, int)
        yield LimitChange(change.field, None, before, after)
        return
    names = sorted({row.tres for row in (*_rows(change.before), *_rows(change.after))})
    for name in names:
        before = limit_of(_rows(change.before), name)
        after = limit_of(_rows(change.after), name)
        if before != after:
            yield LimitChange(change.field, name, before, after)


def reason(rule: Rule, tres: str | None, *, of_qos: bool) -> str:
    """Slurm's word for who waits for the limit."""
    word = (rule.qos_reason if of_qos else rule.group_reason).format(_kind(tres))
    if word == "QOSMinCpu":
        return "QOSMinCpuNotSatisfied"
    longer = (f"{word}Limit", f"{word.replace('Cpu', 'CPU')}Limit")
    return next((found for found in longer if found in REASONS), word)


def goes_before(key: str, tres: str | None, qos: Qos) -> bool:
    """Whether this QoS has a limit of its own in place of the group's `key`."""
    return number(qos, qos_key(key), tres) is not None


def number(policy: Policy, key: str, tres: str | None) -> int | None:
    """The limit that a policy sets, of one resource where the field has several."""
    found = getattr(policy, key)
    if isinstance(found, tuple):
        return None if tres is None else limit_of(found, tres)
    assert found is None or isinstance(found, int)
    return found


def _rows(found: object) -> tuple[Any, ...]:
    return found if isinstance(found, tuple) else ()


def _kind(tres: str | None) -> str:
    if tres is None:
        return ""
    if tres.partition("/")[0] == GPU.partition("/")[0]:
        return "GRES"
    if tres.startswith("license/"):
        return "License"
    return _WORDS.get(tres, "Unknown")
