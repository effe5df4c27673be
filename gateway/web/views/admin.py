"""What needs somebody's attention, and the list of people: for operators and administrators."""

from flask import Blueprint, flash, redirect, render_template, request, url_for
from flask.typing import ResponseReturnValue

from gateway.core.access import Permission, Role
from gateway.errors import NotFound, Refused
from gateway.services import people as acts
from gateway.store.queries import health as reads
from gateway.store.queries import people as lists
from gateway.web.access import requires, viewer
from gateway.web.deps import deps
from gateway.web.formbase import Posted
from gateway.web.forms import ROLES, Confirmed, PersonForm, RoleForm
from gateway.web.messages import error_sentence
from gateway.web.texts import gettext
from gateway.web.views import adminmoney, adminpolicy, attention

bp = Blueprint("admin", __name__, url_prefix="/admin")


@bp.get("")
@requires(Permission.SEE_HEALTH)
def index() -> ResponseReturnValue:
    with deps().read() as session:
        found = reads.health(session)
        money = adminmoney.needs(session)
        second = deps().settings.policy_second_approval
        policy = adminpolicy.needs(session, second_approval=second)
    problems = deps().catalogue.problems
    view = attention.view(found, problems=problems, now=deps().clock(), money=money, policy=policy)
    manages = viewer().may(Permission.MANAGE_PEOPLE)
    return render_template("pages/admin.html", page=view, manages_people=manages)


@bp.get("/people")
@requires(Permission.MANAGE_PEOPLE)
def people() -> ResponseReturnValue:
    return _people(PersonForm())


@bp.post("/people")
@requires(Permission.MANAGE_PEOPLE)
def add_person() -> ResponseReturnValue:
    form = PersonForm()
    if not form.validate():
        return _people(form), 422
    try:
        _add(form)
    except Refused as refusal:
        return _people(form, refusal=refusal), 422
    flash(gettext("%(login)s can sign in now.", login=form.login.data), "good")
    return redirect(url_for("admin.people"), code=303)


@bp.post("/people/<login>/<act>")
@requires(Permission.MANAGE_PEOPLE)
def change_person(login: str, act: str) -> ResponseReturnValue:
    """disable, enable, or role."""
    form: Posted = RoleForm() if act == "role" else Confirmed()
    if form.validate():
        try:
            flash(_change(login, act, form), "good")
        except Refused as refusal:
            flash(error_sentence(refusal), "bad")
    return redirect(url_for("admin.people"), code=303)


def _people(form: PersonForm, *, refusal: Refused | None = None) -> str:
    after = request.args.get("after", "")
    with deps().read() as session:
        rows = lists.people(session, after=after)
    more = rows[-1].login if len(rows) == lists.MOST_PEOPLE else None
    at = refusal.field if refusal else None
    if refusal and at in form:
        form[at].errors = [error_sentence(refusal)]
    return render_template(
        "pages/people.html",
        form=form,
        rows=rows,
        roles=[(role.value, word) for role, word in ROLES.items()],
        own=viewer().login,
        more=more,
        trouble=error_sentence(refusal) if refusal and at not in form else "",
    )


def _add(form: PersonForm) -> None:
    have = deps()
    acts.add(
        form.login.data or "",
        unix_user=form.unix_user.data or "",
        display_name=form.display_name.data or "",
        role=Role(form.role.data or ""),
        password=form.password.data or "",
        begin=have.begin,
        now=have.clock(),
    )


def _change(login: str, act: str, form: Posted) -> str:
    """Do it; the answer says what is so now."""
    have = deps()
    if isinstance(form, RoleForm):
        acts.set_role(login, Role(form.role.data or ""), begin=have.begin)
        return gettext("%(login)s has another role now.", login=login)
    if act == "disable":
        acts.disable(login, begin=have.begin, now=have.clock())
        return gettext("%(login)s is signed out and cannot sign in any more.", login=login)
    if act == "enable":
        acts.enable(login, begin=have.begin)
        return gettext("%(login)s can sign in now.", login=login)
    raise NotFound(f"act {act}")
