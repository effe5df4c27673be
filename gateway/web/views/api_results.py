"""Results in the API: what one job reported, and jobs side by side; see docs/api.md."""

from flask import jsonify, request
from flask.typing import ResponseReturnValue

from gateway.core.access import Permission
from gateway.services import compare
from gateway.store import results as store
from gateway.web.access import requires, viewer
from gateway.web.deps import deps
from gateway.web.views import resultview
from gateway.web.views.api import bp


@bp.get("/jobs/<int:job_id>/results")
@requires(Permission.USE_PORTAL)
def job_results(job_id: int) -> ResponseReturnValue:
    """Last, lowest and highest of each name; with `curves=1` all that is kept of them."""
    with deps().read() as session:
        [one] = compare.compare(session, [job_id], viewer=viewer(), now=deps().clock())
        gap = store.gap(session, job_id)
        curves = store.curves(session, job_id) if request.args.get("curves") == "1" else []
    found = compare.facts(one) | {"skipped_bytes": gap.skipped_bytes, "names_left_out": gap.names}
    if curves:
        found["curves"] = {curve.result.name: compare.curve_facts(curve) for curve in curves}
    return jsonify(found)


@bp.get("/compare")
@requires(Permission.USE_PORTAL)
def compare_jobs() -> ResponseReturnValue:
    """`job` up to eight times; more are left out."""
    with deps().read() as session:
        found = compare.compare(
            session, resultview.ids(request.args), viewer=viewer(), now=deps().clock()
        )
    return jsonify(compare.all_facts(found))
