"""Policy is edited: each form ends in a proposal, whose page shows what it does."""

from flask import flash, redirect, render_template, request, url_for
from flask.typing import ResponseReturnValue

from gateway.core.access import Permission
from gateway.core.policy_change import Item, Of, Source, object_name
from gateway.core.qos import Policy, Qos
from gateway.errors import Refused
from gateway.services import policy_history, policy_retire
from gateway.services.policy_present import Present, present
from gateway.web.access import requires
from gateway.web.change_texts import object_words
from gateway.web.deps import deps
from gateway.web.messages import error_sentence, sentence
from gateway.web.money_forms import new_key
from gateway.web.policy_form import ADD, Offered, PolicyForm, print_of, typed_policy
from gateway.web.policy_typed import Sent
from gateway.web.texts import gettext
from gateway.web.views.policy import bp
from gateway.web.views.policypages import known, of_kind, offered, proposed

_NEW = Qos(name="")


@bp.get("/policy/new")
@requires(Permission.MANAGE_POLICY)
def new() -> ResponseReturnValue:
    """An empty form, or one that is filled like the QoS `copy`."""
    there, choices = _there()
    copied = there.qos.get(request.args.get("copy", ""), _NEW)
    form = PolicyForm(typed_policy(copied), before=_NEW, offered=choices, is_new=True)
    return _page(form, before=_NEW, fresh=True)


@bp.post("/policy/new")
@requires(Permission.MANAGE_POLICY)
def add() -> ResponseReturnValue:
    _, choices = _there()
    form = PolicyForm(Sent(request.form), before=_NEW, offered=choices, is_new=True)
    return _answered(form, before=_NEW)


@bp.get("/qos/<name>/edit", defaults={"kind": "qos"})
@bp.get("/policy/groups/<name>/edit", defaults={"kind": "group"})
@requires(Permission.MANAGE_POLICY)
def edit(kind: str, name: str) -> ResponseReturnValue:
    there, choices = _there()
    before = known(there, of_kind(kind), name)
    form = PolicyForm(typed_policy(before), before=before, offered=choices, is_new=False)
    return _page(form, before=before, fresh=True)


@bp.post("/qos/<name>/edit", defaults={"kind": "qos"})
@bp.post("/policy/groups/<name>/edit", defaults={"kind": "group"})
@requires(Permission.MANAGE_POLICY)
def change_it(kind: str, name: str) -> ResponseReturnValue:
    there, choices = _there()
    before = known(there, of_kind(kind), name)
    form = PolicyForm(Sent(request.form), before=before, offered=choices, is_new=False)
    return _answered(form, before=before)


@bp.get("/qos/<name>/retire")
@requires(Permission.MANAGE_POLICY)
def retire(name: str) -> ResponseReturnValue:
    return _retire_page(name)


@bp.post("/qos/<name>/retire")
@requires(Permission.MANAGE_POLICY)
def propose_retirement(name: str) -> ResponseReturnValue:
    replacement = request.form.get("replacement") or None
    try:
        items = policy_retire.retire(name, replacement=replacement, begin=deps().read)
        change_id = proposed(items, reason="", source=Source.FORM, key=request.form.get("key", ""))
    except Refused as refusal:
        return _retire_page(name, trouble=error_sentence(refusal), chosen=replacement or ""), 422
    return redirect(url_for("policy.change", change_id=change_id), code=303)


@bp.post("/qos/<name>/back")
@requires(Permission.MANAGE_POLICY)
def bring_back(name: str) -> ResponseReturnValue:
    try:
        items = policy_retire.bring_back(name, begin=deps().read)
        change_id = proposed(items, reason="", source=Source.FORM, key="")
    except Refused as refusal:
        return _refused(refusal, kind="qos", name=name)
    return redirect(url_for("policy.change", change_id=change_id), code=303)


@bp.post("/qos/<name>/undo", defaults={"kind": "qos"})
@bp.post("/policy/groups/<name>/undo", defaults={"kind": "group"})
@requires(Permission.MANAGE_POLICY)
def undo(kind: str, name: str) -> ResponseReturnValue:
    """Back to a version, as a proposal."""
    typed = request.form.get("version", "")
    number = int(typed) if typed.isascii() and typed.isdigit() and len(typed) < 9 else 0
    try:
        items = policy_history.undo(of_kind(kind), name, number, begin=deps().read)
        reason = gettext("Back to version %(number)s", number=number)
        change_id = proposed(
            items, reason=reason, source=Source.UNDO, key=request.form.get("key", "")
        )
    except Refused as refusal:
        return _refused(refusal, kind=kind, name=name)
    return redirect(url_for("policy.change", change_id=change_id), code=303)


def _there() -> tuple[Present, Offered]:
    with deps().read() as session:
        there = present(session)
        return there, offered(session, there)


def _answered(form: PolicyForm, *, before: Policy) -> ResponseReturnValue:
    """One more row, or what is wrong, or the proposal."""
    if request.form.get(ADD):
        return _page(form, before=before, fresh=True)
    if request.form.get("shown", "") != print_of(before):
        form.trouble = sentence("policy_form_out_of_date")
    if form.wanted is None or form.trouble:
        return _page(form, before=before), 422
    item = Item(None if form.is_new else before, form.wanted)
    try:
        change_id = proposed(
            [item], reason=form.reason, source=Source.FORM, key=request.form.get("key", "")
        )
    except Refused as refusal:
        form.refused(refusal)
        return _page(form, before=before), 422
    return redirect(url_for("policy.change", change_id=change_id), code=303)


def _page(form: PolicyForm, *, before: Policy, fresh: bool = False) -> str:
    of = Of.QOS if isinstance(before, Qos) else Of.GROUP
    kind, name = of.value, before.name
    if form.is_new:
        word, live, back = gettext("New QoS"), url_for("policy.add"), url_for("policy.index")
    else:
        word = gettext("Edit %(what)s", what=object_words(object_name(of, name)))
        live = url_for("policy.change_it", kind=kind, name=name)
        back = url_for("policy.show", kind=kind, name=name)
    return render_template(
        "pages/policy_form.html",
        form=form,
        title=word,
        live=live,
        back=back,
        failed=not fresh,
        key=request.form.get("key") or new_key(),
        shown=print_of(before),
    )


def _retire_page(name: str, *, trouble: str = "", chosen: str = "") -> str:
    with deps().read() as session:
        there = present(session)
        keepers = policy_retire.keepers(session, name)
    known(there, Of.QOS, name)
    groups = there.groups_with(name)
    left = [one for one in sorted(there.qos) if one != name and one not in there.retired]
    return render_template(
        "pages/policy_retire.html",
        name=name,
        groups=groups,
        keepers=keepers,
        defaults=[one.name for one in groups if one.default_qos == name],
        choices=[("", gettext("choose")), *((one, one) for one in left)],
        chosen=chosen,
        key=new_key(),
        trouble=trouble,
    )


def _refused(refusal: Refused, *, kind: str, name: str) -> ResponseReturnValue:
    flash(error_sentence(refusal), "bad")
    return redirect(url_for("policy.show", kind=kind, name=name), code=303)
