"""GPU-hours and charges in the API; see docs/api.md."""

from typing import Any

from flask import jsonify, request
from flask.typing import ResponseReturnValue

from gateway.core.access import Permission
from gateway.core.usage_figures import By, Use, facts, ways
from gateway.services.usage_history import seen_use
from gateway.web import apijson, costjson
from gateway.web.access import requires, viewer
from gateway.web.deps import deps
from gateway.web.views import waits_frame
from gateway.web.views.api import bp


@bp.get("/usage")
@requires(Permission.USE_PORTAL)
def usage() -> ResponseReturnValue:
    """The filters and periods of the page's address; `by` once or twice."""
    by = _ways()
    asked, settings = waits_frame.asked(), deps().settings
    if asked.problems:
        raise apijson.BadFields({"filters": "unknown_choice"})
    with seen_use(settings.home / "history", viewer(), least=settings.waits_k) as past:
        found, total = past.use_and_total(asked.question, by)
    names = [one.value for one in by]
    return jsonify(
        since=apijson.dump(asked.question.since),
        until=apijson.dump(asked.question.until),
        zone=asked.question.zone,
        currency=settings.currency,
        by=names,
        rows=[dict(zip(names, row.keys, strict=True)) | _figures(row) for row in found.rows],
        hidden=found.hidden,
        total=None if total is None else _figures(total),
    )


def _ways() -> list[By]:
    try:
        return ways(request.args.getlist("by"))
    except ValueError as error:
        raise apijson.BadFields({"by": "unknown_choice"}) from error


def _figures(row: Use) -> dict[str, Any]:
    return {**facts(row), "charged": costjson.amount(row.charge)}
