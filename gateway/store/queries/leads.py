"""The ways to walk to an answer: which condition leads along its index, which are judged.

The texts below are made of names from this file alone; whatever a person typed is bound.
"""

import itertools
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from gateway.store.queries.filters import JobFilters, Scope, states_of

MOST_ARMS = 150  # of one statement; SQLite's own bound is 500
_HIGHEST = "\U0010ffff"
_COLUMNS = {
    "user": '"user"',
    "group": "group_name",
    "partition": '"partition"',
    "qos": "qos",
    "template": "template",
}
_WITH_STATE = frozenset({"user", "group", "scope"})  # an index goes on with the state


@dataclass(frozen=True, slots=True)
class Lead:
    """Each arm walks an index; `judged` is judged row by row.

    `in_order`: the arms come by submit time. `doubles`: two arms may lead to the same job.
    """

    arms: tuple[str, ...]
    judged: tuple[str, ...]
    in_order: bool = True
    doubles: bool = False

    @property
    def is_exact(self) -> bool:
        """Nothing is left to judge: every row it leads to belongs to the answer."""
        return not self.judged and self.in_order


@dataclass(frozen=True, slots=True)
class Leads:
    """All ways to walk, with the values for their texts."""

    leads: tuple[Lead, ...]
    values: dict[str, Any]


@dataclass(frozen=True, slots=True)
class _Part:
    """One condition. Without arms it cannot lead."""

    key: str
    arms: tuple[str, ...]
    judged: str
    in_order: bool = True
    doubles: bool = False


class _Values:
    def __init__(self) -> None:
        self.all: dict[str, Any] = {}
        self._number = itertools.count()

    def bind(self, value: str | int) -> str:
        name = f"v{next(self._number)}"
        self.all[name] = value
        return f":{name}"


def leads(scope: Scope, filters: JobFilters, *, dialect: str) -> Leads:
    """Every way to walk; the last, along all jobs, is always there."""
    values = _Values()
    # On SQLite a + before a column keeps its index out; PostgreSQL weighs for itself.
    off = "+" if dialect == "sqlite" else ""
    parts = list(_parts(scope, filters, values, off=off, dialect=dialect))
    states = tuple(values.bind(state) for state in states_of(filters.states))
    if states:
        arms = tuple(f"state = {state}" for state in states)
        parts.append(_Part("state", arms, f"{off}state IN ({', '.join(states)})"))
    found = [_lead(part, parts, states) for part in parts if part.arms]
    found.append(Lead(("1 = 1",), tuple(part.judged for part in parts)))
    return Leads(tuple(found), values.all)


def _lead(part: _Part, parts: list[_Part], states: tuple[str, ...]) -> Lead:
    covered = {part.key}
    arms = part.arms
    if states and part.key in _WITH_STATE and len(arms) * len(states) <= MOST_ARMS:
        arms = tuple(f"{arm} AND state = {state}" for arm in arms for state in states)
        covered.add("state")
    judged = tuple(other.judged for other in parts if other.key not in covered)
    return Lead(arms, judged, part.in_order, part.doubles)


def _parts(
    scope: Scope, filters: JobFilters, values: _Values, *, off: str, dialect: str
) -> Iterator[_Part]:
    if filters.slurm_id is not None:
        yield _id_part(values.bind(filters.slurm_id), off=off)
    for key, column in _COLUMNS.items():
        value = getattr(filters, key)
        if value is not None:
            bound = values.bind(value)
            yield _Part(key, (f"{column} = {bound}",), f"{off}{column} = {bound}")
    if filters.name:
        yield _name_part(filters.name, values, dialect=dialect)
    if scope.user is not None and filters.group not in scope.groups:
        yield _scope_part(scope, values, off=off)


def _id_part(bound: str, *, off: str) -> _Part:
    # Few rows whatever their order: an array's tasks at most.
    arms = (f"slurm_id = {bound}", f"array_job_id = {bound}")
    judged = f"({off}slurm_id = {bound} OR {off}array_job_id = {bound})"
    return _Part("id", arms, judged, in_order=False, doubles=True)


def _name_part(name: str, values: _Values, *, dialect: str) -> _Part:
    if name.startswith("*"):
        position = "instr" if dialect == "sqlite" else "strpos"
        return _Part("name", (), f"{position}(name, {values.bind(name.strip('*'))}) > 0")
    begin = name.rstrip("*")
    low, high = values.bind(begin), values.bind(begin + _HIGHEST)
    from_, to = (">=", "<") if dialect == "sqlite" else ("~>=~", "~<~")
    judged = f"substr(name, 1, {values.bind(len(begin))}) = {low}"
    return _Part("name", (f"name {from_} {low} AND name {to} {high}",), judged, in_order=False)


def _scope_part(scope: Scope, values: _Values, *, off: str) -> _Part:
    user = values.bind(scope.user or "")
    own = f'{off}"user" = {user}'
    if not scope.groups:
        return _Part("scope", (f'"user" = {user}',), own)
    groups = [values.bind(group) for group in scope.groups]
    arms = tuple(f"group_name = {group}" for group in groups)
    judged = f"({off}group_name IN ({', '.join(groups)}) OR {own})"
    if len(arms) >= MOST_ARMS:
        return _Part("scope", (), judged)
    return _Part("scope", (*arms, f'"user" = {user}'), judged, doubles=True)
