"""A group's volumes as choices of the form's working folder, with what is free there."""

from collections.abc import Mapping

from markupsafe import escape

from gateway.core.volumes import State, percent
from gateway.store import volumes as store
from gateway.store.volumes import VolumeRow
from gateway.web.access import viewer
from gateway.web.deps import deps
from gateway.web.messages import sentence
from gateway.web.texts import gettext
from gateway.web.views import volumeview
from gateway.web.views.formwarn import Warned

_FIELD = "working_directory"
_NEARLY = 90


def folders(group: str) -> list[tuple[str, str]]:
    """Path and words of each that is there; nothing for who is in no such group."""
    return [(row.path, _words(row)) for row in _rows(group)]


def warnings(group: str, folder: str) -> Mapping[str, Warned]:
    """At the working folder, where its volume is nearly full or not known to be there."""
    for row in _rows(group):
        if not row.holds(folder):
            continue
        told = _doubt(row)
        if told:
            return {_FIELD: Warned(_FIELD, escape(told), None, "")}
    return {}


def _doubt(row: VolumeRow) -> str:
    share = percent(row.used_bytes, row.limit_bytes)
    if row.problem not in {None, "volume_limit_differs"}:
        return f"{row.name}: {sentence(str(row.problem))}"
    if share is None or share < _NEARLY:
        return ""
    if share >= 100:
        return gettext("The volume %(name)s is full: the job could write nothing.", name=row.name)
    free = volumeview.size(row.free_bytes)
    return gettext(
        "The volume %(name)s is %(share)s %% full: %(free)s are left.",
        name=row.name,
        share=share,
        free=free,
    )


def _rows(group: str) -> list[VolumeRow]:
    if group not in viewer().groups:
        return []
    with deps().read() as session:
        return [row for row in store.listed(session, [group]) if row.state is State.THERE]


def _words(row: VolumeRow) -> str:
    if row.free_bytes is None:
        return row.name
    free = volumeview.size(row.free_bytes)
    return gettext("%(name)s, %(free)s free", name=row.name, free=free)
