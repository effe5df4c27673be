"""An application as its page and the list of one's own show it."""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from enum import StrEnum

from flask import url_for

from gateway.core.access import Viewer
from gateway.core.apps import AppState, Phase, Why, base
from gateway.core.node_states import is_lost
from gateway.core.states import parse_state
from gateway.services import apps
from gateway.store import snapshot
from gateway.store.apps import AppRow
from gateway.store.queries.jobs import JobRow
from gateway.web.deps import deps
from gateway.web.frontdoor import is_passed
from gateway.web.i18n import language
from gateway.web.messages import sentence
from gateway.web.show import duration, reason_text, state_text
from gateway.web.texts import gettext
from gateway.web.texts import lazy_gettext as _l

# A start that was pressed just now is looked for each second; later the queue must say it runs.
_FRESH = timedelta(minutes=2)


class Stage(StrEnum):
    """How far it is, from Slurm's and the node's words together."""

    SENT = "sent"  # not in Slurm yet
    QUEUED = "queued"
    STARTING = "starting"
    READY = "ready"
    WARNED = "warned"
    STOPPING = "stopping"
    FAILED = "failed"  # it ended before anybody could use it
    OVER = "over"
    NEVER = "never"  # refused by Slurm, or taken back


_WORDS = {
    Stage.SENT: _l("On its way to Slurm"),
    Stage.QUEUED: _l("Waiting in the queue"),
    Stage.STARTING: _l("Starting on its node"),
    Stage.READY: _l("Ready"),
    Stage.WARNED: _l("Ready, but will be stopped"),
    Stage.STOPPING: _l("Being stopped"),
    Stage.FAILED: _l("It did not start"),
    Stage.OVER: _l("Over"),
    Stage.NEVER: _l("Not started"),
}
_MARKS = {
    Stage.SENT: "waiting",
    Stage.QUEUED: "waiting",
    Stage.STARTING: "waiting",
    Stage.READY: "running",
    Stage.WARNED: "waiting",
    Stage.STOPPING: "waiting",
    Stage.FAILED: "failed",
    Stage.OVER: "done",
    Stage.NEVER: "failed",
}
OPEN = frozenset({Stage.READY, Stage.WARNED})
COMING = frozenset({Stage.SENT, Stage.QUEUED, Stage.STARTING})


@dataclass(frozen=True, slots=True)
class Step:
    """One of queue, start, ready; `at` None: not yet."""

    word: str
    at: datetime | None
    took: str
    now: bool


@dataclass(frozen=True, slots=True)
class AppView:
    """`url` opens it; empty while it cannot be opened. `warning` says for what and when it will be
    stopped. `text` are the last lines of a program that failed, `saved_page` is that of the newest
    snapshot: the owner's alone."""

    row: AppRow
    title: str
    stage: Stage
    word: str
    mark: str
    why: str
    steps: Sequence[Step]
    url: str
    ends_at: datetime | None
    left: str
    warning: str
    can_keep: bool
    state: AppState | None
    text: str
    page: str
    job_page: str
    trouble: str = ""  # what its node has, as Slurm says
    saved_page: str = ""

    @property
    def is_coming(self) -> bool:
        return self.stage in COMING


def build(
    row: AppRow,
    *,
    state: AppState | None = None,
    text: str = "",
    trouble: str = "",
    saved_page: str = "",
) -> AppView:
    now, stage = deps().clock(), stage_of(row, state)
    ends_at = _ends_at(row, state)
    left = max(timedelta(0), ends_at - now) if ends_at and row.active else None
    return AppView(
        row=row,
        title=title(row.template),
        stage=stage,
        word=str(_WORDS[stage]),
        mark=_MARKS[stage],
        why=_why(row, stage),
        steps=_steps(row, stage),
        url=base(row.slurm_id) if stage in OPEN and row.slurm_id and is_passed() else "",
        ends_at=ends_at,
        left=duration(left),
        warning=_warning(state, now) if stage is Stage.WARNED else "",
        can_keep=stage is Stage.WARNED and state is not None and state.why is Why.IDLE,
        state=state,
        text=text,
        page=url_for("apps.show", submission_id=row.id),
        job_page=url_for("jobs.show", job_id=row.job_id) if row.job_id else "",
        trouble=trouble,
        saved_page=saved_page,
    )


def trouble(row: AppRow) -> str:
    """In words that its node does not answer Slurm; empty while it does."""
    if not row.active or row.nodes is None:
        return ""
    with deps().read() as session:
        states = {one.name: one.state for one in snapshot.nodes(session)}
    if not is_lost(states.get(row.nodes, "")):
        return ""
    return gettext(
        "Its node %(name)s does not answer Slurm. Unless it comes back soon Slurm ends the job;"
        " files that were saved stay.",
        name=row.nodes,
    )


def read(row: AppRow) -> tuple[AppRow, AppState | None]:
    """The row and what its node says now. Files are read only while there can be any: an
    application that waits in the queue for hours is not asked for each second."""
    have, now = deps(), deps().clock()
    if not row.active:
        return row, None
    waits = row.job_state is not None and parse_state(row.job_state)[0].is_pending
    if waits and now - row.created_at > _FRESH:
        return row, None
    fresh = apps.look(row, begin=have.begin, read=have.read, broker=have.broker)
    return fresh, apps.state(fresh, broker=have.broker)


def opens(job: JobRow, viewer: Viewer) -> str:
    """Where one's own job that is an application and not over is opened, or looked at until it can
    be; empty for any other job."""
    if not job.active or job.template is None or job.user != viewer.unix_user:
        return ""
    found = deps().catalogue.get(job.template)
    if found is None or found.manifest.app is None:
        return ""
    return url_for("appgate.away", slurm_id=job.slurm_id)


def stage_of(row: AppRow, state: AppState | None) -> Stage:
    if row.job_id is None:
        return Stage.SENT if row.is_open else Stage.NEVER
    if not row.active:
        return Stage.OVER if row.ready_at is not None else Stage.FAILED
    if state is not None and state.phase is Phase.FAILED:
        return Stage.FAILED
    if state is not None and state.phase is Phase.STOPPING:
        return Stage.STOPPING
    if row.door is not None:
        return Stage.WARNED if state is not None and state.phase is Phase.WARNED else Stage.READY
    waits = row.job_state is None or parse_state(row.job_state)[0].is_pending
    return Stage.QUEUED if waits and state is None else Stage.STARTING


def title(template: str) -> str:
    found = deps().catalogue.get(template)
    return template if found is None else found.manifest.title.get(language())


def _ends_at(row: AppRow, state: AppState | None) -> datetime | None:
    """When Slurm ends it; the node knows the start before the queue has been read again."""
    if row.start_time is not None:
        return row.start_time + timedelta(minutes=row.time_limit_minutes)
    if state is not None and state.stops_at is not None and state.why is not Why.IDLE:
        return state.stops_at
    return None


def _why(row: AppRow, stage: Stage) -> str:
    match stage:
        case Stage.NEVER:
            return sentence(row.error_code) if row.error_code else gettext("It was taken back.")
        case Stage.QUEUED:
            return reason_text(row.reason) if row.reason else ""
        case Stage.FAILED | Stage.OVER:
            return state_text(row.job_state) if row.job_state else ""
        case _:
            return ""


def _steps(row: AppRow, stage: Stage) -> list[Step]:
    started = row.start_time
    if started is None and row.ready_at is not None:
        started = row.ready_at  # the queue has not been read since
    return [
        Step(gettext("Sent"), row.created_at, "", now=stage is Stage.SENT),
        Step(
            gettext("Started"),
            started,
            _took(row.created_at, started),
            now=stage is Stage.QUEUED,
        ),
        Step(
            gettext("Ready"),
            row.ready_at,
            _took(row.created_at, row.ready_at),
            now=stage is Stage.STARTING,
        ),
    ]


def _took(begin: datetime, end: datetime | None) -> str:
    if end is None or end <= begin:
        return ""
    return gettext("after %(time)s", time=duration(end - begin))


def _warning(state: AppState | None, now: datetime) -> str:
    if state is None:
        return ""
    left = duration(max(timedelta(0), state.stops_at - now)) if state.stops_at else ""
    match state.why:
        case Why.IDLE if left:
            return gettext(
                "Nothing has been done with it and its cards are idle: it will be stopped in"
                " %(time)s.",
                time=left,
            )
        case Why.TIME_LIMIT if left:
            return gettext("Its time limit ends it in %(time)s: save your work.", time=left)
        case _:
            return gettext("It will be stopped: save your work.")
