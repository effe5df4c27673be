"""What leaders do with their group's credit: caps, packages, codes, loans, the rule at zero."""

from collections.abc import Callable

from flask import render_template, request
from flask.typing import ResponseReturnValue

from gateway.core.access import Permission, group_rights
from gateway.core.ledger import AtZero
from gateway.core.training.stalls import OnStall
from gateway.errors import NotFound, Refused
from gateway.services import account, training_rules
from gateway.services import credit as acts
from gateway.services import lend as loans
from gateway.store import credit, prices
from gateway.store.prices import OfferRow
from gateway.store.queries import balances, group_credit
from gateway.web.access import requires, viewer
from gateway.web.deps import deps
from gateway.web.money import money_text
from gateway.web.money_forms import (
    CapForm,
    CodeForm,
    LendForm,
    MoneyForm,
    PackageForm,
    ReturnForm,
    RulesForm,
    StallForm,
    key_of,
    new_key,
)
from gateway.web.texts import gettext
from gateway.web.views import groupview, steerview
from gateway.web.views.acted import acted
from gateway.web.views.group import bp


@bp.get("/group/<name>/manage")
@requires(Permission.USE_PORTAL)
def steer(name: str) -> ResponseReturnValue:
    return _page(name)


@bp.post("/group/<name>/cap")
@requires(Permission.USE_PORTAL)
def set_cap(name: str) -> ResponseReturnValue:
    """An empty amount takes the cap away."""
    form = CapForm()

    def act() -> str:
        user = form.cap_user.data or ""
        account.set_cap(name, user, form.cap_amount.credits, begin=deps().begin)
        if form.cap_amount.credits is None:
            return gettext("%(user)s has no cap any more.", user=user)
        most = money_text(form.cap_amount.credits)
        return gettext("%(user)s may spend at most %(most)s a month.", user=user, most=most)

    return _do(name, form, act)


@bp.post("/group/<name>/code")
@requires(Permission.USE_PORTAL)
def redeem(name: str) -> ResponseReturnValue:
    form = CodeForm()

    def act() -> str:
        have = deps()
        code, by = form.code.data or "", viewer().person_id
        acts.redeem(name, code, begin=have.begin, now=have.clock(), person_id=by)
        return gettext("The code is redeemed: its grant is among the group's credit now.")

    return _do(name, form, act)


@bp.post("/group/<name>/lend")
@requires(Permission.USE_PORTAL)
def lend(name: str) -> ResponseReturnValue:
    form = LendForm()

    def act() -> str:
        have, who = deps(), viewer()
        borrower, amount = (form.lend_to.data or "").strip(), form.lend_amount.credits or 0
        with have.read() as session:
            if not group_credit.known(session, borrower):
                raise Refused("no_such_group", field="group")
        loans.lend(
            name,
            borrower,
            amount,
            due=form.lend_due.end,
            begin=have.begin,
            now=have.clock(),
            key=key_of(form, who),
            person_id=who.person_id,
        )
        lent = money_text(amount)
        return gettext("%(group)s has %(amount)s more now.", group=borrower, amount=lent)

    return _do(name, form, act)


@bp.post("/group/<name>/loans/<int:loan_id>")
@requires(Permission.USE_PORTAL)
def give_back(name: str, loan_id: int) -> ResponseReturnValue:
    """Only the borrower's leader: a lender cannot take it out of another group's credit."""
    form = ReturnForm()

    def act() -> str:
        have, who = deps(), viewer()
        with have.read() as session:
            loan = credit.loan(session, loan_id)
        if loan is None or loan.borrower != name:
            raise NotFound(f"loan {loan_id} of {name}")
        amount = form.return_amount.credits or 0
        loans.give_back(
            loan_id,
            amount,
            begin=have.begin,
            now=have.clock(),
            key=key_of(form, who),
            person_id=who.person_id,
        )
        back = money_text(amount)
        return gettext("%(amount)s went back to %(group)s.", amount=back, group=loan.lender)

    return _do(name, form, act, loan_id=loan_id)


@bp.post("/group/<name>/rules")
@requires(Permission.USE_PORTAL)
def set_rules(name: str) -> ResponseReturnValue:
    form = RulesForm()

    def act() -> str:
        account.set_rules(
            name,
            at_zero=AtZero(form.at_zero.data or ""),
            overdraft=form.overdraft.credits or 0,
            warning_minutes=form.warning_minutes.number or 0,
            begin=deps().begin,
            now=deps().clock(),
        )
        return gettext("The rule holds from now on.")

    return _do(name, form, act)


@bp.post("/group/<name>/on-stall")
@requires(Permission.USE_PORTAL)
def set_on_stall(name: str) -> ResponseReturnValue:
    form = StallForm()

    def act() -> str:
        rule, have = OnStall(form.on_stall.data or ""), deps()
        by = viewer().person_id
        training_rules.set_on_stall(name, rule, begin=have.begin, now=have.clock(), person_id=by)
        return gettext("The rule holds for jobs that are submitted from now on.")

    return _do(name, form, act)


@bp.get("/group/<name>/package")
@requires(Permission.USE_PORTAL)
def package(name: str) -> ResponseReturnValue:
    """The total before it is bought; nothing happens yet."""
    form = PackageForm(formdata=request.args)
    form.key.data = new_key()  # never one from an address
    form.validate()
    return _package(name, form)


@bp.post("/group/<name>/package")
@requires(Permission.USE_PORTAL)
def buy(name: str) -> ResponseReturnValue:
    form = PackageForm()
    with deps().read() as session:
        groupview.steered(session, viewer(), name)
    return acted(
        form,
        lambda: _buy(name, form),
        again=lambda shown: _package(name, shown),
        to="group.show",
        name=name,
    )


def _id(text: str | None) -> int:
    """0, which nothing has, for what is no id."""
    found = text or ""
    return int(found) if found.isascii() and found.isdigit() and len(found) < 10 else 0


def _buy(name: str, form: PackageForm) -> str:
    have, who = deps(), viewer()
    hours = form.card_hours.number or 0
    acts.buy_package(
        name,
        _id(form.offer.data),
        hours,
        begin=have.begin,
        now=have.clock(),
        key=key_of(form, who),
        person_id=who.person_id,
    )
    return gettext(
        "Bought: %(hours)s card-hours. They are used before all other credit.", hours=hours
    )


def _package(name: str, form: PackageForm) -> str:
    with deps().read() as session:
        groupview.steered(session, viewer(), name)
        offers = prices.offers(session, now=deps().clock())
        have = balances.balance(session, name, now=deps().clock())
    steerview.package_form(offers, form)
    offer = next((one for one in offers if str(one.id) == form.offer.data), None)
    hours = form.card_hours.number
    return render_template(
        "pages/package.html",
        name=name,
        form=form,
        offer=offer,
        offers=offers,
        total=_total(offer, hours),
        hours=hours,
        free=steerview.free_to_spend(have),
        rights=group_rights(viewer(), name),
    )


def _total(offer: OfferRow | None, hours: int | None) -> int | None:
    return None if offer is None or not hours else offer.per_hour * hours


def _do(
    name: str, form: MoneyForm, act: Callable[[], str], *, loan_id: int | None = None
) -> ResponseReturnValue:
    """Ask whether they may, then do it."""
    with deps().read() as session:
        groupview.steered(session, viewer(), name)

    def again(shown: MoneyForm) -> str:
        return _page(name, shown, loan_id=loan_id)

    return acted(form, act, again=again, to="group.steer", name=name)


def _page(name: str, form: MoneyForm | None = None, *, loan_id: int | None = None) -> str:
    page = steerview.build(name, form, loan_id=loan_id)
    return render_template("pages/group_steer.html", page=page)
