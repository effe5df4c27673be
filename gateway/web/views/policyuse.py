"""Limits against what open jobs use now: of all jobs, and the highest of groups and people."""

from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from gateway.core.qos import Field, Kind, Policy, Scope, TresLimit, fields_of, value
from gateway.core.tres import GPU
from gateway.store.queries.policy_use import UseRow
from gateway.web.policy_texts import FIELD_TEXTS, GROUP_SCOPES, QOS_SCOPES
from gateway.web.policy_words import amount, bans, words
from gateway.web.texts import gettext

_RUNNING_JOBS = frozenset({"grp_jobs", "max_jobs_per_account", "max_jobs_per_user", "max_jobs"})
_OPEN_JOBS = frozenset(
    {"grp_submit_jobs", "max_submit_per_account", "max_submit_per_user", "max_submit_jobs"}
)
_AT_ONCE = frozenset({"grp_tres", "max_tres_per_account", "max_tres_per_user"})
_OF_ROW: dict[str, Callable[[UseRow], int]] = {
    GPU: lambda row: row.gpus,
    "cpu": lambda row: row.cpus,
    "node": lambda row: row.nodes,
}


@dataclass(frozen=True, slots=True)
class LimitLine:
    """A limit that is set. `used` None: the portal cannot count it. `who` has the most of it, in
    the scopes of groups and people. `percent` is cut at 100."""

    word: str
    help: str
    limit: str
    is_ban: bool
    used: str | None
    who: str
    percent: float
    is_full: bool
    is_above: bool


@dataclass(frozen=True, slots=True)
class ScopeView:
    word: str
    lines: list[LimitLine]
    unset: list[str]


def scopes(policy: Policy, rows: Sequence[UseRow], *, is_qos: bool) -> list[ScopeView]:
    """The limits by whom they hold for; those that are not set by name alone."""
    found = []
    for scope, word in (QOS_SCOPES if is_qos else GROUP_SCOPES).items():
        if scope is Scope.GENERAL:
            continue
        fields = [one for one in fields_of(policy) if one.scope is scope]
        lines = [line for one in fields for line in _lines(one, policy, rows, is_qos=is_qos)]
        unset = [str(FIELD_TEXTS[one.key].word) for one in fields if _is_unset(policy, one)]
        found.append(ScopeView(str(word), lines, unset))
    return found


def _is_unset(policy: Policy, field: Field) -> bool:
    return value(policy, field) in {None, ()}


def _lines(
    field: Field, policy: Policy, rows: Sequence[UseRow], *, is_qos: bool
) -> list[LimitLine]:
    limit = value(policy, field)
    if field.kind is Kind.TRES and isinstance(limit, tuple):
        return [
            _line(field, words(field, (one,)), one.limit, _tres_of(field, one.tres), rows,
                  is_qos=is_qos, tres=one.tres)
            for one in limit
            if isinstance(one, TresLimit)
        ]  # fmt: skip
    if not isinstance(limit, int):
        return []
    return [_line(field, words(field, limit), limit, _jobs_of(field), rows, is_qos=is_qos)]


def _line(
    field: Field,
    said: str,
    limit: int,
    counted: Callable[[UseRow], int] | None,
    rows: Sequence[UseRow],
    *,
    is_qos: bool,
    tres: str | None = None,
) -> LimitLine:
    used, who, percent, is_full, is_above = None, "", 0.0, False, False
    if counted is not None and limit:
        number, who = _most(field, counted, rows, is_qos=is_qos)
        used = amount(tres, number, field) if tres and number else f"{number:,}"
        percent = min(100.0, 100 * number / limit)
        is_full, is_above = number >= limit, number > limit
    text = FIELD_TEXTS[field.key]
    ban = bans(field, (TresLimit(tres, limit),) if tres else limit)
    return LimitLine(
        str(text.word), str(text.help), said, ban, used, who, percent, is_full, is_above
    )


def _most(
    field: Field, counted: Callable[[UseRow], int], rows: Sequence[UseRow], *, is_qos: bool
) -> tuple[int, str]:
    """The sum, or the highest of those for each of whom the limit holds."""
    if field.scope is Scope.ALL or (field.scope is Scope.GROUP and not is_qos):
        return sum(map(counted, rows)), ""
    sums = Counter[str]()
    for row in rows:
        sums[row.group if field.scope is Scope.GROUP else row.user] += counted(row)
    who, number = max(sums.items(), key=lambda one: (one[1], one[0]), default=("", 0))
    return number, who if number else gettext("nobody")


def _tres_of(field: Field, tres: str) -> Callable[[UseRow], int] | None:
    """How much of a resource running jobs have, where the table of jobs knows."""
    if field.key not in _AT_ONCE:
        return None
    kind = tres.removeprefix(f"{GPU}:")
    if kind != tres:
        return lambda row: row.gpus if row.gpu_type == kind else 0
    return _OF_ROW.get(tres)


def _jobs_of(field: Field) -> Callable[[UseRow], int] | None:
    if field.key in _RUNNING_JOBS:
        return lambda row: row.running
    if field.key in _OPEN_JOBS:
        return lambda row: row.running + row.pending
    return None
