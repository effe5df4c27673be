"""A submission while Slurm has no job for it yet."""

from dataclasses import dataclass
from datetime import datetime

from flask import Blueprint, flash, make_response, redirect, render_template, request, url_for
from flask.typing import ResponseReturnValue

from gateway.core.access import Permission
from gateway.errors import NotFound
from gateway.services import act
from gateway.store.queries import costs
from gateway.store.queries.job import SubmissionDetail
from gateway.web import sending
from gateway.web.access import requires, viewer
from gateway.web.deps import deps
from gateway.web.messages import sentence
from gateway.web.texts import gettext
from gateway.web.views import costview

bp = Blueprint("submissions", __name__, url_prefix="/submissions")
_ON_ITS_WAY = {"queued", "sending", "unknown"}


@dataclass(frozen=True, slots=True)
class View:
    """A submission as its page shows it."""

    id: int
    name: str
    state: str
    stage: str
    waits: bool
    trouble: str
    created_at: datetime
    attempts: int
    next_attempt_at: datetime | None
    script: str
    hold: costview.HoldView | None


@bp.get("/<int:submission_id>")
@requires(Permission.USE_PORTAL)
def show(submission_id: int) -> ResponseReturnValue:
    """Leads on to the job as soon as there is one."""
    found = own(submission_id)
    if found.row.job_id is not None:
        return redirect(url_for("jobs.show", job_id=found.row.job_id))
    return render_template("pages/submission.html", row=_view(found))


@bp.get("/<int:submission_id>/state")
@requires(Permission.USE_PORTAL)
def state(submission_id: int) -> ResponseReturnValue:
    found = own(submission_id)
    if found.row.job_id is None and found.row.state in _ON_ITS_WAY:
        return render_template("fragments/submission_state.html", row=_view(found))
    response = make_response("", 200)
    response.headers["HX-Redirect"] = url_for("submissions.show", submission_id=submission_id)
    return response


@bp.post("/<int:submission_id>/withdraw")
@requires(Permission.SUBMIT_JOB)
def withdraw(submission_id: int) -> ResponseReturnValue:
    own(submission_id)
    have = deps()
    act.withdraw(submission_id, viewer=viewer(), begin=have.begin, now=have.clock())
    flash(gettext("Taken back: Slurm will not get it."), "good")
    return redirect(url_for("submissions.show", submission_id=submission_id), code=303)


def own(submission_id: int) -> SubmissionDetail:
    """One's own; another's does not exist for anyone else."""
    found = sending.detail(submission_id)
    if found is None or found.row.person_id != viewer().person_id:
        raise NotFound(f"submission {submission_id}")
    return found


def trouble(code: str | None) -> str:
    """What Slurm said, as a sentence. That it does not answer the state itself says."""
    if not code or code in {"slurm_unreachable", "slurm_unknown"}:
        return ""
    return sentence(code)


def _view(found: SubmissionDetail) -> View:
    row = found.row
    with deps().read() as session:
        held = costs.of_submission(session, row.id)
    return View(
        id=row.id,
        name=row.name,
        state=row.state,
        stage=row.stage,
        waits=row.state in _ON_ITS_WAY,
        trouble=trouble(row.error_code),
        created_at=row.created_at,
        attempts=row.attempts,
        next_attempt_at=row.next_attempt_at,
        script=found.script if request.endpoint == "submissions.show" else "",
        hold=costview.hold(held),
    )
