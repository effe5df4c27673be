"""Spot: this site's own record of preemptions as pictures and tables, and the adviser.

Everybody may see the sums; nothing is asked of Slurm and nothing is written.
"""

from typing import TYPE_CHECKING

from flask import Blueprint, Response, render_template, request
from flask.typing import ResponseReturnValue

from gateway.core.access import Permission
from gateway.core.spot_record import ALL_TYPES
from gateway.errors import Refused
from gateway.services import spot as spots
from gateway.services.spot import SiteRecord
from gateway.store.queries import cluster
from gateway.web.access import requires
from gateway.web.deps import deps
from gateway.web.messages import error_sentence
from gateway.web.views import spotadvice, spotform, spotview
from gateway.web.views.spotadvice import AdviceView
from gateway.web.views.spotform import SpotForm

if TYPE_CHECKING:
    from sqlalchemy.orm import Session

bp = Blueprint("spot", __name__, url_prefix="/spot")


@bp.get("")
@requires(Permission.USE_PORTAL)
def index() -> ResponseReturnValue:
    """The whole page, or the adviser's answer alone while somebody types."""
    have, is_live = deps(), request.headers.get("HX-Request") is not None
    with have.read() as session:
        site = _record(session)
        form = spotform.read(request.args, site=site, types=_types(session, site))
        advice = _advice(session, form, site)
    if is_live:
        return render_template("fragments/spot_advice.html", form=form, advice=advice, live=True)
    view = spotview.record_view(site, str(have.settings.timezone))
    return render_template("pages/spot.html", form=form, advice=advice, record=view, live=False)


@bp.get("/hours.csv")
@requires(Permission.USE_PORTAL)
def hours_csv() -> ResponseReturnValue:
    """Hour of the day by GPU type."""
    return _csv("".join(spotview.hours_csv(_read())), "spot-hours.csv")


@bp.get("/survival.csv")
@requires(Permission.USE_PORTAL)
def survival_csv() -> ResponseReturnValue:
    """The share of runs that had not been preempted after so long."""
    return _csv("".join(spotview.survival_csv(_read())), "spot-survival.csv")


def _read() -> SiteRecord:
    with deps().read() as session:
        return _record(session)


def _record(session: "Session") -> SiteRecord:
    have = deps()
    return spots.record(session, now=have.clock(), zone=have.settings.timezone)


def _types(session: "Session", site: SiteRecord) -> tuple[str, ...]:
    """Those of the nodes, and those on record."""
    here = {card.node.gpu_type for card in cluster.nodes(session) if card.node.gpu_type}
    known = {one.gpu_type for one in site.records} - {ALL_TYPES}
    return tuple(sorted(here | known))


def _advice(session: "Session", form: SpotForm, site: SiteRecord) -> AdviceView | None:
    """None where a field needs another value; the form then says which."""
    try:
        found = spots.advise(session, spotform.asked(form), site=site, now=deps().clock())
    except Refused as error:
        name = error.field if error.field in spotform.FIELDS else "hours"
        form[name].errors = [error_sentence(error)]
        return None
    return spotadvice.advice_view(found)


def _csv(text: str, name: str) -> Response:
    headers = {"Content-Disposition": f'attachment; filename="{name}"'}
    return Response(text, mimetype="text/csv", headers=headers)
