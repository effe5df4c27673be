"""What jobs reported of their results: for pages, recipes and comparisons."""

from typing import TYPE_CHECKING

from gateway.core.results import Result
from gateway.store import results as store

if TYPE_CHECKING:
    from sqlalchemy.orm import Session


def last(session: "Session", job_id: int) -> tuple[Result, ...]:
    """Each name that the job reported, with its last, lowest and highest value, by name; the loss
    of a training is among them. Whether the viewer may see the job is asked before."""
    return store.last(session, [job_id])[job_id]
