"""The help page: times, states and how to type a time limit."""

from flask import Blueprint, redirect, render_template, url_for
from flask.typing import ResponseReturnValue

from gateway.core.access import Permission
from gateway.core.durations import parse_time_limit
from gateway.core.states import JobState
from gateway.web.access import requires
from gateway.web.show import minutes_words, state_text
from gateway.web.state_texts import mark

bp = Blueprint("help", __name__)

EXAMPLES = ("90", "30:00", "12:00:00", "2-12", "2-12:30")
_SHOWN = (
    JobState.PENDING,
    JobState.RUNNING,
    JobState.COMPLETED,
    JobState.FAILED,
    JobState.TIMEOUT,
    JobState.OUT_OF_MEMORY,
    JobState.CANCELLED,
    JobState.NODE_FAIL,
    JobState.PREEMPTED,
    JobState.REQUEUED,
    JobState.SUSPENDED,
)


@bp.get("/")
@requires(Permission.USE_PORTAL)
def home() -> ResponseReturnValue:
    return redirect(url_for("jobs.index"))


@bp.get("/help")
@requires(Permission.USE_PORTAL)
def index() -> ResponseReturnValue:
    return render_template(
        "pages/help.html",
        examples=[(typed, minutes_words(parse_time_limit(typed))) for typed in EXAMPLES],
        states=[(state.value, mark(state), state_text(state)) for state in _SHOWN],
    )
