"""The rules of contribution: kinds, the formula with what it would give, QoS, earlier versions."""

from collections.abc import Callable
from dataclasses import replace

from flask import render_template, request
from flask.typing import ResponseReturnValue

from gateway.core.access import Permission
from gateway.core.contribution import Rules
from gateway.errors import Refused
from gateway.services import contribution
from gateway.services import contribution_book as book
from gateway.store import contribution as rows
from gateway.store.contribution import Version
from gateway.web.access import requires, viewer
from gateway.web.contribution_forms import FormulaForm, KindForm, RemoveForm, typed
from gateway.web.contribution_texts import FEEDS
from gateway.web.deps import deps
from gateway.web.texts import gettext
from gateway.web.views import contributionview
from gateway.web.views.acted import acted
from gateway.web.views.admin_contribution import bp
from gateway.web.views.contributionview import Shown


@bp.get("/rules")
@requires(Permission.SEE_POLICY)
def rules() -> ResponseReturnValue:
    return _page()


@bp.post("/rules/try")
@requires(Permission.SEE_POLICY)
def try_formula() -> ResponseReturnValue:
    """What the typed formula would give. Nothing is kept."""
    form = FormulaForm()
    if not form.validate():
        return _page(formula=form), 422
    try:
        wanted = _with_formula(_held_rules(), form)
        book.check(wanted)
    except Refused as refusal:
        form.refused(refusal)
        return _page(formula=form), 422
    have = deps()
    with have.read() as session:
        found = contribution.preview(session, wanted, now=have.clock(), zone=have.settings.timezone)
    return _page(formula=form, tried=contributionview.shown(found))


@bp.post("/rules/formula")
@requires(Permission.MANAGE_POLICY)
def set_formula() -> ResponseReturnValue:
    form = FormulaForm()

    def act() -> str:
        number = _set(form.expected, lambda rules: _with_formula(rules, form))
        return gettext(
            "The rules are set: version %(number)s. They count from the next run on.", number=number
        )

    return acted(form, act, again=lambda one: _page(formula=one), to="contribution.rules")


@bp.post("/rules/kinds")
@requires(Permission.MANAGE_POLICY)
def set_kind() -> ResponseReturnValue:
    form = KindForm()

    def act() -> str:
        made = form.made()
        _set(form.expected, lambda rules: book.with_kind(rules, made))
        return gettext("The kind %(name)s counts as it is set now.", name=made.name)

    return acted(form, act, again=lambda one: _page(kind=one), to="contribution.rules")


@bp.post("/rules/kinds/<key>/remove")
@requires(Permission.MANAGE_POLICY)
def remove_kind(key: str) -> ResponseReturnValue:
    form = RemoveForm()

    def act() -> str:
        _set(form.expected, lambda rules: book.without_kind(rules, key))
        return gettext("The kind is gone.")

    return acted(
        form,
        act,
        again=lambda one: _page(trouble=one.trouble or _first(one)),
        to="contribution.rules",
    )


def _first(form: RemoveForm) -> str:
    return next((str(found[0]) for found in form.errors.values() if found), "")


def _set(expected: int | None, changed: Callable[[Rules], Rules]) -> int:
    have = deps()
    return book.set_rules(
        changed(_held_rules()),
        expected=expected,
        begin=have.begin,
        now=have.clock(),
        person_id=viewer().person_id,
    )


def _held() -> Version | None:
    with deps().read() as session:
        return rows.version(session)


def _held_rules() -> Rules:
    held = _held()
    return held.rules if held else Rules()


def _with_formula(rules: Rules, form: FormulaForm) -> Rules:
    return replace(rules, formula=form.formula(), tiers=form.tier_rows(), left_alone=form.groups())


def _page(
    *,
    formula: FormulaForm | None = None,
    kind: KindForm | None = None,
    tried: Shown | None = None,
    trouble: str = "",
) -> str:
    with deps().read() as session:
        held = rows.version(session)
        versions = rows.versions(session)
    rules = held.rules if held else Rules()
    number = held.number if held else None
    return render_template(
        "pages/contribution_rules.html",
        held=held,
        kinds=[(one, contributionview.fades(one), str(FEEDS[one.feed])) for one in rules.kinds],
        versions=[
            (one, contributionview.formula_words(one.rules.formula) if one.rules.formula else "")
            for one in versions
        ],
        formula=formula or FormulaForm.of(rules, number),
        kind=kind or _kind_form(rules, number),
        tried=tried,
        trouble=trouble,
        remove=RemoveForm(formdata=None, data={"version": str(number or "")}),
        manages=viewer().may(Permission.MANAGE_POLICY),
    )


def _kind_form(rules: Rules, number: int | None) -> KindForm:
    """With `?kind=` an existing one, to be changed."""
    data = {"version": str(number or "")}
    for one in rules.kinds:
        if one.key == request.args.get("kind"):
            data |= {"key": one.key, "name": one.name, "unit": one.unit}
            data |= {"weight": typed(one.weight), "counted": one.counted.value}
            data |= {"half_life": str(one.half_life_days or ""), "feed": one.feed.value}
    return KindForm(formdata=None, data=data)
