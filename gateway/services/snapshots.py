"""Snapshots in the portal: read from their owners' stores, named, shared, offered in forms.

The files are people's own. What is shared with whom is the portal's word: it alone tells the name
of a document, and nobody finds one without.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from typing import TYPE_CHECKING

from gateway.brokerclient.port import Broker
from gateway.core import snapshots as core
from gateway.core.access import Viewer
from gateway.core.env_facts import NO_FACTS
from gateway.core.environments import Environment, EnvironmentKind
from gateway.core.manifest import Text
from gateway.core.snapshots import BadDocument, Document, Doubt, Rights, Shared
from gateway.errors import (
    BrokerRefused,
    BrokerSilent,
    BrokerUnreachable,
    Busy,
    NotFound,
    Refused,
)
from gateway.store import snapshots as store
from gateway.store.snapshots import SnapshotRow
from gateway.store.uow import Begin

if TYPE_CHECKING:
    from sqlalchemy.orm import Session

HOME_STORE = "~/.sluice/snapshots"
INDEX = "index.jsonl"
PAUSE = timedelta(seconds=5)  # a page that is loaded again asks nobody
MOST_NEW = 50  # documents read in one look
_PIECE = 1 << 20
_SHOWN_PACKAGES = 3


@dataclass(slots=True)
class Look:
    """What reading a store brought: `new` digests, `bad` ones that were none; `more` are left."""

    new: list[str] = field(default_factory=list)
    bad: int = 0
    more: bool = False
    code: str | None = None


def refresh(
    viewer: Viewer, *, begin: Begin, broker: Broker, now: datetime, area: str, force: bool = False
) -> Look:
    """Read this person's own store, unless that was done a moment ago. A store that cannot be read
    is told by `code`; what was known of it stays."""
    with begin() as session:
        last = store.looked(session, viewer.person_id)
        known = store.digests(session, viewer.person_id)
    if last and not force and timedelta() <= now - last[0] < PAUSE:
        return Look(code=last[1])
    found = _Reading(viewer, broker, area)
    try:
        found.read(known)
    except BrokerRefused as error:
        found.look.code = None if error.code == "file_missing" else error.code
    except (BrokerUnreachable, BrokerSilent) as error:
        found.look.code = error.code
    try:
        with begin() as session:
            _keep(session, viewer, found, known, now)
            store.look(session, viewer.person_id, code=found.look.code, now=now)
    except Busy as error:  # the next look brings it; a page shows what was known
        found.look.code = error.code
    return found.look


def is_known(viewer: Viewer, digest: str, *, read: Begin) -> bool:
    """Whether one of this person's own has been read from their store."""
    with read() as session:
        return digest in store.digests(session, viewer.person_id)


class _Reading:
    """One person's store in one look."""

    def __init__(self, viewer: Viewer, broker: Broker, area: str) -> None:
        self._viewer, self._broker = viewer, broker
        self.folder = f"{area.rstrip('/')}/{viewer.unix_user}" if area else ""
        self.documents: dict[str, Document] = {}
        self.listed: dict[str, bool] | None = None  # None: not read to its end
        self.look = Look()

    def read(self, known: Iterable[str]) -> None:
        """Raises broker errors."""
        if not self.folder:
            state = self._broker.check_folder(HOME_STORE, user=self._viewer.unix_user)
            if state.problem is not None:
                return
            self.folder = state.path
        listed = core.index_ids(self._text(INDEX, core.LARGEST_INDEX))
        fresh = [digest for digest in listed if digest not in set(known)]
        self.look.more = len(fresh) > MOST_NEW
        for digest in fresh[-MOST_NEW:]:
            try:
                text = self._text(f"documents/{digest}.json", core.LARGEST_DOCUMENT)
                user = self._viewer.unix_user
                self.documents[digest] = core.parse(text.encode(), digest, user=user)
            except (BadDocument, BrokerRefused):
                self.look.bad += 1
        self.listed = listed

    def _text(self, name: str, most: int) -> str:
        parts, offset = [], 0
        while offset < most:
            chunk = self._broker.read_file(
                f"{self.folder}/{name}",
                user=self._viewer.unix_user,
                offset=offset,
                max_bytes=min(_PIECE, most - offset),
            )
            parts.append(chunk.text)
            if chunk.next_offset >= chunk.size or chunk.next_offset <= offset:
                break
            offset = chunk.next_offset
        return "".join(parts)


def _keep(
    session: "Session", viewer: Viewer, found: _Reading, known: dict[str, bool], now: datetime
) -> None:
    listed = found.listed
    if listed is None:
        return
    for digest, document in found.documents.items():
        made = store.add(
            session,
            digest,
            document,
            person_id=viewer.person_id,
            folder=found.folder,
            name=first_name(document),
            reachable=listed[digest],
            now=now,
        )
        if made is not None:
            found.look.new.append(digest)
    store.seen(session, viewer.person_id, listed, now=now)
    lost = [digest for digest in known if digest not in listed]
    store.delete(session, lost, person_id=viewer.person_id, now=now)


def first_name(document: Document) -> str:
    """Its note, or the base with the first packages: until its owner gives it another."""
    if document.note:
        return document.note[: core.LONGEST_NAME]
    names = [one.partition("==")[0] for one in document.added[:_SHOWN_PACKAGES]]
    more = len(document.added) - len(names)
    text = " + ".join([document.base.name or "?", *names]) + (f" + {more}" if more > 0 else "")
    return text[: core.LONGEST_NAME]


def listed(session: "Session", viewer: Viewer, *, text: str = "") -> list[SnapshotRow]:
    """What this person may use, or has to agree to, newest first."""
    return store.visible(session, viewer, text=text)


def get(session: "Session", viewer: Viewer, name: str) -> SnapshotRow:
    """By its digest, or what it begins with (6 characters or more). NotFound."""
    plain = name.removeprefix(core.PREFIX)
    found = store.find(session, plain, viewer) if 6 <= len(plain) <= 64 else []
    if len(found) != 1:
        raise NotFound(f"no snapshot {name}")
    return found[0]


def rights_of(viewer: Viewer, row: SnapshotRow) -> Rights:
    """What this person may do with it."""
    return core.rights(viewer, person_id=row.person_id, shared=row.shared, group=row.group)


def rename(viewer: Viewer, name: str, *, title: str, begin: Begin) -> None:
    """The owner's act. Refused `bad_snapshot_name`."""
    title = title.strip()
    if not title or len(title) > core.LONGEST_NAME or not title.isprintable():
        raise Refused("bad_snapshot_name", field="title", longest=core.LONGEST_NAME)
    with begin() as session:
        row = _own(session, viewer, name)
        told = core.words(title, row.document)
        store.change(session, row.id, name=title, words=told)


def share(viewer: Viewer, name: str, *, to: str, begin: Begin) -> Shared:
    """With a group of one's own (its name), with `site`, or with nobody (empty): the owner's act.
    The site's is so once an administrator agrees; an administrator's own is at once. Refused
    `snapshot_not_reachable` where others could not read it, `not_your_group`."""
    with begin() as session:
        row = _own(session, viewer, name)
        if to and not row.reachable:
            raise Refused("snapshot_not_reachable", field="to", folder=row.folder)
        shared, group = Shared.NONE, None
        if to == Shared.SITE:
            is_at_once = core.rights(
                viewer, person_id=row.person_id, shared=Shared.ASKED, group=None
            ).agree
            shared = Shared.SITE if is_at_once or row.shared is Shared.SITE else Shared.ASKED
        elif to:
            if to not in viewer.groups:
                raise Refused("not_your_group", field="to", group=to)
            shared, group = Shared.GROUP, to
        store.change(session, row.id, shared=shared.value, group=group)
    return shared


def agree(viewer: Viewer, name: str, *, yes: bool, begin: Begin) -> None:
    """An administrator's word on what is asked to be the site's, or is. NotFound."""
    with begin() as session:
        row = get(session, viewer, name)
        if not rights_of(viewer, row).agree:
            raise NotFound(f"no snapshot {name} to agree to")
        shared = Shared.SITE if yes else Shared.NONE
        store.change(session, row.id, shared=shared.value, group=None)


def delete(viewer: Viewer, name: str, *, begin: Begin, now: datetime) -> None:
    """Nobody is offered it any more. Its files go with the owner's next job that uses a snapshot of
    theirs: the portal does not write in people's folders."""
    with begin() as session:
        row = _own(session, viewer, name)
        store.delete(session, [row.digest], person_id=viewer.person_id, now=now)


def _own(session: "Session", viewer: Viewer, name: str) -> SnapshotRow:
    row = get(session, viewer, name)
    if row.person_id != viewer.person_id:
        raise NotFound(f"no own snapshot {name}")
    return row


def as_environments(
    viewer: Viewer, session: "Session", known: Sequence[Environment]
) -> tuple[Environment, ...]:
    """What forms offer beside the environments that are `known`. Facts are those of the base."""
    facts = {one.name: one.facts for one in known}
    drops = store.deleted(session, viewer.person_id)
    return tuple(
        Environment(
            name=core.form_name(row.digest),
            title=_title(row, viewer),
            kind=EnvironmentKind.SNAPSHOT,
            path=row.path,
            drops=drops,
            facts=facts.get(row.document.base.name, NO_FACTS),
        )
        for row in store.visible(session, viewer)
        if row.shared is not Shared.ASKED or row.person_id == viewer.person_id
    )


def _title(row: SnapshotRow, viewer: Viewer) -> Text:
    whose = "" if row.person_id == viewer.person_id else f" · {row.owner}"
    text = f"{row.name} ({row.document.base.name}{whose})"
    return Text(text, text)


def doubts_of(
    session: "Session", rows: Iterable[SnapshotRow], known: Sequence[Environment]
) -> dict[int, tuple[Doubt, ...]]:
    """By row: what has happened to its base since."""
    seen = store.bases(session)
    return {
        row.id: core.doubts(
            row.document.base,
            known,
            seen[row.document.base.name].fingerprint if row.document.base.name in seen else None,
        )
        for row in rows
    }


@dataclass(frozen=True, slots=True)
class Affected:
    """A base that has changed: how many snapshots lie above what it was, and how many people's."""

    name: str
    changed_at: datetime
    snapshots: int
    people: int


def affected(session: "Session") -> list[Affected]:
    """Bases that have changed under snapshots, the newest change first."""
    above, found = store.affected(session), []
    for name, base in store.bases(session).items():
        hit = [person for person, then in above.get(name, ()) if then != base.fingerprint]
        if hit:
            found.append(Affected(name, base.changed_at, len(hit), len(set(hit))))
    return sorted(found, key=lambda one: one.changed_at, reverse=True)


def note_base(session: "Session", name: str, fingerprint: str, *, now: datetime) -> bool:
    """What a check of the site's own saw (`sluice_train.env fingerprint`); whether it has changed
    since the last one."""
    return store.note_base(session, name, fingerprint, now=now)


def as_fields(
    row: SnapshotRow, doubts: Iterable[Doubt] = (), *, whole: bool = False
) -> dict[str, object]:
    """For programs; `whole` with all packages and layers."""
    document = row.document
    fields: dict[str, object] = {
        "id": row.digest,
        "environment": core.form_name(row.digest),
        "name": row.name,
        "note": document.note,
        "owner": row.login,
        "base": document.base.name,
        "base_doubts": [one.value for one in doubts],
        "bytes": row.bytes,
        "new_bytes": row.new_bytes,
        "saved_at": row.saved_at.isoformat(),
        "job": document.job,
        "shared": row.shared.value,
        "group": row.group,
        "added": list(document.added),
    }
    if whole:
        more = core.dump(document)
        fields |= {key: more[key] for key in ("packages", "conda", "layers", "parent")}
        fields["base_fingerprint"] = document.base.fingerprint
    return fields
