"""The gate's limits of groups and members: written where they differ, read back, told when not
taken.

What is wanted, and the site's own limits, are stored before the call: killed anywhere, the next
turn reads what Slurm has and goes on from there.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from typing import TYPE_CHECKING, Any

from gateway.brokerclient.port import Broker
from gateway.core.gate import Limits, Ruling, Why, keeps
from gateway.errors import BrokerRefused, BrokerSilent, BrokerUnreachable
from gateway.services import gate_tell
from gateway.services.gate_tell import Key
from gateway.store import gate as gates
from gateway.store.gate import GateRow
from gateway.store.uow import Begin
from gateway.wire import messages as m

if TYPE_CHECKING:
    from sqlalchemy.orm import Session

READ_AGAIN = timedelta(seconds=60)
# A no is asked again this much later: a hundred groups must not be refused every turn.
_TRY_AGAIN = timedelta(seconds=60)
_STILL_SO = timedelta(minutes=10)
DIFFERS = "read_back_differs"
_OPEN = Ruling(None, False, Why.OPEN, None)


@dataclass(slots=True)
class Memory:
    """What this process last read from Slurm, and what it was refused."""

    limits: dict[Key, tuple[Limits, ...]] = field(default_factory=dict)
    read_at: datetime | None = None
    refused: dict[Key, tuple[datetime, Limits]] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Target:
    """`leave`: the gate no longer has a say here; the site's own limits are put back."""

    group: str
    user: str
    ruling: Ruling
    leave: bool = False

    @property
    def key(self) -> Key:
        return self.group, self.user


@dataclass(frozen=True, slots=True)
class Step:
    """What is to be so for one target, and what Slurm had when it was read."""

    target: Target
    own: Limits
    goal: Limits
    found: Limits
    drifted: bool = False

    @property
    def to_send(self) -> bool:
        return self.found != self.goal


@dataclass(slots=True)
class LimitsReport:
    written: int = 0
    failed: int = 0
    code: str | None = None


def targets(wanted: Sequence[Target], rows: Mapping[Key, GateRow]) -> tuple[Target, ...]:
    """Those and the rows that are wanted no more, what is to be shut first."""
    named = {one.key for one in wanted}
    written = [key for key, row in rows.items() if row.before and key not in named]
    left = [Target(*key, _OPEN, leave=True) for key in written]
    return tuple(sorted([*wanted, *left], key=lambda one: (not one.ruling.closed, one.key)))


def apply(
    wanted: Sequence[Target],
    rows: Mapping[Key, GateRow],
    *,
    begin: Begin,
    broker: Broker,
    memory: Memory,
    now: datetime,
) -> LimitsReport:
    """Bring Slurm into step. Reads it when the last read is old or something has changed."""
    report = LimitsReport()
    if not _is_due(wanted, rows, memory, now=now):
        return report
    try:
        memory.limits, memory.read_at = _read(broker), now
    except (BrokerRefused, BrokerUnreachable, BrokerSilent) as error:
        report.code = error.code
        with begin() as session:
            gate_tell.unread(session, error.code, now=now)
        return report
    steps = [_step(one, rows.get(one.key), memory.limits.get(one.key)) for one in wanted]
    _intend(steps, wanted, rows, begin=begin, now=now)
    done = _send(steps, broker=broker, memory=memory, report=report, now=now)
    _conclude(steps, done, rows, begin=begin, now=now)
    return report


def _is_due(
    wanted: Sequence[Target], rows: Mapping[Key, GateRow], memory: Memory, *, now: datetime
) -> bool:
    if memory.read_at is None or now - memory.read_at >= READ_AGAIN:
        return True
    return any(_differs(one, rows.get(one.key), memory, now=now) for one in wanted)


def _differs(target: Target, row: GateRow | None, memory: Memory, *, now: datetime) -> bool:
    if row is None or not row.before or target.leave:
        return target.key in memory.limits
    goal = _goal(target, limits_of(row.before), limits_of(row.in_slurm or row.wanted))
    if goal == limits_of(row.in_slurm) and row.closed == target.ruling.closed:
        return False
    return not _was_refused(target.key, goal, memory, now=now)


def _was_refused(key: Key, goal: Limits, memory: Memory, *, now: datetime) -> bool:
    at, what = memory.refused.get(key, (now - _TRY_AGAIN, goal))
    return now - at < _TRY_AGAIN and what == goal


def _read(broker: Broker) -> dict[Key, tuple[Limits, ...]]:
    found: dict[Key, tuple[Limits, ...]] = {}
    for one in broker.group_limits():
        key = one.account, one.user or gates.NO_USER
        found[key] = (*found.get(key, ()), _limits(one))
    return found


def _step(target: Target, row: GateRow | None, there: tuple[Limits, ...] | None) -> Step | None:
    """None where Slurm has no such association."""
    if there is None:
        return None
    # A member has an association for each partition: any that differs has to be written.
    last = limits_of(row.in_slurm) if row and row.in_slurm else None
    found = next((one for one in there if one != last), there[0])
    own = limits_of(row.before) if row and row.before else found
    if row and row.before and last and not row.closed and found.submit != last.submit:
        # The gate was open, so this limit was the site's own: somebody has set another.
        own = Limits(found.submit, own.run_minutes)
    goal = _goal(target, own, found)
    ours = row is not None and row.before and last is not None
    drifted = bool(ours and row and goal != found and found not in (last, limits_of(row.wanted)))
    return Step(target, own, goal, found, drifted)


def _goal(target: Target, own: Limits, found: Limits) -> Limits:
    goal = target.ruling.limits(own)
    least = target.ruling.run_least
    near = keeps(found.run_minutes, goal.run_minutes, least=least)
    if goal.run_minutes != own.run_minutes and near:
        return Limits(goal.submit, found.run_minutes)
    return goal


def _intend(
    steps: Sequence[Step | None],
    wanted: Sequence[Target],
    rows: Mapping[Key, GateRow],
    *,
    begin: Begin,
    now: datetime,
) -> None:
    """What is to be so, before any of it is sent."""
    with begin() as session:
        gate_tell.is_read(session, now=now)
        for target, step in zip(wanted, steps, strict=True):
            row = rows.get(target.key)
            if step is None:
                _unknown(session, target, now=now)
                continue
            gate_tell.closed(session, target.key, target.ruling, row, now=now)
            if step.drifted:
                gate_tell.drifted(session, target.key, step.found, step.goal, now=now)
            if _is_news(step, row):
                gates.put(session, *target.key, _intent(step, row, now=now))


def _is_news(step: Step, row: GateRow | None) -> bool:
    if row is None or step.to_send or row.closed != step.target.ruling.closed:
        return True
    return row.before != facts_of(step.own)


def _intent(step: Step, row: GateRow | None, *, now: datetime) -> dict[str, Any]:
    ruling = step.target.ruling
    values: dict[str, Any] = {
        "closed": ruling.closed,
        "reason": ruling.why.value,
        "wanted": facts_of(step.goal),
        "before": facts_of(step.own),
    }
    if row is None or row.closed != ruling.closed:
        values["changed_at"] = now
    return values


def _send(
    steps: Sequence[Step | None],
    *,
    broker: Broker,
    memory: Memory,
    report: LimitsReport,
    now: datetime,
) -> dict[Key, tuple[Limits | None, str | None]]:
    """What Slurm has afterwards, and why it is not what was sent. Stops at silence: the others
    would wait as long, and their turn comes again."""
    done: dict[Key, tuple[Limits | None, str | None]] = {}
    for step in steps:
        if step is None or not step.to_send:
            continue
        key = step.target.key
        if _was_refused(key, step.goal, memory, now=now):
            continue
        memory.read_at = None
        try:
            got = _limits(broker.set_group_limits(_request(step)))
        except BrokerRefused as error:
            done[key] = None, error.code
            memory.refused[key] = now, step.goal
        except (BrokerUnreachable, BrokerSilent) as error:
            done[key] = None, error.code
            report.failed, report.code = report.failed + 1, error.code
            return done
        else:
            code = None if got == step.goal else DIFFERS
            done[key] = got, code
            if code:
                memory.refused[key] = now, step.goal
        report.written += done[key][1] is None
        report.failed += done[key][1] is not None
    return done


def _request(step: Step) -> m.SetGroupLimits:
    user = step.target.user or None
    return m.SetGroupLimits(step.target.group, user, step.goal.submit, step.goal.run_minutes)


def _conclude(
    steps: Sequence[Step | None],
    done: Mapping[Key, tuple[Limits | None, str | None]],
    rows: Mapping[Key, GateRow],
    *,
    begin: Begin,
    now: datetime,
) -> None:
    with begin() as session:
        gate_tell.forget_drift(session, now=now)
        for step in steps:
            if step is None:
                continue
            key = step.target.key
            got, code = done.get(key, (step.found, None))
            if code is not None:
                values: dict[str, Any] = {"error_code": code}
                if got is not None:
                    values["in_slurm"] = facts_of(got)
                gates.put(session, *key, values)
                gate_tell.not_taken(session, key, code, now=now)
            elif key in done or not step.to_send:
                _taken(session, step, got or step.found, rows.get(key), now=now)


def _taken(
    session: "Session", step: Step, got: Limits, row: GateRow | None, *, now: datetime
) -> None:
    key = step.target.key
    if step.target.leave:
        gate_tell.left(session, key, now=now)
        return
    same = row and row.in_slurm == facts_of(got) and row.error_code is None
    if same and row and row.confirmed_at and now - row.confirmed_at < _STILL_SO:
        return
    values = {"in_slurm": facts_of(got), "confirmed_at": now, "error_code": None}
    gates.put(session, *key, values)
    gate_tell.taken(session, key, now=now)


def _unknown(session: "Session", target: Target, *, now: datetime) -> None:
    """Slurm has no such association any more, or not yet."""
    if target.leave:
        gate_tell.left(session, target.key, now=now)
        return
    gate_tell.not_taken(session, target.key, "no_such_association", now=now)


def _limits(one: m.GroupLimits) -> Limits:
    return Limits(one.grp_submit_jobs, one.grp_gpu_run_minutes)


def limits_of(facts: Mapping[str, Any] | None) -> Limits:
    facts = facts or {}
    return Limits(facts.get("submit"), facts.get("run_minutes"))


def facts_of(limits: Limits) -> dict[str, Any]:
    return {"submit": limits.submit, "run_minutes": limits.run_minutes}
