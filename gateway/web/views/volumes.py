"""A group's volumes and one of them: who uses how much, and asking for more."""

from collections.abc import Callable
from datetime import datetime
from typing import Any

from flask import Blueprint, Response, flash, redirect, render_template, request, url_for
from flask.typing import ResponseReturnValue

from gateway.core.access import Permission
from gateway.core.volumes import Ask
from gateway.errors import NotFound, Refused
from gateway.services import volume_charges, volume_rights
from gateway.services import volume_entries as entries
from gateway.services import volume_pages as pages
from gateway.services import volume_requests as acts
from gateway.store import volume_work as work
from gateway.store.volume_work import RequestRow
from gateway.web.access import requires, viewer
from gateway.web.csvtext import csv_row
from gateway.web.deps import deps
from gateway.web.forms import Confirmed
from gateway.web.messages import error_sentence, sentence
from gateway.web.texts import gettext
from gateway.web.views import groupview, volumeview
from gateway.web.views.acted import acted
from gateway.web.volume_forms import AnswerForm, GrowForm, LimitForm
from gateway.web.volume_texts import STATES

bp = Blueprint("volumes", __name__)


@bp.get("/group/<name>/volumes")
@requires(Permission.USE_PORTAL)
def index(name: str) -> ResponseReturnValue:
    now, zone = _now()
    with deps().read() as session:
        rights = groupview.rights_in(session, viewer(), name)
        page = pages.group(session, name, viewer(), now=now, zone=zone)
    return render_template(
        "pages/volumes.html",
        name=name,
        rights=rights,
        page=page,
        view=volumeview,
        states=STATES,
        sentence=sentence,
        answer=AnswerForm(formdata=None),
        manages=volume_rights.manages(viewer()),
    )


@bp.get("/library/volumes")
@requires(Permission.USE_PORTAL)
def library() -> ResponseReturnValue:
    """Of all groups that one may see."""
    now, zone = _now()
    with deps().read() as session:
        found = pages.listed(session, viewer(), now=now, zone=zone)
        pending = pages.waiting(session, viewer(), now=now)
    return render_template(
        "pages/library_volumes.html",
        volumes=found,
        pending=pending,
        view=volumeview,
        states=STATES,
        sentence=sentence,
        answer=AnswerForm(formdata=None),
        manages=volume_rights.manages(viewer()),
    )


@bp.get("/volumes/<int:volume_id>")
@requires(Permission.USE_PORTAL)
def show(volume_id: int) -> ResponseReturnValue:
    return _page(volume_id)


@bp.get("/volumes/<int:volume_id>/days.csv")
@requires(Permission.USE_PORTAL)
def days_csv(volume_id: int) -> ResponseReturnValue:
    now, zone = _now()
    with deps().read() as session:
        page = pages.volume(session, volume_id, viewer(), now=now, zone=zone)
    lines = [csv_row(("day", "used_bytes", "limit_bytes"))]
    lines += [
        csv_row("" if value is None else value for value in pages.day_fields(one).values())
        for one in page.days
    ]
    headers = {"Content-Disposition": f'attachment; filename="volume-{volume_id}.csv"'}
    return Response("".join(lines), mimetype="text/csv", headers=headers)


@bp.post("/volumes/<int:volume_id>/request")
@requires(Permission.USE_PORTAL)
def ask(volume_id: int) -> ResponseReturnValue:
    """More, once somebody agrees; `preview` only says what it would cost."""
    form = GrowForm()
    if "preview" in request.form:
        form.validate()
        return _page(volume_id, grow=form, preview=_preview(volume_id, form.size.bytes))

    def act() -> str:
        acts.ask(
            volume_id,
            form.size.bytes or 0,
            form.text.data or "",
            viewer=viewer(),
            begin=deps().begin,
            now=deps().clock(),
        )
        return gettext("It is asked for. The group's leaders and administrators see it.")

    return _done(volume_id, form, act, lambda shown: _page(volume_id, grow=shown))


@bp.post("/volumes/<int:volume_id>/limit")
@requires(Permission.MANAGE_VOLUMES)
def set_limit(volume_id: int) -> ResponseReturnValue:
    """An empty size takes the limit away."""
    form = LimitForm()

    def act() -> str:
        done = acts.set_limit(
            volume_id,
            form.size.bytes,
            **_given(),
            below_use=bool(form.below_use.data),
            text=form.text.data or "",
        )
        return _came_of(done)

    return _done(volume_id, form, act, lambda shown: _page(volume_id, limit=shown))


@bp.post("/volumes/<int:volume_id>/<act>")
@requires(Permission.MANAGE_VOLUMES)
def manage(volume_id: int, act: str) -> ResponseReturnValue:
    """keep: the limit that somebody else set; retire."""
    have = deps()
    given: dict[str, Any] = {"viewer": viewer(), "begin": have.begin, "now": have.clock()}
    todo: dict[str, tuple[Callable[..., None], str]] = {
        "keep": (acts.take_as_it_is, gettext("The limit stays as it is.")),
        "retire": (entries.retire, gettext("It is retired. Its folder stays as it is.")),
    }
    if act not in todo:
        raise NotFound(f"act {act}")
    do, text = todo[act]
    if Confirmed().validate():
        _try(lambda: do(volume_id, **given), text)
    return redirect(url_for("volumes.show", volume_id=volume_id), code=303)


@bp.post("/volume-requests/<int:request_id>/<act>")
@requires(Permission.USE_PORTAL)
def answer(request_id: int, act: str) -> ResponseReturnValue:
    """agree, refuse, withdraw."""
    with deps().read() as session:
        one = work.request(session, request_id)
        if one is None or not volume_rights.rights(viewer(), one.group).see:
            raise NotFound(f"request {request_id}")
    if act not in {"agree", "refuse", "withdraw"}:
        raise NotFound(f"act {act}")
    form = AnswerForm()
    if form.validate():
        try:
            flash(_answered(request_id, act, form.answer.data or ""), "good")
        except Refused as refusal:
            flash(error_sentence(refusal), "bad")
    return redirect(url_for("volumes.show", volume_id=one.volume_id), code=303)


def _answered(request_id: int, act: str, words: str) -> str:
    have, who = deps(), viewer()
    if act == "agree":
        return _came_of(acts.agree(request_id, words, **_given()))
    if act == "refuse":
        acts.refuse(request_id, words, viewer=who, begin=have.begin, now=have.clock())
        return gettext("It is refused.")
    acts.withdraw(request_id, viewer=who, begin=have.begin, now=have.clock())
    return gettext("It is withdrawn.")


def _came_of(done: RequestRow) -> str:
    """A failure is told as a refusal; what nobody knows yet as that."""
    if done.state is Ask.FAILED:
        raise Refused(done.code or "refused")
    if done.state is Ask.AGREED:
        return gettext("It is agreed. The file system does not answer now: it is tried again.")
    return gettext("Done, and read back: %(what)s", what=volumeview.happened(done))


def _try(act: Callable[[], None], text: str) -> None:
    try:
        act()
        flash(text, "good")
    except Refused as refusal:
        flash(error_sentence(refusal), "bad")


def _done(
    volume_id: int, form: Any, act: Callable[[], str], again: Callable[[Any], str]
) -> ResponseReturnValue:
    return acted(form, act, again=again, to="volumes.show", volume_id=volume_id)


def _given() -> dict[str, Any]:
    have = deps()
    return {"viewer": viewer(), "begin": have.begin, "broker": have.broker, "now": have.clock()}


def _now() -> tuple[datetime, Any]:
    return deps().clock(), deps().settings.timezone


def _preview(volume_id: int, wanted: int | None) -> str:
    now, _ = _now()
    with deps().read() as session:
        row = volume_rights.found(session, volume_id, viewer())
        have = row.limit_bytes
        more = volume_charges.more_a_month(session, row.area, have, wanted, now=now)
    return volumeview.preview_words(have, wanted, more)


def _page(
    volume_id: int,
    *,
    grow: GrowForm | None = None,
    limit: LimitForm | None = None,
    preview: str = "",
) -> str:
    now, zone = _now()
    with deps().read() as session:
        page = pages.volume(session, volume_id, viewer(), now=now, zone=zone)
        have = volume_rights.rights(viewer(), page.picture.row.group)
    return render_template(
        "pages/volume.html",
        page=page,
        row=page.picture.row,
        have=have,
        chart=volumeview.use_chart(page.days, page.picture.full),
        view=volumeview,
        states=STATES,
        sentence=sentence,
        preview=preview,
        grow=grow or GrowForm(formdata=None),
        limit=limit or LimitForm(formdata=None),
        answer=AnswerForm(formdata=None),
    )
