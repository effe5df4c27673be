"""Applications: who may open which, where it is, what it says, and who else was let in.

An application is a submission of a template with `[app]`. The portal learns where it is from its
owner's own file, and believes an address only if it is a node's of this cluster.
"""

import socket
from dataclasses import replace
from datetime import datetime, timedelta
from ipaddress import ip_address

from gateway.brokerclient.port import Broker
from gateway.core import apps as node
from gateway.core.access import Viewer
from gateway.errors import BrokerRefused, BrokerSilent, BrokerUnreachable, NotFound, Refused
from gateway.services.templates import Catalogue
from gateway.store import apps as store
from gateway.store import people, snapshot
from gateway.store.apps import AppRow, Door, Guest
from gateway.store.uow import Begin

MOST_GUESTS = 50
_CLOCKS = timedelta(minutes=2)  # of a node and of the portal may differ by so much


def names(catalogue: Catalogue) -> tuple[str, ...]:
    """The templates that are applications."""
    return tuple(one.name for one in catalogue.all() if one.manifest.app is not None)


def own(submission_id: int, *, viewer: Viewer, read: Begin) -> AppRow:
    """One's own; another's is NotFound."""
    with read() as session:
        row = store.get(session, submission_id)
    if row is None or row.person_id != viewer.person_id:
        raise NotFound(f"application {submission_id}")
    return row


def seen(submission_id: int, *, viewer: Viewer, read: Begin) -> tuple[AppRow, Guest | None]:
    """One's own, or one that one was named for; then with what one is there."""
    with read() as session:
        row = store.get(session, submission_id)
        guest = None if row is None else store.guest(session, row.id, viewer.person_id)
    if row is None or (row.person_id != viewer.person_id and guest is None):
        raise NotFound(f"application {submission_id}")
    return row, None if row.person_id == viewer.person_id else guest


def gate(slurm_id: int, *, viewer: Viewer, read: Begin, cluster: str) -> Door | None:
    """The door of a running application that this person may open now."""
    with read() as session:
        row = store.by_slurm_id(session, slurm_id, cluster=cluster)
        if row is None or not row.active or row.door is None:
            return None
        return row.door if store.may_enter(session, row, viewer.person_id) else None


def of_slurm_job(slurm_id: int, *, viewer: Viewer, read: Begin, cluster: str) -> AppRow:
    """Which application the address /apps/<job>/ means, for those who may know of it."""
    with read() as session:
        row = store.by_slurm_id(session, slurm_id, cluster=cluster)
    if row is None:
        raise NotFound(f"application of job {slurm_id}")
    return seen(row.id, viewer=viewer, read=read)[0]


def look(row: AppRow, *, begin: Begin, read: Begin, broker: Broker) -> AppRow:
    """Ask the node's file where the application is, as its owner, and keep what is new. The same
    row while it says nothing that can be believed; Slurm is not asked."""
    if not row.active or row.slurm_id is None:
        return row
    text = _text(node.ready_path(row.folder, row.slurm_id), row, broker)
    if text is None:
        return row
    with read() as session:
        addresses = {one.address for one in snapshot.nodes(session) if one.address}
    found = node.parse_ready(text, addresses)
    if found is None or found.at < row.created_at - _CLOCKS:
        return row
    address = _numeric(found.address)
    if address is None:
        return row
    door = Door(address, found.port, found.key)
    if (door, found.at) != (row.door, row.ready_at):
        with begin() as session:
            store.keep_door(session, row.id, door, ready_at=found.at)
    return replace(row, door=door, ready_at=found.at)


def state(row: AppRow, *, broker: Broker) -> node.AppState | None:
    """What the node says of it; None while it says nothing, or cannot be asked."""
    if row.slurm_id is None:
        return None
    text = _text(node.state_path(row.folder, row.slurm_id), row, broker)
    found = None if text is None else node.parse_state(text)
    return None if found is None or found.at < row.created_at - _CLOCKS else found


def last_lines(row: AppRow, *, broker: Broker, most_bytes: int = 4_096) -> str:
    """The end of its job's output, for an application that has failed."""
    if row.output is None:
        return ""
    try:
        chunk = broker.read_file(
            row.output, user=row.unix_user, offset=-most_bytes, max_bytes=most_bytes
        )
    except (BrokerRefused, BrokerSilent, BrokerUnreachable):
        return ""
    return chunk.text


def share(
    submission_id: int, login: str, *, viewer: Viewer, begin: Begin, read: Begin, now: datetime
) -> None:
    """Name somebody who may open it. Refused `no_such_person`, `already_ended`, `too_many_guests`;
    naming somebody twice is once."""
    row = own(submission_id, viewer=viewer, read=read)
    if not row.is_open:
        raise Refused("already_ended")
    with begin() as session:
        person = people.by_login(session, login.strip().lower())
        if person is None or person.disabled_at is not None or person.id == row.person_id:
            raise Refused("no_such_person", field="person")
        if len(store.guests(session, row.id)) >= MOST_GUESTS:
            raise Refused("too_many_guests", field="person", most=MOST_GUESTS)
        store.add_guest(session, row.id, person.id, now=now)


def unshare(
    submission_id: int, login: str, *, viewer: Viewer, begin: Begin, read: Begin
) -> int | None:
    """Take it back: from then on nothing new is let through. Who it was, for app_acts.send_away;
    None for who was not named, which is no error."""
    row = own(submission_id, viewer=viewer, read=read)
    with begin() as session:
        for guest in store.guests(session, row.id):
            if guest.login == login:
                store.drop_guest(session, row.id, guest.person_id)
                return guest.person_id
    return None


def agree(submission_id: int, *, viewer: Viewer, begin: Begin, read: Begin, now: datetime) -> None:
    """A guest has read that whoever opens another's application trusts its owner."""
    row, guest = seen(submission_id, viewer=viewer, read=read)
    if guest is None or guest.agreed_at is not None:
        return
    with begin() as session:
        store.agree(session, row.id, viewer.person_id, now=now)


def _text(path: str, row: AppRow, broker: Broker) -> str | None:
    try:
        chunk = broker.read_file(path, user=row.unix_user, offset=0, max_bytes=node.MOST_BYTES + 1)
    except BrokerRefused:
        return None  # not there yet, or nothing that we would read
    except (BrokerSilent, BrokerUnreachable):
        return None  # the next look will tell
    return chunk.text


def _numeric(address: str) -> str | None:
    """Slurm may know a node by its name; nginx wants a number. None where nobody knows the name."""
    try:
        return str(ip_address(address))
    except ValueError:
        pass
    try:
        found = socket.getaddrinfo(address, None, type=socket.SOCK_STREAM)
    except OSError:
        return None
    return str(min(found, key=lambda one: one[0] != socket.AF_INET)[4][0])
