"""A group's credit: what is left, who uses it, when it is gone, and its statement."""

from flask import Blueprint, Response, redirect, render_template, request, url_for
from flask.typing import ResponseReturnValue

from gateway.core.access import Permission
from gateway.store.queries import statement as reads
from gateway.web.access import requires, viewer
from gateway.web.deps import deps
from gateway.web.views import groupview, statementview

bp = Blueprint("group", __name__)


@bp.get("/group")
@requires(Permission.USE_PORTAL)
def index() -> ResponseReturnValue:
    """One's own groups; straight to it when there is one."""
    who = viewer()
    if len(who.groups) == 1:
        return redirect(url_for("group.show", name=who.groups[0]))
    if not who.groups and who.may(Permission.SEE_ALL_CREDIT):
        return redirect(url_for("credit.groups"))
    return render_template("pages/groups.html", groups=groupview.own(who))


@bp.get("/group/<name>")
@requires(Permission.USE_PORTAL)
def show(name: str) -> ResponseReturnValue:
    return render_template("pages/group.html", page=groupview.build(viewer(), name))


@bp.get("/group/<name>/statement")
@requires(Permission.USE_PORTAL)
def statement(name: str) -> ResponseReturnValue:
    wanted = statementview.asked(name, request.args)
    with deps().read() as session:
        rights = groupview.rights_in(session, viewer(), name)
        view = statementview.build(session, wanted)
    sees = viewer().may(Permission.SEE_ALL_CREDIT)
    return render_template(
        "pages/statement.html", page=view, name=name, rights=rights, sees_charges=sees
    )


@bp.get("/group/<name>/statement/print")
@requires(Permission.USE_PORTAL)
def statement_print(name: str) -> ResponseReturnValue:
    """The whole month on one page, for paper."""
    wanted = statementview.asked(name, request.args)
    with deps().read() as session:
        groupview.rights_in(session, viewer(), name)
        view = statementview.build(session, wanted, limit=statementview.MOST_PRINTED)
    return render_template("pages/statement_print.html", page=view, name=name, sees_charges=False)


@bp.get("/group/<name>/statement.csv")
@requires(Permission.USE_PORTAL)
def statement_csv(name: str) -> ResponseReturnValue:
    wanted = statementview.asked(name, request.args)
    since, until, holds = wanted.since, wanted.until, wanted.holds
    with deps().read() as session:
        groupview.rights_in(session, viewer(), name)
        totals = reads.totals(session, name, since=since, until=until, holds=holds)
        rows = reads.entries(
            session,
            name,
            since=since,
            until=until,
            holds=holds,
            limit=None,
            kinds=wanted.kinds,
        )
    lines = "".join(statementview.csv_lines(rows, totals, wanted))
    name_of_file = f'attachment; filename="statement-{wanted.month}.csv"'
    return Response(lines, mimetype="text/csv", headers={"Content-Disposition": name_of_file})


@bp.get("/me/credit")
@requires(Permission.USE_PORTAL)
def me() -> ResponseReturnValue:
    return render_template("pages/my_credit.html", groups=groupview.own(viewer()))
