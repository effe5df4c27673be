"""What one does with an application of one's own that runs: more time, a sign of life, a snapshot,
its end."""

import http.client
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from datetime import datetime, tzinfo

import structlog

from gateway.brokerclient.port import Broker
from gateway.core import apps as node
from gateway.core.access import Viewer
from gateway.core.credits import Credits
from gateway.core.offer import Offer
from gateway.errors import Refused
from gateway.services import act, longer
from gateway.services.act import Action
from gateway.store import apps as store
from gateway.store.apps import AppRow
from gateway.store.uow import Begin

log = structlog.get_logger(__name__)

DOOR_SECONDS, CUT_SECONDS = 10.0, 2.0
MOST_AT_ONCE = 16


@dataclass(frozen=True, slots=True)
class Longer:
    """A longer time that may be had: `minutes` is the whole new limit, `price` what is held for it
    beside what is held already; None where the site charges nothing."""

    more: int
    minutes: int
    price: Credits | None


def stop(row: AppRow, *, viewer: Viewer, begin: Begin, broker: Broker, now: datetime) -> None:
    """End its job, or take the submission back. Raises what services.act raises."""
    if row.job_id is None:
        act.withdraw(row.id, viewer=viewer, begin=begin, now=now)
        return
    act.act(row.job_id, Action.CANCEL, viewer=viewer, begin=begin, broker=broker, now=now)


def longest(row: AppRow, offer: Offer, *, extension_hours: float) -> int | None:
    """The most minutes that the limit may be raised to: what group, partition and QoS allow, and
    while it runs at most so many hours more than was asked for. None: no limit."""
    caps = [row.asked_minutes + int(extension_hours * 60)] if row.start_time else []
    group = offer.find_group(row.group)
    partition = group.find_partition(row.partition) if group else None
    qos = partition.find_qos(row.qos) if partition else None
    if partition is None or qos is None:
        return row.time_limit_minutes  # what may not be asked for anew is not made longer
    found = (partition.max_minutes, qos.limits.max_minutes)
    return min([*caps, *(one for one in found if one is not None)], default=None)


def longer_times(
    row: AppRow,
    offer: Offer,
    wanted: tuple[int, ...],
    *,
    extension_hours: float,
    begin: Begin,
    now: datetime,
) -> list[Longer]:
    """Those of `wanted` minutes more that may be had, each with its price."""
    if not row.active or row.job_id is None:
        return []
    most = longest(row, offer, extension_hours=extension_hours)
    found = []
    with begin() as session:
        for more in wanted:
            minutes = row.time_limit_minutes + more
            if most is None or minutes <= most:
                bill = longer.price_more(session, row.job_id, minutes=minutes, now=now)
                found.append(Longer(more, minutes, bill))
    return found


def extend(
    row: AppRow,
    minutes: int,
    offer: Offer,
    *,
    extension_hours: float,
    viewer: Viewer,
    begin: Begin,
    broker: Broker,
    now: datetime,
    zone: tzinfo,
) -> None:
    """Raise the whole time limit to `minutes`; what that may cost more is held first. Refused
    `time_limit_above_cap` above what is allowed, or what `act` raises."""
    if row.job_id is None or not row.active:
        raise Refused("already_ended")
    most = longest(row, offer, extension_hours=extension_hours)
    if minutes <= row.time_limit_minutes:
        raise Refused("not_longer", field="minutes")
    if most is not None and minutes > most:
        raise Refused("extension_too_long", field="minutes", most=most)
    act.act(
        row.job_id,
        Action.SET_TIME_LIMIT if row.start_time is None else Action.EXTEND,
        viewer=viewer,
        begin=begin,
        broker=broker,
        now=now,
        minutes=minutes,
        zone=zone,
    )


def keep(row: AppRow) -> None:
    """Somebody is there: it is not stopped for idleness. Refused `app_not_ready`,
    `app_silent` or `app_refused`."""
    _ask(row, node.KEEP)


def save(row: AppRow) -> None:
    """Save what was added to its environment as a snapshot; the node works on it, and its state
    says how far it is. Raises as `keep`."""
    _ask(row, node.SAVE)


def send_away(row: AppRow, person_id: int) -> bool:
    """Close what somebody still has open in it, once they may no longer come in. False where the
    node did not answer: then what is open there stays open."""
    return _closed(row, str(person_id))


def end_of_session(person_id: int, session_id: int | None, *, read: Begin) -> None:
    """Close what a session has open in applications, or all sessions of a person, once it has
    ended. Nodes that do not answer are not waited for: from them nothing comes anyway."""
    with read() as session:
        rows = store.entered(session, person_id)
    who = str(person_id) if session_id is None else f"{person_id}.{session_id}"
    if rows:
        with ThreadPoolExecutor(max_workers=min(len(rows), MOST_AT_ONCE)) as pool:
            list(pool.map(lambda row: _closed(row, who), rows))


def _closed(row: AppRow, who: str) -> bool:
    if row.door is None or not row.active:
        return True
    try:
        _ask(row, f"{node.CUT}?who={who}", seconds=CUT_SECONDS)
    except Refused as refusal:
        log.warning("app_not_cut", submission=row.id, code=refusal.code)
        return False
    return True


def _ask(row: AppRow, verb: str, *, seconds: float = DOOR_SECONDS) -> None:
    """The door on the node, by the key that its owner's file gave."""
    if row.door is None or not row.active or row.slurm_id is None:
        raise Refused("app_not_ready")
    line = http.client.HTTPConnection(row.door.address, row.door.port, timeout=seconds)
    try:
        headers = {node.KEY_HEADER: row.door.key, "Content-Length": "0"}
        line.request("POST", f"{node.base(row.slurm_id)}{verb}", headers=headers)
        status = line.getresponse().status
    except (OSError, http.client.HTTPException) as error:
        raise Refused("app_silent") from error
    finally:
        line.close()
    if status >= 400:
        raise Refused("app_refused")
