"""All volumes, areas and what lies in them: for administrators."""

from collections.abc import Callable
from typing import Any

from flask import Blueprint, flash, redirect, render_template, url_for
from flask.typing import ResponseReturnValue

from gateway.core.access import Permission
from gateway.core.volumes import format_size
from gateway.services import volume_entries as entries
from gateway.services import volume_pages as pages
from gateway.services import volume_read
from gateway.services.volume_entries import Wish
from gateway.web.access import requires, viewer
from gateway.web.deps import deps
from gateway.web.forms import Confirmed
from gateway.web.messages import sentence
from gateway.web.texts import gettext
from gateway.web.views import volumeview
from gateway.web.views.acted import acted
from gateway.web.volume_forms import (
    AnswerForm,
    MakeForm,
    StoragePriceForm,
    TakeInForm,
    VolumeCapForm,
)
from gateway.web.volume_texts import STATES

bp = Blueprint("admin_volumes", __name__, url_prefix="/admin/volumes")


@bp.get("")
@requires(Permission.MANAGE_VOLUMES)
def index() -> ResponseReturnValue:
    return _page()


@bp.post("/read")
@requires(Permission.MANAGE_VOLUMES)
def read() -> ResponseReturnValue:
    """Ask the broker now."""
    if Confirmed().validate():
        have = deps()
        report = volume_read.look(
            begin=have.begin, broker=have.broker, now=have.clock(), zone=have.settings.timezone
        )
        if report.code is None:
            flash(gettext("Read just now."), "good")
        else:
            flash(sentence(report.code), "bad")
    return redirect(url_for("admin_volumes.index"), code=303)


@bp.post("/make")
@requires(Permission.MANAGE_VOLUMES)
def make() -> ResponseReturnValue:
    form = _offered(MakeForm())

    def act() -> str:
        wish = Wish(
            form.area.data or "",
            (form.name.data or "").strip(),
            (form.group.data or "").strip(),
            form.size.bytes,
            (form.owner.data or "").strip(),
        )
        row = entries.create(wish, broker=deps().broker, **_given())
        return gettext("%(name)s is %(state)s.", name=row.name, state=str(STATES[row.state]))

    return _done(form, act, "make")


@bp.post("/take-in")
@requires(Permission.MANAGE_VOLUMES)
def take_in() -> ResponseReturnValue:
    form = TakeInForm()

    def act() -> str:
        area, name = form.area.data or "", form.name.data or ""
        entries.take_in(area, name, (form.group.data or "").strip(), **_given())
        return gettext("%(name)s is a volume now, with the limit that it has.", name=name)

    return _done(form, act, "take")


@bp.post("/cap")
@requires(Permission.MANAGE_VOLUMES)
def cap() -> ResponseReturnValue:
    """An empty size leaves it all to administrators."""
    form = VolumeCapForm()

    def act() -> str:
        group, most = (form.cap_group.data or "").strip(), form.cap_size.bytes or 0
        entries.set_cap(group, most, viewer=viewer(), begin=deps().begin)
        most_words = format_size(most)
        return gettext("Leaders of %(group)s agree up to %(most)s.", group=group, most=most_words)

    return _done(form, act, "cap")


@bp.post("/price")
@requires(Permission.MANAGE_VOLUMES)
def price() -> ResponseReturnValue:
    form = _offered(StoragePriceForm())

    def act() -> str:
        entries.set_price(form.price.data or "", area=form.price_area.data or "", **_given())
        return gettext("The price holds from now on.")

    return _done(form, act, "price")


def _done(form: Any, act: Callable[[], str], key: str) -> ResponseReturnValue:
    return acted(form, act, again=lambda shown: _page(**{key: shown}), to="admin_volumes.index")


def _given() -> dict[str, Any]:
    have = deps()
    return {"viewer": viewer(), "begin": have.begin, "now": have.clock()}


def _offered(form: Any) -> Any:
    with deps().read() as session:
        names = [one.name for one in pages.areas(session)]
    if isinstance(form, StoragePriceForm):
        form.offer(names, gettext("all without their own"))
    else:
        form.offer(names)
    return form


def _page(**forms: Any) -> str:
    now, zone = deps().clock(), deps().settings.timezone
    with deps().read() as session:
        page = pages.everything(session, viewer(), now=now, zone=zone)
    return render_template(
        "pages/volumes_admin.html",
        page=page,
        view=volumeview,
        states=STATES,
        sentence=sentence,
        make=forms.get("make") or _offered(MakeForm(formdata=None)),
        take=forms.get("take") or TakeInForm(formdata=None),
        cap=forms.get("cap") or VolumeCapForm(formdata=None),
        price=forms.get("price") or _offered(StoragePriceForm(formdata=None)),
        answer=AnswerForm(formdata=None),
    )
