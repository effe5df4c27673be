"""What one may do to a job: the question before it, the act, and what is said after it."""

from dataclasses import dataclass

from gateway.core.access import JobRights
from gateway.core.durations import parse_time_limit
from gateway.core.states import JobState
from gateway.errors import NotFound
from gateway.services import act
from gateway.services.act import Action
from gateway.web.access import viewer
from gateway.web.deps import deps
from gateway.web.formbase import Posted
from gateway.web.forms import Confirmed, TimeLimitForm
from gateway.web.texts import gettext
from gateway.web.texts import lazy_gettext as _l

ACTIONS = {
    "cancel": Action.CANCEL,
    "cancel-array": Action.CANCEL_ARRAY,
    "hold": Action.HOLD,
    "release": Action.RELEASE,
    "requeue": Action.REQUEUE,
    "time-limit": Action.SET_TIME_LIMIT,
}
TIME_LIMIT = "time-limit"
ENDING = frozenset({"cancel", "cancel-array"})
_HELD_REASONS = {"JobHeldUser", "JobHeldAdmin", "JobHoldMaxRequeue"}

_QUESTIONS = {
    "cancel": (
        _l("Cancel this job?"),
        _l("It ends now, or leaves the queue. What it has written stays."),
        _l("Cancel the job"),
    ),
    "cancel-array": (
        _l("Cancel the whole array?"),
        _l("All its tasks end now, or leave the queue. What they have written stays."),
        _l("Cancel the whole array"),
    ),
    "hold": (
        _l("Hold this job?"),
        _l(
            "It keeps its place but does not start until it is released. The time it is held "
            "counts as deferral, not as queue wait."
        ),
        _l("Hold"),
    ),
    "release": (
        _l("Release this job?"),
        _l("It may start again as soon as its turn comes."),
        _l("Release"),
    ),
    "requeue": (
        _l("Requeue this job?"),
        _l(
            "It stops now and waits in the queue to run again from its beginning, or from its "
            "last checkpoint if the script knows how."
        ),
        _l("Requeue"),
    ),
    "time-limit": (
        _l("Change the time limit"),
        _l(
            "Lowering it is always possible, and may let the job start sooner. Raising it is "
            "possible only while the job waits."
        ),
        _l("Change time limit"),
    ),
}


@dataclass(frozen=True, slots=True)
class Offered:
    """A button of the job's page."""

    name: str
    word: str

    @property
    def ends_it(self) -> bool:
        return self.name in ENDING


@dataclass(frozen=True, slots=True)
class Question:
    action: str
    title: str
    what: str
    button: str

    @property
    def ends_it(self) -> bool:
        return self.action in ENDING


def offered(
    state: JobState, reason: str | None, rights: JobRights, *, is_array: bool
) -> list[Offered]:
    """What makes sense for this job now. The service judges again."""
    if not rights.act:
        return []
    held = reason in _HELD_REASONS or state in {JobState.REQUEUE_HOLD, JobState.SPECIAL_EXIT}
    names = []
    if state.is_pending:
        names += ["release" if held else "hold", "time-limit", "cancel"]
    elif state.is_active:
        names += ["time-limit", "requeue", "cancel"]
    if names and is_array:
        names.append("cancel-array")
    return [Offered(name, question(name).button) for name in names]


def question(action: str) -> Question:
    """Asked on a page of its own, so that it works without JavaScript too."""
    if action not in _QUESTIONS:
        raise NotFound(f"action {action}")
    title, what, button = _QUESTIONS[action]
    return Question(action, str(title), str(what), str(button))


def form(action: str) -> Posted:
    return TimeLimitForm() if action == TIME_LIMIT else Confirmed()


def do(job_id: int, action: str, form: Posted) -> str:
    """Do it; the answer says what will be seen. Raises what the service raises."""
    if action not in ACTIONS:
        raise NotFound(f"action {action}")
    have = deps()
    act.act(
        job_id,
        ACTIONS[action],
        viewer=viewer(),
        begin=have.begin,
        broker=have.broker,
        now=have.clock(),
        minutes=parse_time_limit(form.time_limit.data or "") if action == TIME_LIMIT else None,
        zone=have.settings.timezone,
    )
    return gettext("Done. The page shows it as soon as Slurm has told the portal.")
