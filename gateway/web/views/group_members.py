"""The people of a group: who they are, and what leaders do about them."""

from collections.abc import Callable
from datetime import datetime, timedelta
from typing import Any

from flask import flash, redirect, render_template, url_for
from flask.typing import ResponseReturnValue
from wtforms import BooleanField, StringField

from gateway.core.access import Permission
from gateway.core.months import month_start
from gateway.errors import NotFound, Refused
from gateway.services import members as acts
from gateway.services.membership import Outcome
from gateway.store.queries import members as reads
from gateway.store.queries import spending
from gateway.web.access import requires, viewer
from gateway.web.deps import deps
from gateway.web.formbase import at_most, needed, said
from gateway.web.forms import Confirmed
from gateway.web.messages import error_sentence, sentence
from gateway.web.money_forms import MoneyForm
from gateway.web.texts import gettext, ngettext
from gateway.web.texts import lazy_gettext as _l
from gateway.web.views import groupview
from gateway.web.views.acted import acted
from gateway.web.views.group import bp


class AddForm(MoneyForm):
    who = StringField(said(_l("User name or Unix account")), [needed(), at_most(64)])


class LeaveForm(MoneyForm):
    cancel_waiting = BooleanField(said(_l("Cancel the jobs that wait")))


@bp.get("/group/<name>/members")
@requires(Permission.USE_PORTAL)
def members(name: str) -> ResponseReturnValue:
    return _page(name, AddForm(formdata=None))


@bp.post("/group/<name>/members")
@requires(Permission.USE_PORTAL)
def add_member(name: str) -> ResponseReturnValue:
    form = AddForm()
    _require_steer(name)

    def act() -> str:
        done = acts.add(name, form.who.data or "", **_given())
        if done.pending:
            return _not_yet()
        return gettext("%(user)s is in %(group)s now.", user=done.user, group=name)

    return acted(form, act, again=lambda shown: _page(name, shown), to="group.members", name=name)


@bp.get("/group/<name>/members/<user>/remove")
@requires(Permission.USE_PORTAL)
def ask_remove(name: str, user: str) -> ResponseReturnValue:
    return _question(name, user, LeaveForm(formdata=None))


@bp.post("/group/<name>/members/<user>/remove")
@requires(Permission.USE_PORTAL)
def remove_member(name: str, user: str) -> ResponseReturnValue:
    form = LeaveForm()
    _require_steer(name)

    def act() -> str:
        cancel = bool(form.cancel_waiting.data)
        return _left(acts.remove(name, user, cancel_waiting=cancel, **_given()), name)

    return acted(
        form, act, again=lambda shown: _question(name, user, shown), to="group.members", name=name
    )


@bp.post("/group/<name>/members/<user>/<act>")
@requires(Permission.USE_PORTAL)
def change_member(name: str, user: str, act: str) -> ResponseReturnValue:
    """keep: undo a removal; lead, follow; default: of oneself alone."""
    if act == "default":
        with deps().read() as session:
            groupview.rights_in(session, viewer(), name)
        if user != viewer().unix_user:
            raise NotFound(f"the default group of {user}")
    else:
        _require_steer(name)
    if Confirmed().validate():
        try:
            done, text = _change(name, user, act)
            flash(_not_yet() if done.pending else text, "good")
        except Refused as refusal:
            flash(error_sentence(refusal), "bad")
    return redirect(url_for("group.members", name=name), code=303)


def _change(name: str, user: str, act: str) -> tuple[Outcome, str]:
    """What came of it, and what is so then."""
    facts = {"user": user, "group": name}
    changes: dict[str, tuple[Callable[[], Outcome], str]] = {
        "keep": (
            lambda: acts.add(name, user, **_given()),
            gettext("%(user)s stays in %(group)s.", **facts),
        ),
        "lead": (
            lambda: acts.set_leader(name, user, leads=True, **_given()),
            gettext("%(user)s leads %(group)s now.", **facts),
        ),
        "follow": (
            lambda: acts.set_leader(name, user, leads=False, **_given()),
            gettext("%(user)s does not lead %(group)s any more.", **facts),
        ),
        "default": (
            lambda: acts.set_default(name, user, **_given()),
            gettext("Jobs that name no group go to %(group)s from now on.", **facts),
        ),
    }
    if act not in changes:
        raise NotFound(f"act {act}")
    do, text = changes[act]
    return do(), text


def _given() -> dict[str, Any]:
    have = deps()
    given = {"begin": have.begin, "broker": have.broker, "now": have.clock()}
    return given | {"person_id": viewer().person_id}


def _not_yet() -> str:
    return gettext("Slurm does not answer now. The portal goes on trying until it is done.")


def _left(done: Outcome, name: str) -> str:
    facts = {"user": done.user, "group": name}
    text = (
        gettext("%(user)s is not in %(group)s any more.", **facts)
        if not done.pending
        else gettext(
            "%(group)s takes no new jobs of %(user)s. They leave with their last job.", **facts
        )
        if done.code == acts.HAS_JOBS
        else _not_yet()
    )
    if done.cancelled:
        text += " " + ngettext(
            "%(num)d job was cancelled.", "%(num)d jobs were cancelled.", done.cancelled
        )
    if done.left:
        text += " " + ngettext(
            "%(num)d job could not be cancelled.", "%(num)d jobs could not be cancelled.", done.left
        )
    return text


def _require_steer(name: str) -> None:
    with deps().read() as session:
        groupview.steered(session, viewer(), name)


def _page(name: str, form: AddForm) -> str:
    now = deps().clock()
    month = month_start(now, deps().settings.timezone)
    with deps().read() as session:
        rights = groupview.rights_in(session, viewer(), name)
        rows = reads.members(session, name)
        until = now + timedelta(seconds=1)  # what is posted at this moment belongs to it
        spent = _spent(session, name, since=month, until=until)
    return render_template(
        "pages/members.html",
        name=name,
        rights=rights,
        rows=rows,
        spent=spent,
        troubles={one.user: sentence(one.wish.code) for one in rows if one.wish and one.wish.code},
        own=viewer().unix_user,
        form=form,
    )


def _question(name: str, user: str, form: LeaveForm) -> str:
    with deps().read() as session:
        groupview.steered(session, viewer(), name)
        line = reads.member(session, name, user)
        if line is None:
            raise NotFound(f"{user} in {name}")
        waiting = acts.waiting_jobs(session, name, user)
    return render_template(
        "pages/member_leaves.html", name=name, row=line, waiting=waiting, form=form
    )


def _spent(session: Any, name: str, *, since: datetime, until: datetime) -> dict[str, int]:
    found = spending.by_member(session, name, since=since, until=until)
    return {row.user: row.spent for row in found}
