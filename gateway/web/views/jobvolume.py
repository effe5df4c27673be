"""The volume that a job works in, on its page: its room, and what to do when there is none."""

from dataclasses import dataclass
from datetime import datetime, timedelta

from gateway.core.states import JobState
from gateway.core.volumes import percent
from gateway.services import volume_rights
from gateway.store import volumes as store
from gateway.store.volumes import VolumeRow
from gateway.web.access import viewer
from gateway.web.deps import deps
from gateway.web.texts import gettext
from gateway.web.views import volumeview
from gateway.web.views.jobview import JobView

_NEARLY = 90
_LATELY = timedelta(days=1)


@dataclass(frozen=True, slots=True)
class VolumeOfJob:
    """`told` is empty while there is room."""

    id: int
    name: str
    figures: str
    told: str
    read_at: datetime | None


def build(page: JobView) -> VolumeOfJob | None:
    """None of a job that works elsewhere, or in a volume that this person does not see."""
    with deps().read() as session:
        row = store.around(session, page.detail.working_directory)
    if row is None or not volume_rights.rights(viewer(), row.group).see:
        return None
    used, limit = volumeview.size(row.used_bytes), volumeview.size(row.limit_bytes)
    figures = (
        used
        if row.limit_bytes is None
        else gettext("%(used)s of %(limit)s", used=used, limit=limit)
    )
    return VolumeOfJob(row.id, row.name, figures, _told(page, row), row.read_at)


def _told(page: JobView, row: VolumeRow) -> str:
    share = percent(row.used_bytes, row.limit_bytes)
    failed = _failed_lately(page, row)
    if share is None or share < _NEARLY or not (page.active or failed):
        return ""
    if failed:
        return gettext(
            "It failed, and its volume is %(share)s %% full: what it wrote there may not have"
            " fitted, its last output included. Remove what nobody needs there, or ask for more"
            " room; then submit it again.",
            share=share,
        )
    return gettext(
        "Its volume is %(share)s %% full: the job fails when it can write no more. Remove what"
        " nobody needs there, or ask for more room now.",
        share=share,
    )


def _failed_lately(page: JobView, row: VolumeRow) -> bool:
    """And the figures are of afterwards: a volume that fills later has nothing to do with it."""
    ended = page.job.end_time
    if page.job.state != JobState.FAILED or ended is None or row.read_at is None:
        return False
    return ended <= row.read_at and deps().clock() - ended < _LATELY
