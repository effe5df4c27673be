"""The gate's turn: read, decide, bring Slurm into step. Safe to kill anywhere and to run again.

No transaction is open across a call. A turn costs little while nothing changes: the decision is
made anew when something was read or paid, and once a minute.
"""

import time
from collections import defaultdict
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta, tzinfo
from typing import TYPE_CHECKING

from gateway.brokerclient.port import Broker
from gateway.core.gate import Decision, Limits, Mode, decide
from gateway.core.notices import Kind
from gateway.services import gate_facts as facts_of
from gateway.services import gate_jobs, gate_limits
from gateway.services.gate_facts import Facts
from gateway.services.gate_jobs import JobsReport
from gateway.services.gate_limits import LimitsReport, Target
from gateway.store import gate as gates
from gateway.store import gate_facts, notices
from gateway.store.uow import Begin

if TYPE_CHECKING:
    from sqlalchemy.orm import Session

DECIDE_AGAIN = timedelta(seconds=60)
# A decision over a long queue may take at most this share of the time, and comes this soon.
_SHARE, _LATEST = 5, timedelta(seconds=30)
WATCHED = "watched"
# A new job of a group that is shut: later than this after the write, the gate leaks.
_TAKES_EFFECT = timedelta(seconds=60)
_LEAK, _NO_PRICE, _HELD = "gate_leak:", "gate_no_price:", "gate_held:"


@dataclass(slots=True)
class Memory:
    """What a process remembers from turn to turn; losing it costs one read of Slurm."""

    pulse: tuple[object, ...] = ()
    decided_at: datetime | None = None
    took_seconds: float = 0.0
    quiet: bool = False
    limits: gate_limits.Memory = field(default_factory=gate_limits.Memory)


@dataclass(frozen=True, slots=True)
class Report:
    """`decided` False: nothing had changed."""

    decided: bool = False
    groups: int = 0
    closed: int = 0
    limits: LimitsReport = field(default_factory=LimitsReport)
    jobs: JobsReport = field(default_factory=JobsReport)

    @property
    def acted(self) -> bool:
        jobs = self.jobs
        return bool(
            self.limits.written
            or self.limits.failed
            or jobs.held
            or jobs.released
            or jobs.stopped
            or self.code
        )

    @property
    def code(self) -> str | None:
        return self.limits.code or self.jobs.code


def enforce(
    *,
    begin: Begin,
    read: Begin,
    broker: Broker,
    cluster: str,
    memory: Memory,
    now: datetime,
    mode: Mode = Mode.ENFORCE,
    zone: tzinfo = UTC,
    stopwatch: Callable[[], float] = time.monotonic,
) -> Report:
    """One turn. Nothing is written to Slurm before the site has prices, or in the mode `watch`;
    what the gate has set is taken back once the mode is no longer `enforce`."""
    with read() as session:
        pulse = gate_facts.pulse(session)
        if _is_quiet(memory, pulse, now=now):
            return Report()
        began = stopwatch()
        facts = facts_of.read(session, cluster=cluster, zone=zone, now=now)
    if facts is None or facts.polled_at is None or not facts.groups:
        return Report()  # what runs, or who there is, is not known yet
    decisions = [decide(group, prices=facts.prices, now=now) for group in facts.groups]
    memory.took_seconds = stopwatch() - began
    turn = _Turn(begin, broker, memory, now)
    if mode is Mode.ENFORCE:
        report = turn.enforce(decisions, facts)
    else:
        report = turn.stand_back(decisions, facts, watch=mode is Mode.WATCH)
    memory.pulse, memory.decided_at = pulse, now
    memory.quiet = not report.acted
    return report


def _is_quiet(memory: Memory, pulse: tuple[object, ...], *, now: datetime) -> bool:
    """Whether the last turn settled everything and nothing has happened since, or it took so
    long that another one has to wait."""
    if memory.decided_at is not None:
        pause = min(_LATEST, timedelta(seconds=_SHARE * memory.took_seconds))
        if now - memory.decided_at < pause:
            return True
    if not memory.quiet or memory.decided_at is None or pulse != memory.pulse:
        return False
    return now - memory.decided_at < DECIDE_AGAIN


@dataclass(frozen=True, slots=True)
class _Turn:
    begin: Begin
    broker: Broker
    memory: Memory
    now: datetime

    def enforce(self, decisions: Sequence[Decision], facts: Facts) -> Report:
        with self.begin() as session:
            _commit(session, decisions, now=self.now)
            _tell(session, decisions, facts, now=self.now)
        limits = self._limits(_targets(decisions), facts)
        jobs = gate_jobs.apply(decisions, facts, begin=self.begin, broker=self.broker, now=self.now)
        return _report(decisions, limits, jobs)

    def stand_back(self, decisions: Sequence[Decision], facts: Facts, *, watch: bool) -> Report:
        """Take back what the gate has set, and where it watches note what it would do."""
        limits = self._limits((), facts)
        held = list(facts.held.values())
        jobs = gate_jobs.release_all(held, begin=self.begin, broker=self.broker, now=self.now)
        watched = decisions if watch else ()
        with self.begin() as session:
            _commit(session, watched, now=self.now)
            _silence(session, now=self.now)
            _watch(session, watched, facts, now=self.now)
        return _report(decisions, limits, jobs)

    def _limits(self, wanted: Sequence[Target], facts: Facts) -> LimitsReport:
        return gate_limits.apply(
            gate_limits.targets(wanted, facts.gates),
            facts.gates,
            begin=self.begin,
            broker=self.broker,
            memory=self.memory.limits,
            now=self.now,
        )


def _report(decisions: Sequence[Decision], limits: LimitsReport, jobs: JobsReport) -> Report:
    closed = sum(decision.closed for decision in decisions)
    return Report(True, len(decisions), closed, limits, jobs)


def _targets(decisions: Sequence[Decision]) -> list[Target]:
    return [
        Target(decision.group, ruling.user or gates.NO_USER, ruling)
        for decision in decisions
        for ruling in decision.rulings
    ]


def _commit(session: "Session", decisions: Sequence[Decision], *, now: datetime) -> None:
    """What holds and quotes leave alone."""
    amounts = {one.group: one.committed for one in decisions}
    changed = {
        name: amounts.get(name, 0)
        for name, account in gate_facts.accounts(session).items()
        if account.committed != amounts.get(name, 0)
    }
    gates.set_committed(session, changed, now=now)


def _tell(
    session: "Session", decisions: Sequence[Decision], facts: Facts, *, now: datetime
) -> None:
    """Which jobs wait for credit, which cards have no price, and where the gate leaks."""
    kinds = (Kind.GATE_HELD, Kind.GATE_NO_PRICE, Kind.GATE_LEAK)
    told = set(notices.open_keys(session, kinds))
    for decision in decisions:
        if decision.hold:
            told.discard(_HELD + decision.group)
            notices.tell(
                session,
                _HELD + decision.group,
                kind=Kind.GATE_HELD,
                facts={"jobs": len(decision.hold), "need": decision.need, "free": decision.free},
                now=now,
                group=decision.group,
            )
        for resource in decision.no_price:
            told.discard(_NO_PRICE + resource)
            key, about = _NO_PRICE + resource, {"resource": resource}
            notices.tell(session, key, kind=Kind.GATE_NO_PRICE, facts=about, now=now)
    for group, leak in _leaks(facts).items():
        told.discard(_LEAK + group)
        notices.tell(session, _LEAK + group, kind=Kind.GATE_LEAK, facts=leak, now=now)
    _stops_over(session, facts, now=now)
    if told:
        notices.over(session, told, now=now)


def _leaks(facts: Facts) -> dict[str, dict[str, str | int]]:
    """Groups that are shut in Slurm, as it says itself, and whose new jobs came in all the same."""
    shut = {
        row.group: row.changed_at + _TAKES_EFFECT
        for row in facts.gates.values()
        if row.closed and not row.user and row.confirmed_at and row.error_code is None
    }
    found: dict[str, dict[str, str | int]] = defaultdict(dict)
    for job in facts.jobs.values():
        since = shut.get(job.group)
        if since and job.active and job.held is None and job.submit_time > since:
            found[job.group] = {"group": job.group, "job": job.slurm_id, "qos": job.qos or ""}
    return found


def _stops_over(session: "Session", facts: Facts, *, now: datetime) -> None:
    told = notices.open_keys(session, [Kind.GATE_STOP])
    ended = [key for key in told if int(key.partition(":")[2]) not in facts.jobs]
    if ended:
        notices.over(session, ended, now=now)


def _silence(session: "Session", *, now: datetime) -> None:
    """The gate does nothing, so there is nothing to tell of it."""
    ours = [kind for kind in Kind if kind.startswith("gate_") and kind is not Kind.GATE_NOT_TAKEN]
    notices.over(session, notices.open_keys(session, ours), now=now)


def _watch(
    session: "Session", decisions: Sequence[Decision], facts: Facts, *, now: datetime
) -> None:
    """Rows for the pages only: without `before`, nothing of them is in Slurm."""
    wanted = {one.key: one for one in _targets(decisions)}
    for key, row in facts.gates.items():
        if not row.before and key not in wanted:
            gates.drop(session, *key)
    for key, target in wanted.items():
        known, ruling = facts.gates.get(key), target.ruling
        if known is not None and (known.before or known.reason == ruling.why):
            continue
        limits = gate_limits.facts_of(ruling.limits(Limits(None, None)))
        values = {"closed": False, "reason": ruling.why.value, "wanted": limits}
        gates.put(session, *key, values | {"changed_at": now, "error_code": WATCHED})
