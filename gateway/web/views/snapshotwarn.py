"""What the form says of a snapshot whose base is not what it was."""

from collections.abc import Mapping

from flask import url_for
from markupsafe import Markup, escape

from gateway.errors import NotFound
from gateway.services import snapshots
from gateway.web import offering
from gateway.web.access import viewer
from gateway.web.deps import deps
from gateway.web.texts import gettext
from gateway.web.views import snapshotview
from gateway.web.views.formwarn import Warned


def warnings(name: str) -> Mapping[str, Warned]:
    """At the field of the environment."""
    known = offering.environments()
    with deps().read() as session:
        try:
            row = snapshots.get(session, viewer(), name)
        except NotFound:
            return {}
        doubts = snapshots.doubts_of(session, [row], known)[row.id]
    told = snapshotview.line(row, viewer(), doubts).doubts
    if not told:
        return {}
    place = url_for("snapshots.show", name=row.digest[:12])
    link = Markup('<a href="{}">{}</a>').format(place, escape(gettext("The snapshot")))
    return {"environment": Warned("environment", Markup(" ").join([*told, link]), None, "")}
