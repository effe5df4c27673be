"""Entries of the catalogue: made, changed, opened to groups and people.

`viewer` None is the host's administrator, at the command line.
"""

from dataclasses import dataclass, replace
from datetime import datetime
from typing import TYPE_CHECKING

from gateway.core import datasets as rules
from gateway.core.access import Permission, Viewer
from gateway.core.datasets import check_text
from gateway.errors import NotFound, Refused
from gateway.store import datasets as store
from gateway.store.datasets import DatasetRow
from gateway.store.uow import Begin

if TYPE_CHECKING:
    from sqlalchemy.orm import Session


@dataclass(frozen=True, slots=True)
class Entry:
    """The facts that a person types. `group`: a group's own, whose leaders publish it."""

    title: str
    licence: str
    description: str
    visibility: str
    group: str | None


def may_steer(viewer: Viewer | None, row: DatasetRow) -> bool:
    """Change the entry, add versions, open it to others."""
    return may_decide(viewer, row) or (viewer is not None and viewer.person_id == row.owner_id)


def may_decide(viewer: Viewer | None, row: DatasetRow) -> bool:
    """Publish and withdraw: administrators, and of a group's own its leaders."""
    if viewer is None or viewer.may(Permission.MANAGE_DATASETS):
        return True
    return row.group is not None and row.group in viewer.leads


def create(
    name: str, entry: Entry, *, owner_id: int, viewer: Viewer | None, begin: Begin, now: datetime
) -> int:
    """A new entry without a version; its id. Refused dataset_name, dataset_name_taken and what
    `checked` says."""
    rules.check_name(name)
    facts = checked(entry, viewer)
    with begin() as session:
        if store.by_name(session, name) is not None:
            raise Refused("dataset_name_taken", field="name")
        return store.add(session, facts | {"name": name, "owner_id": owner_id, "created_at": now})


def change(name: str, entry: Entry, *, viewer: Viewer | None, begin: Begin) -> None:
    """The entry's facts anew; the group stays."""
    facts = checked(replace(entry, group=None), viewer)
    del facts["group"]
    with begin() as session:
        row = steered(session, name, viewer)
        store.change(session, row.id, **facts)


def checked(entry: Entry, viewer: Viewer | None) -> dict[str, str | None]:
    """The facts as they are kept. Refused with the field. A group is one's own."""
    group = entry.group or None
    if group is not None and viewer is not None and not _is_own(viewer, group):
        raise Refused("group_not_yours", field="group", group=group)
    return {
        "title": check_text(entry.title, field="title", required=True),
        "licence": check_text(entry.licence, field="licence", required=True),
        "description": check_text(
            entry.description, field="description", longest=rules.LONGEST_TEXT
        ),
        "visibility": rules.check_visibility(entry.visibility),
        "group": group,
    }


def _is_own(viewer: Viewer, group: str) -> bool:
    return group in viewer.groups or viewer.may(Permission.MANAGE_DATASETS)


def set_reader(name: str, who: str, *, allowed: bool, viewer: Viewer | None, begin: Begin) -> None:
    """Open it to a group (`group:nlp`) or a Unix account (`person:nlp-1`), or no more. Refused
    dataset_reader."""
    kind, _, reader = who.strip().partition(":")
    if kind not in {"group", "person"} or not reader or len(reader) > rules.LONGEST_NAME:
        raise Refused("dataset_reader", field="who")
    with begin() as session:
        row = steered(session, name, viewer)
        if allowed:
            store.add_reader(session, row.id, kind, reader)
        else:
            store.drop_reader(session, row.id, kind, reader)


def found(session: "Session", name: str, viewer: Viewer | None) -> DatasetRow:
    """The entry, if this person may see it; NotFound."""
    row = store.by_name(session, name, viewer)
    if row is None:
        raise NotFound(f"dataset {name}")
    return row


def steered(session: "Session", name: str, viewer: Viewer | None) -> DatasetRow:
    """The same for who may change it; Refused dataset_not_yours."""
    row = found(session, name, viewer)
    if not may_steer(viewer, row):
        raise Refused("dataset_not_yours")
    return row
