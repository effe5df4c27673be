"""Results of jobs: one job's metrics, several jobs side by side, and what TensorBoard and MLflow
left beside a run."""

from flask import Blueprint, Response, render_template, request
from flask.typing import ResponseReturnValue

from gateway.core.access import Permission
from gateway.errors import NotFound, Refused
from gateway.web.access import requires
from gateway.web.views import jobview, logsview, resultview

bp = Blueprint("results", __name__, url_prefix="/jobs")


@bp.get("/<int:job_id>/results")
@requires(Permission.USE_PORTAL)
def show(job_id: int) -> ResponseReturnValue:
    """The part of the job's page, for its live update."""
    page = jobview.build(job_id)
    found = resultview.build(page, request.args)
    return render_template("fragments/job_results.html", page=page, job=page.job, results=found)


@bp.get("/<int:job_id>/results.csv")
@requires(Permission.USE_PORTAL)
def csv(job_id: int) -> ResponseReturnValue:
    """All that is kept, or of one name alone (`metric`)."""
    page = jobview.build(job_id)
    lines = resultview.csv_lines(job_id, request.args.get("metric", ""))
    return _csv("".join(lines), f"job-{page.number}-results.csv")


@bp.get("/<int:job_id>/logs")
@requires(Permission.USE_PORTAL)
def logs(job_id: int) -> ResponseReturnValue:
    """Looked for when asked: the job's page does not wait for a file system."""
    page = jobview.build(job_id)
    try:
        found = logsview.build(job_id)
    except Refused as error:
        raise NotFound(f"files of job {job_id}") from error
    live = bool(request.headers.get("HX-Request"))
    name = "fragments/job_logs.html" if live else "pages/job_logs.html"
    return render_template(name, page=page, job=page.job, logs=found)


@bp.get("/compare")
@requires(Permission.USE_PORTAL)
def compare() -> ResponseReturnValue:
    return render_template("pages/compare.html", found=resultview.compared(request.args))


@bp.get("/compare.csv")
@requires(Permission.USE_PORTAL)
def compare_csv() -> ResponseReturnValue:
    return _csv("".join(resultview.compare_csv_lines(request.args)), "compare.csv")


def _csv(text: str, name: str) -> Response:
    headers = {"Content-Disposition": f'attachment; filename="{name}"'}
    return Response(text, mimetype="text/csv", headers=headers)
