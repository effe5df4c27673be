"""The portal's own health as the administrators' page shows it: what needs somebody comes first."""

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime

from gateway.services.templates import Problem
from gateway.store.queries.health import Health, HeldFact, OutboxRow, PollRow
from gateway.web.messages import sentence
from gateway.web.show import plain
from gateway.web.texts import gettext, ngettext
from gateway.web.texts import lazy_gettext as _l
from gateway.web.views.freshness import is_late

POLLS = {
    "queue": _l("Queue"),
    "cluster": _l("Nodes and partitions"),
    "policy": _l("Groups and QoS"),
    "priority": _l("Priorities of waiting jobs"),
    "accounting": _l("Accounting"),
    "accounting_late": _l("Accounting, once more"),
    "facts": _l("What Slurm counts and enforces"),
}
_LONG_UNSENT_SECONDS = 300
_LONGEST_RAW = 20_000


@dataclass(frozen=True, slots=True)
class PollView:
    word: str
    late: bool
    succeeded_at: datetime | None
    tried_at: datetime | None
    interval_seconds: float | None
    trouble: str


@dataclass(frozen=True, slots=True)
class HeldView:
    id: int
    cluster: str
    reason: str
    first_seen_at: datetime
    raw: str


@dataclass(frozen=True, slots=True)
class Todo:
    """A line of the work list, and where it is done."""

    text: str
    endpoint: str | None = None
    place: Mapping[str, object] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Money:
    """What of money needs somebody."""

    in_review: int = 0
    decided: int = 0
    shut: int = 0
    open_months: int = 0
    notices: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Attention:
    """`todo` is the work list in words; the rest are the facts behind it."""

    todo: list[Todo]
    polls: list[PollView]
    outbox: tuple[OutboxRow, ...]
    held: int
    held_rows: list[HeldView]
    templates: list[tuple[str, str]]
    leaders: list[tuple[str, datetime]]


def view(
    found: Health,
    *,
    problems: Sequence[Problem],
    now: datetime,
    money: Money | None = None,
    policy: Sequence[Todo] = (),
) -> Attention:
    polls = [_poll(one, now) for one in found.polls]
    leaders = [(one.holder, one.expires_at) for one in found.leases if one.expires_at > now]
    faults = [(f"{one.path.parent.name}/{one.path.name}:{one.line}", one.text) for one in problems]
    return Attention(
        todo=[
            *_todo(found, polls, leaders=len(leaders), templates=len(faults), now=now),
            *_money(money or Money()),
            *policy,
        ],
        polls=polls,
        outbox=found.outbox,
        held=found.held,
        held_rows=held_views(found.held_rows),
        templates=faults,
        leaders=leaders,
    )


def _todo(
    found: Health, polls: Sequence[PollView], *, leaders: int, templates: int, now: datetime
) -> list[Todo]:
    todo = []
    if not leaders:
        text = gettext("No worker leads: nothing is read from Slurm, nothing queued is sent.")
        todo.append(Todo(text))
    if not polls:
        todo.append(Todo(gettext("Slurm has never been read.")))
    todo += [Todo(gettext("%(read)s: not up to date.", read=one.word)) for one in polls if one.late]
    stuck = sum(one.number for one in found.outbox if _waits_long(one, now))
    if stuck:
        todo.append(Todo(_stuck_words(stuck)))
    if found.held:
        text = ngettext("%(num)d row is held.", "%(num)d rows are held.", found.held)
        todo.append(Todo(text, "review.index"))
    if templates:
        text = ngettext("%(num)d template fault.", "%(num)d template faults.", templates)
        todo.append(Todo(text))
    return todo


def _money(money: Money) -> list[Todo]:
    todo = []
    waiting = money.in_review - money.decided
    if waiting:
        text = ngettext(
            "%(num)d run waits for your decision.", "%(num)d runs wait for your decision.", waiting
        )
        todo.append(Todo(text, "review.index"))
    if money.shut:
        text = ngettext("%(num)d group is shut.", "%(num)d groups are shut.", money.shut)
        todo.append(Todo(text, "credit.groups"))
    if money.open_months:
        text = ngettext(
            "%(num)d month is over and not closed.",
            "%(num)d months are over and not closed.",
            money.open_months,
        )
        todo.append(Todo(text, "months.index"))
    return [*todo, *(Todo(text) for text in money.notices)]


def _stuck_words(number: int) -> str:
    return ngettext(
        "%(num)d submission has waited for Slurm for minutes.",
        "%(num)d submissions have waited for Slurm for minutes.",
        number,
    )


def _waits_long(one: OutboxRow, now: datetime) -> bool:
    return (now - one.oldest).total_seconds() > _LONG_UNSENT_SECONDS


def _poll(one: PollRow, now: datetime) -> PollView:
    return PollView(
        word=str(POLLS.get(one.name, one.name)),
        late=is_late(one, now),
        succeeded_at=one.succeeded_at,
        tried_at=one.tried_at,
        interval_seconds=one.interval_seconds,
        trouble=sentence(one.error_code) if one.error_code else "",
    )


def held_views(rows: Sequence[HeldFact]) -> list[HeldView]:
    return [_held(one) for one in rows]


def _held(one: HeldFact) -> HeldView:
    return HeldView(one.id, one.cluster, plain(one.reason), one.first_seen_at, _readable(one.raw))


def _readable(raw: str) -> str:
    """Indented where it is JSON; as it came where it is not."""
    try:
        text = json.dumps(json.loads(raw), indent=1, ensure_ascii=True)
    except (ValueError, RecursionError):
        text = raw
    return text[:_LONGEST_RAW]
