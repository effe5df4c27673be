"""What the words of a form's field `datasets` mean for a person, and what a submission used.

with begin() as session:
    chosen = datasets.resolve(["openwebtext", "/data/mine"], viewer=viewer, session=session)
    uses = datasets.used_by(session, submission_id)   # (entry, version) pairs, for a record
"""

from collections.abc import Sequence
from typing import TYPE_CHECKING

from gateway.core import datasets as rules
from gateway.core.access import Viewer
from gateway.core.datasets import Chosen, Offered
from gateway.store import datasets as store
from gateway.store.datasets import DatasetRow, VersionRow

if TYPE_CHECKING:
    from sqlalchemy.orm import Session

__all__ = ["Chosen", "DatasetRow", "Offered", "VersionRow", "offered", "resolve", "used_by"]


def offered(session: "Session", viewer: Viewer) -> tuple[Offered, ...]:
    """The published versions that this person may choose."""
    return store.offered(session, viewer)


def resolve(words: Sequence[str], *, viewer: Viewer, session: "Session") -> Chosen:
    """Folders and versions of a form's words (`name`, `name@2`, or an absolute folder). BadValue
    `unknown_dataset` for what is not there, or not for this person."""
    return rules.resolve(words, store.offered(session, viewer))


def used_by(session: "Session", submission_id: int) -> tuple[tuple[DatasetRow, VersionRow], ...]:
    """What a submission was sent with: each entry and version, also those withdrawn since."""
    return store.used_by(session, submission_id)
