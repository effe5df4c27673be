"""The job list, one job, its output, and what one may do to it."""

from datetime import datetime
from typing import TYPE_CHECKING

from flask import (
    Blueprint,
    Response,
    flash,
    jsonify,
    redirect,
    render_template,
    request,
    url_for,
)
from flask.typing import ResponseReturnValue

from gateway.core.access import Permission
from gateway.core.durations import BadTimeLimit
from gateway.errors import BrokerRefused, BrokerUnreachable, NotFound, Refused
from gateway.services import costs
from gateway.store.queries import job as reads
from gateway.store.queries import people
from gateway.store.queries.health import poll
from gateway.store.queries.jobs import JobPage, class_counts, job_page
from gateway.web.access import requires, viewer
from gateway.web.deps import deps
from gateway.web.formbase import Posted
from gateway.web.messages import error_sentence
from gateway.web.views import (
    acting,
    appview,
    arrayview,
    jobcauses,
    jobdatasets,
    joblist,
    jobstart,
    jobview,
    jobvolume,
    outputs,
    recipeview,
    resultview,
    spotsaved,
    standingview,
    statewords,
    trainview,
    whyview,
)
from gateway.web.views.freshness import fresh
from gateway.web.views.listview import ListView, waiting_lines

if TYPE_CHECKING:
    from sqlalchemy.orm import Session

bp = Blueprint("jobs", __name__, url_prefix="/jobs")


@bp.get("")
@requires(Permission.USE_PORTAL)
def index() -> ResponseReturnValue:
    """The page, or its rows alone for a live update: both read only the database."""
    live = bool(request.headers.get("HX-Request"))
    if live:
        return render_template("fragments/job_rows.html", list=_list())
    recipes = recipeview.matching(request.args.get("name", ""))
    return render_template("pages/jobs.html", list=_list(), recipes=recipes)


@bp.get("/<int:job_id>")
@requires(Permission.USE_PORTAL)
def show(job_id: int) -> ResponseReturnValue:
    page = jobview.build(job_id)
    first = outputs.first(job_id, page, look=request.args.get("output", ""))
    return render_template(
        "pages/job.html",
        page=page,
        job=page.job,
        detail=page.detail,
        chunk=first,
        opens=appview.opens(page.job, viewer()),
        train=trainview.build(page),
        results=resultview.build(page, request.args),
        tasks=arrayview.build(page),
        saved=spotsaved.build(page.job),
        answer=whyview.build(page),
        begins=jobstart.build(page),
        causes=jobcauses.build(page),
        used=jobdatasets.build(page),
        volume=jobvolume.build(page),
        place=standingview.build(page, request.args.get("compare", "")),
    )


@bp.get("/<int:job_id>/state")
@requires(Permission.USE_PORTAL)
def state(job_id: int) -> ResponseReturnValue:
    """What a start or an end changes, in one answer."""
    page = jobview.build(job_id)
    return render_template(
        "fragments/job_live.html",
        page=page,
        job=page.job,
        detail=page.detail,
        tasks=arrayview.build(page),
        saved=spotsaved.build(page.job),
        answer=whyview.build(page),
        begins=jobstart.build(page),
        causes=jobcauses.build(page),
    )


@bp.get("/<int:job_id>/training")
@requires(Permission.USE_PORTAL)
def training(job_id: int) -> ResponseReturnValue:
    """The training's part of the page, for its live update; next to nothing until it tells."""
    page = jobview.build(job_id)
    return render_template(
        "fragments/job_training.html", page=page, job=page.job, train=trainview.build(page)
    )


@bp.get("/<int:job_id>/training.csv")
@requires(Permission.USE_PORTAL)
def training_csv(job_id: int) -> ResponseReturnValue:
    """All that is kept of its metrics."""
    page = jobview.build(job_id)
    name = {"Content-Disposition": f'attachment; filename="job-{page.number}-metrics.csv"'}
    return Response(trainview.csv(page), mimetype="text/csv", headers=name)


@bp.get("/<int:job_id>/output")
@requires(Permission.USE_PORTAL)
def output(job_id: int) -> ResponseReturnValue:
    """The next piece of the output, for the page that follows it."""
    offset = request.args.get("offset", default=0, type=int)
    return jsonify(outputs.piece(job_id, offset))


@bp.get("/<int:job_id>/output.txt")
@requires(Permission.USE_PORTAL)
def download(job_id: int) -> ResponseReturnValue:
    page = jobview.build(job_id)
    pieces = outputs.whole(job_id)
    return Response(pieces, mimetype="text/plain", headers=_file(f"{page.number}.out"))


@bp.get("/<int:job_id>/script")
@requires(Permission.USE_PORTAL)
def script(job_id: int) -> ResponseReturnValue:
    """The script as submitted: its owner's own."""
    page = jobview.build(job_id)
    if page.script is None:
        raise NotFound(f"script of job {job_id}")
    return Response(
        page.script, mimetype="text/x-shellscript", headers=_file(f"{page.number}.sbatch")
    )


@bp.get("/<int:job_id>/<action>")
@requires(Permission.USE_PORTAL)
def confirm(job_id: int, action: str) -> ResponseReturnValue:
    """A proposed time limit stands in its field (?time_limit=)."""
    form = acting.form(action)
    if action == acting.TIME_LIMIT and request.args.get("time_limit"):
        form.time_limit.data = request.args["time_limit"]
    return _question(job_id, action, form=form)


@bp.post("/<int:job_id>/<action>")
@requires(Permission.USE_PORTAL)
def act(job_id: int, action: str) -> ResponseReturnValue:
    form = acting.form(action)
    if not form.validate():
        return _question(job_id, action, form=form), 422
    try:
        flash(acting.do(job_id, action, form), "good")
    except (BadTimeLimit, BrokerRefused, BrokerUnreachable, Refused) as error:
        return _question(job_id, action, form=form, trouble=error_sentence(error)), 422
    return redirect(url_for("jobs.show", job_id=job_id), code=303)


def _question(job_id: int, action: str, *, form: Posted | None = None, trouble: str = "") -> str:
    page = jobview.build(job_id)
    if not page.rights.act:
        raise NotFound(f"acts on job {job_id}")
    return render_template(
        "pages/confirm.html",
        job=page.job,
        number=page.number,
        question=acting.question(action),
        form=form or acting.form(action),
        trouble=trouble,
    )


def _pages(
    session: "Session", asked: joblist.Asked, now: datetime
) -> tuple[JobPage | None, JobPage]:
    """What waits or runs, on the first page of a plain list; and the list itself."""

    def read(part: joblist.Asked) -> JobPage:
        return job_page(
            session,
            part.scope,
            part.filters,
            now=now,
            sort=part.sort,
            descending=part.descending,
            cursor=part.cursor,
            limit=joblist.PAGE,
        )

    if not joblist.splits(asked):
        return None, read(asked)
    first = None if asked.cursor else read(joblist.active_part(asked))
    return first, read(joblist.ended_part(asked))


def _list() -> ListView:
    who, now = viewer(), deps().clock()
    asked = joblist.asked(request.args, who)
    with deps().read() as session:
        now_active, page = _pages(session, asked, now)
        shown = [*(now_active.rows if now_active else ()), *page.rows]
        cost = costs.of_jobs(session, shown, now=now)
        counts = class_counts(session, asked.scope, now=now)
        waiting = reads.open_submissions(session, who.person_id, now=now)
        own = None if who.may(Permission.SEE_ALL_JOBS) else who.groups
        choices = people.choices(session, own_groups=own)
        state = poll(session, "queue")
    return ListView(
        chips=joblist.chips(asked.typed, who, counts),
        set=joblist.filters_set(asked.typed),
        carried=joblist.carried(asked.typed),
        typed=asked.typed,
        groups=choices.groups,
        partitions=choices.partitions,
        states=statewords.choices(),
        here=joblist.here(),
        waiting=waiting_lines(waiting) if joblist.shows_waiting(asked) else [],
        active=joblist.rows(now_active, who, now, cost) if now_active else [],
        active_url=joblist.page_url({**asked.typed, "state": "active"}, now_active.next)
        if now_active
        else None,
        rows=joblist.rows(page, who, now, cost),
        heads=joblist.heads(asked.typed, priced=cost is not None),
        priced=cost is not None,
        filtered=joblist.is_filtered(asked.typed),
        range=joblist.range_words(page),
        previous=joblist.page_url(asked.typed, page.previous),
        next=joblist.page_url(asked.typed, page.next),
        fresh=fresh(state, now),
    )


def _file(name: str) -> dict[str, str]:
    return {"Content-Disposition": f'attachment; filename="job-{name}"'}
