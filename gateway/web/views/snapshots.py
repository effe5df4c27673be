"""Snapshots: what people added to an environment and saved, with whom it is shared."""

from collections.abc import Callable

from flask import Blueprint, flash, redirect, render_template, request, url_for
from flask.typing import ResponseReturnValue
from wtforms import StringField

from gateway.core.access import Permission
from gateway.core.snapshots import LONGEST_NAME, Shared, difference
from gateway.errors import Refused
from gateway.services import snapshots
from gateway.store import snapshots as store
from gateway.web import offering
from gateway.web.access import requires, viewer
from gateway.web.deps import deps
from gateway.web.formbase import Posted, at_most, needed
from gateway.web.messages import error_sentence, sentence
from gateway.web.show import size_text
from gateway.web.texts import gettext
from gateway.web.views import snapshotview

bp = Blueprint("snapshots", __name__, url_prefix="/library/snapshots")


class NameForm(Posted):
    title = StringField(validators=[needed(), at_most(200)])


class ShareForm(Posted):
    to = StringField(validators=[at_most(200)])


class AgreeForm(Posted):
    yes = StringField(validators=[at_most(5)])


@bp.get("")
@requires(Permission.USE_PORTAL)
def index() -> ResponseReturnValue:
    """One's own store is read as one opens the page, unless it was a moment ago."""
    look, have, text = refresh(), deps(), request.args.get("q", "")[:200]
    known = offering.environments()  # before: a transaction in another waits for it
    with have.read() as session:
        rows = snapshots.listed(session, viewer(), text=text)
        parts = snapshotview.parts(session, rows, viewer(), known)
        count, size = store.count(session, viewer().person_id)
        changed = snapshotview.affected_lines(session)
    return render_template(
        "pages/snapshots.html",
        parts=parts,
        text=text,
        count=count,
        size=size_text(size),
        affected=changed,
        cut=len(rows) == store.MOST_SHOWN,
        bad=look.bad,
        trouble=sentence(look.code) if look.code else "",
    )


@bp.get("/<name>")
@requires(Permission.USE_PORTAL)
def show(name: str) -> ResponseReturnValue:
    """What it holds, where it comes from, and what differs from another (`with`)."""
    known = offering.environments()
    with deps().read() as session:
        row = snapshots.get(session, viewer(), name)
        doubts = snapshots.doubts_of(session, [row], known)
        others = [one for one in snapshots.listed(session, viewer()) if one.id != row.id]
        other = request.args.get("with")
        against = snapshots.get(session, viewer(), other) if other else None
    return render_template(
        "pages/snapshot.html",
        one=snapshotview.line(row, viewer(), doubts[row.id]),
        content=size_text(row.document.content),
        layers=[(layer, size_text(layer.bytes)) for layer in row.document.layers],
        others=others,
        against=against,
        difference=difference(against.document.packages, row.document.packages)
        if against
        else None,
        groups=viewer().groups,
        longest=LONGEST_NAME,
    )


@bp.post("/<name>/name")
@requires(Permission.USE_PORTAL)
def rename(name: str) -> ResponseReturnValue:
    form = NameForm()
    return _done(
        name,
        form,
        lambda: snapshots.rename(viewer(), name, title=form.title.data or "", begin=deps().begin),
        gettext("Its name is kept."),
    )


@bp.post("/<name>/share")
@requires(Permission.USE_PORTAL)
def share(name: str) -> ResponseReturnValue:
    """`to`: a group of one's own, `site`, or empty to take it back."""
    form = ShareForm()
    if not form.validate_on_submit():
        raise Refused("snapshot_share")
    try:
        now = snapshots.share(viewer(), name, to=form.to.data or "", begin=deps().begin)
    except Refused as refusal:
        flash(error_sentence(refusal), "bad")
    else:
        flash(_shared_words(now), "good")
    return redirect(url_for(".show", name=name), code=303)


@bp.post("/<name>/agree")
@requires(Permission.MANAGE_ENVIRONMENTS)
def agree(name: str) -> ResponseReturnValue:
    """An administrator's word on a snapshot that is, or shall be, the site's."""
    form = AgreeForm()
    if not form.validate_on_submit():
        raise Refused("bad_request")
    yes = form.yes.data == "1"
    snapshots.agree(viewer(), name, yes=yes, begin=deps().begin)
    flash(_shared_words(Shared.SITE if yes else Shared.NONE), "good")
    return redirect(url_for(".index"), code=303)


@bp.post("/<name>/delete")
@requires(Permission.USE_PORTAL)
def delete(name: str) -> ResponseReturnValue:
    form = ShareForm()
    if not form.validate_on_submit():
        raise Refused("bad_request")
    have = deps()
    snapshots.delete(viewer(), name, begin=have.begin, now=have.clock())
    flash(
        gettext(
            "Nobody is offered it any more. Its files go with your next job that uses a snapshot."
        ),
        "good",
    )
    return redirect(url_for(".index"), code=303)


def refresh(*, force: bool = False) -> snapshots.Look:
    """Read the viewer's own store."""
    have = deps()
    return snapshots.refresh(
        viewer(),
        begin=have.begin,
        broker=have.broker,
        now=have.clock(),
        area=have.settings.snapshot_area,
        force=force,
    )


def page_of(digest: str) -> str:
    """The page of one that the viewer has just saved; the store is read for it. Empty: not there
    yet."""
    who, read = viewer(), deps().read
    if not snapshots.is_known(who, digest, read=read):
        refresh()
        if not snapshots.is_known(who, digest, read=read):
            return ""
    return url_for("snapshots.show", name=digest[:12])


def _done(name: str, form: Posted, act: Callable[[], None], text: str) -> ResponseReturnValue:
    if not form.validate_on_submit():
        raise Refused("bad_snapshot_name", longest=LONGEST_NAME)
    try:
        act()
        flash(text, "good")
    except Refused as refusal:
        flash(error_sentence(refusal), "bad")
    return redirect(url_for(".show", name=name), code=303)


def _shared_words(now: Shared) -> str:
    match now:
        case Shared.NONE:
            return gettext("It is shared with nobody any more.")
        case Shared.GROUP:
            return gettext("Everybody in the group can choose it now.")
        case Shared.ASKED:
            return gettext("An administrator is asked. Until then nobody else can choose it.")
        case Shared.SITE:
            return gettext("Everybody here can choose it now.")
