"""One job as its page shows it: words, times, the timeline, what one may do."""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta

from gateway.core.access import JobRights, job_rights
from gateway.core.states import JobState, parse_state
from gateway.core.waits import JobWaits, RunTimes, Waits, job_waits, waits
from gateway.errors import NotFound
from gateway.services import costs
from gateway.services.costs import JobMoney
from gateway.store.queries import job as reads
from gateway.store.queries.gates import why_held
from gateway.store.queries.health import poll
from gateway.store.queries.job import EventRow, JobDetail, RunRow
from gateway.store.queries.jobs import JobRow
from gateway.web.access import viewer
from gateway.web.deps import deps
from gateway.web.event_texts import event_text
from gateway.web.show import duration, reason_text, state_text
from gateway.web.texts import gettext
from gateway.web.timeline import Segment, Share, Stretch, segments, shares
from gateway.web.training_texts import EXIT_CODES
from gateway.web.views import acting, costview, joblist
from gateway.web.views.freshness import Fresh, fresh
from gateway.web.views.trainhead import Heard, TrainHead, head, hear

# Accounting is read every half minute: until then a job that left the queue is nothing odd.
TOLD_SOON = timedelta(minutes=2)


@dataclass(frozen=True, slots=True)
class Piece:
    """A segment of the timeline, with the words of its title."""

    kind: str
    at: float
    wide: float
    word: str


@dataclass(frozen=True, slots=True)
class Stop:
    word: str
    at: datetime | None


@dataclass(frozen=True, slots=True)
class RunView:
    state: str
    start: datetime
    end: datetime | None
    queue_wait: timedelta | None
    run_time: timedelta
    node_list: str | None


@dataclass(frozen=True, slots=True)
class EventView:
    at: datetime
    who: str
    text: str


@dataclass(frozen=True, slots=True)
class JobView:
    """Everything the templates of the job's page need."""

    detail: JobDetail
    job: JobRow
    number: str
    active: bool
    rights: JobRights
    actions: list[acting.Offered]
    again: int | None
    words: str
    why: str
    exit: str
    estimated_start: datetime | None
    fresh: Fresh
    segments: list[Piece]
    stops: list[Stop]
    queue_wait: str
    requeue_waits: str
    deferral: str
    run_time: str
    left: str
    bar: list[Share]
    runs: list[RunView]
    events: list[EventView]
    script: str | None
    cost: costview.CostView | None
    training: TrainHead


def build(job_id: int) -> JobView:
    """Read it all in one transaction. NotFound also for what this person may not know."""
    now = deps().clock()
    with deps().read() as session:
        detail = reads.job(session, job_id)
        if detail is None:
            raise NotFound(f"job {job_id}")
        rights = job_rights(viewer(), user=detail.row.user, group=detail.row.group)
        if not rights.see:
            raise NotFound(f"job {job_id}")
        runs = reads.runs(session, job_id)
        submission = detail.submission.row.id if detail.submission else None
        events = reads.events(session, job_id=job_id, submission_id=submission)
        last_poll = poll(session, "queue")
        spent = costs.of_job(session, detail.row, now=now, gone_at=detail.left_queue_at)
        heard = hear(session, job_id)
        gated = detail.row.reason == "JobHeldAdmin" and why_held(session, job_id) is not None
    last = fresh(last_poll, now)
    return _view(
        detail, runs, events, spent, heard, gated=gated, rights=rights, freshness=last, now=now
    )


def _view(
    detail: JobDetail,
    runs: Sequence[RunRow],
    events: Sequence[EventRow],
    spent: JobMoney | None,
    heard: Heard,
    *,
    gated: bool,
    rights: JobRights,
    freshness: Fresh,
    now: datetime,
) -> JobView:
    job = detail.row
    state = parse_state(job.state)[0]
    stretches = _stretches(detail, runs)
    times = job_waits([_times(one) for one in stretches], now)
    own = detail.submission if rights.read_files else None
    return JobView(
        detail=detail,
        job=job,
        number=joblist.number(job),
        active=job.active,
        rights=rights,
        actions=_actions(detail, state, rights),
        again=own.row.id if own and own.row.person_id == viewer().person_id else None,
        words=_words(job, state, times),
        why=_why(detail, state, now, gated=gated),
        exit=_exit(job, state),
        estimated_start=job.estimated_start if state.is_pending else None,
        fresh=freshness,
        segments=_pieces(segments([one for one, _ in stretches], now=now)),
        stops=_stops(job, state),
        queue_wait=_queue_wait(times.first),
        requeue_waits=_requeue_waits(times),
        deferral=duration(times.first.deferral) or "–",
        run_time=duration(times.run_time) or "–",
        left=_left(job, now),
        bar=_limit_bar(job, now),
        runs=[_run(run) for run in runs],
        events=[EventView(one.at, _who(one), event_text(one.kind, one.detail)) for one in events],
        script=own.script if own else None,
        cost=costview.build(spent),
        training=head(heard, [one for one, _ in stretches], now=now),
    )


def _actions(detail: JobDetail, state: JobState, rights: JobRights) -> list[acting.Offered]:
    if detail.left_queue_at is not None:
        return []
    is_array = detail.row.array_job_id is not None
    return acting.offered(state, detail.row.reason, rights, is_array=is_array)


def _stretches(detail: JobDetail, runs: Sequence[RunRow]) -> list[tuple[Stretch, timedelta | None]]:
    """The runs that accounting knows, and what the queue shows now where that is newer."""
    found: list[tuple[Stretch, timedelta | None]] = [
        (
            Stretch(run.submit_time, run.eligible_time, run.start_time, run.end_time, run.state),
            timedelta(seconds=run.elapsed_seconds) if run.end_time else None,
        )
        for run in runs
    ]
    job = detail.row
    if all(run.submit_time != detail.last_submit_time for run in runs):
        end = None if job.active else job.end_time
        now = Stretch(detail.last_submit_time, job.eligible_time, job.start_time, end, job.state)
        found.append((now, None))
    return found


def _times(one: tuple[Stretch, timedelta | None]) -> RunTimes:
    stretch, elapsed = one
    return RunTimes(stretch.submit, stretch.eligible, stretch.start, stretch.end, elapsed)


def _words(job: JobRow, state: JobState, times: JobWaits) -> str:
    if times.requeued_waiting:
        return gettext("Requeued: waiting to run again")
    if state is JobState.PENDING and job.reason in {"JobHeldUser", "JobHeldAdmin"}:
        return gettext("Held")
    return state_text(job.state)


def _why(detail: JobDetail, state: JobState, now: datetime, *, gated: bool) -> str:
    """Why it waits (`gated`: the portal holds it for want of credit); or that Slurm does not speak
    of it any more, which ends nothing by itself."""
    job, left = detail.row, detail.left_queue_at
    if job.active and left is not None:
        if now - left < TOLD_SOON:
            return gettext("It has left Slurm's queue. How it ended is being read from accounting.")
        return gettext(
            "Slurm's queue has not had this job for %(time)s, and accounting does not tell how "
            "it ended. Slurm may have lost it: an administrator can look, and you can submit it "
            "again.",
            time=duration(now - left),
        )
    if gated and state.is_pending:
        return gettext(
            "Held by the portal: your group has not enough credit left for all of this job. It is "
            "let go by itself when credit comes."
        )
    known = EXIT_CODES.get(job.exit_code or 0) if job.template and state.is_ended else None
    if known is not None:
        return str(known)
    return reason_text(job.reason) if state.is_pending or _explains(job.reason) else ""


def _explains(reason: str | None) -> bool:
    return reason in {"TimeLimit", "OutOfMemory", "NonZeroExitCode", "SystemFailure"}


def _exit(job: JobRow, state: JobState) -> str:
    if job.active or not (state.is_ended or state.ends_run):
        return ""
    if job.exit_signal:
        return gettext("signal %(signal)s", signal=job.exit_signal)
    if job.exit_code:
        return gettext("exit code %(code)s", code=job.exit_code)
    return ""


def _pieces(found: list[Segment]) -> list[Piece]:
    words = {
        "deferral": gettext("Deferral"),
        "waiting": gettext("Queue wait"),
        "running": gettext("Running"),
        "done": gettext("Run"),
        "failed": gettext("Run that failed"),
        "again": gettext("Run that made room or was requeued"),
        "cancelled": gettext("Run that was cancelled"),
    }
    return [
        Piece(one.kind, one.at, one.wide, f"{words[one.kind]}: {duration(one.until - one.since)}")
        for one in found
    ]


def _stops(job: JobRow, state: JobState) -> list[Stop]:
    stops = [Stop(gettext("Submitted"), job.submit_time)]
    stops.append(Stop(gettext("Eligible"), job.eligible_time))
    stops.append(Stop(gettext("Started"), job.start_time))
    if job.active and job.start_time is not None and job.time_limit_minutes is not None:
        limit = job.start_time + timedelta(minutes=job.time_limit_minutes)
        stops.append(Stop(gettext("Limit reached"), limit))
    else:
        ended = None if job.active or state.is_pending else job.end_time
        stops.append(Stop(gettext("Ended"), ended))
    return stops


def _queue_wait(first: Waits) -> str:
    if first.queue_wait is not None:
        return duration(first.queue_wait)
    if first.waiting_so_far is not None:
        return gettext("%(time)s so far", time=duration(first.waiting_so_far))
    if first.gave_up_after is not None:
        return gettext("never started; gave up after %(time)s", time=duration(first.gave_up_after))
    return "–"


def _requeue_waits(times: JobWaits) -> str:
    """Apart from the first wait: a requeue is not the person's queueing anew."""
    if not times.requeue_waits:
        return ""
    words = ", ".join(duration(wait) for wait in times.requeue_waits[-3:])
    return gettext("then %(times)s after a requeue", times=words)


def _left(job: JobRow, now: datetime) -> str:
    if not job.active or job.start_time is None or job.time_limit_minutes is None:
        return ""
    left = job.start_time + timedelta(minutes=job.time_limit_minutes) - now
    return gettext("%(time)s left", time=duration(max(left, timedelta(0))))


def _limit_bar(job: JobRow, now: datetime) -> list[Share]:
    if not job.active or job.start_time is None or job.time_limit_minutes is None:
        return []
    ran = (now - job.start_time).total_seconds()
    limit = job.time_limit_minutes * 60
    return shares(("late" if ran > limit * 0.9 else "running", ran), whole=limit)


def _run(run: RunRow) -> RunView:
    found = waits(run.submit_time, run.eligible_time, run.start_time, run.end_time, deps().clock())
    return RunView(
        state=run.state,
        start=run.start_time,
        end=run.end_time,
        queue_wait=found.queue_wait,
        run_time=timedelta(seconds=run.elapsed_seconds),
        node_list=run.node_list,
    )


def _who(event: EventRow) -> str:
    return event.by or gettext("portal")
