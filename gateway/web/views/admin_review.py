"""The review, rows of accounting that were held, and one charge with its refund."""

from flask import Blueprint, flash, redirect, render_template, request, url_for
from flask.typing import ResponseReturnValue

from gateway.core.access import Permission
from gateway.errors import NotFound, Refused
from gateway.services import refund as refunds
from gateway.services import review as acts
from gateway.services import tidy
from gateway.store import prices, reviews
from gateway.store.queries import charge as charges
from gateway.store.queries import credit_list, health
from gateway.web.access import requires, viewer
from gateway.web.deps import deps
from gateway.web.money_forms import DecisionForm, NoteForm
from gateway.web.texts import gettext
from gateway.web.views import chargeview, reviewview
from gateway.web.views.acted import acted
from gateway.web.views.attention import held_views

bp = Blueprint("review", __name__, url_prefix="/admin")

MOST_SHOWN = 100
_CARDS = "cards-"
_MOST_CARDS_DIGITS = 6


@bp.get("/review")
@requires(Permission.SEE_ALL_CREDIT)
def index() -> ResponseReturnValue:
    with deps().read() as session:
        rows = reviews.waiting(session, limit=MOST_SHOWN)
        price_list = prices.load(session)
        number, _ = credit_list.waiting(session)
        held = health.held_rows(session)
        all_held = health.health(session).held
    return render_template(
        "pages/admin_review.html",
        cases=[reviewview.case(row, price_list) for row in rows],
        number=max(number, len(rows)),
        held=held_views(held),
        all_held=all_held,
        manages=viewer().may(Permission.MANAGE_CREDIT),
    )


@bp.get("/review/<int:charge_id>")
@requires(Permission.SEE_ALL_CREDIT)
def case(charge_id: int) -> ResponseReturnValue:
    return _case(charge_id, None)


@bp.post("/review/<int:charge_id>")
@requires(Permission.MANAGE_CREDIT)
def decide(charge_id: int) -> ResponseReturnValue:
    """Charge cards for a time, or nothing at all. A repeat replaces the decision by itself."""
    form = DecisionForm()
    waive = request.form.get("waive") == "true"

    def act() -> str:
        gpus = _typed_cards()
        if not waive and not any(gpus.values()):
            raise Refused("no_cards", field="gpus")
        if not waive and form.span.seconds is None:
            raise Refused("seconds_unreadable", field="seconds")
        acts.decide(
            charge_id,
            seconds=None if waive else form.span.seconds,
            gpus=None if waive else {name: count for name, count in gpus.items() if count},
            waive=waive,
            note=form.note.data or "",
            begin=deps().begin,
            now=deps().clock(),
            person_id=viewer().person_id,
        )
        if waive:
            return gettext("Nothing is charged for it. It leaves the review in a few seconds.")
        return gettext("Decided. It is charged in a few seconds, and leaves the review.")

    return acted(form, act, again=lambda one: _case(charge_id, one), to="review.index")


@bp.post("/review/rows/<int:row_id>")
@requires(Permission.MANAGE_CREDIT)
def deal_with(row_id: int) -> ResponseReturnValue:
    tidy.deal_with(row_id, begin=deps().begin, now=deps().clock())
    flash(gettext("The row is off the list. It stays in the database with its raw text."), "good")
    return redirect(url_for("review.index"), code=303)


@bp.get("/charges/<int:charge_id>")
@requires(Permission.SEE_ALL_CREDIT)
def charge(charge_id: int) -> ResponseReturnValue:
    return _charge(charge_id, NoteForm(formdata=None))


@bp.post("/charges/<int:charge_id>/refund")
@requires(Permission.MANAGE_CREDIT)
def refund(charge_id: int) -> ResponseReturnValue:
    form = NoteForm()

    def act() -> str:
        refunds.refund(
            charge_id,
            note=form.note.data or "",
            begin=deps().begin,
            now=deps().clock(),
            person_id=viewer().person_id,
        )
        return gettext("The whole charge was given back.")

    return acted(
        form,
        act,
        again=lambda one: _charge(charge_id, one),
        to="review.charge",
        charge_id=charge_id,
    )


@bp.post("/charges/<int:charge_id>/undo")
@requires(Permission.MANAGE_CREDIT)
def undo(charge_id: int) -> ResponseReturnValue:
    form = NoteForm()

    def act() -> str:
        who = viewer().person_id
        refunds.undo(charge_id, begin=deps().begin, now=deps().clock(), person_id=who)
        return gettext("The refund is undone: the charge counts again.")

    return acted(
        form,
        act,
        again=lambda one: _charge(charge_id, one),
        to="review.charge",
        charge_id=charge_id,
    )


def _case(charge_id: int, form: DecisionForm | None) -> str:
    with deps().read() as session:
        rows = reviews.waiting(session, limit=1, charge_id=charge_id)
        price_list = prices.load(session)
    if not rows:
        raise NotFound(f"review {charge_id}")
    found = reviewview.case(rows[0], price_list)
    time = reviewview.typed_span(found.evidence.suggested)
    typed = _typed_texts() if form else {card.type: str(card.count) for card in found.cards}
    return render_template(
        "pages/admin_case.html",
        case=found,
        form=form or DecisionForm(formdata=None, data={"span": time}),
        typed=typed,
        manages=viewer().may(Permission.MANAGE_CREDIT),
    )


def _charge(charge_id: int, form: NoteForm) -> str:
    with deps().read() as session:
        found = charges.charge(session, charge_id)
        if found is None:
            raise NotFound(f"charge {charge_id}")
        page = chargeview.page(
            found, charges.entries(session, charge_id), charges.refund(session, charge_id)
        )
    may = viewer().may(Permission.MANAGE_CREDIT)
    return render_template("pages/admin_charge.html", page=page, form=form, manages=may)


def _typed_texts() -> dict[str, str]:
    return {
        name.removeprefix(_CARDS): text
        for name, text in request.form.items()
        if name.startswith(_CARDS)
    }


def _typed_cards() -> dict[str, int]:
    """What is no whole number is refused, never taken for 0."""
    cards: dict[str, int] = {}
    for name, text in _typed_texts().items():
        digits = text.strip() or "0"
        if not (digits.isascii() and digits.isdigit() and len(digits) <= _MOST_CARDS_DIGITS):
            raise Refused("field_integer", field="gpus")
        cards[name] = int(digits)
    return cards
