"""From a stored submission to exactly one job, or none.

Who sends has claimed the row, and `sent_at` is stored before the call. After silence the token
is looked for; only when queue and accounting have both denied it, twice, well after every
time-out, is the same token sent again, and the broker refuses a token it has seen.
"""

from dataclasses import dataclass
from datetime import datetime, timedelta
from enum import Enum
from typing import TYPE_CHECKING

from gateway.brokerclient.port import Broker
from gateway.core.readback import differences
from gateway.errors import BadMessage, BrokerRefused, BrokerSilent, BrokerUnreachable
from gateway.services import hold, joblines
from gateway.services.gate_facts import TURNED_AWAY
from gateway.store import events, gate, holds, jobs, polls, submissions
from gateway.store.submissions import SubmissionRow
from gateway.store.uow import Begin
from gateway.wire import codec
from gateway.wire import messages as m
from gateway.wire.shapes import asked_shape, shape_of

if TYPE_CHECKING:
    from sqlalchemy.orm import Session

# Longer than the client's and the broker's time-outs together: nobody is still sending.
CLAIM = timedelta(minutes=3)
# A call that hung may still reach slurmctld; a denial before this proves nothing.
CERTAIN_AFTER = timedelta(minutes=2)
DENIALS_APART = timedelta(seconds=30)
DENIALS_NEEDED = 2
# The gate was shut for new jobs though this one is paid for: it opens within some seconds.
GATE_OPENS_WITHIN = timedelta(minutes=10)
GATE_PAUSE = timedelta(seconds=5)
SHORTEST_PAUSE = timedelta(seconds=2)
LONGEST_PAUSE = timedelta(minutes=5)
# Two hosts' clocks: where a search for the token begins.
CLOCKS = timedelta(minutes=10)


class Outcome(Enum):
    NOTHING_DUE = "nothing_due"
    ACCEPTED = "accepted"
    REFUSED = "refused"
    QUEUED = "queued"
    TURNED_AWAY = "turned_away"  # queued again, for the gate to open
    UNKNOWN = "unknown"


@dataclass(frozen=True, slots=True)
class Claimed:
    """`until` is the claim itself. `to_send`: nobody can have it; else look for the token."""

    row: SubmissionRow
    until: datetime
    to_send: bool

    def request(self) -> m.SubmitRequest:
        return codec.parse(m.SubmitRequest, {**self.row.request, "script": self.row.script})


def deliver(submission_id: int, *, begin: Begin, broker: Broker, now: datetime) -> Outcome:
    """One attempt, if one is due and nobody else makes it."""
    with begin() as session:
        claimed = claim(session, submission_id, now=now)
    if claimed is None:
        return Outcome.NOTHING_DUE
    return carry_out(claimed, begin=begin, broker=broker, now=now)


def deliver_due(*, begin: Begin, broker: Broker, now: datetime, limit: int = 20) -> int:
    """The outbox. Stops at the first that Slurm did not answer: the others would wait as long."""
    with begin() as session:
        due = submissions.due(session, now=now, limit=limit)
    for count, submission_id in enumerate(due, start=1):
        outcome = deliver(submission_id, begin=begin, broker=broker, now=now)
        if outcome in {Outcome.QUEUED, Outcome.UNKNOWN}:
            return count
    return len(due)


def claim(session: "Session", submission_id: int, *, now: datetime) -> Claimed | None:
    """Take it for an attempt; None when it is not due or somebody has it."""
    until = now + CLAIM
    to_send = submissions.claim_to_send(session, submission_id, now=now, until=until)
    if to_send:
        events.add(session, "sent", at=now, submission_id=submission_id)
    elif not submissions.claim_to_find(session, submission_id, now=now, until=until):
        return None
    row = submissions.get(session, submission_id)
    return Claimed(row, until, to_send) if row else None


def carry_out(claimed: Claimed, *, begin: Begin, broker: Broker, now: datetime) -> Outcome:
    """Send, or look for the token. No transaction is open across the call."""
    attempt = _Attempt(claimed, begin, broker, now)
    try:
        request = claimed.request()
    except BadMessage as error:
        # Stored by an older version whose words this one does not know: others must not wait.
        return attempt.unreadable(error)
    return attempt.send(request) if claimed.to_send else attempt.find(request)


def pause(sent_at: datetime | None, now: datetime) -> timedelta:
    """Half of what has passed: 2 s at first, growing by half each time, to five minutes."""
    waited = (now - sent_at) / 2 if sent_at else SHORTEST_PAUSE
    return min(max(waited, SHORTEST_PAUSE), LONGEST_PAUSE)


@dataclass(frozen=True, slots=True)
class _Attempt:
    claimed: Claimed
    begin: Begin
    broker: Broker
    now: datetime

    @property
    def row(self) -> SubmissionRow:
        return self.claimed.row

    def send(self, request: m.SubmitRequest) -> Outcome:
        try:
            accepted = self.broker.submit(request)
        except BrokerRefused as error:
            return self._refused(error)
        except BrokerUnreachable as error:
            return self._put_back(Outcome.QUEUED, error.code)
        except BrokerSilent as error:
            return self._put_back(Outcome.UNKNOWN, error.code)
        return self._accepted(accepted, request)

    def find(self, request: m.SubmitRequest) -> Outcome:
        since = (self.row.sent_at or self.row.created_at) - CLOCKS
        try:
            found = self.broker.find(self.row.token, user=request.user, since=since)
        except (BrokerRefused, BrokerUnreachable, BrokerSilent) as error:
            return self._put_back(Outcome.UNKNOWN, error.code)
        return self._accepted(found, request) if found else self._denied()

    def unreadable(self, error: BadMessage) -> Outcome:
        if self.claimed.to_send:
            return self._refused(error)
        return self._put_back(Outcome.UNKNOWN, error.code)

    def _accepted(self, accepted: m.AcceptedJob, request: m.SubmitRequest) -> Outcome:
        # Found in accounting only, it is over: it says no output, and nothing can be stopped.
        listed = accepted.output is not None
        differs = differences(asked_shape(request), shape_of(accepted)) if listed else ()
        if differs and not self._cancelled(accepted, request.user):
            return self._put_back(Outcome.UNKNOWN, "accepted_differs")
        row = joblines.accepted_row(
            accepted,
            request,
            cluster=self.row.cluster,
            template=self.row.template,
            purpose=self.row.purpose,
        )
        with self.begin() as session:
            job_id = _job_id(session, row, now=self.now)
            if submissions.accept(session, self.row.id, job_id=job_id):
                self._event(session, "accepted", job_id=job_id, slurm_id=accepted.job_id)
            if differs:
                fields = ", ".join(differs)
                submissions.mark_mismatch(
                    session, self.row.id, code="accepted_differs", text=fields
                )
                self._event(session, "accepted_differs", job_id=job_id, fields=fields)
            polls.want(session, "queue", now=self.now)
        return Outcome.REFUSED if differs else Outcome.ACCEPTED

    def _cancelled(self, accepted: m.AcceptedJob, user: str) -> bool:
        """Stop the job that is not the one on the page, before anything else is noted."""
        try:
            self.broker.cancel(accepted.job_id, user=user)
        except BrokerRefused:
            return True  # it is over already
        except (BrokerUnreachable, BrokerSilent):
            return False
        return True

    def _refused(self, error: BrokerRefused | BadMessage) -> Outcome:
        with self.begin() as session:
            if error.code == TURNED_AWAY and self._waits_for_gate(session):
                submissions.put_back(
                    session,
                    self.row.id,
                    claim=self.claimed.until,
                    state="queued",
                    at=self.now + GATE_PAUSE,
                    code=error.code,
                )
                return Outcome.TURNED_AWAY
            kept = submissions.refuse(
                session,
                self.row.id,
                claim=self.claimed.until,
                code=error.code,
                text=str(error)[:2000],
            )
            if kept:
                self._event(session, "refused", code=error.code)
                hold.release_of(session, self.row.id, now=self.now)
        return Outcome.REFUSED

    def _waits_for_gate(self, session: "Session") -> bool:
        """The portal itself keeps the group out, and has credit held for this submission."""
        kept = holds.of_submission(session, self.row.id)
        if kept is None or kept.closed_at is not None:
            return False
        since = events.first(session, self.row.id, "gate_waits")
        if since is not None:
            return self.now - since < GATE_OPENS_WITHIN
        lately = self.now - GATE_OPENS_WITHIN
        if not gate.is_closed(session, kept.group, kept.user, since=lately):
            return False
        self._event(session, "gate_waits")
        return True

    def _put_back(self, outcome: Outcome, code: str) -> Outcome:
        with self.begin() as session:
            since = self._last_sent(session) if outcome is Outcome.UNKNOWN else self.row.created_at
            submissions.put_back(
                session,
                self.row.id,
                claim=self.claimed.until,
                state=outcome.value,
                at=self.now + pause(since, self.now),
                code=code,
            )
        return outcome

    def _denied(self) -> Outcome:
        with self.begin() as session:
            before = events.denials(session, self.row.id)
            counts = _counts(before, self.now)
            if counts:
                self._event(session, "denied")
            again = before.count + counts >= DENIALS_NEEDED
            submissions.put_back(
                session,
                self.row.id,
                claim=self.claimed.until,
                state="queued" if again else "unknown",
                at=self.now if again else self.now + pause(before.sent_at, self.now),
                code=None if again else "slurm_unknown",
            )
        return Outcome.QUEUED if again else Outcome.UNKNOWN

    def _last_sent(self, session: "Session") -> datetime | None:
        return events.denials(session, self.row.id).sent_at or self.row.sent_at

    def _event(
        self, session: "Session", kind: str, *, job_id: int | None = None, **detail: str | int
    ) -> None:
        events.add(
            session,
            kind,
            at=self.now,
            submission_id=self.row.id,
            job_id=job_id,
            detail=dict(detail),
        )


def _counts(before: events.Denials, now: datetime) -> bool:
    if before.sent_at is None or now - before.sent_at < CERTAIN_AFTER:
        return False
    return before.last_at is None or now - before.last_at >= DENIALS_APART


def _job_id(session: "Session", row: dict[str, object], *, now: datetime) -> int:
    """The job's row; the poll may have made it first, or have seen a requeue of it."""
    key = {name: row[name] for name in ("cluster", "slurm_id", "submit_time")}
    made = jobs.add(session, row | {"seen_at": now}) if _unseen(session, key) else None
    if made is not None:
        return made
    found = jobs.id_of(session, **key)  # type: ignore[arg-type]
    assert found is not None, "a job that cannot be added is there"
    changes = {name: row[name] for name in ("template", "purpose", "token", "output")}
    jobs.change(session, [{"id": found, **changes}])
    return found


def _unseen(session: "Session", key: dict[str, object]) -> bool:
    return jobs.id_of(session, **key) is None  # type: ignore[arg-type]
