"""One's earlier submissions, as forms to load again."""

from gateway.core.ask import Ask
from gateway.errors import NotFound
from gateway.services import submit
from gateway.store.queries import job as reads
from gateway.web.access import viewer
from gateway.web.deps import deps
from gateway.web.ids import LARGEST_ID
from gateway.web.texts import format_datetime, gettext


def choices() -> list[tuple[int, str]]:
    """The last ten: id, and name with its time."""
    with deps().read() as session:
        rows = reads.recent_asks(session, viewer().person_id)
    return [
        (row.id, f"{row.name} · {format_datetime(row.created_at, gettext('MMM d, HH:mm'))}")
        for row in rows
    ]


def habits() -> dict[str, str]:
    """Template, group and partition of the last submission: most people stay with them."""
    with deps().read() as session:
        rows = reads.recent_asks(session, viewer().person_id, limit=1)
    if not rows:
        return {}
    return {"template": rows[0].template, "group": rows[0].group, "partition": rows[0].partition}


def load(submission_id: int) -> Ask:
    """One's own; another's, or none, is NotFound."""
    if submission_id > LARGEST_ID:
        raise NotFound("submission")
    return submit.ask_of(submission_id, viewer=viewer(), begin=deps().read)
