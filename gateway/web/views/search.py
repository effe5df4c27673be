"""The search box: a job's id leads to the job, anything else to the list by name."""

from flask import Blueprint, redirect, request, url_for
from flask.typing import ResponseReturnValue

from gateway.core.access import Permission, job_rights
from gateway.store.queries import job as reads
from gateway.web.access import requires, viewer
from gateway.web.deps import deps

bp = Blueprint("search", __name__)
LONGEST = 200


@bp.get("/search")
@requires(Permission.USE_PORTAL)
def find() -> ResponseReturnValue:
    text = request.args.get("q", "").strip()[:LONGEST]
    if not text:
        return redirect(url_for("jobs.index"))
    digits = text.partition("_")[0].lstrip("#")
    if digits.isascii() and digits.isdigit() and len(digits) < 12:
        found = _job(int(digits))
        if found is not None:
            return redirect(url_for("jobs.show", job_id=found))
        return redirect(url_for("jobs.index", id=digits))
    return redirect(url_for("jobs.index", who="groups", name=text))


def _job(slurm_id: int) -> int | None:
    """Where this person may see it: else it is as if there were none."""
    with deps().read() as session:
        found = reads.job_by_slurm_id(session, slurm_id)
    if found is None or not job_rights(viewer(), user=found.row.user, group=found.row.group).see:
        return None
    return found.row.id
