"""The book of contribution: lines are entered, ended, corrected and taken back, never changed."""

from collections.abc import Callable

from flask import render_template, request
from flask.typing import ResponseReturnValue

from gateway.core.access import Permission
from gateway.core.contribution import Feed, Rules
from gateway.errors import NotFound
from gateway.services import contribution_book as book
from gateway.store import contribution as rows
from gateway.store.contribution import LineRow
from gateway.store.queries import people
from gateway.web.access import requires, viewer
from gateway.web.contribution_forms import CorrectForm, EndForm, LineForm, typed
from gateway.web.deps import deps
from gateway.web.money_forms import MoneyForm, key_of
from gateway.web.texts import gettext
from gateway.web.views import contributionview
from gateway.web.views.acted import acted
from gateway.web.views.admin_contribution import bp


@bp.get("/lines")
@requires(Permission.SEE_POLICY)
def lines() -> ResponseReturnValue:
    return _page()


@bp.post("/lines")
@requires(Permission.MANAGE_POLICY)
def add_line() -> ResponseReturnValue:
    form = LineForm()

    def act() -> str:
        have, who = deps(), viewer()
        group = (form.group.data or "").strip()
        book.add(
            group,
            form.kind.data or "",
            form.amount.credits or 0,
            day=form.day.day or have.clock().astimezone(have.settings.timezone).date(),
            note=form.note.data or "",
            key=key_of(form, who),
            begin=have.begin,
            now=have.clock(),
            person_id=who.person_id,
        )
        return gettext(
            "What %(group)s brought is entered. It counts from the next run on.", group=group
        )

    return acted(form, act, again=_page, to="contribution.lines")


@bp.get("/lines/<int:line_id>")
@requires(Permission.SEE_POLICY)
def line(line_id: int) -> ResponseReturnValue:
    return _line_page(line_id)


@bp.post("/lines/<int:line_id>/end")
@requires(Permission.MANAGE_POLICY)
def end_line(line_id: int) -> ResponseReturnValue:
    form = EndForm()

    def act() -> str:
        on = form.on.day
        assert on is not None, "the form demands it"
        book.end(
            line_id,
            on=on,
            begin=deps().begin,
            now=deps().clock(),
            person_id=viewer().person_id,
        )
        return gettext("It is there no more from %(day)s on.", day=on.isoformat())

    return _acted(line_id, form, act)


@bp.post("/lines/<int:line_id>/correct")
@requires(Permission.MANAGE_POLICY)
def correct_line(line_id: int) -> ResponseReturnValue:
    form = CorrectForm()

    def act() -> str:
        day = form.day.day
        assert day is not None, "the form demands it"
        book.correct(
            line_id,
            amount=form.amount.credits or 0,
            day=day,
            ended_on=form.ended_on.day,
            note=form.note.data or "",
            begin=deps().begin,
            now=deps().clock(),
            person_id=viewer().person_id,
        )
        return gettext("The line is corrected: a new one stands for it.")

    return _acted(line_id, form, act)


def _acted(line_id: int, form: MoneyForm, act: Callable[[], str]) -> ResponseReturnValue:
    _found(line_id)
    return acted(form, act, again=lambda one: _line_page(line_id, one), to="contribution.lines")


def _page(form: LineForm | None = None) -> str:
    have = deps()
    group = request.args.get("group", "").strip() or None
    day = have.clock().astimezone(have.settings.timezone).date()
    with have.read() as session:
        held = rows.version(session)
        rules = held.rules if held else Rules()
        written = rows.lines(session, group=group)
        groups = people.groups(session)
    form = form or LineForm(formdata=None, data={"group": group or "", "day": day.isoformat()})
    form.kind.choices = [
        (kind.key, f"{kind.name} ({kind.unit})") for kind in rules.kinds if kind.feed is Feed.HAND
    ]
    return render_template(
        "pages/contribution_lines.html",
        lines=contributionview.book_lines(written, rules, day),
        form=form,
        groups=groups,
        group=group or "",
        fed=[kind for kind in rules.kinds if kind.feed is not Feed.HAND],
        manages=viewer().may(Permission.MANAGE_POLICY),
        full=len(written) == rows.MOST_LINES,
    )


def _line_page(line_id: int, shown: MoneyForm | None = None) -> str:
    have, row = deps(), _found(line_id)
    day = have.clock().astimezone(have.settings.timezone).date()
    with have.read() as session:
        held = rows.version(session)
    entry = row.entry
    (one,) = contributionview.book_lines([row], held.rules if held else Rules(), day)
    values = {
        "amount": typed(entry.amount),
        "day": entry.day.isoformat(),
        "ended_on": entry.ended_on.isoformat() if entry.ended_on else "",
        "note": entry.note,
    }
    return render_template(
        "pages/contribution_line.html",
        one=one,
        end=shown
        if isinstance(shown, EndForm)
        else EndForm(formdata=None, data={"on": day.isoformat()}),
        correct=shown
        if isinstance(shown, CorrectForm)
        else CorrectForm(formdata=None, data=values),
        manages=viewer().may(Permission.MANAGE_POLICY),
    )


def _found(line_id: int) -> LineRow:
    with deps().read() as session:
        row = rows.line(session, line_id)
    if row is None:
        raise NotFound(f"no contribution line {line_id}")
    return row
