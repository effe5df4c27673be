"""The single numbers of a change of limits.

What each limit is compared with stands in `core.caps`, Slurm's reason for who waits for it in
`core.reason_limits`.

Sources: sacctmgr(1), resource_limits.html, and a cluster of 26.05 that was asked (policy.md).
"""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from gateway.core.caps import KEYS, qos_key
from gateway.core.qos import Change, Field, Kind, Policy, Qos, limit_of
from gateway.core.reason_limits import LIMITS

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
# The others that hold, end or let go jobs: a word of Slurm tells who waits for them.
RULES = frozenset({one.key for one in LIMITS.values() if one.key in KEYS} - QUIET)


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
