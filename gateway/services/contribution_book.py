"""The book of contribution: what groups brought, entered, corrected and ended; and the rules.

Lines are only added. A correction, an end and a taking back each are a new line that stands for an
earlier one.
"""

import re
import secrets
from dataclasses import replace
from datetime import date, datetime
from typing import TYPE_CHECKING

from gateway.core.contribution import (
    LONGEST_HALF_LIFE,
    Entry,
    Feed,
    Formula,
    Kind,
    Rules,
    Shape,
)
from gateway.core.credits import MILLION
from gateway.core.qos_checks import MOST_SHARES
from gateway.errors import NotFound, Refused
from gateway.store import contribution as book
from gateway.store import snapshot
from gateway.store.contribution import NewLine
from gateway.store.queries import group_credit
from gateway.store.uow import Begin

if TYPE_CHECKING:
    from sqlalchemy.orm import Session

LONGEST_NOTE = 2000
LONGEST_NAME = 60
MOST_KINDS = 40
MOST_AMOUNT = 10**9 * MILLION
MOST_WEIGHT = 10**6 * MILLION
MOST_SCALE = 10**6 * MILLION
MOST_POINTS = 10**12 * MILLION
_KEY = re.compile(r"[a-z][a-z0-9_-]{0,31}", re.ASCII)


def add(
    group: str,
    kind: str,
    amount: int,
    *,
    day: date,
    note: str = "",
    key: str | None = None,
    begin: Begin,
    now: datetime,
    person_id: int | None = None,
) -> int:
    """The line's id, the same for the same `key`. `amount` is millionths of the kind's unit.

    Refused: no_such_group, contribution_no_kind, contribution_from_ledger, amount_not_positive,
    contribution_amount, key_used.
    """
    if amount <= 0:
        raise Refused("amount_not_positive", field="amount")
    new = NewLine(key or secrets.token_hex(16), group, kind, amount, day, None, _noted(note))
    _amount(amount)
    with begin() as session:
        if not group_credit.known(session, group):
            raise Refused("no_such_group", field="group")
        _by_hand(session, kind)
        made = book.add_line(session, new, now=now, person_id=person_id)
        if made is not None:
            return made
        return _same(session, new)


def correct(
    line_id: int,
    *,
    amount: int,
    day: date,
    ended_on: date | None,
    note: str,
    begin: Begin,
    now: datetime,
    person_id: int | None = None,
) -> int:
    """The id of the line that stands for it from now on; the same when it is sent again. An amount
    of 0 takes the line back.

    Raises NotFound. Refused: contribution_replaced, ends_before_start, contribution_amount.
    """
    _amount(amount)
    if ended_on is not None and ended_on < day:
        raise Refused("ends_before_start", field="ended_on")
    with begin() as session:
        found = book.line(session, line_id)
        if found is None:
            raise NotFound(f"no contribution line {line_id}")
        old = found.entry
        new = NewLine(
            f"replaces:{line_id}",
            old.group,
            old.kind,
            amount,
            day,
            ended_on,
            _noted(note),
            replaces_id=line_id,
        )
        made = book.add_line(session, new, now=now, person_id=person_id)
        return made if made is not None else _same(session, new)


def end(
    line_id: int,
    *,
    on: date,
    begin: Begin,
    now: datetime,
    person_id: int | None = None,
) -> int:
    """What it brought is gone from that day on. As `correct`."""
    old = _line(line_id, begin)
    return correct(
        line_id,
        amount=old.amount,
        day=old.day,
        ended_on=on,
        note=old.note,
        begin=begin,
        now=now,
        person_id=person_id,
    )


def take_back(
    line_id: int, *, note: str, begin: Begin, now: datetime, person_id: int | None = None
) -> int:
    """It was entered wrongly and counts no more. As `correct`."""
    old = _line(line_id, begin)
    return correct(
        line_id,
        amount=0,
        day=old.day,
        ended_on=None,
        note=note or old.note,
        begin=begin,
        now=now,
        person_id=person_id,
    )


def set_rules(
    rules: Rules, *, expected: int | None, begin: Begin, now: datetime, person_id: int | None = None
) -> int:
    """The version's number; the one that holds when nothing differs from it.

    `expected` is the version that the caller saw, None for none: of two people who change the
    rules at once one is told so. Refused: contribution_…, with the field.
    """
    check(rules)
    with begin() as session:
        now_held = book.version(session)
        if (now_held.number if now_held else None) != expected:
            raise Refused("contribution_rules_changed")
        if now_held is not None and now_held.rules == rules:
            return now_held.number
        _kinds_stay(session, now_held.rules if now_held else Rules(), rules)
        _known_qos(session, rules)
        return book.add_rules(session, rules, now=now, person_id=person_id)


def with_kind(rules: Rules, kind: Kind) -> Rules:
    """A kind added, or another one put in the place of that with its key."""
    others = tuple(one for one in rules.kinds if one.key != kind.key)
    return replace(rules, kinds=tuple(sorted((*others, kind), key=lambda one: one.key)))


def without_kind(rules: Rules, key: str) -> Rules:
    """Refused when it is set: contribution_kind_used, once any line is of it."""
    return replace(rules, kinds=tuple(one for one in rules.kinds if one.key != key))


def check(rules: Rules) -> None:
    """Refused for what cannot be computed or sent, whatever else there is."""
    if len(rules.kinds) > MOST_KINDS:
        raise Refused("contribution_many_kinds", field="key", most=MOST_KINDS)
    for kind in rules.kinds:
        _check_kind(kind)
    if rules.formula is not None:
        _check_formula(rules.formula)
    for tier in rules.tiers:
        if not 0 < tier.points <= MOST_POINTS:
            raise Refused("contribution_points", field="tiers")
    if len({tier.qos for tier in rules.tiers}) != len(rules.tiers):
        raise Refused("contribution_tier_twice", field="tiers")


def _check_kind(kind: Kind) -> None:
    if not _KEY.fullmatch(kind.key):
        raise Refused("contribution_kind_key", field="key")
    for field in ("name", "unit"):
        text = getattr(kind, field)
        if not 0 < len(text) <= LONGEST_NAME or not text.isprintable():
            raise Refused("contribution_name", field=field, longest=LONGEST_NAME)
    if not 0 <= kind.weight <= MOST_WEIGHT:
        raise Refused("contribution_weight", field="weight", most=MOST_WEIGHT // MILLION)
    half = kind.half_life_days
    if half is not None and not 1 <= half <= LONGEST_HALF_LIFE:
        raise Refused("contribution_half_life", field="half_life", most=LONGEST_HALF_LIFE)


def _check_formula(formula: Formula) -> None:
    if not 1 <= formula.least <= formula.most <= MOST_SHARES:
        raise Refused("contribution_bounds", field="most", most=MOST_SHARES)
    if not 0 <= formula.base <= MOST_SHARES:
        raise Refused("contribution_bounds", field="base", most=MOST_SHARES)
    if not 0 <= formula.scale <= MOST_SCALE:
        raise Refused("contribution_scale", field="scale", most=MOST_SCALE // MILLION)
    if formula.shape is Shape.CAPPED and (
        formula.cap is None or not 0 < formula.cap <= MOST_POINTS
    ):
        raise Refused("contribution_cap", field="cap")


def _kinds_stay(session: "Session", before: Rules, after: Rules) -> None:
    """A kind that lines are of stays, or nobody could read them; its weight may become 0."""
    kept = {kind.key for kind in after.kinds}
    for kind in before.kinds:
        if kind.key not in kept and book.has_kind(session, kind.key):
            raise Refused("contribution_kind_used", field="key", name=kind.name)


def _known_qos(session: "Session", rules: Rules) -> None:
    known = {qos.name for qos in snapshot.qos(session)}
    for tier in rules.tiers:
        if tier.qos not in known:
            raise Refused("contribution_no_qos", field="tiers", qos=tier.qos)


def _by_hand(session: "Session", key: str) -> None:
    held = book.version(session)
    kinds = {kind.key: kind for kind in held.rules.kinds} if held else {}
    if key not in kinds:
        raise Refused("contribution_no_kind", field="kind")
    if kinds[key].feed is not Feed.HAND:
        raise Refused("contribution_from_ledger", field="kind", name=kinds[key].name)


def _amount(amount: int) -> None:
    if not 0 <= amount <= MOST_AMOUNT:
        raise Refused("contribution_amount", field="amount", most=MOST_AMOUNT // MILLION)


def _noted(note: str) -> str:
    return note.strip()[:LONGEST_NOTE]


def _line(line_id: int, begin: Begin) -> Entry:
    with begin() as session:
        found = book.line(session, line_id)
    if found is None:
        raise NotFound(f"no contribution line {line_id}")
    return found.entry


def _same(session: "Session", new: NewLine) -> int:
    """The line that the key has made before, when it said the same."""
    there = book.line_by_key(session, new.key)
    if there is None:
        raise Refused("contribution_replaced")
    old = there.entry
    assert old.id is not None, "it was read from the book"
    said = (old.group, old.kind, old.amount, old.day, old.ended_on, old.note)
    if said != (new.group, new.kind, new.amount, new.day, new.ended_on, new.note):
        raise Refused("contribution_replaced" if new.replaces_id else "key_used")
    return old.id
