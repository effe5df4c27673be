"""The review: runs that nobody could charge for certain, and what a person decides."""

from collections.abc import Mapping
from datetime import datetime, timedelta
from typing import Any

from gateway.core.billing import Doubt
from gateway.errors import NotFound, Refused
from gateway.store import charges, reviews
from gateway.store.uow import Begin

# slurmctld has denied a job for this long: slurmdbd would have been told its end by now.
LOST_AFTER = timedelta(hours=1)
_MOST_SECONDS = 366 * 24 * 3600
_MOST_GPUS = 100_000


def decide(
    charge_id: int,
    *,
    seconds: int | None = None,
    gpus: Mapping[str, int] | None = None,
    waive: bool = False,
    note: str = "",
    begin: Begin,
    now: datetime,
    person_id: int | None,
) -> None:
    """Charge these card-seconds, or nothing at all; the next settling posts it. A later decision
    replaces an earlier one, with a correcting entry. Refused: note_missing, bad_request."""
    if not note.strip():
        raise Refused("note_missing", field="note")
    decision: dict[str, Any] = {"note": note.strip()[:2000], "at": now.isoformat()}
    if waive:
        decision["waive"] = True
    else:
        if seconds is None or not 0 <= seconds <= _MOST_SECONDS:
            raise Refused("bad_request", field="seconds")
        if not gpus or not all(0 <= count <= _MOST_GPUS for count in gpus.values()):
            raise Refused("bad_request", field="gpus")
        decision |= {"seconds": seconds, "gpus": dict(gpus)}
    with begin() as session:
        row = charges.get(session, charge_id)
        if row is None:
            raise NotFound("charge")
        charges.decide(session, charge_id, decision, person_id=person_id)
        if not reviews.end_by_decision(session, row.run_id, decision):
            charges.look_again_at(session, row.run_id)


def find_lost(*, begin: Begin, now: datetime) -> int:
    """Runs without an end whose job slurmctld denies: nothing is charged for them, and a person
    is told, with what such a run could cost at most."""
    with begin() as session:
        lost = reviews.lost_runs(session, before=now - LOST_AFTER)
        fresh = charges.next_id(session)
        rows: list[dict[str, Any]] = [
            {
                "id": fresh + place,
                "run_id": run.id,
                "group_name": run.group,
                "user": run.user,
                "state": "review",
                "reason": Doubt.NO_END.value,
                "amount": 0,
                "card_seconds": 0,
                "items": [],
                "pending": None,
                "version": 0,
                "at": now,
                "decision": None,
                "decided_by": None,
            }
            for place, run in enumerate(lost)
        ]
        charges.add_all(session, rows)
    return len(lost)
