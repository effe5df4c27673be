"""The tasks of the array that a job belongs to, for the job's page."""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime

from gateway.core.access import Permission, Viewer
from gateway.core.arrays import ranges, tasks_of
from gateway.core.states import parse_state
from gateway.core.waits import waits
from gateway.store.queries.arraytasks import ArrayOverview, StateCount, TaskRow, array_overview
from gateway.store.queries.jobs import JobRow
from gateway.web.access import viewer
from gateway.web.deps import deps
from gateway.web.show import duration, state_text
from gateway.web.texts import gettext, ngettext
from gateway.web.views.jobview import JobView

NOBODY_COUNTS_SO_FAR = 100_000


@dataclass(frozen=True, slots=True)
class TaskView:
    id: int
    task: str
    state: str
    words: str
    run_time: str
    here: bool


@dataclass(frozen=True, slots=True)
class CountView:
    state: str
    text: str


@dataclass(frozen=True, slots=True)
class ArrayView:
    """`more`: so many records are not shown; the job list has them under `array_id`."""

    array_id: int
    counts: list[CountView]
    tasks: list[TaskView]
    more: int


def build(page: JobView) -> ArrayView | None:
    """None for a job that belongs to no array."""
    job, asked = page.job, page.detail.submission
    if job.array_job_id is None:
        return None
    with deps().read() as session:
        found = array_overview(session, job.id, groups=_groups(job, viewer()))
    waiting = _waiting(found, asked.array if asked else None)
    now = deps().clock()
    return ArrayView(
        array_id=job.array_job_id,
        counts=[CountView(one.state, _count(one)) for one in _in_order(found.counts)],
        tasks=[_task(one, waiting, here=one.id == job.id, now=now) for one in found.rows],
        more=found.records - len(found.rows),
    )


def _groups(job: JobRow, who: Viewer) -> tuple[str, ...] | None:
    """As `job_rights` has it: the owner sees all of an array, whose tasks are all theirs."""
    if job.user == who.unix_user or who.may(Permission.SEE_ALL_JOBS):
        return None
    return (*who.groups, *who.leads)


def _waiting(found: ArrayOverview, asked: str | None) -> str:
    """Which tasks the record without a number stands for: those of the submission that have no
    record of their own. Empty unless that agrees with what Slurm counts."""
    whole = [one for one in found.rows if one.task is None]
    if asked is None or len(whole) != 1 or found.records > len(found.rows):
        return ""
    numbers = tasks_of(asked, most=NOBODY_COUNTS_SO_FAR)
    left = numbers - {one.task for one in found.rows if one.task is not None}
    return ranges(left) if left and whole[0].tasks in {len(left), None} else ""


def _task(one: TaskRow, waiting: str, *, here: bool, now: datetime) -> TaskView:
    end = None if one.active else one.end_time
    times = waits(one.submit_time, one.eligible_time, one.start_time, end, now)
    return TaskView(
        id=one.id,
        task=_name(one, waiting),
        state=one.state,
        words=state_text(one.state),
        run_time=duration(times.run_time) or "–",
        here=here,
    )


def _name(one: TaskRow, waiting: str) -> str:
    if one.task is not None:
        return str(one.task)
    if not parse_state(one.state)[0].is_pending:
        # Cancelled before they got records of their own.
        return gettext("%(tasks)s never started", tasks=waiting or one.tasks or "…")
    if waiting:
        return gettext("%(tasks)s waiting", tasks=waiting)
    if one.tasks is None:
        return gettext("further tasks waiting")
    return ngettext("%(num)d task waiting", "%(num)d tasks waiting", one.tasks)


def _in_order(counts: Sequence[StateCount]) -> list[StateCount]:
    """What runs, what waits, then what has ended, the most first."""

    def place(one: StateCount) -> tuple[bool, bool, int, str]:
        state = parse_state(one.state)[0]
        return not state.is_active, not state.is_pending, -one.tasks, one.state

    return sorted(counts, key=place)


def _count(one: StateCount) -> str:
    words = state_text(one.state)
    if one.at_least:
        return gettext("%(state)s: at least %(number)s", state=words, number=one.tasks)
    return gettext("%(state)s: %(number)s", state=words, number=one.tasks)
