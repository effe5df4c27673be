"""Waits: how long one waits and runs, for whom, when, and whether it gets worse.

Each page reads its address, asks what this person may see of the history, and shows it.
"""

from flask import Blueprint, render_template, request
from flask.typing import ResponseReturnValue

from gateway.core.access import Permission
from gateway.core.wait_figures import Dimension
from gateway.core.wait_shapes import Step
from gateway.errors import NotFound
from gateway.web.access import requires
from gateway.web.texts import lazy_gettext as _l
from gateway.web.views import waitdistribution, waitrows, waits_frame, waitsums, waittime
from gateway.web.wait_texts import DIMENSION_WORDS

bp = Blueprint("waits", __name__, url_prefix="/waits")

BY = tuple(one for one in DIMENSION_WORDS if one not in {Dimension.SOURCE, Dimension.CLUSTER})
_FIRST = Dimension.GPU_CLASS
_SORT = (_l("Order"), waitrows.ORDERS)
_STEP = (_l("How wide a step is"), [one.value for one in Step])


@bp.get("")
@requires(Permission.USE_PORTAL)
def index() -> ResponseReturnValue:
    """Wait and run side by side, by class of cards and by type, against the period before."""
    asked = waits_frame.asked()
    with waits_frame.seen() as past:
        seen = past.overview(asked.question, Dimension.GPU_CLASS)
        types = past.by(asked.question, Dimension.GPU_TYPE, brief=True)
        frame = waits_frame.frame(asked, past)
    view = waitsums.view(frame, seen, types)
    return render_template("pages/waits.html", frame=frame, view=view)


@bp.get("/overview.csv")
@requires(Permission.USE_PORTAL)
def index_csv() -> ResponseReturnValue:
    """The period and the one before it."""
    asked = waits_frame.asked_of_file()
    with waits_frame.seen() as past:
        seen = past.overview(asked.question, Dimension.GPU_CLASS)
    return waits_frame.csv_answer(waitsums.csv(seen), "waits.csv")


@bp.get("/by")
@bp.get("/by/<dimension>")
@requires(Permission.USE_PORTAL)
def by(dimension: str = _FIRST.value) -> ResponseReturnValue:
    """Everything by one dimension, in the order of any column."""
    asked = waits_frame.asked(sort=_SORT)
    along = dimension_named(dimension)
    order = waitrows.order(request.args)
    with waits_frame.seen() as past:
        found = past.by(asked.question, along, brief=True)
        frame = waits_frame.frame(asked, past, keep=order.kept, dimension=along.value)
    dimensions = [
        (str(DIMENSION_WORDS[one]), asked.url("waits.by", dimension=one.value), one is along)
        for one in BY
    ]
    view = waitrows.view(frame, found, along, order, page=request.args.get("page", 1, type=int))
    return render_template("pages/waits_by.html", frame=frame, view=view, dimensions=dimensions)


@bp.get("/by/<dimension>.csv")
@requires(Permission.USE_PORTAL)
def by_csv(dimension: str) -> ResponseReturnValue:
    """All rows that may be seen."""
    asked, along = waits_frame.asked_of_file(sort=_SORT), dimension_named(dimension)
    with waits_frame.seen() as past:
        found = past.by(asked.question, along, brief=True)
    rows = waitrows.sorted_rows(found.rows, waitrows.order(request.args))
    return waits_frame.csv_answer(waitrows.csv(rows, along), f"waits-by-{along.value}.csv")


@bp.get("/distribution")
@requires(Permission.USE_PORTAL)
def distribution() -> ResponseReturnValue:
    """Histograms and curves on a log axis."""
    asked = waits_frame.asked()
    with waits_frame.seen() as past:
        found, left = past.distribution(asked.question), past.survival(asked.question)
        frame = waits_frame.frame(asked, past)
    view = waitdistribution.view(frame, found, left)
    return render_template("pages/waits_distribution.html", frame=frame, view=view)


@bp.get("/distribution.csv")
@requires(Permission.USE_PORTAL)
def distribution_csv() -> ResponseReturnValue:
    """The bars of the histograms."""
    asked = waits_frame.asked_of_file()
    with waits_frame.seen() as past:
        found = past.distribution(asked.question)
    return waits_frame.csv_answer(waitdistribution.bars_csv(found), "waits-distribution.csv")


@bp.get("/curves.csv")
@requires(Permission.USE_PORTAL)
def curves_csv() -> ResponseReturnValue:
    """The points of the curves."""
    asked = waits_frame.asked_of_file()
    with waits_frame.seen() as past:
        found, left = past.distribution(asked.question), past.survival(asked.question)
    return waits_frame.csv_answer(waitdistribution.curves_csv(found, left), "waits-curves.csv")


@bp.get("/over-time")
@requires(Permission.USE_PORTAL)
def over_time() -> ResponseReturnValue:
    """Percentiles by hour, day, week or month of the submit."""
    asked = waits_frame.asked(step=_STEP)
    step = waittime.step(request.args.get("step", ""), asked.question)
    with waits_frame.seen() as past:
        drawn = waittime.newest(past, asked.question, step)
        found = past.over_time(drawn, step)
        keep = {"step": request.args["step"]} if request.args.get("step") == step.value else {}
        frame = waits_frame.frame(asked, past, keep=keep)
    view = waittime.series(frame, found, step, cut=drawn != asked.question)
    return render_template("pages/waits_over_time.html", frame=frame, view=view)


@bp.get("/over-time.csv")
@requires(Permission.USE_PORTAL)
def over_time_csv() -> ResponseReturnValue:
    asked = waits_frame.asked_of_file(step=_STEP)
    step = waittime.step(request.args.get("step", ""), asked.question)
    with waits_frame.seen() as past:
        found = past.over_time(asked.question, step)
    return waits_frame.csv_answer(waittime.series_csv(found), f"waits-by-{step.value}.csv")


@bp.get("/week")
@requires(Permission.USE_PORTAL)
def week() -> ResponseReturnValue:
    """Hours of the week of the submit, in the site's zone."""
    asked = waits_frame.asked()
    with waits_frame.seen() as past:
        found = past.heat(asked.question)
        frame = waits_frame.frame(asked, past)
    view = waittime.week(frame, found)
    return render_template("pages/waits_week.html", frame=frame, view=view)


@bp.get("/week.csv")
@requires(Permission.USE_PORTAL)
def week_csv() -> ResponseReturnValue:
    asked = waits_frame.asked_of_file()
    with waits_frame.seen() as past:
        found = past.heat(asked.question)
    return waits_frame.csv_answer(waittime.week_csv(found), "waits-week.csv")


def dimension_named(text: str) -> Dimension:
    """One of BY; whatever else stands in the address is no page."""
    found = next((one for one in BY if one.value == text), None)
    if found is None:
        raise NotFound(f"dimension {text[:60]!r}")
    return found
