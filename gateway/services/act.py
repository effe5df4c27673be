"""Acts on a job: who may, the call, and a line in the job's history whatever Slurm said."""

from contextlib import suppress
from datetime import UTC, datetime, tzinfo
from enum import StrEnum

from gateway.brokerclient.port import Broker
from gateway.core.access import Viewer, job_rights
from gateway.core.states import parse_state
from gateway.errors import BrokerRefused, BrokerUnreachable, Busy, NotFound, Refused
from gateway.services import hold, longer
from gateway.store import events, jobs, polls, submissions
from gateway.store.jobs import JobOwner
from gateway.store.uow import Begin

_LONGEST_MINUTES = 366 * 24 * 60


class Action(StrEnum):
    CANCEL = "cancel"
    CANCEL_ARRAY = "cancel_array"
    HOLD = "hold"
    RELEASE = "release"
    REQUEUE = "requeue"
    SET_TIME_LIMIT = "set_time_limit"
    EXTEND = "extend"  # of an application that runs: services.app_acts judges whether it may


_TIMES = frozenset({Action.SET_TIME_LIMIT, Action.EXTEND})


def act(
    job_id: int,
    action: str,
    *,
    viewer: Viewer,
    begin: Begin,
    broker: Broker,
    now: datetime,
    minutes: int | None = None,
    zone: tzinfo = UTC,
) -> None:
    """Do it as the job's owner. NotFound, Refused, or the broker's error.

    A longer limit of a job with a hold needs credit first: `not_enough_credit`, or
    `member_cap_reached` by the month of `zone`; a refusal by Slurm gives it back. After
    BrokerSilent the act may have happened: the poll that this asks for will show it.
    """
    with begin() as session:
        job = jobs.owner(session, job_id)
    found = _may_act(job, viewer)
    wanted = _action(action, found, minutes)
    more = None
    if wanted in _TIMES and minutes is not None:
        with begin() as session:
            more = longer.hold_more(session, found.id, minutes=minutes, zone=zone, now=now)
    outcome = "unknown"
    try:
        _call(broker, wanted, found, minutes)
        outcome = "done"
    except (BrokerRefused, BrokerUnreachable) as error:
        outcome = error.code
        raise
    finally:
        detail = {"outcome": outcome} | ({"minutes": minutes} if minutes is not None else {})
        # Slurm has answered, and the broker's own log has the act: "try again" would be wrong.
        with suppress(Busy), begin() as session:
            events.add(
                session, wanted, at=now, person_id=viewer.person_id, job_id=job_id, detail=detail
            )
            if more is not None and outcome not in {"done", "unknown"}:
                longer.give_back(session, more, now=now)
            polls.want(session, "queue", now=now)


def withdraw(submission_id: int, *, viewer: Viewer, begin: Begin, now: datetime) -> None:
    """Take back what Slurm does not have. NotFound for another's, Refused when it was sent."""
    with begin() as session:
        row = submissions.get(session, submission_id)
        if row is None or row.person_id != viewer.person_id:
            raise NotFound("submission")
        if not submissions.withdraw(session, submission_id):
            raise Refused("already_sent")
        hold.release_of(session, submission_id, now=now)
        events.add(
            session,
            "withdrawn",
            at=now,
            person_id=viewer.person_id,
            submission_id=submission_id,
        )


def _may_act(job: JobOwner | None, viewer: Viewer) -> JobOwner:
    if job is None:
        raise NotFound("job")
    rights = job_rights(viewer, user=job.user, group=job.group)
    if not rights.see:
        raise NotFound("job")
    if not rights.act:
        raise Refused("not_yours_to_act")
    if not job.active:
        raise Refused("already_ended")
    return job


def _action(name: str, job: JobOwner, minutes: int | None) -> Action:
    try:
        action = Action(name)
    except ValueError as error:
        raise NotFound("action") from error
    if action is Action.CANCEL_ARRAY and job.array_job_id is None:
        raise NotFound("array")
    if action in _TIMES and (minutes is None or minutes < 1):
        raise Refused("time_limit_empty", field="minutes")
    if action in _TIMES and (minutes or 0) > _LONGEST_MINUTES:
        raise Refused("time_limit_too_long", field="minutes")
    if action in {Action.HOLD, Action.RELEASE} and not parse_state(job.state)[0].is_pending:
        raise Refused("job_not_waiting")
    return action


def _call(broker: Broker, action: Action, job: JobOwner, minutes: int | None) -> None:
    match action:
        case Action.CANCEL:
            broker.cancel(job.slurm_id, user=job.user)
        case Action.CANCEL_ARRAY:
            assert job.array_job_id is not None
            broker.cancel_array(job.array_job_id, user=job.user)
        case Action.HOLD:
            broker.hold(job.slurm_id, user=job.user)
        case Action.RELEASE:
            broker.release(job.slurm_id, user=job.user)
        case Action.REQUEUE:
            broker.requeue(job.slurm_id, user=job.user)
        case Action.SET_TIME_LIMIT:
            assert minutes is not None
            broker.set_time_limit(job.slurm_id, user=job.user, minutes=minutes)
        case Action.EXTEND:
            assert minutes is not None
            broker.extend(job.slurm_id, user=job.user, minutes=minutes)
