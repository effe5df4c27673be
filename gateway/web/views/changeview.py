"""A change as its page shows it: the difference in words, what it does, what became of it."""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime

from gateway.core.impact import Affected, Effect, FieldImpact, Impact, Preemption
from gateway.core.policy_change import Of
from gateway.core.qos import Change, Field, Kind, Qos, Scope, Tres, TresLimit, Value, changes
from gateway.core.tres import GPU
from gateway.store.queries.policy_changes import ItemRow, VersionRow
from gateway.web.change_texts import DOUBT_TEXTS, EFFECT_TEXTS, ITEM_TEXTS, KIND_TEXTS
from gateway.web.messages import sentence
from gateway.web.policy_texts import FIELD_TEXTS, GROUP_SCOPES, QOS_SCOPES
from gateway.web.policy_words import amount, lines, resource_name, words
from gateway.web.texts import gettext

_MOST_JOBS = 50


@dataclass(frozen=True, slots=True)
class DiffLine:
    scope: str
    word: str
    help: str
    before: list[str]
    after: list[str]


@dataclass(frozen=True, slots=True)
class ItemView:
    """One object of a change. `missing`: what Slurm did not take of it, after is what it has."""

    kind: Of
    kind_word: str
    name: str
    is_new: bool
    retires: bool | None
    diff: list[DiffLine]
    state: str
    mark: str
    problem: str
    missing: list[DiffLine]
    settled_at: datetime | None


@dataclass(frozen=True, slots=True)
class JobView:
    id: int
    slurm_id: int
    user: str
    group: str
    tasks: int
    compared: str


@dataclass(frozen=True, slots=True)
class EffectView:
    word: str
    mark: str
    number: int
    jobs: list[JobView]
    more: int


@dataclass(frozen=True, slots=True)
class FieldView:
    """What one changed field does; `lost` are QoS that a group may not use any more."""

    object: str
    word: str
    before: str
    after: str
    effects: list[EffectView]
    lost: list[str]


@dataclass(frozen=True, slots=True)
class Doubtful:
    object: str
    word: str
    why: str
    most: str


@dataclass(frozen=True, slots=True)
class ImpactView:
    """`ends`: running jobs that are, or may be, killed: applying asks for a tick."""

    fields: list[FieldView]
    doubts: list[Doubtful]
    preemption: list[Preemption]
    ends: int
    killed: int

    @property
    def nothing(self) -> bool:
        return not (self.fields or self.doubts or self.preemption)


def diff(found: Sequence[Change], *, is_qos: bool) -> list[DiffLine]:
    scopes = QOS_SCOPES if is_qos else GROUP_SCOPES
    return [
        DiffLine(
            scope=str(scopes[one.field.scope]),
            word=str(FIELD_TEXTS[one.field.key].word),
            help=str(FIELD_TEXTS[one.field.key].help),
            before=_side(one.field, one.before, one.after),
            after=_side(one.field, one.after, one.before),
        )
        for one in found
    ]


def _side(field: Field, own: Value, other: Value) -> list[str]:
    """Of resources only those that differ; what the other side limits alone has no limit here."""
    if field.kind is not Kind.TRES or not isinstance(own, tuple) or not isinstance(other, tuple):
        return lines(field, own)
    mine, theirs = _limits(own), _limits(other)
    return [
        amount(tres, mine[tres], field)
        if tres in mine
        else gettext("%(what)s: no limit", what=resource_name(tres))
        for tres in sorted(mine.keys() | theirs.keys())
        if mine.get(tres) != theirs.get(tres)
    ]


def _limits(rows: tuple[str, ...] | Tres) -> dict[str, int]:
    return {row.tres: row.limit for row in rows if isinstance(row, TresLimit)}


def item(row: ItemRow) -> ItemView:
    wanted, is_qos = row.item, isinstance(row.item.after, Qos)
    word, mark = ITEM_TEXTS[row.state]
    found = changes(wanted.after, row.found) if row.found is not None else ()
    return ItemView(
        kind=wanted.of,
        kind_word=str(KIND_TEXTS[wanted.of]),
        name=wanted.name,
        is_new=wanted.before is None,
        retires=wanted.retires,
        diff=diff(wanted.changes, is_qos=is_qos),
        state=str(word),
        mark=mark,
        problem=sentence(row.code) if row.code else "",
        missing=diff(found, is_qos=is_qos),
        settled_at=row.settled_at,
    )


def version_diff(row: VersionRow) -> list[DiffLine]:
    """What a version changed of the one before it; nothing of the first, or when it is gone."""
    if row.policy is None or row.before is None:
        return []
    return diff(changes(row.before, row.policy), is_qos=row.of is Of.QOS)


def impact(found: Impact) -> ImpactView:
    return ImpactView(
        fields=[_field(one) for one in found.fields if one.jobs or one.lost],
        doubts=[
            Doubtful(
                object_scope(one.kind, one.name, one.field),
                limit_word(one.field, one.tres),
                str(DOUBT_TEXTS[one.doubt]),
                limit_value(one.field, one.tres, one.most) if one.most is not None else "",
            )
            for one in found.unknown
        ],
        preemption=list(found.preemption),
        ends=found.count(Effect.ENDED, Effect.MAY_END),
        killed=found.count(Effect.ENDED),
    )


def _field(one: FieldImpact) -> FieldView:
    effects = [
        _effect(one, effect, str(word), mark)
        for effect, (word, mark) in EFFECT_TEXTS.items()
        if one.of(effect)
    ]
    return FieldView(
        object=object_scope(one.kind, one.name, one.field),
        word=limit_word(one.field, one.tres),
        before=limit_value(one.field, one.tres, one.before),
        after=limit_value(one.field, one.tres, one.after),
        effects=effects,
        lost=list(one.lost),
    )


def _effect(one: FieldImpact, effect: Effect, word: str, mark: str) -> EffectView:
    found = one.of(effect)
    return EffectView(
        word=word,
        mark=mark,
        number=sum(each.job.tasks for each in found),
        jobs=[_job(one, each) for each in found[:_MOST_JOBS]],
        more=max(0, len(found) - _MOST_JOBS),
    )


def _job(one: FieldImpact, each: Affected) -> JobView:
    compared = ""
    if each.used is not None:
        compared = limit_value(one.field, one.tres, each.used)
        if each.limit == 0:
            compared = gettext("%(used)s; nothing is allowed", used=compared)
        elif each.limit is not None:
            limit = limit_value(one.field, one.tres, each.limit)
            compared = gettext("%(used)s of %(limit)s", used=compared, limit=limit)
        if each.whose:
            compared = f"{each.whose}: {compared}"
    job = each.job
    return JobView(job.id, job.slurm_id, job.user, job.group, job.tasks, compared)


def object_scope(kind: str, name: str, field: Field) -> str:
    """Whose limit it is, and for whom it counts: QoS normal · Each group."""
    found = f"{KIND_TEXTS[Of(kind)]} {name}"
    if field.scope is Scope.GENERAL:
        return found
    scopes = QOS_SCOPES if Of(kind) is Of.QOS else GROUP_SCOPES
    return f"{found} · {scopes[field.scope]}"


def limit_word(field: Field, tres: str | None) -> str:
    word = str(FIELD_TEXTS[field.key].word)
    return f"{word} ({tres})" if tres and tres != GPU else word


def limit_value(field: Field, tres: str | None, number: int | None) -> str:
    if tres and number:
        return amount(tres, number, field)
    if tres and number == 0:
        return gettext("nothing")
    return words(field, number)
