"""Datasets: the catalogue, one entry with its versions, and what people ask for."""

from flask import Blueprint, render_template, request
from flask.typing import ResponseReturnValue

from gateway.core.access import Permission
from gateway.services import dataset_catalogue as catalogue
from gateway.services import dataset_entries as entries
from gateway.services import dataset_requests as asked
from gateway.services.dataset_verify import KIND
from gateway.store import site_jobs
from gateway.web.access import requires, viewer
from gateway.web.dataset_forms import (
    ActForm,
    AnswerForm,
    AskForm,
    EntryForm,
    ReaderForm,
    VersionForm,
)
from gateway.web.dataset_texts import REQUEST_WORDS, VISIBILITY_WORDS
from gateway.web.deps import deps
from gateway.web.texts import gettext
from gateway.web.views import datasetview
from gateway.web.views.acted import acted

bp = Blueprint("datasets", __name__, url_prefix="/library/datasets")


@bp.get("")
@requires(Permission.USE_PORTAL)
def index() -> ResponseReturnValue:
    """The list, searched by words."""
    words = request.args.get("q", "")[:200]
    with deps().read() as session:
        cards = catalogue.cards(session, viewer(), words=words)
        to_answer, own = asked.mine(session, viewer())
    return render_template(
        "pages/datasets.html",
        cards=cards,
        words=words,
        size=datasetview.size,
        speed=datasetview.speed,
        waiting=len(to_answer),
        own=len(own),
    )


@bp.get("/new")
@requires(Permission.USE_PORTAL)
def new() -> ResponseReturnValue:
    return _new_page(_entry_form())


@bp.post("/new")
@requires(Permission.USE_PORTAL)
def create() -> ResponseReturnValue:
    form = _entry_form()
    name = (form.name.data or "").strip()

    def act() -> str:
        entries.create(
            name,
            form.entry(),
            owner_id=viewer().person_id,
            viewer=viewer(),
            begin=deps().begin,
            now=deps().clock(),
        )
        return gettext(
            "%(name)s is in the catalogue. Add a version, so that it can be used.", name=name
        )

    return acted(form, act, again=_new_page, to="datasets.show", name=name)


@bp.get("/requests")
@requires(Permission.USE_PORTAL)
def requests() -> ResponseReturnValue:
    return _requests_page(_ask_form())


@bp.post("/requests")
@requires(Permission.USE_PORTAL)
def ask_new() -> ResponseReturnValue:
    form = _ask_form()

    def act() -> str:
        asked.ask_new(form.text.data or "", viewer=viewer(), begin=deps().begin, now=deps().clock())
        return gettext("The administrators see your request here.")

    return acted(form, act, again=_requests_page, to="datasets.requests")


@bp.post("/requests/<int:request_id>")
@requires(Permission.USE_PORTAL)
def answer(request_id: int) -> ResponseReturnValue:
    form = AnswerForm()

    def act() -> str:
        asked.answer(
            request_id,
            granted=form.granted.data == "yes",
            text=form.answer.data or "",
            viewer=viewer(),
            begin=deps().begin,
            now=deps().clock(),
        )
        return gettext("It is answered.")

    return acted(form, act, again=lambda _: _requests_page(_ask_form()), to="datasets.requests")


@bp.get("/<name>")
@requires(Permission.USE_PORTAL)
def show(name: str) -> ResponseReturnValue:
    return page(name)


@bp.post("/<name>")
@requires(Permission.USE_PORTAL)
def change(name: str) -> ResponseReturnValue:
    form = _entry_form()
    form.group.judged = True  # it stays whose it is

    def act() -> str:
        entries.change(name, form.entry(), viewer=viewer(), begin=deps().begin)
        return gettext("It is as you set it.")

    return acted(form, act, again=lambda one: page(name, one), to="datasets.show", name=name)


@bp.post("/<name>/access")
@requires(Permission.USE_PORTAL)
def ask_access(name: str) -> ResponseReturnValue:
    form = _ask_form()

    def act() -> str:
        asked.ask_access(
            name,
            group=form.group.data or None,
            text=form.text.data or "",
            viewer=viewer(),
            begin=deps().begin,
            now=deps().clock(),
        )
        return gettext("Who steers the dataset sees your request.")

    return acted(form, act, again=lambda one: page(name, one), to="datasets.show", name=name)


@bp.post("/<name>/readers")
@requires(Permission.USE_PORTAL)
def share(name: str) -> ResponseReturnValue:
    form = ReaderForm()

    def act() -> str:
        entries.set_reader(
            name,
            f"{form.kind.data}:{(form.who.data or '').strip()}",
            allowed=not form.no_more.data,
            viewer=viewer(),
            begin=deps().begin,
        )
        return gettext("It is as you set it.")

    return acted(form, act, again=lambda one: page(name, one), to="datasets.show", name=name)


def page(name: str, shown: object = None) -> str:
    """One entry; `shown` is the form that was refused, with what was typed."""
    with deps().read() as session:
        found = catalogue.page(session, name, viewer())
        jobs = site_jobs.newest(session, KIND)
    entry = shown if isinstance(shown, EntryForm) else _entry_form(found.card.row)
    return render_template(
        "pages/dataset.html",
        page=found,
        row=found.card.row,
        versions=datasetview.versions(found, jobs),
        reports=datasetview.reports(found),
        size=datasetview.size,
        speed=datasetview.speed,
        visibility=str(VISIBILITY_WORDS[found.card.row.visibility]),
        entry=entry,
        version=shown if isinstance(shown, VersionForm) else VersionForm(formdata=None),
        reader=shown if isinstance(shown, ReaderForm) else ReaderForm(formdata=None),
        ask=shown if isinstance(shown, AskForm) else _ask_form(fresh=True),
        act=shown if isinstance(shown, ActForm) else ActForm(formdata=None),
        service=deps().settings.service_login,
    )


def _new_page(form: EntryForm) -> str:
    return render_template("pages/dataset_new.html", form=form)


def _requests_page(form: AskForm) -> str:
    with deps().read() as session:
        to_answer, own = asked.mine(session, viewer())
    return render_template(
        "pages/dataset_requests.html",
        to_answer=to_answer,
        own=own,
        form=form,
        answer=AnswerForm(formdata=None),
        states={key: str(word) for key, word in REQUEST_WORDS.items()},
    )


def _entry_form(row: object = None) -> EntryForm:
    form = EntryForm() if row is None else EntryForm(formdata=None, obj=row)
    form.offer(viewer())
    return form


def _ask_form(*, fresh: bool = False) -> AskForm:
    form = AskForm(formdata=None) if fresh else AskForm()
    form.offer(viewer())
    return form
