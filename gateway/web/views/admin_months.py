"""Closing a month: the ledger against Slurm's accounting."""

from flask import Blueprint, Response, render_template
from flask.typing import ResponseReturnValue

from gateway.core.access import Permission
from gateway.core.credits import format_credits
from gateway.services import close_month
from gateway.services.close_month import Closed
from gateway.store.queries import close as reads
from gateway.web.access import requires, viewer
from gateway.web.csvtext import csv_row
from gateway.web.deps import deps
from gateway.web.money_forms import MonthForm
from gateway.web.money_texts import DIFFERENCES
from gateway.web.texts import gettext
from gateway.web.views import adminmoney
from gateway.web.views.acted import acted

bp = Blueprint("months", __name__, url_prefix="/admin/months")
COLUMNS = (
    "kind",
    "cluster",
    "job",
    "run",
    "group",
    "user",
    "end_utc",
    "amount",
    "expected",
    "found",
)


@bp.get("")
@requires(Permission.SEE_ALL_CREDIT)
def index() -> ResponseReturnValue:
    return _page(None)


@bp.post("")
@requires(Permission.MANAGE_CREDIT)
def close() -> ResponseReturnValue:
    form = MonthForm()

    def act() -> str:
        have = deps()
        closed = close_month.close(
            (form.month.data or "").strip(),
            begin=have.begin,
            read=have.read,
            now=have.clock(),
            zone=have.settings.timezone,
            suspended=have.settings.bill_suspended,
            again=bool(form.again.data),
            person_id=viewer().person_id,
        )
        if closed.differences:
            return gettext("%(month)s is closed. Look at the differences.", month=closed.month)
        return gettext("%(month)s is closed: ledger and accounting agree.", month=closed.month)

    month = (form.month.data or "").strip()
    return acted(form, act, again=_page, to="months.show", month=month)


@bp.get("/<month>")
@requires(Permission.SEE_ALL_CREDIT)
def show(month: str) -> ResponseReturnValue:
    return render_template(
        "pages/admin_month.html",
        page=_closed(month),
        words={kind.value: str(word) for kind, word in DIFFERENCES.items()},
    )


@bp.get("/<month>.csv")
@requires(Permission.SEE_ALL_CREDIT)
def differences_csv(month: str) -> ResponseReturnValue:
    lines = [csv_row(COLUMNS)]
    for one in _closed(month).differences:
        amount = format_credits(one.amount).replace(",", "")
        end = one.end.strftime("%Y-%m-%dT%H:%M:%SZ")
        lines.append(
            csv_row(
                [
                    one.kind.value,
                    one.cluster,
                    one.slurm_id,
                    one.run_id,
                    one.group,
                    one.user,
                    end,
                    amount,
                    one.expected,
                    one.found,
                ]
            )
        )
    name = {"Content-Disposition": f'attachment; filename="differences-{month}.csv"'}
    return Response("".join(lines), mimetype="text/csv", headers=name)


def _closed(month: str) -> Closed:
    with deps().read() as session:
        return close_month.shown(session, month, zone=deps().settings.timezone)


def _page(form: MonthForm | None) -> str:
    with deps().read() as session:
        closed = reads.closed_months(session)
        open_months = adminmoney.open_months(session)
    return render_template(
        "pages/admin_months.html",
        closed=closed,
        form=form or MonthForm(formdata=None),
        open=open_months,
        manages=viewer().may(Permission.MANAGE_CREDIT),
    )
