"""Volumes with months of figures for the sample site: one that fills, one that rests, one full."""

import random
from dataclasses import dataclass
from datetime import datetime, timedelta, tzinfo
from typing import Any

from gateway.core.access import Viewer
from gateway.services import volume_charges, volume_read
from gateway.services import volume_entries as entries
from gateway.services import volume_requests as requests
from gateway.services.volume_entries import Wish
from gateway.store import people
from gateway.store import volumes as store
from gateway.store.uow import Begin
from gateway.testing.fakebroker import FakeBroker
from gateway.wire import volumes as vol

GB, TB = 2**30, 2**40
DAYS = 120
GROWN = 9  # days ago the one that fills got more room


@dataclass(frozen=True, slots=True)
class Sample:
    """`used` GB today after growing by `a_day` GB; `limit` in TB, None where nothing can limit."""

    area: str
    name: str
    group: str
    limit: int | None
    used: int
    a_day: int


SAMPLES = (
    Sample("volumes", "nlp-home", "nlp", 4, 2_950, 14),
    Sample("volumes", "nlp-corpora", "nlp", 20, 9_400, 0),
    Sample("archive", "nlp-archive", "nlp", None, 31_000, 90),
    Sample("volumes", "vision-data", "vision", 10, 9_650, 35),
)


def fill_volumes(begin: Begin, broker: FakeBroker, *, now: datetime, zone: tzinfo) -> None:
    """With prices, a request that waits, and a folder that is none yet."""
    volume_read.look(begin=begin, broker=broker, now=now, zone=zone)
    given: dict[str, Any] = {"viewer": None, "begin": begin}
    long_ago = now - timedelta(days=DAYS)
    entries.set_price("0.03", **given, now=long_ago)
    entries.set_price("0.008", area="archive", **given, now=long_ago)
    entries.set_cap("nlp", 30 * TB, **given)
    made = {one.name: _one(one, begin, broker, now=now, zone=zone) for one in SAMPLES}
    state = broker.volume_state
    state.rows["volumes", "old-scratch"] = vol.Volume(
        "volumes", "old-scratch", "/volumes/old-scratch", "vision", 300 * GB, None
    )
    grown: dict[str, Any] = {"begin": begin, "broker": broker, "now": now - timedelta(days=GROWN)}
    requests.set_limit(made["nlp-home"], 5 * TB, viewer=None, text="for the retreat", **grown)
    volume_read.look(begin=begin, broker=broker, now=now, zone=zone)
    volume_charges.charge_due(begin=begin, now=now, zone=zone)
    requests.ask(
        made["nlp-home"], 8 * TB, "checkpoints of the second corpus, until spring",
        viewer=_viewer(begin, "nlp-1"), begin=begin, now=now - timedelta(hours=5),
    )  # fmt: skip


def _one(one: Sample, begin: Begin, broker: FakeBroker, *, now: datetime, zone: tzinfo) -> int:
    limit = None if one.limit is None else one.limit * TB
    wish = Wish(one.area, one.name, one.group, limit)
    begun = now - timedelta(days=DAYS)
    made = entries.create(wish, viewer=None, begin=begin, broker=broker, now=begun)
    broker.volume_state.change(one.name, area=one.area, used_bytes=one.used * GB)
    chance = random.Random(one.name)  # noqa: S311  # the same sample each time
    with begin() as session:
        for back in range(DAYS, 0, -1):
            day = (now - timedelta(days=back)).astimezone(zone).date()
            known = one.used - one.a_day * back + chance.randint(-20, 20)
            used = None if back == 40 else max(0, known) * GB
            had = 5 * TB if one.name == "nlp-home" and back <= GROWN else limit
            store.put_day(session, made.id, day, used=used, limit=had)
    return made.id


def _viewer(begin: Begin, login: str) -> Viewer:
    with begin() as session:
        person = people.by_login(session, login)
        assert person is not None
        member = people.memberships(session, person.unix_user)
    return Viewer(
        person_id=person.id,
        session_id=0,
        login=login,
        unix_user=person.unix_user,
        display_name=person.display_name,
        role=person.role,
        groups=member.groups,
        leads=member.leads,
    )
