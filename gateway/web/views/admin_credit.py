"""All groups' credit, and what administrators give: top-ups, grants, packages, campaigns."""

from datetime import datetime

from flask import Blueprint, flash, redirect, render_template, request, url_for
from flask.typing import ResponseReturnValue

from gateway.core.access import Permission
from gateway.core.credits import MILLION
from gateway.errors import Refused
from gateway.services import credit as acts
from gateway.services import prices as offers
from gateway.services import tidy
from gateway.store import credit
from gateway.store.queries import group_credit, price_rows
from gateway.web.access import requires, viewer
from gateway.web.deps import deps
from gateway.web.money import money_text
from gateway.web.money_forms import CampaignForm, GiveForm, OfferForm, key_of
from gateway.web.texts import gettext
from gateway.web.views import creditlist
from gateway.web.views.acted import acted

bp = Blueprint("credit", __name__, url_prefix="/admin")

_TOP_UP = "top_up"


@bp.get("/credit")
@requires(Permission.SEE_ALL_CREDIT)
def groups() -> ResponseReturnValue:
    return _groups(GiveForm(formdata=None, data={"to": request.args.get("to", "")}))


@bp.post("/credit")
@requires(Permission.MANAGE_CREDIT)
def give() -> ResponseReturnValue:
    form = GiveForm()
    return acted(form, lambda: _give(form), again=_groups, to="credit.groups")


@bp.get("/packages")
@requires(Permission.SEE_ALL_CREDIT)
def packages() -> ResponseReturnValue:
    return _packages(OfferForm(formdata=None, data={"days": "7"}))


@bp.post("/packages")
@requires(Permission.MANAGE_CREDIT)
def add_package() -> ResponseReturnValue:
    form = OfferForm()

    def act() -> str:
        offers.add_offer(
            form.name.data or "",
            form.resource.data or "",
            form.price.data or "",
            days=form.days.number or 0,
            begin=deps().begin,
            now=deps().clock(),
            person_id=viewer().person_id,
        )
        return gettext("%(name)s is sold from now on.", name=form.name.data)

    return acted(form, act, again=_packages, to="credit.packages")


@bp.post("/packages/<int:offer_id>/end")
@requires(Permission.MANAGE_CREDIT)
def end_package(offer_id: int) -> ResponseReturnValue:
    tidy.end_offer(offer_id, begin=deps().begin, now=deps().clock())
    flash(gettext("It is sold no more. Packages that were bought stay."), "good")
    return redirect(url_for("credit.packages"), code=303)


@bp.get("/campaigns")
@requires(Permission.SEE_ALL_CREDIT)
def campaigns() -> ResponseReturnValue:
    return _campaigns(CampaignForm(formdata=None, data={"days": "30"}))


@bp.post("/campaigns")
@requires(Permission.MANAGE_CREDIT)
def add_campaign() -> ResponseReturnValue:
    form = CampaignForm()

    def act() -> str:
        acts.add_campaign(
            (form.code.data or "").strip(),
            form.amount.credits or 0,
            days=form.days.number or 0,
            stock=form.stock.number or 0,
            ends=form.ends.end,
            begin=deps().begin,
            now=deps().clock(),
            person_id=viewer().person_id,
        )
        return gettext("Groups can redeem %(code)s now.", code=form.code.data)

    return acted(form, act, again=_campaigns, to="credit.campaigns")


def _give(form: GiveForm) -> str:
    have, who = deps(), viewer()
    group, amount = (form.to.data or "").strip(), form.amount.credits or 0
    with have.read() as session:
        if not group_credit.known(session, group):
            raise Refused("no_such_group", field="to")
    if form.reason.data == _TOP_UP:
        return _top_up(form, group, amount)
    acts.grant(
        group,
        amount,
        reason=form.reason.data or "",
        expires=form.expires.end,
        carry_over_millionths=(form.carry_over.number or 0) * MILLION // 100,
        note=form.note.data or "",
        begin=have.begin,
        now=have.clock(),
        key=key_of(form, who),
        person_id=who.person_id,
    )
    return gettext("%(group)s has a grant of %(amount)s.", group=group, amount=money_text(amount))


def _top_up(form: GiveForm, group: str, amount: int) -> str:
    have, who = deps(), viewer()
    if form.expires.end is not None or form.carry_over.number:
        raise Refused("top_up_never_lapses", field="expires")
    acts.top_up(
        group,
        amount,
        note=form.note.data or "",
        begin=have.begin,
        now=have.clock(),
        key=key_of(form, who),
        person_id=who.person_id,
    )
    moved = money_text(amount)
    return gettext("The balance of %(group)s moved by %(amount)s.", group=group, amount=moved)


def _groups(form: GiveForm) -> str:
    with deps().read() as session:
        view = creditlist.build(session, request.args, now=deps().clock())
    may = viewer().may(Permission.MANAGE_CREDIT)
    return render_template("pages/admin_credit.html", list=view, form=form, manages=may)


def _packages(form: OfferForm) -> str:
    now = deps().clock()
    with deps().read() as session:
        rows = price_rows.offer_lines(session)
    sold = [row for row in rows if row.ends is None or row.ends > now]
    gone = [row for row in rows if row.ends is not None and row.ends <= now]
    may = viewer().may(Permission.MANAGE_CREDIT)
    return render_template(
        "pages/admin_packages.html", sold=sold, gone=gone, form=form, manages=may
    )


def _campaigns(form: CampaignForm) -> str:
    now: datetime = deps().clock()
    with deps().read() as session:
        rows = credit.campaigns(session)[::-1]
    may = viewer().may(Permission.MANAGE_CREDIT)
    return render_template("pages/admin_campaigns.html", rows=rows, form=form, now=now, manages=may)
