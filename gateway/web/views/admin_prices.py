"""The price list: what holds now, what comes, what was; and the same work at another list."""

from flask import Blueprint, render_template, request
from flask.typing import ResponseReturnValue

from gateway.core.access import Permission
from gateway.core.months import month_bounds, month_of
from gateway.errors import Refused
from gateway.services import elsewhere
from gateway.services import prices as acts
from gateway.store import prices
from gateway.store.prices import SITE
from gateway.store.queries import people, price_rows
from gateway.web.access import requires, viewer
from gateway.web.deps import deps
from gateway.web.messages import error_sentence
from gateway.web.money_forms import PriceForm, TermsForm
from gateway.web.texts import gettext
from gateway.web.views import pricesview
from gateway.web.views.acted import acted

bp = Blueprint("prices", __name__, url_prefix="/admin/prices")


@bp.get("")
@requires(Permission.SEE_ALL_CREDIT)
def index() -> ResponseReturnValue:
    return _page(price=None, terms=None)


@bp.post("")
@requires(Permission.MANAGE_CREDIT)
def add() -> ResponseReturnValue:
    form = PriceForm()

    def act() -> str:
        acts.set_price(
            (form.resource.data or "").strip(),
            form.price.data or "",
            starts=form.starts.at,
            list_name=(form.list_name.data or "").strip(),
            backdated=bool(form.backdated.data),
            begin=deps().begin,
            now=deps().clock(),
            person_id=viewer().person_id,
        )
        if form.list_name.data != SITE:
            return gettext("The row is in the list %(name)s.", name=form.list_name.data)
        return gettext("The price of %(resource)s is set.", resource=form.resource.data)

    return acted(form, act, again=lambda one: _page(price=one, terms=None), to="prices.index")


@bp.post("/terms")
@requires(Permission.MANAGE_CREDIT)
def add_terms() -> ResponseReturnValue:
    form = TermsForm()

    def act() -> str:
        acts.set_terms(
            (form.qos.data or "").strip(),
            form.factor.data or "",
            preempted=form.preempted.data or "",
            starts=form.terms_starts.at,
            begin=deps().begin,
            now=deps().clock(),
            person_id=viewer().person_id,
        )
        return gettext("The terms of %(qos)s are set.", qos=form.qos.data)

    return acted(form, act, again=lambda one: _page(price=None, terms=one), to="prices.index")


@bp.get("/elsewhere")
@requires(Permission.SEE_ALL_CREDIT)
def compare() -> ResponseReturnValue:
    """What a month's work would have cost at another list."""
    have, zone = deps(), deps().settings.timezone
    month = request.args.get("month", "") or month_of(have.clock(), zone)
    group = request.args.get("group", "").strip() or None
    with have.read() as session:
        names = [name for name in prices.lists(session) if name != SITE]
        groups = people.groups(session)
    chosen = request.args.get("list", "") or (names[0] if names else "")
    found, trouble = None, ""
    try:
        since, until = month_bounds(month, zone)
        if names:
            found = elsewhere.cost_elsewhere(
                chosen, since=since, until=until, read=have.read, group=group
            )
    except (ValueError, OverflowError):
        trouble = gettext("Type a month as 2026-11.")
    except Refused as refusal:
        trouble = error_sentence(refusal)
    return render_template(
        "pages/admin_elsewhere.html",
        found=found,
        lists=names,
        chosen=chosen,
        month=month,
        group=group or "",
        groups=groups,
        trouble=trouble,
    )


def _page(*, price: PriceForm | None, terms: TermsForm | None) -> str:
    now = deps().clock()
    with deps().read() as session:
        rows = price_rows.price_rows(session)
        term_rows = price_rows.terms_rows(session)
        choices = people.choices(session)
    priced = {row.resource for row in rows if row.list_name == SITE}
    return render_template(
        "pages/admin_prices.html",
        lists=pricesview.lists(rows, now),
        terms=pricesview.terms(term_rows, now),
        price=price or PriceForm(formdata=None, data={"list_name": SITE}),
        term=terms or TermsForm(formdata=None, data={"preempted": "pay"}),
        qos=choices.qos,
        known=sorted(priced),
        manages=viewer().may(Permission.MANAGE_CREDIT),
    )
