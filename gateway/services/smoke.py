"""The long job after its smoke job: sent with that job's id as soon as there is one, and cancelled
when the smoke job did not pass. Safe to kill and to run again."""

from datetime import datetime, timedelta
from typing import TYPE_CHECKING

from gateway.brokerclient.port import Broker
from gateway.core import sbatch
from gateway.errors import BrokerRefused, BrokerSilent, BrokerUnreachable
from gateway.services import hold
from gateway.store import events, polls
from gateway.store import smoke as store
from gateway.store.smoke import Stranded, Waiting
from gateway.store.uow import Begin

if TYPE_CHECKING:
    from sqlalchemy.orm import Session

# Of the smoke job's submission: it will never be a job.
_LOST = frozenset({"refused", "withdrawn"})
# A worker that was away for longer leaves them to whoever sent them: their page says why they wait.
_LOOKED_BACK = timedelta(days=30)


def release(*, begin: Begin, read: Begin, now: datetime) -> int:
    """Let those be sent whose smoke job Slurm has; how many."""
    with read() as session:
        due = [one for one in store.waiting(session) if _is_decided(one)]
    for one in due:
        with begin() as session:
            _decide(session, one, now=now)
    return sum(one.slurm_id is not None for one in due)


def cancel_stranded(*, begin: Begin, read: Begin, broker: Broker, now: datetime) -> int:
    """Slurm leaves them in the queue for ever, and their credit held; how many there were. Stops
    at the first that Slurm did not answer: the others would wait as long."""
    with read() as session:
        found = store.stranded(session, since=now - _LOOKED_BACK)
    for one in found:
        try:
            broker.cancel(one.slurm_id, user=one.user)
        except BrokerRefused:
            pass  # it is over already
        except (BrokerUnreachable, BrokerSilent):
            break  # the next turn finds it again
        with begin() as session:
            _note(session, one, now=now)
    return len(found)


def _is_decided(one: Waiting) -> bool:
    return one.slurm_id is not None or one.smoke_state in _LOST


def _decide(session: "Session", one: Waiting, *, now: datetime) -> None:
    if one.slurm_id is None:
        if store.refuse(session, one.id, code="smoke_not_sent"):
            events.add(session, "smoke_not_sent", at=now, submission_id=one.id)
            hold.release_of(session, one.id, now=now)
        return
    request = {**one.request, "after_ok": one.slurm_id}
    script = sbatch.after(one.script, one.slurm_id)
    if store.send(session, one.id, request=request, script=script, at=now):
        events.add(
            session,
            "after_smoke",
            at=now,
            submission_id=one.id,
            detail={"slurm_id": one.slurm_id},
        )


def _note(session: "Session", one: Stranded, *, now: datetime) -> None:
    events.add(
        session,
        "smoke_failed",
        at=now,
        submission_id=one.submission_id,
        job_id=one.job_id,
        detail={"state": one.smoke_state},
    )
    polls.want(session, "queue", now=now)
