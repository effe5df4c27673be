"""What the pages of QoS and of groups' policies show, from rows that were read."""

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass

from gateway.core.qos import GroupPolicy, Kind, Policy, Qos, Scope, fields_of, value
from gateway.store.queries.policy_use import QosUse, UseRow
from gateway.web.policy_texts import FIELD_TEXTS, QOS_SCOPES
from gateway.web.policy_words import decimal, lines, words

# Their values say by themselves what they are, so that a row of a table can do without the word.
_PLAIN = frozenset(
    {
        "grp_tres",
        "max_tres_per_account",
        "max_tres_per_user",
        "max_tres_per_job",
        "max_wall_minutes",
    }
)
_SCOPES = (Scope.ALL, Scope.GROUP, Scope.PERSON, Scope.JOB)
_UNUSED = QosUse(None, 0, 0, 0)


@dataclass(frozen=True, slots=True)
class QosLine:
    """A QoS in the list. `limits`: pairs of for whom, and the limits in words."""

    qos: Qos
    factor: str
    preempted_by: list[str]
    limits: list[tuple[str, list[str]]]
    groups: int
    use: QosUse
    drifted: bool
    retired: bool


@dataclass(frozen=True, slots=True)
class Person:
    user: str
    group: str
    running: int
    gpus: int
    pending: int


@dataclass(frozen=True, slots=True)
class Setting:
    word: str
    help: str
    value: list[str]


def qos_lines(
    levels: Sequence[Qos],
    groups: Sequence[GroupPolicy],
    use: Mapping[str | None, QosUse],
    *,
    drifted: Collection[str],
    retired: Collection[str],
) -> list[QosLine]:
    """The highest priority first; retired ones last."""
    pushed_by: dict[str, list[str]] = {}
    for level in levels:
        for name in level.preempts:
            pushed_by.setdefault(name, []).append(level.name)
    allowed = counted(groups)
    found = [
        QosLine(
            qos=level,
            factor=f"{decimal(level.usage_factor_millionths)}×",
            preempted_by=pushed_by.get(level.name, []),
            limits=limits(level),
            groups=allowed.get(level.name, 0),
            use=use.get(level.name, _UNUSED),
            drifted=level.name in drifted,
            retired=level.name in retired,
        )
        for level in levels
    ]
    return sorted(found, key=lambda one: (one.retired, -one.qos.priority, one.qos.name))


def counted(groups: Sequence[GroupPolicy]) -> dict[str, int]:
    """How many groups may use each QoS."""
    found: dict[str, int] = {}
    for group in groups:
        for name in group.qos:
            found[name] = found.get(name, 0) + 1
    return found


def limits(level: Qos) -> list[tuple[str, list[str]]]:
    """Those that are set, for whom they hold."""
    found = []
    for scope in _SCOPES:
        said = [
            text if field.key in _PLAIN else f"{FIELD_TEXTS[field.key].word}: {text}"
            for field in fields_of(level)
            if field.scope is scope and value(level, field) not in {None, ()}
            for text in lines(field, value(level, field))
        ]
        if said:
            found.append((str(QOS_SCOPES[scope]), said))
    return found


def settings(policy: Policy) -> list[Setting]:
    """What limits nothing: priority, factors, preemption, rules."""
    return [
        Setting(
            str(FIELD_TEXTS[field.key].word),
            str(FIELD_TEXTS[field.key].help),
            lines(field, value(policy, field)),
        )
        for field in fields_of(policy)
        if field.scope is Scope.GENERAL and field.kind is not Kind.TEXT
    ]


def people(rows: Sequence[UseRow]) -> list[Person]:
    """Who has open jobs, those with the most GPUs first."""
    sums: dict[tuple[str, str], list[int]] = {}
    for row in rows:
        one = sums.setdefault((row.user, row.group), [0, 0, 0])
        for place, number in enumerate((row.running, row.gpus, row.pending)):
            one[place] += number
    found = [Person(user, group, *numbers) for (user, group), numbers in sums.items()]
    return sorted(found, key=lambda one: (-one.gpus, -one.running, -one.pending, one.user))


def group_line(policy: GroupPolicy) -> str:
    """A group's own limits on one line, for lists."""
    return "; ".join(
        text if field.key in _PLAIN else f"{FIELD_TEXTS[field.key].word}: {text}"
        for field in fields_of(policy)
        if field.scope is not Scope.GENERAL and value(policy, field) not in {None, ()}
        for text in [words(field, value(policy, field))]
    )
