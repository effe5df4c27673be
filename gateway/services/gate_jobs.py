"""What the gate does to single jobs: holds, lifts its own holds, gives running ones a last stretch.

A hold is noted before it is asked for, so that after a kill the gate knows it for its own.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import TYPE_CHECKING

from gateway.brokerclient.port import Broker
from gateway.core.gate import Decision
from gateway.core.notices import Kind
from gateway.core.reasons import reason_key
from gateway.core.states import parse_state
from gateway.errors import BrokerRefused, BrokerSilent, BrokerUnreachable
from gateway.services.gate_facts import Facts
from gateway.services.poll import QUEUE
from gateway.store import events, gate_facts, notices, polls
from gateway.store import gate as gates
from gateway.store.gate import HeldJob
from gateway.store.uow import Begin

if TYPE_CHECKING:
    from sqlalchemy.orm import Session

# Calls of some milliseconds; what is left over has its turn ten seconds later.
MOST_CALLS = 300
# Asked for, and not known to be so.
ASKED = "asked"
_HELD = frozenset({"held_by_user", "held_by_admin", "held_after_requeues"})
# The job has moved on since the poll: nothing is left to hold or to release.
_MOVED_ON = frozenset(
    {"job_not_pending", "already_done", "invalid_job_id", "held_by_owner", "not_held_by_admin"}
)


@dataclass(slots=True)
class JobsReport:
    held: int = 0
    released: int = 0
    stopped: int = 0
    code: str | None = None


@dataclass(frozen=True, slots=True)
class _Act:
    job_id: int
    slurm_id: int
    user: str
    group: str
    reason: str = ""
    minutes: int = 0  # the new limit
    left: int = 0  # of it
    again: bool = False


def apply(
    decisions: Sequence[Decision], facts: Facts, *, begin: Begin, broker: Broker, now: datetime
) -> JobsReport:
    """Stops at silence: the rest would wait as long, and has its turn again."""
    report = JobsReport()
    to_hold, to_release = _holds(decisions, facts), _releases(decisions, facts)
    to_stop = _stops(decisions, facts, begin=begin, now=now)
    gone = [one.job_id for one in facts.held.values() if not _waits(one)]
    if to_hold or gone:
        with begin() as session:
            gates.drop_held(session, gone)
            for act in to_hold:
                gates.put_held(session, act.job_id, at=now, reason=ASKED)
    turn = _Turn(begin, broker, now, report)
    for act in to_release[:MOST_CALLS]:
        if report.code is None:
            turn.release(act)
    for act in to_hold:
        if report.code is None:
            turn.hold(act)
    for act in to_stop[:MOST_CALLS]:
        if report.code is None:
            turn.stop(act)
    return report


def release_all(
    held: Sequence[HeldJob], *, begin: Begin, broker: Broker, now: datetime
) -> JobsReport:
    """The gate is turned off: nothing may stay behind it."""
    report = JobsReport()
    turn = _Turn(begin, broker, now, report)
    for one in held[:MOST_CALLS]:
        if report.code is None:
            turn.release(_Act(one.job_id, one.slurm_id, one.user, one.group))
    return report


def _holds(decisions: Sequence[Decision], facts: Facts) -> list[_Act]:
    found = []
    for decision in decisions:
        for job_id, why in decision.hold:
            job, mine = facts.jobs[job_id], facts.held.get(job_id)
            held = reason_key(job.reason) in _HELD
            if mine is None and held:
                continue  # by its owner or an administrator: it starts no sooner
            seen = mine is None or (facts.polled_at is not None and facts.polled_at > mine.at)
            if mine is not None and mine.reason != ASKED and (held or not seen):
                continue
            again = mine is not None and mine.reason == ASKED
            found.append(
                _Act(job_id, job.slurm_id, job.user, job.group, reason=why.value, again=again)
            )
    return found[:MOST_CALLS]


def _releases(decisions: Sequence[Decision], facts: Facts) -> list[_Act]:
    pay = {job_id for decision in decisions for job_id in decision.pay}
    mine = (one for one in facts.held.values() if one.job_id in pay and _waits(one))
    return [_Act(one.job_id, one.slurm_id, one.user, one.group) for one in mine]


def _stops(
    decisions: Sequence[Decision], facts: Facts, *, begin: Begin, now: datetime
) -> list[_Act]:
    wanted = [stop for decision in decisions for stop in decision.stop]
    if not wanted:
        return []
    with begin() as session:
        done = gate_facts.stopped(session, [job_id for job_id, _ in wanted])
    found = []
    for job_id, minutes in wanted:
        job = facts.jobs[job_id]
        at = done.get(job_id)
        # Once a run: who has lengthened it since had the right to.
        if at is None or (job.start_time is not None and at < job.start_time):
            ran = timedelta(0) if job.start_time is None else now - job.start_time
            left = minutes - -(-int(ran.total_seconds()) // 60)
            found.append(
                _Act(job_id, job.slurm_id, job.user, job.group, minutes=minutes, left=left)
            )
    return found


def _waits(one: HeldJob) -> bool:
    return one.active and parse_state(one.state)[0].is_pending


@dataclass(frozen=True, slots=True)
class _Turn:
    begin: Begin
    broker: Broker
    now: datetime
    report: JobsReport

    def hold(self, act: _Act) -> None:
        try:
            self.broker.hold_admin(act.slurm_id, user=act.user)
        except BrokerRefused as error:
            # Noted as asked by an earlier turn, it is our own that had no answer.
            if not (error.code == "held_by_admin" and act.again):
                self._no_hold(act, error.code)
                return
        except BrokerUnreachable as error:
            self.report.code = error.code
            self._drop(act)
            return
        except BrokerSilent as error:
            self.report.code = error.code
            return
        self.report.held += 1
        with self.begin() as session:
            gates.put_held(session, act.job_id, at=self.now, reason=act.reason)
            self._event(session, "gate_held", act, reason=act.reason)
            notices.over(session, [_alarm(act.group)], now=self.now)

    def release(self, act: _Act) -> None:
        outcome = "done"
        try:
            self.broker.release_admin(act.slurm_id, user=act.user)
        except BrokerRefused as error:
            outcome = error.code
        except (BrokerUnreachable, BrokerSilent) as error:
            self.report.code = error.code
            return
        self.report.released += outcome == "done"
        with self.begin() as session:
            if outcome != "done" and outcome not in _MOVED_ON:
                _alarmed(session, act.group, outcome, now=self.now)
                return
            gates.drop_held(session, [act.job_id])
            if outcome == "done":
                self._event(session, "gate_released", act)

    def stop(self, act: _Act) -> None:
        try:
            self.broker.set_time_limit(act.slurm_id, user=act.user, minutes=act.minutes)
        except BrokerRefused as error:
            if error.code not in _MOVED_ON:
                with self.begin() as session:
                    _alarmed(session, act.group, error.code, now=self.now)
            return
        except (BrokerUnreachable, BrokerSilent) as error:
            self.report.code = error.code
            return
        self.report.stopped += 1
        facts = {"job": act.slurm_id, "user": act.user, "minutes": act.left}
        with self.begin() as session:
            self._event(session, "gate_stop", act, minutes=act.minutes)
            key = f"gate_stop:{act.job_id}"
            notices.tell(
                session, key, kind=Kind.GATE_STOP, facts=facts, now=self.now, group=act.group
            )

    def _no_hold(self, act: _Act, code: str) -> None:
        with self.begin() as session:
            gates.drop_held(session, [act.job_id])
            if code not in _MOVED_ON and code != "held_by_admin":
                _alarmed(session, act.group, code, now=self.now)

    def _drop(self, act: _Act) -> None:
        if not act.again:
            with self.begin() as session:
                gates.drop_held(session, [act.job_id])

    def _event(self, session: "Session", kind: str, act: _Act, **detail: str | int) -> None:
        events.add(session, kind, at=self.now, job_id=act.job_id, detail=dict(detail))
        polls.want(session, QUEUE, now=self.now)


def _alarmed(session: "Session", group: str, code: str, *, now: datetime) -> None:
    facts = {"group": group, "user": "", "code": code}
    notices.tell(session, _alarm(group), kind=Kind.GATE_NOT_TAKEN, facts=facts, now=now)


def _alarm(group: str) -> str:
    return f"gate_not_taken:{group}:jobs:"
