"""Another limit for a volume: asked for, agreed, written, read back. The requests are the audit.

A request that is agreed is written by whoever agreed, and by the worker where that one died. What
the limit was is kept before the first try, so that a second one finds that, or what is wanted.
"""

from datetime import datetime
from typing import TYPE_CHECKING, Any

from gateway.brokerclient.port import Broker
from gateway.core.access import Viewer
from gateway.core.datasets import LONGEST_TEXT, check_text
from gateway.core.volumes import LARGEST, STEP, Ask, State
from gateway.errors import BrokerRefused, GatewayError, NotFound, Refused
from gateway.services import volume_rights
from gateway.services.volume_rights import may_agree
from gateway.store import volume_work as work
from gateway.store import volumes as store
from gateway.store.uow import Begin
from gateway.store.volume_work import RequestRow
from gateway.store.volumes import VolumeRow
from gateway.wire import volumes as vol

if TYPE_CHECKING:
    from sqlalchemy.orm import Session


def ask(
    volume_id: int, wanted: int, text: str, *, viewer: Viewer | None, begin: Begin, now: datetime
) -> int:
    """A request to grow; its id. Refused: volume_not_more, volume_no_limits, volume_request_open,
    volume_not_there."""
    words = check_text(text, field="text", longest=LONGEST_TEXT)
    with begin() as session:
        row = volume_rights.found(session, volume_id, viewer)
        if not volume_rights.rights(viewer, row.group).ask:
            raise NotFound(f"volume {volume_id}")
        _require_limits(session, row)
        _require_size(wanted)
        if row.limit_bytes is None or wanted <= row.limit_bytes:
            raise Refused("volume_not_more", field="size")
        return _add(session, row, wanted, viewer, now=now, text=words, state=Ask.OPEN)


def set_limit(
    volume_id: int,
    wanted: int | None,
    *,
    viewer: Viewer | None,
    begin: Begin,
    broker: Broker,
    now: datetime,
    below_use: bool = False,
    text: str = "",
) -> RequestRow:
    """The administrators' own way: at once, kept as a request that was agreed. None: no limit.

    Refused volume_below_use unless `below_use` says that it is meant; and as `ask`.
    """
    words = check_text(text, field="text", longest=LONGEST_TEXT)
    with begin() as session:
        volume_rights.require_manager(viewer)
        row = volume_rights.found(session, volume_id, viewer)
        _require_limits(session, row)
        if wanted is not None:
            _require_size(wanted)
        _require_meant(row, wanted, below_use=below_use)
        given: dict[str, Any] = {"now": now, "text": words, "below_use": below_use}
        made = _add(session, row, wanted, viewer, state=Ask.AGREED, **given)
    return carry_out(made, begin=begin, broker=broker, now=now)


def agree(
    request_id: int,
    text: str = "",
    *,
    viewer: Viewer | None,
    begin: Begin,
    broker: Broker,
    now: datetime,
) -> RequestRow:
    """And write it. NotFound for who may not; Refused volume_over_cap for a leader beyond the
    group's cap, volume_request_done, volume_below_use."""
    words = check_text(text, field="text", longest=LONGEST_TEXT)
    with begin() as session:
        one = _answerable(session, request_id, viewer)
        if not may_agree(session, one, viewer):
            raise Refused("volume_over_cap", field="size")
        row = volume_rights.found(session, one.volume_id, viewer)
        _require_meant(row, one.wanted_bytes, below_use=False)
        _decide(session, one, Ask.AGREED, words, viewer, now=now)
    return carry_out(request_id, begin=begin, broker=broker, now=now)


def refuse(
    request_id: int, text: str, *, viewer: Viewer | None, begin: Begin, now: datetime
) -> None:
    """With a reason, which whoever asked reads. Refused: volume_reason_missing."""
    words = check_text(text, field="text", longest=LONGEST_TEXT)
    if not words:
        raise Refused("volume_reason_missing", field="answer")
    with begin() as session:
        one = _answerable(session, request_id, viewer)
        _decide(session, one, Ask.REFUSED, words, viewer, now=now, done_at=now)


def withdraw(request_id: int, *, viewer: Viewer, begin: Begin, now: datetime) -> None:
    """One's own, while nobody has answered."""
    with begin() as session:
        one = work.request(session, request_id)
        if one is None or one.person_id != viewer.person_id:
            raise NotFound(f"request {request_id}")
        _decide(session, one, Ask.WITHDRAWN, "", viewer, now=now, done_at=now)


def take_as_it_is(volume_id: int, *, viewer: Viewer | None, begin: Begin, now: datetime) -> None:
    """Somebody set another limit behind the portal's back, and it shall stay."""
    with begin() as session:
        volume_rights.require_manager(viewer)
        row = volume_rights.found(session, volume_id, viewer)
        if row.problem != "volume_limit_differs":
            raise Refused("volume_nothing_differs")
        values: dict[str, Any] = {
            "volume_id": row.id,
            "wanted_bytes": row.limit_bytes,
            "state": Ask.APPLIED.value,
        }
        values |= {"before_bytes": row.wanted_bytes, "after_bytes": row.limit_bytes}
        values |= _who(viewer, now) | {"done_at": now, "code": "volume_limit_differs"}
        if work.add_request(session, values) is None:
            raise Refused("volume_request_open")
        store.change(session, row.id, wanted_bytes=row.limit_bytes, problem=None)


def carry_out(request_id: int, *, begin: Begin, broker: Broker, now: datetime) -> RequestRow:
    """One try to write an agreed one; what became of it. One that nobody can answer for now stays
    agreed with a code, and the worker tries again."""
    with begin() as session:
        one = _there(session, request_id)
        row = store.get(session, one.volume_id)
        before = one.before_bytes if one.tried_at else row.limit_bytes if row else None
        if row is None or not work.claim(session, one.id, before=before, now=now):
            return one
    wish = vol.SetVolumeLimit(row.area, row.name, before, one.wanted_bytes, one.below_use)
    try:
        back = broker.set_volume_limit(wish)
    except BrokerRefused as no:
        return _close(one, begin=begin, state=Ask.FAILED.value, done_at=now, code=no.code)
    except GatewayError as silence:
        return _close(one, begin=begin, code=silence.code)
    with begin() as session:
        values: dict[str, Any] = {
            "state": Ask.APPLIED.value,
            "after_bytes": back.limit_bytes,
            "done_at": now,
        }
        if work.decide(session, one.id, leaving=Ask.AGREED, code=None, **values):
            figures: dict[str, Any] = {
                "limit_bytes": back.limit_bytes,
                "wanted_bytes": one.wanted_bytes,
            }
            figures |= {"used_bytes": back.used_bytes, "problem": back.problem, "read_at": now}
            store.change(session, row.id, **figures)
        return _there(session, one.id)


def carry_on(*, begin: Begin, broker: Broker, now: datetime) -> int:
    """Those that somebody died over; how many were closed."""
    with begin() as session:
        waiting = work.agreed(session)
    done = [carry_out(one, begin=begin, broker=broker, now=now) for one in waiting]
    return sum(one.state is not Ask.AGREED for one in done)


def _close(one: RequestRow, *, begin: Begin, **values: Any) -> RequestRow:
    with begin() as session:
        work.decide(session, one.id, leaving=Ask.AGREED, **values)
        return _there(session, one.id)


def _there(session: "Session", request_id: int) -> RequestRow:
    one = work.request(session, request_id)
    if one is None:
        raise NotFound(f"request {request_id}")
    return one


def _answerable(session: "Session", request_id: int, viewer: Viewer | None) -> RequestRow:
    one = _there(session, request_id)
    if not volume_rights.rights(viewer, one.group).lead:
        raise NotFound(f"request {request_id}")
    return one


def _decide(
    session: "Session",
    one: RequestRow,
    state: Ask,
    words: str,
    viewer: Viewer | None,
    *,
    now: datetime,
    **more: Any,
) -> None:
    by = viewer.person_id if viewer else None
    values: dict[str, Any] = {
        "state": state.value,
        "answer": words,
        "decided_at": now,
        "decided_by": by,
        **more,
    }
    if not work.decide(session, one.id, leaving=Ask.OPEN, **values):
        raise Refused("volume_request_done")


def _add(
    session: "Session",
    row: VolumeRow,
    wanted: int | None,
    viewer: Viewer | None,
    *,
    now: datetime,
    text: str,
    state: Ask,
    below_use: bool = False,
) -> int:
    values: dict[str, Any] = {
        "volume_id": row.id,
        "wanted_bytes": wanted,
        "state": state.value,
        "text": text,
        "below_use": below_use,
    }
    who = _who(viewer, now)
    if state is Ask.OPEN:
        who |= {"decided_at": None, "decided_by": None}
    made = work.add_request(session, values | who)
    if made is None:
        raise Refused("volume_request_open")
    return made


def _who(viewer: Viewer | None, now: datetime) -> dict[str, Any]:
    by = viewer.person_id if viewer else None
    return {"at": now, "person_id": by, "decided_at": now, "decided_by": by}


def _require_size(wanted: int) -> None:
    if not 0 < wanted <= LARGEST or wanted % STEP:
        raise Refused("volume_bad_size", field="size")


def _require_limits(session: "Session", row: VolumeRow) -> None:
    if row.state is not State.THERE or row.problem == "volume_gone":
        raise Refused("volume_not_there")
    area = store.area(session, row.area)
    if area is None or not area.limits:
        raise Refused("volume_no_limits")


def _require_meant(row: VolumeRow, wanted: int | None, *, below_use: bool) -> None:
    """Nothing is deleted by it, and nobody can write any more: that wants a second word."""
    if wanted is None or row.used_bytes is None or below_use:
        return
    if wanted < row.used_bytes:
        raise Refused("volume_below_use", field="below_use", used=row.used_bytes)
