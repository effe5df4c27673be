"""The JSON API under /api/v1: bearer tokens only, the same services as the pages.

docs/api.md describes it. Errors are {code, message, fields} in the caller's language.
"""

from uuid import uuid4

from flask import Blueprint, g, jsonify, request, url_for
from flask.typing import ResponseReturnValue

from gateway.core.access import Permission, job_rights
from gateway.core.durations import parse_time_limit
from gateway.core.policy import Offer, judge
from gateway.core.pricing import NoPrice
from gateway.errors import NotFound
from gateway.services import act, costs, output, preview, quote, signin
from gateway.services import offer as offers
from gateway.services.forecast_form import starts
from gateway.services.submit import InvalidAsk
from gateway.store.queries import job as reads
from gateway.store.queries.jobs import job_page
from gateway.web import apijson, costjson, offering, sending, startjson
from gateway.web.access import requires, viewer
from gateway.web.deps import deps
from gateway.web.messages import shown
from gateway.web.views import acting, joblist, jobstart, jobview, quotebox, trainview, whyview
from gateway.web.views.submissions import own

bp = Blueprint("api", __name__, url_prefix="/api/v1")


@bp.post("/sessions")
def create_session() -> ResponseReturnValue:
    """A token for a login and a password. Sign out by deleting it."""
    body = apijson.body(request)
    token = signin.sign_in(
        apijson.text(body, "login"),
        apijson.text(body, "password"),
        kind="api",
        address=request.remote_addr or "",
        agent=request.headers.get("User-Agent", ""),
        begin=deps().begin,
        now=deps().clock(),
    )
    return jsonify(token=token), 201


@bp.delete("/sessions")
@requires(Permission.USE_PORTAL)
def end_session() -> ResponseReturnValue:
    """Ends the token that this request carries."""
    have = deps()
    signin.end_session(viewer().session_id, viewer=viewer(), begin=have.begin, now=have.clock())
    g.pop("viewer", None)
    return "", 204


@bp.get("/offer")
@requires(Permission.SUBMIT_JOB)
def offer() -> ResponseReturnValue:
    found: Offer = offers.offer(viewer(), begin=deps().read)
    return jsonify(apijson.dump(found) | {"templates": apijson.templates(deps().catalogue.all())})


@bp.post("/submissions")
@requires(Permission.SUBMIT_JOB)
def submit() -> ResponseReturnValue:
    """Idempotency-Key makes a repeat harmless; without one each request is a new job."""
    ask = apijson.ask(apijson.body(request))
    apijson.require_known(ask, deps().catalogue.get(ask.template))
    try:
        sent = sending.send(ask, request.headers.get("Idempotency-Key") or str(uuid4()))
    except InvalidAsk as invalid:
        return jsonify(apijson.problems([shown(one) for one in invalid.problems])), 422
    place = url_for("api.submission", submission_id=sent.now.row.id)
    return jsonify(apijson.submission(sent.now)), 201, {"Location": place}


@bp.post("/quote")
@requires(Permission.SUBMIT_JOB)
def job_quote() -> ResponseReturnValue:
    """What a submission of the same body would cost; nothing is kept, nobody is asked."""
    ask, have = apijson.ask(apijson.body(request)), deps()
    apijson.require_known(ask, have.catalogue.get(ask.template))
    allowed = offers.offer(viewer(), begin=have.read)
    seen = preview.preview(
        ask,
        viewer=viewer(),
        begin=have.read,
        catalogue=have.catalogue,
        environments=offering.environments(),
        offer=allowed,
    )
    found = quotebox.ask(seen.reading, allowed, template=ask.template)
    match found:
        case None:
            return jsonify(charged=False)
        case quote.NotYet():
            return jsonify(apijson.problems([shown(one) for one in seen.problems])), 422
        case NoPrice():
            return jsonify(apijson.problems([shown(quote.no_price(found))])), 422
        case quote.Quote():
            return jsonify(costjson.quote(found))


@bp.post("/forecast")
@requires(Permission.SUBMIT_JOB)
def job_forecast() -> ResponseReturnValue:
    """When a submission of the same body would start; nothing is kept, Slurm is not asked."""
    ask, have = apijson.ask(apijson.body(request)), deps()
    template = have.catalogue.get(ask.template)
    apijson.require_known(ask, template)
    if template is None:
        raise NotFound(f"template {ask.template}")
    allowed = offers.offer(viewer(), begin=have.read)
    judged = judge(ask, allowed, template.manifest)
    found = starts(
        ask,
        judged.reading,
        judged.problems,
        offer=allowed,
        manifest=template.manifest,
        user=viewer().unix_user,
        forecaster=have.forecaster,
        read=have.read,
        now=have.clock(),
        k=have.settings.waits_k,
    )
    if found is None:
        return jsonify(apijson.problems([shown(one) for one in judged.problems])), 422
    return jsonify(startjson.starts(found))


@bp.get("/jobs/<int:job_id>/forecast")
@requires(Permission.USE_PORTAL)
def waiting_forecast(job_id: int) -> ResponseReturnValue:
    """The newest forecasts of a job that waits, and those that were kept."""
    found = jobstart.build(jobview.build(job_id))
    return jsonify(startjson.job(found))


@bp.get("/submissions/<int:submission_id>")
@requires(Permission.USE_PORTAL)
def submission(submission_id: int) -> ResponseReturnValue:
    return jsonify(apijson.submission(own(submission_id)))


@bp.get("/jobs")
@requires(Permission.USE_PORTAL)
def jobs() -> ResponseReturnValue:
    """The same filters as the page's address; `next` is the cursor of the next page."""
    asked = joblist.asked(request.args, viewer())
    with deps().read() as session:
        page = job_page(
            session,
            asked.scope,
            asked.filters,
            now=deps().clock(),
            sort=asked.sort,
            descending=asked.descending,
            cursor=asked.cursor,
            limit=request.args.get("limit", default=joblist.PAGE, type=int),
        )
        spent = costs.of_jobs(session, page.rows, now=deps().clock()) or {}
    rows = [apijson.dump(row) | {"cost": costjson.cost(spent.get(row.id))} for row in page.rows]
    return jsonify(jobs=rows, next=page.next)


@bp.get("/jobs/<int:job_id>")
@requires(Permission.USE_PORTAL)
def job(job_id: int) -> ResponseReturnValue:
    with deps().read() as session:
        found = reads.job(session, job_id)
        row = found.row if found else None
        if row is None or not job_rights(viewer(), user=row.user, group=row.group).see:
            raise NotFound(f"job {job_id}")
        runs = reads.runs(session, job_id)
        spent = costs.of_job(session, row, now=deps().clock())
    more = {"runs": [apijson.dump(run) for run in runs], "cost": costjson.job(spent)}
    return jsonify(apijson.dump(row) | more)


@bp.get("/jobs/<int:job_id>/why")
@requires(Permission.USE_PORTAL)
def job_why(job_id: int) -> ResponseReturnValue:
    """Why it does not start yet: the limit, its use, whose, what would help."""
    return jsonify(apijson.dump(whyview.as_json(whyview.read(jobview.build(job_id)))))


@bp.get("/jobs/<int:job_id>/training")
@requires(Permission.USE_PORTAL)
def job_training(job_id: int) -> ResponseReturnValue:
    """The training run that the job belongs to; not found while it has told nothing."""
    return jsonify(trainview.as_json(jobview.build(job_id)))


@bp.get("/jobs/<int:job_id>/output")
@requires(Permission.USE_PORTAL)
def job_output(job_id: int) -> ResponseReturnValue:
    """A piece of the output; a negative offset counts from the end."""
    have = deps()
    chunk = output.read(
        job_id,
        viewer=viewer(),
        begin=have.read,
        broker=have.broker,
        offset=request.args.get("offset", default=0, type=int),
    )
    return jsonify(apijson.dump(chunk))


@bp.post("/jobs/<int:job_id>/<action>")
@requires(Permission.USE_PORTAL)
def job_act(job_id: int, action: str) -> ResponseReturnValue:
    """One of acting.ACTIONS; time-limit comes with {"time_limit": "12:00:00"}."""
    if action not in acting.ACTIONS:
        raise NotFound(f"action {action}")
    have = deps()
    minutes = _minutes() if action == "time-limit" else None
    act.act(
        job_id,
        acting.ACTIONS[action],
        viewer=viewer(),
        begin=have.begin,
        broker=have.broker,
        now=have.clock(),
        minutes=minutes,
        zone=have.settings.timezone,
    )
    return "", 204


def _minutes() -> int:
    return parse_time_limit(apijson.text(apijson.body(request), "time_limit"))
