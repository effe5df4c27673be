"""A group's budgets: what is spent of each plan, and what leaders do about it."""

from collections.abc import Callable

from flask import render_template
from flask.typing import ResponseReturnValue

from gateway.core.access import Permission
from gateway.core.budgets import Action, Category
from gateway.errors import NotFound, Refused
from gateway.services import budgets as acts
from gateway.web.access import requires, viewer
from gateway.web.deps import deps
from gateway.web.money_forms import ApproveForm, BudgetForm, LineForm, MoneyForm, ThresholdForm
from gateway.web.money_texts import ACTIONS, CATEGORIES
from gateway.web.texts import gettext
from gateway.web.views import groupview
from gateway.web.views.acted import acted
from gateway.web.views.group import bp


@bp.get("/group/<name>/budgets")
@requires(Permission.USE_PORTAL)
def budgets(name: str) -> ResponseReturnValue:
    return _page(name)


@bp.post("/group/<name>/budgets")
@requires(Permission.USE_PORTAL)
def add_budget(name: str) -> ResponseReturnValue:
    form = BudgetForm()

    def act() -> str:
        starts, ends = form.first.start, form.last.end
        if starts is None or ends is None:
            raise Refused("bad_day", field="starts" if starts is None else "ends")
        acts.add(
            name,
            form.name.data or "",
            form.amount.credits or 0,
            starts=starts,
            ends=ends,
            begin=deps().begin,
            now=deps().clock(),
            person_id=viewer().person_id,
        )
        return gettext(
            "The budget is set up. It tells the group at 50 and 80 percent, asks for approval at 95"
            " and stops new jobs at 100."
        )

    return _do(name, form, act)


@bp.post("/group/<name>/budgets/<int:budget_id>/line")
@requires(Permission.USE_PORTAL)
def add_line(name: str, budget_id: int) -> ResponseReturnValue:
    form = LineForm()

    def act() -> str:
        acts.add_line(
            budget_id,
            Category(form.category.data or ""),
            form.amount.credits or 0,
            note=form.note.data or "",
            begin=deps().begin,
            now=deps().clock(),
            person_id=viewer().person_id,
        )
        return gettext("It is entered.")

    return _do(name, form, act, budget_id=budget_id)


@bp.post("/group/<name>/budgets/<int:budget_id>/threshold")
@requires(Permission.USE_PORTAL)
def set_threshold(name: str, budget_id: int) -> ResponseReturnValue:
    form = ThresholdForm()

    def act() -> str:
        wanted = form.action.data or ""
        action = None if wanted == "none" else Action(wanted)
        acts.set_threshold(budget_id, form.percent.number or 0, action, begin=deps().begin)
        return gettext("The threshold is as you set it.")

    return _do(name, form, act, budget_id=budget_id)


@bp.post("/group/<name>/budgets/<int:budget_id>/end")
@requires(Permission.USE_PORTAL)
def end_budget(name: str, budget_id: int) -> ResponseReturnValue:
    def act() -> str:
        acts.end(budget_id, begin=deps().begin, now=deps().clock())
        return gettext("The budget has ended: it counts no further and stops nothing any more.")

    return _do(name, MoneyForm(), act, budget_id=budget_id)


@bp.post("/group/<name>/budgets/<int:budget_id>/approve")
@requires(Permission.USE_PORTAL)
def approve(name: str, budget_id: int) -> ResponseReturnValue:
    form = ApproveForm()

    def act() -> str:
        until = form.until.number or 0
        acts.approve(budget_id, until, begin=deps().begin)
        if not until:
            return gettext("The approval is taken back.")
        return gettext("New jobs may go on up to %(percent)s percent.", percent=until)

    return _do(name, form, act, budget_id=budget_id)


def _do(
    name: str, form: MoneyForm, act: Callable[[], str], *, budget_id: int | None = None
) -> ResponseReturnValue:
    """Only for those who steer the group, and only for a budget of its own."""
    now = deps().clock()
    with deps().read() as session:
        groupview.steered(session, viewer(), name)
        if budget_id is not None:
            found = acts.shown(session, budget_id, now=now)
            if found.row.group != name:
                raise NotFound(f"budget {budget_id} of {name}")
    return acted(
        form,
        act,
        again=lambda shown: _page(name, shown, budget_id=budget_id),
        to="group.budgets",
        name=name,
    )


def _page(name: str, shown: MoneyForm | None = None, *, budget_id: int | None = None) -> str:
    now, zone = deps().clock(), deps().settings.timezone
    with deps().read() as session:
        rights = groupview.rights_in(session, viewer(), name)
        found = acts.of_group(session, name, now=now, zone=zone)
    return render_template(
        "pages/budgets.html",
        name=name,
        rights=rights,
        budgets=[(one, _forms(shown if one.row.id == budget_id else None)) for one in found],
        form=shown if isinstance(shown, BudgetForm) else BudgetForm(formdata=None),
        words={one.value: str(word) for one, word in CATEGORIES.items()},
        actions={one.value: str(word) for one, word in ACTIONS.items()},
        now=now,
    )


def _forms(shown: MoneyForm | None) -> dict[str, MoneyForm]:
    """The forms of one budget; the one that was refused keeps what was typed."""
    forms: dict[str, MoneyForm] = {
        "line": LineForm(formdata=None),
        "threshold": ThresholdForm(formdata=None, data={"action": Action.NOTIFY.value}),
        "approve": ApproveForm(formdata=None),
    }
    for name, form in forms.items():
        if type(shown) is type(form) and shown is not None:
            forms[name] = shown
    return forms
