"""Requests: for access to a dataset, or for one that is not there yet."""

from datetime import datetime
from typing import TYPE_CHECKING

from gateway.core import datasets as rules
from gateway.core.access import Permission, Viewer
from gateway.core.datasets import check_text
from gateway.errors import NotFound, Refused
from gateway.services.dataset_entries import found
from gateway.store import dataset_work as work
from gateway.store import datasets as store
from gateway.store.dataset_work import RequestRow
from gateway.store.uow import Begin

if TYPE_CHECKING:
    from sqlalchemy.orm import Session


def ask_access(
    name: str, *, group: str | None, text: str, viewer: Viewer, begin: Begin, now: datetime
) -> int:
    """For oneself, or for a group that one is in; the request's id."""
    if group is not None and group not in viewer.groups:
        raise Refused("group_not_yours", field="group", group=group)
    words = check_text(text, field="text", required=True, longest=rules.LONGEST_TEXT)
    with begin() as session:
        row = found(session, name, viewer)
        values = {"kind": "access", "dataset_id": row.id, "person_id": viewer.person_id}
        return work.add_request(session, values | {"group": group, "text": words, "at": now})


def ask_new(text: str, *, viewer: Viewer, begin: Begin, now: datetime) -> int:
    """For a dataset that the catalogue does not have: what, from where, what for."""
    words = check_text(text, field="text", required=True, longest=rules.LONGEST_TEXT)
    with begin() as session:
        values = {"kind": "new", "dataset_id": None, "person_id": viewer.person_id}
        return work.add_request(session, values | {"group": None, "text": words, "at": now})


def mine(session: "Session", viewer: Viewer | None) -> tuple[list[RequestRow], list[RequestRow]]:
    """Those that this person may answer, and their own that are open or were answered lately."""
    every = work.requests(session, state=None)
    to_answer = [one for one in every if one.state == "open" and may_answer(viewer, one)]
    own = [one for one in every if viewer is not None and one.person_id == viewer.person_id]
    return to_answer, own


def may_answer(viewer: Viewer | None, one: RequestRow) -> bool:
    """Administrators; of access also the owner, and the leaders of the group whose it is."""
    if viewer is None or viewer.may(Permission.MANAGE_DATASETS):
        return True
    if one.kind != "access":
        return False
    return one.owner_id == viewer.person_id or (one.owner_group in viewer.leads)


def answer(
    request_id: int,
    *,
    granted: bool,
    text: str,
    viewer: Viewer | None,
    begin: Begin,
    now: datetime,
) -> None:
    """Once. Access that is granted makes the group, or the person, a reader."""
    words = check_text(text, field="answer", longest=rules.LONGEST_TEXT)
    with begin() as session:
        one = work.request(session, request_id)
        if one is None or not may_answer(viewer, one):
            raise NotFound(f"request {request_id}")
        decided = {
            "state": "granted" if granted else "refused",
            "answer": words,
            "decided_by": viewer.person_id if viewer else None,
            "decided_at": now,
        }
        if not work.decide(session, request_id, **decided):
            raise Refused("dataset_request_done")
        if granted and one.dataset_id is not None:
            kind, name = ("group", one.group) if one.group else ("person", one.unix_user)
            store.add_reader(session, one.dataset_id, kind, name)
