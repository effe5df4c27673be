"""Contribution for administrators: what the rules give each group now, the runs, and the switch."""

from dataclasses import replace
from typing import TYPE_CHECKING

from flask import Blueprint, Response, flash, redirect, render_template, url_for
from flask.typing import ResponseReturnValue

from gateway.core.access import Permission
from gateway.core.contribution import Rules
from gateway.errors import Refused
from gateway.services import contribution
from gateway.services import contribution_book as book
from gateway.store import contribution as rows
from gateway.store.queries import policy_changes as changes
from gateway.web.access import requires, viewer
from gateway.web.change_texts import STATE_TEXTS
from gateway.web.contribution_forms import AutomaticForm
from gateway.web.deps import deps
from gateway.web.messages import error_sentence
from gateway.web.money_forms import KeyedForm, key_of
from gateway.web.texts import gettext
from gateway.web.views import contributionview
from gateway.web.views.acted import acted
from gateway.web.views.contributionview import RunLine

if TYPE_CHECKING:
    from sqlalchemy.orm import Session

bp = Blueprint("contribution", __name__, url_prefix="/admin/contribution")


@bp.get("")
@requires(Permission.SEE_POLICY)
def index() -> ResponseReturnValue:
    return _page()


@bp.get("/shares.csv")
@requires(Permission.SEE_POLICY)
def csv() -> ResponseReturnValue:
    """Every group, with its points, shares now and shares by the rules."""
    with deps().read() as session:
        held = rows.version(session)
        found = _preview(session, held.rules if held else Rules())
    text = "".join(contributionview.csv_lines(found.lines))
    name = f'attachment; filename="shares-{found.day.isoformat()}.csv"'
    return Response(text, mimetype="text/csv", headers={"Content-Disposition": name})


@bp.post("/run")
@requires(Permission.MANAGE_POLICY)
def run() -> ResponseReturnValue:
    """A proposal of what differs now: its page shows the difference, and has the button."""
    form, have, who = KeyedForm(), deps(), viewer()
    if not form.validate():
        return redirect(url_for("contribution.index"), code=303)
    try:
        done = contribution.compute(
            f"hand:{key_of(form, who)}",
            second_approval=True,
            viewer=who,
            begin=have.begin,
            now=have.clock(),
            zone=have.settings.timezone,
        )
    except Refused as refusal:
        flash(error_sentence(refusal), "bad")
        return redirect(url_for("contribution.index"), code=303)
    if done.change_id is None:
        flash(gettext("Every group has what the rules give it: nothing is to be written."), "good")
        return redirect(url_for("contribution.index"), code=303)
    return redirect(url_for("policy.change", change_id=done.change_id), code=303)


@bp.post("/automatic")
@requires(Permission.MANAGE_POLICY)
def automatic() -> ResponseReturnValue:
    form = AutomaticForm()

    def act() -> str:
        have = deps()
        with have.read() as session:
            held = rows.version(session)
        rules = replace(held.rules if held else Rules(), automatic=bool(form.automatic.data))
        book.set_rules(
            rules,
            expected=form.expected,
            begin=have.begin,
            now=have.clock(),
            person_id=viewer().person_id,
        )
        if rules.automatic:
            return gettext("Each night's change is applied by itself from now on.")
        return gettext("Each night's change waits for an administrator from now on.")

    return acted(form, act, again=_page, to="contribution.index")


def _page(form: AutomaticForm | None = None) -> str:
    have = deps()
    with have.read() as session:
        held = rows.version(session)
        rules = held.rules if held else Rules()
        found = _preview(session, rules)
        ran = rows.runs(session)
        made = changes.lines(session, {one.change_id for one in ran if one.change_id is not None})
    runs = [RunLine(one, made.get(one.change_id or 0), one.key.startswith("night:")) for one in ran]
    return render_template(
        "pages/contribution.html",
        page=found,
        held=held,
        rules=rules,
        formula=contributionview.formula_words(rules.formula) if rules.formula else "",
        runs=runs,
        states={state.value: str(words[0]) for state, words in STATE_TEXTS.items()},
        errors={
            one.run.id: error_sentence(Refused(one.run.error_code))
            for one in runs
            if one.run.error_code
        },
        run_form=KeyedForm(formdata=None),
        automatic=form
        or AutomaticForm(
            formdata=None,
            data={"version": str(held.number if held else ""), "automatic": rules.automatic},
        ),
        hour=have.settings.contribution_hour,
        manages=viewer().may(Permission.MANAGE_POLICY),
    )


def _preview(session: "Session", rules: Rules) -> contributionview.Shown:
    have = deps()
    found = contribution.preview(session, rules, now=have.clock(), zone=have.settings.timezone)
    return contributionview.shown(found)
