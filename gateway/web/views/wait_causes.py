"""Where our wait went: seconds by cause, by group, partition or cards, with one conclusion each."""

from dataclasses import replace

from flask import Blueprint, render_template, request
from flask.typing import ResponseReturnValue

from gateway.core.access import Permission
from gateway.core.wait_figures import Dimension
from gateway.web.access import requires, viewer
from gateway.web.texts import lazy_gettext as _l
from gateway.web.views import waitcauses, waits_frame
from gateway.web.wait_texts import DIMENSION_WORDS

bp = Blueprint("wait_causes", __name__, url_prefix="/waits/causes")
_BY = (_l("By what"), waitcauses.BY)


@bp.get("")
@requires(Permission.USE_PORTAL)
def index() -> ResponseReturnValue:
    asked, along = waits_frame.asked(by=_BY), _along()
    keep = {"by": along.value} if along is not waitcauses.BY[0] else {}
    with waits_frame.seen() as past:
        whole, found = past.causes(asked.question), past.causes_by(asked.question, along)
        frame = waits_frame.frame(asked, past, keep=keep)
    frame = replace(frame, filters=replace(frame.filters, waits=()))  # parts of both waits alike
    dimensions = [
        (str(DIMENSION_WORDS[one]), asked.url("wait_causes.index", by=one.value), one is along)
        for one in waitcauses.BY
    ]
    view = waitcauses.view(frame, whole, found, along, viewer().groups)
    return render_template("pages/wait_causes.html", frame=frame, view=view, dimensions=dimensions)


@bp.get("/causes.csv")
@requires(Permission.USE_PORTAL)
def index_csv() -> ResponseReturnValue:
    """All rows that may be seen."""
    asked, along = waits_frame.asked_of_file(by=_BY), _along()
    with waits_frame.seen() as past:
        found = past.causes_by(asked.question, along)
    name = f"wait-causes-by-{along.value}.csv"
    return waits_frame.csv_answer(waitcauses.csv(found.rows, along), name)


def _along() -> Dimension:
    """The first where the address names none of them."""
    text = request.args.get("by", "")
    return next((one for one in waitcauses.BY if one.value == text), waitcauses.BY[0])
