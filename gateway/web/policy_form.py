"""The form of a QoS or a group's policy: one control for each field of `core.qos`'s table. It
renders what was typed, and makes a value of it when nothing is wrong."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from hashlib import sha256

from gateway.core.qos import (
    FLAGS,
    PREEMPT_MODES,
    Field,
    Kind,
    Policy,
    Qos,
    Scope,
    Value,
    fields_of,
    value,
)
from gateway.core.qos_checks import problems
from gateway.errors import Refused
from gateway.web.messages import sentence
from gateway.web.policy_texts import (
    FIELD_TEXTS,
    FLAG_TEXTS,
    GROUP_SCOPES,
    MODE_TEXTS,
    QOS_SCOPES,
    FieldText,
)
from gateway.web.policy_typed import Sent, read, rows_sent, typed
from gateway.web.policy_words import bans, lines, resource_word
from gateway.web.texts import gettext

ADD, ZERO = "add", "zero"  # names of the button for one more row, and of the ticks


@dataclass(frozen=True, slots=True)
class Option:
    value: str
    word: str
    help: str = ""
    chosen: bool = False


@dataclass(frozen=True, slots=True)
class Row:
    number: str
    options: list[Option]


@dataclass(frozen=True, slots=True)
class Control:
    """One field as the page shows it. `reading` says the value in words; `asks_zero`: it allows
    nothing, and somebody must say that this is meant."""

    field: Field
    text: FieldText
    typed: str
    rows: list[Row]
    options: list[Option]
    reading: str
    problem: str
    asks_zero: bool
    zero: bool


@dataclass(frozen=True, slots=True)
class Section:
    scope: Scope
    word: str
    controls: list[Control]


@dataclass(frozen=True, slots=True)
class Offered:
    """What may be chosen: resources that the cluster has, and names of QoS."""

    resources: Sequence[str]
    qos: Sequence[str]


class PolicyForm:
    """`before` is what Slurm has; its `name` and kind stay. `wanted` is None while something is
    wrong. `trouble` belongs to no field."""

    def __init__(self, sent: Sent, *, before: Policy, offered: Offered, is_new: bool) -> None:
        self._sent, self._before, self._offered = sent, before, offered
        self.is_new = is_new
        self.name = sent.get("name", "").strip() if is_new else before.name
        self.reason = sent.get("reason", "").strip()
        self.trouble = ""
        self._faults: dict[str, str] = {}
        self._values = {one.key: self._read(one) for one in fields_of(before)}
        self.wanted = self._judged()

    @property
    def name_problem(self) -> str:
        return self._faults.get("name", "")

    @property
    def reason_problem(self) -> str:
        return self._faults.get("reason", "")

    def refused(self, refusal: Refused) -> None:
        """What a service refused, at its field."""
        text = sentence(refusal.code, refusal.facts)
        if refusal.field in {"name", "reason", *self._values}:
            self._faults[refusal.field or ""] = text
        else:
            self.trouble = text

    def sections(self) -> list[Section]:
        scopes = QOS_SCOPES if isinstance(self._before, Qos) else GROUP_SCOPES
        return [
            Section(
                scope,
                str(word),
                [self._control(one) for one in fields_of(self._before) if one.scope is scope],
            )
            for scope, word in scopes.items()
        ]

    def _read(self, field: Field) -> Value:
        before = value(self._before, field)
        try:
            now = read(field, self._sent)
        except Refused as refusal:
            self._faults[field.key] = sentence(refusal.code)
            return before
        return before if _same(now, before) else now

    def _judged(self) -> Policy | None:
        wanted = replace(self._before, name=self.name, **self._values)  # type: ignore[arg-type]
        for problem in problems(wanted, None if self.is_new else self._before):
            self._faults.setdefault(problem.key, sentence(problem.code))
        for field in fields_of(wanted):
            if self._asks_zero(field) and not self._ticked(field):
                self._faults.setdefault(field.key, sentence("policy_zero"))
        return None if self._faults else wanted

    def _asks_zero(self, field: Field) -> bool:
        now = self._values[field.key]
        is_same = now == value(self._before, field) and not self.is_new
        return bans(field, now) and not is_same

    def _ticked(self, field: Field) -> bool:
        return field.key in self._sent.getlist(ZERO)

    def _control(self, field: Field) -> Control:
        now, fault = self._values[field.key], self._faults.get(field.key, "")
        is_said = field.kind in {Kind.MINUTES, Kind.SECONDS, Kind.TRES, Kind.MILLIONTHS}
        reads = is_said and not fault and now is not None and now != ()
        return Control(
            field=field,
            text=FIELD_TEXTS[field.key],
            typed=self._sent.get(field.key, ""),
            rows=self._rows(field) if field.kind is Kind.TRES else [],
            options=self._options(field),
            reading="; ".join(lines(field, now)) if reads else "",
            problem=fault,
            asks_zero=self._asks_zero(field),
            zero=self._ticked(field),
        )

    def _rows(self, field: Field) -> list[Row]:
        sent = rows_sent(field, self._sent)
        if self._sent.get(ADD) == field.key or not sent:
            sent.append(("", ""))
        return [Row(number, self._resources(field, tres)) for tres, number in sent]

    def _resources(self, field: Field, chosen: str) -> list[Option]:
        names = list(self._offered.resources)
        if chosen and chosen not in names:
            names.append(chosen)
        found = [Option(one, resource_word(one, field), chosen=one == chosen) for one in names]
        return [Option("", gettext("choose"), chosen=not chosen), *found]

    def _options(self, field: Field) -> list[Option]:
        chosen = self._sent.getlist(field.key)
        match field.kind:
            case Kind.FLAGS:
                texts, names = FLAG_TEXTS, list(FLAGS)
            case Kind.MODES:
                texts, names = MODE_TEXTS, list(PREEMPT_MODES)
            case Kind.NAMES:
                own = {self._before.name} if isinstance(self._before, Qos) else set()
                texts, names = {}, [one for one in self._offered.qos if one not in own]
            case Kind.NAME:
                none = Option("", gettext("Slurm's own"), chosen=not any(chosen))
                named = [Option(one, one, chosen=one in chosen) for one in self._offered.qos]
                return [none, *named]
            case _:
                return []
        unsaid = (None, None)
        return [
            Option(
                one,
                str(texts.get(one, unsaid)[0] or one),
                str(texts.get(one, unsaid)[1] or ""),
                chosen=one in chosen,
            )
            for one in [*names, *(name for name in chosen if name not in names)]
        ]


def _same(now: Value, before: Value) -> bool:
    """Boxes come in the page's order, which is no change of a set of names."""
    if isinstance(now, tuple) and isinstance(before, tuple):
        return set(now) == set(before) and len(now) == len(before)
    return now == before


def typed_policy(policy: Policy) -> Sent:
    """What the form would send for a policy, so that a fresh form reads like a sent one."""
    sent = Sent()
    for field in fields_of(policy):
        for name, texts in typed(field, value(policy, field)).items():
            sent.setlist(name, texts)
    return sent


def print_of(policy: Policy) -> str:
    """Tells whether Slurm still has what the form showed."""
    return sha256(repr(policy).encode()).hexdigest()[:16]
