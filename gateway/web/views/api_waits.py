"""Waits in the API: the questions of the pages, with the same filters and the same rule of who
sees what; see docs/api.md."""

from typing import Any

from flask import jsonify, request
from flask.typing import ResponseReturnValue

from gateway.core.access import Permission
from gateway.core.wait_figures import Dimension
from gateway.core.wait_shapes import Step
from gateway.web import apijson
from gateway.web.access import requires
from gateway.web.views import waitcauses, waits_frame, waittime
from gateway.web.views.api import bp
from gateway.web.views.waits import dimension_named
from gateway.web.wait_filters import Asked

# Of whom a figure is made is for the rule alone.
_KEPT_BACK = frozenset({"people", "others"})


@bp.get("/waits")
@requires(Permission.USE_PORTAL)
def waits() -> ResponseReturnValue:
    """The period and the one before it; null where they stand for too few people."""
    asked = _asked()
    earlier = asked.question.before
    with waits_frame.seen() as past:
        now = _figures(past.figures(asked.question))
        before = None if earlier is None else _figures(past.figures(earlier))
    return jsonify(_head(asked) | {"figures": now, "before": before})


@bp.get("/waits/by/<dimension>")
@requires(Permission.USE_PORTAL)
def waits_by(dimension: str) -> ResponseReturnValue:
    asked, along = _asked(), dimension_named(dimension)
    with waits_frame.seen() as past:
        found = past.by(asked.question, along)
    rows = [{"key": key, **(_figures(one) or {})} for key, one in found.rows]
    return jsonify(_head(asked) | {"by": along.value, "rows": rows, "hidden": found.hidden})


@bp.get("/waits/distribution")
@requires(Permission.USE_PORTAL)
def waits_distribution() -> ResponseReturnValue:
    asked = _asked()
    with waits_frame.seen() as past:
        found, left = past.distribution(asked.question), past.survival(asked.question)
    return jsonify(
        _head(asked) | {"distribution": _figures(found), "still_waiting": _figures(left)}
    )


@bp.get("/waits/over-time")
@requires(Permission.USE_PORTAL)
def waits_over_time() -> ResponseReturnValue:
    asked, text = _asked(), request.args.get("step", "")
    if text and text not in list(Step):
        raise apijson.BadFields({"step": "unknown_value"})
    step = waittime.step(text, asked.question)
    with waits_frame.seen() as past:
        found = past.over_time(asked.question, step)
    rows = [_figures(one) for one in found.rows]
    return jsonify(_head(asked) | {"step": step.value, "rows": rows, "hidden": found.hidden})


@bp.get("/waits/week")
@requires(Permission.USE_PORTAL)
def waits_week() -> ResponseReturnValue:
    asked = _asked()
    with waits_frame.seen() as past:
        found = past.heat(asked.question)
    rows = [_figures(one) for one in sorted(found.rows, key=lambda one: one.hour)]
    return jsonify(_head(asked) | {"rows": rows, "hidden": found.hidden})


@bp.get("/waits/causes")
@requires(Permission.USE_PORTAL)
def waits_causes() -> ResponseReturnValue:
    """Seconds by cause; `by` as on the page."""
    asked, text = _asked(), request.args.get("by", Dimension.GROUP.value)
    if text not in waitcauses.BY:
        raise apijson.BadFields({"by": "unknown_value"})
    with waits_frame.seen() as past:
        whole = past.causes(asked.question)
        found = past.causes_by(asked.question, Dimension(text))
    rows = [_figures(row) for _, row in found.rows]
    return jsonify(
        _head(asked) | {"by": text, "causes": _figures(whole), "rows": rows, "hidden": found.hidden}
    )


def _asked() -> Asked:
    """What cannot be read is refused here: a program should not take a figure for another."""
    asked = waits_frame.asked()
    if asked.problems:
        raise apijson.BadFields(dict.fromkeys(asked.problems, "unknown_value"))
    return asked


def _head(asked: Asked) -> dict[str, Any]:
    question = asked.question
    return {
        "wait": question.wait.value,
        "since": apijson.dump(question.since),
        "until": apijson.dump(question.until),
        "zone": question.zone,
    }


def _figures(found: object) -> dict[str, Any] | None:
    if found is None:
        return None
    dumped: dict[str, Any] = apijson.dump(found)
    return {key: value for key, value in dumped.items() if key not in _KEPT_BACK}
