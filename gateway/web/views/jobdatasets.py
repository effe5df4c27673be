"""The datasets that a job was sent with, on its page, and whether their files have changed."""

from dataclasses import dataclass
from datetime import datetime

from gateway.services import datasets
from gateway.store import datasets as store
from gateway.web.access import viewer
from gateway.web.dataset_texts import HEALTH_WORDS
from gateway.web.deps import deps
from gateway.web.views.jobview import JobView


@dataclass(frozen=True, slots=True)
class UsedView:
    """`damaged`: a verification found other files than were published, at `checked_at`."""

    name: str
    word: str
    kind: str
    health: str
    checked_at: datetime | None
    damaged: bool
    withdrawn: bool


def build(page: JobView) -> list[UsedView]:
    """None of a job that named none; of those that this person may not see nothing is told."""
    submission = page.detail.submission
    if submission is None:
        return []
    with deps().read() as session:
        used = datasets.used_by(session, submission.row.id)
        known = [
            pair for pair in used if store.by_name(session, pair[0].name, viewer()) is not None
        ]
    return [_view(row, version) for row, version in known]


def _view(row: datasets.DatasetRow, version: datasets.VersionRow) -> UsedView:
    kind, health = HEALTH_WORDS[version.health]
    return UsedView(
        row.name,
        f"{row.name}@{version.version}",
        kind,
        str(health),
        version.checked_at,
        version.health == "damaged",
        version.state == "withdrawn",
    )
