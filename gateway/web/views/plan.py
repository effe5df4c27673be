"""The planner: does it fit, how long, for how much, before anything is sent. All of it stands in
the address; nothing is asked of Slurm and nothing is written."""

from flask import Blueprint, render_template, request, url_for
from flask.typing import ResponseReturnValue

from gateway.core.access import Permission
from gateway.core.offer import Offer
from gateway.core.planner import filling
from gateway.core.planner.figures import Notice
from gateway.core.planner.plan import Plan
from gateway.errors import Refused
from gateway.services import offer as offers
from gateway.services.plan import plan_training
from gateway.web.access import requires, viewer
from gateway.web.deps import deps
from gateway.web.messages import error_sentence
from gateway.web.views import planform, planview
from gateway.web.views.planform import PlanForm

bp = Blueprint("plan", __name__, url_prefix="/plan")


@bp.get("")
@requires(Permission.USE_PORTAL)
def index() -> ResponseReturnValue:
    """The whole page, or what has changed of it while somebody types."""
    offer = offers.offer(viewer(), begin=deps().read)
    form = planform.read(request.args, cards=deps().cards, offer=offer)
    found = _plan(form)
    is_live = request.headers.get("HX-Request") is not None
    page = "fragments/plan.html" if is_live else "pages/plan.html"
    return render_template(
        page,
        form=form,
        view=planview.view(found, form) if found else None,
        filled=[planview.notice_words(one) for one in _notices(found, offer)],
        submit=url_for("submit.new", plan=planform.query(form)),
        live=is_live,
    )


def _plan(form: PlanForm) -> Plan | None:
    """None where a field needs another value; the form then says which."""
    have = deps()
    try:
        return plan_training(
            planform.ask(form), cards=have.cards, begin=have.read, now=have.clock()
        )
    except Refused as error:
        name = error.field if error.field in planform.FIELDS else "params"
        form[name].errors = [error_sentence(error)]
        return None


def _notices(found: Plan | None, offer: Offer) -> tuple[Notice, ...]:
    """What the submit form will not have as it was planned."""
    if found is None:
        return ()
    names = [one.name for one in deps().catalogue.all()]
    return filling.fill(found, offer, names).notices
