"""Versions of a dataset: draft, requested, published, withdrawn. What used one stays on record."""

from dataclasses import dataclass
from datetime import datetime
from typing import TYPE_CHECKING, Any

from gateway.brokerclient.port import Broker
from gateway.core import datasets as rules
from gateway.core.access import Viewer
from gateway.core.datasets import Totals, check_folder, check_text
from gateway.errors import BrokerRefused, BrokerSilent, BrokerUnreachable, NotFound, Refused
from gateway.services.dataset_entries import found, may_decide, steered
from gateway.services.dataset_look import problem_of
from gateway.store import datasets as store
from gateway.store.datasets import DatasetRow, VersionRow
from gateway.store.uow import Begin

if TYPE_CHECKING:
    from sqlalchemy.orm import Session

MOST_READ_MB = 64  # of a manifest through the broker; a larger one: the command line
_CHUNK = 1 << 20
_OPEN = ("draft", "requested")


@dataclass(frozen=True, slots=True)
class NewVersion:
    """`manifest_path` empty: beside the folder, `<path>.manifest`. `parent` is a word of the
    catalogue (`name@2`) that it was made from, `made_by` says by which recipe or job."""

    path: str
    manifest_path: str = ""
    note: str = ""
    parent: str = ""
    made_by: str = ""


def add(
    name: str,
    new: NewVersion,
    *,
    created_by: int,
    viewer: Viewer | None,
    begin: Begin,
    now: datetime,
) -> int:
    """A draft of the next version; its number. Refused dataset_path, dataset_no_parent."""
    path = check_folder(new.path)
    manifest_path = check_folder(new.manifest_path or f"{path}.manifest", field="manifest_path")
    facts = {
        "path": path,
        "manifest_path": manifest_path,
        "note": check_text(new.note, field="note", longest=rules.LONGEST_TEXT),
        "made_by": check_text(new.made_by, field="made_by"),
        "withdrawn_why": "",
        "created_by": created_by,
        "created_at": now,
    }
    with begin() as session:
        row = steered(session, name, viewer)
        parent = _parent(session, new.parent.strip(), viewer)
        version_id = store.add_version(session, row.id, facts | {"parent_id": parent})
        made = store.version(session, version_id)
    assert made is not None
    return made.version


def _parent(session: "Session", word: str, viewer: Viewer | None) -> int | None:
    if not word:
        return None
    name, _, number = word.partition("@")
    row = store.by_name(session, name, viewer)
    versions = store.versions(session, [row.id]) if row is not None else ()
    for one in versions:
        if str(one.version) == number or (not number and one.state == "published"):
            return one.id
    raise Refused("dataset_no_parent", field="parent", name=word[: rules.LONGEST_NAME])


def publish(
    name: str,
    number: int,
    *,
    viewer: Viewer | None,
    begin: Begin,
    now: datetime,
    broker: Broker,
    totals: Totals | None = None,
) -> str:
    """Publish it, or for who may not, ask for that; the state that it has now.

    The folder and the manifest are looked at as the person, through the broker, before; `totals`
    are those of a manifest that was read already. What was asked for is published as it was asked
    for: by its manifest's hash. Refused with what is wrong."""
    with begin() as session:
        row = steered(session, name, viewer)
        version = _version(session, row, number)
    if version.state not in _OPEN:
        raise Refused("dataset_state", state=version.state)
    decides = may_decide(viewer, row)
    values = _asked(version) if decides else None
    if values is None:
        values = _judged(version, totals, viewer=viewer, broker=broker)
    state = "published" if decides else "requested"
    if decides:
        values |= {"decided_by": viewer.person_id if viewer else None, "published_at": now}
    with begin() as session:
        if not store.change_version(session, version.id, leaving=_OPEN, state=state, **values):
            raise Refused("dataset_state", state=_state_of(session, version.id))
    return state


def _asked(version: VersionRow) -> dict[str, Any] | None:
    if version.state != "requested" or version.manifest is None:
        return None
    return {"manifest": version.manifest}


def _judged(
    version: VersionRow, totals: Totals | None, *, viewer: Viewer | None, broker: Broker
) -> dict[str, Any]:
    if viewer is not None:
        _look(version, viewer=viewer, broker=broker)
        totals = totals_of(read_manifest(version.manifest_path, viewer=viewer, broker=broker))
    if totals is None:
        raise Refused("dataset_manifest_missing", field="manifest_path")
    return {"manifest": totals.sha256, "bytes": totals.bytes, "files": totals.files}


def send_back(name: str, number: int, *, viewer: Viewer | None, begin: Begin) -> None:
    """A request to publish becomes a draft again."""
    with begin() as session:
        version = _decided(session, name, number, viewer)
        if not store.change_version(session, version.id, leaving=("requested",), state="draft"):
            raise Refused("dataset_state", state=version.state)


def withdraw(
    name: str, number: int, why: str, *, viewer: Viewer | None, begin: Begin, now: datetime
) -> None:
    """No new job gets it; jobs that run go on, and what used it keeps its record."""
    text = check_text(why, field="why", required=True)
    with begin() as session:
        version = _decided(session, name, number, viewer)
        values = {"state": "withdrawn", "withdrawn_at": now, "withdrawn_why": text}
        if not store.change_version(session, version.id, leaving=("published",), **values):
            raise Refused("dataset_state", state=version.state)


def read_manifest(path: str, *, viewer: Viewer, broker: Broker) -> str:
    """The text of a manifest beside the data, as the person. Refused dataset_manifest_unread,
    dataset_manifest_large."""
    parts: list[str] = []
    offset = 0
    while True:
        try:
            chunk = broker.read_file(path, user=viewer.unix_user, offset=offset, max_bytes=_CHUNK)
        except (BrokerRefused, BrokerUnreachable, BrokerSilent) as no:
            raise Refused("dataset_manifest_unread", field="manifest_path", path=path) from no
        if chunk.size > MOST_READ_MB * 1_000_000:
            raise Refused("dataset_manifest_large", field="manifest_path", max=MOST_READ_MB)
        parts.append(chunk.text)
        if chunk.next_offset >= chunk.size or chunk.next_offset <= offset:
            return "".join(parts)
        offset = chunk.next_offset


def totals_of(text: str) -> Totals:
    """What a manifest lists; Refused at the field of its path."""
    try:
        return rules.totals(text)
    except Refused as bad:
        raise Refused(bad.code, field="manifest_path", **bad.facts) from bad


def _look(version: VersionRow, *, viewer: Viewer, broker: Broker) -> None:
    try:
        code = problem_of(broker.check_folder(version.path, user=viewer.unix_user))
    except (BrokerUnreachable, BrokerSilent):
        return  # each job looks again
    if code is not None and code != "dataset_writable":  # its maker may write: no job's person may
        raise Refused(code, field="path", path=version.path)


def _decided(session: "Session", name: str, number: int, viewer: Viewer | None) -> VersionRow:
    row = found(session, name, viewer)
    if not may_decide(viewer, row):
        raise Refused("dataset_not_yours")
    return _version(session, row, number)


def _version(session: "Session", row: DatasetRow, number: int) -> VersionRow:
    for one in store.versions(session, [row.id]):
        if one.version == number:
            return one
    raise NotFound(f"version {number} of dataset {row.name}")


def _state_of(session: "Session", version_id: int) -> str:
    version = store.version(session, version_id)
    return version.state if version else "?"
