"""What the book of contribution gives each group today, and the change that makes Slurm say so.

A run proposes one change of all that differs; where nothing does, it proposes nothing. What it
starts from is what the portal knows of Slurm: where Slurm has something else by then, the broker
refuses, so nobody's hand is overwritten. The night's run is one a night of the site's zone,
whatever is killed and repeated.
"""

from collections.abc import Iterable
from dataclasses import dataclass
from datetime import date, datetime, tzinfo
from typing import TYPE_CHECKING

import structlog

from gateway.core.access import Viewer
from gateway.core.contribution import Entry, Feed, Result, Rules, results
from gateway.core.policy_change import OPEN, ChangeState, Item, Of, Source
from gateway.errors import Refused
from gateway.services import policy_drift
from gateway.services.policy_changes import propose
from gateway.services.policy_present import present
from gateway.store import contribution as book
from gateway.store import policy, snapshot
from gateway.store.contribution import LedgerLine, Run, Version
from gateway.store.queries import policy_changes as changes
from gateway.store.uow import Begin

if TYPE_CHECKING:
    from sqlalchemy.orm import Session

log = structlog.get_logger()


@dataclass(frozen=True, slots=True)
class Preview:
    """What rules would give each group on `day`, beside what Slurm had at the last poll."""

    day: date
    rules: Rules
    results: tuple[Result, ...]

    @property
    def changed(self) -> tuple[Result, ...]:
        return tuple(one for one in self.results if one.changes)


def preview(session: "Session", rules: Rules, *, now: datetime, zone: tzinfo) -> Preview:
    """From the database alone: nothing is sent and nothing is kept."""
    day = now.astimezone(zone).date()
    groups = sorted(present(session).groups.values(), key=lambda group: group.name)
    usable = {one.policy.name: one.usable_qos for one in snapshot.accounts(session)}
    drifted = {one.name for one in policy_drift.find(session) if one.of is Of.GROUP}
    brought = entries(session, rules, zone)
    return Preview(day, rules, results(rules, brought, groups, day, usable=usable, drifted=drifted))


def compute(
    key: str,
    *,
    second_approval: bool,
    viewer: Viewer | None,
    begin: Begin,
    now: datetime,
    zone: tzinfo,
) -> Run:
    """Propose what differs, once a key. Safe to kill and to call again.

    Without `second_approval` the worker applies the change, or `policy_apply.apply` at once. What
    an earlier run proposed and nobody has begun is withdrawn, unless it is the same.
    Refused: contribution_not_set_up, contribution_still_applying, and what `propose` refuses.
    """
    with begin() as session:
        held = book.version(session)
        if held is None:
            raise Refused("contribution_not_set_up")
        run = _opened(session, key, held, viewer, now=now, zone=zone)
        if run.done_at is not None:
            return run
        found = preview(session, held.rules, now=now, zone=zone)
        items = [Item(one.before, one.after) for one in found.changed]
    try:
        change_id = _proposed(
            items,
            f"contribution:{key}",
            viewer=viewer,
            second_approval=second_approval,
            begin=begin,
            now=now,
        )
    except Refused as refusal:
        with begin() as session:
            book.fail_run(session, run.id, refusal.code)
        raise
    return _ended(run, found, change_id, begin=begin, now=now)


def run_nightly(*, hour: int, begin: Begin, read: Begin, now: datetime, zone: tzinfo) -> Run | None:
    """The worker's, as often as it likes: None when tonight's is done, or not due yet. It is due
    from `hour` of the site's zone on, once there are rules and Slurm was read. What was refused is
    kept with the run, told once, and tried again."""
    local = now.astimezone(zone)
    key = f"night:{local.date().isoformat()}"
    with read() as session:
        held, there = book.version(session), book.run_by_key(session, key)
        if local.hour < hour or held is None or (there and there.done_at):
            return None
        if not present(session).groups:
            return None
    try:
        return compute(
            key,
            second_approval=not held.rules.automatic,
            viewer=None,
            begin=begin,
            now=now,
            zone=zone,
        )
    except Refused as refusal:
        if there is None or there.error_code != refusal.code:
            log.warning("contribution_refused", code=refusal.code)
        return None


def entries(
    session: "Session", rules: Rules, zone: tzinfo, *, group: str | None = None
) -> list[Entry]:
    """What was entered by hand, and what the ledger says of kinds that are read from there."""
    by_hand = {kind.key for kind in rules.kinds if kind.feed is Feed.HAND}
    found = [one for one in book.entries(session, group=group) if one.kind in by_hand]
    for kind in rules.kinds:
        if kind.feed is Feed.LOANS:
            found += _fed(kind.key, book.lent(session, group=group), zone)
        elif kind.feed is Feed.TOP_UPS:
            found += _fed(kind.key, book.topped_up(session, group=group), zone)
    return found


def _opened(
    session: "Session",
    key: str,
    held: Version,
    viewer: Viewer | None,
    *,
    now: datetime,
    zone: tzinfo,
) -> Run:
    return book.open_run(
        session,
        key,
        day=now.astimezone(zone).date(),
        version=held.number,
        now=now,
        person_id=viewer.person_id if viewer else None,
    )


def _proposed(
    items: list[Item],
    key: str,
    *,
    viewer: Viewer | None,
    second_approval: bool,
    begin: Begin,
    now: datetime,
) -> int | None:
    """The change that says so; None where nothing differs."""
    with begin() as session:
        there = changes.by_key(session, key)
        if there is None:
            there = _make_way(session, items, second_approval=second_approval, now=now)
    if there is not None or not items:
        return there
    return propose(
        items,
        viewer=viewer,
        reason="",
        source=Source.CONTRIBUTION,
        second_approval=second_approval,
        key=key,
        begin=begin,
        now=now,
    )


def _make_way(
    session: "Session", items: list[Item], *, second_approval: bool, now: datetime
) -> int | None:
    """The waiting change of an earlier run when it says the same; else it is withdrawn."""
    last = book.last_change(session)
    row = changes.change(session, last) if last is not None else None
    if row is None or row.state not in {*OPEN, ChangeState.PROPOSED}:
        return None
    same = {one.item for one in row.items} == set(items)
    if same and row.line.needs_approval == second_approval:
        return row.line.id
    values = {"withdrawn_by": None, "withdrawn_at": now}
    if not policy.move(session, row.line.id, ChangeState.WITHDRAWN, values):
        raise Refused("contribution_still_applying")
    return None


def _ended(run: Run, found: Preview, change_id: int | None, *, begin: Begin, now: datetime) -> Run:
    with begin() as session:
        book.end_run(
            session,
            run.id,
            now=now,
            groups=len(found.results),
            differing=len(found.changed),
            change_id=change_id,
        )
        done = book.run_by_key(session, run.key)
    assert done is not None, "it was opened before"
    return done


def _fed(kind: str, lines: Iterable[LedgerLine], zone: tzinfo) -> list[Entry]:
    return [
        Entry(
            id=None,
            group=line.group,
            kind=kind,
            amount=line.amount,
            day=line.at.astimezone(zone).date(),
        )
        for line in lines
    ]
