"""The review: runs that nobody could charge for certain, and what a person decides."""

from collections.abc import Mapping
from datetime import datetime, timedelta
from typing import TYPE_CHECKING, Any

from gateway.core.billing import Doubt, RunFacts, Suspended, TypeOfNodes, usage_of
from gateway.core.notices import Kind
from gateway.core.pricing import Bill, PriceList, bill
from gateway.errors import NotFound, Refused
from gateway.services import hold, node_types
from gateway.store import charges, holds, notices, prices, reviews
from gateway.store.reviews import LostRun, RunRow
from gateway.store.uow import Begin

if TYPE_CHECKING:
    from sqlalchemy.orm import Session

# slurmctld has denied a job for this long: slurmdbd would have been told its end by now.
LOST_AFTER = timedelta(hours=1)
_MOST_SECONDS = 366 * 24 * 3600
_MOST_GPUS = 100_000
_LONGEST_NOTE = 2000


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
    replaces an earlier one, with a correcting entry. Refused: note_missing, bad_request, no_group
    (nobody can be charged: waive it)."""
    if not note.strip():
        raise Refused("note_missing", field="note")
    decision: dict[str, Any] = {"note": note.strip()[:_LONGEST_NOTE], "at": now.isoformat()}
    with begin() as session:
        row = charges.get(session, charge_id)
        run = reviews.lock_run(session, row.run_id) if row else None
        if row is None or run is None:
            raise NotFound("charge")
        if waive:
            decision["waive"] = True
        else:
            decision |= _amounts(run, seconds, gpus)
            _priced(decision["gpus"], prices.load(session), run.start)
        charges.decide(session, charge_id, decision, person_id=person_id)
        if run.end_time is None:
            reviews.end_by_decision(session, run.id, int(decision.get("seconds", 0)))
        else:
            charges.look_again_at(session, run.id)


def find_lost(*, begin: Begin, now: datetime) -> int:
    """Runs without an end whose job slurmctld denies: nothing is charged for them, and a person
    is told, with what such a run could cost at most. Holds of jobs that vanished before they ran
    are told too. Answers how many runs are new."""
    with begin() as session:
        charges.lock(session)
        lost = reviews.lost_runs(session, before=now - LOST_AFTER)
        price_list, type_of = prices.load(session), node_types.reader(session)
        fresh = charges.next_id(session)
        rows = [
            charges.new_review(
                run.id,
                run.group,
                run.user,
                Doubt.NO_END,
                now=now,
                pending=_pending(run, price_list, type_of),
            )
            | {"id": fresh + place}
            for place, run in enumerate(lost)
        ]
        charges.add_all(session, rows)
        _tell_lost_holds(session, now=now)
    return len(lost)


def release_lost(hold_id: int, *, begin: Begin, now: datetime) -> None:
    """Give back what is held for a job that Slurm has lost; should it run after all, it is
    charged all the same. NotFound for a hold that is not one of these."""
    with begin() as session:
        lost = {one.id for one in reviews.lost_holds(session, before=now - LOST_AFTER)}
        if hold_id not in lost:
            raise NotFound("hold")
        (row,) = holds.by_ids(session, [hold_id])
        hold.release(session, row, now=now)
        _tell_lost_holds(session, now=now)


def _amounts(run: RunRow, seconds: int | None, gpus: Mapping[str, int] | None) -> dict[str, Any]:
    if not run.group:
        raise Refused("no_group", field="note")
    if seconds is None or not 1 <= seconds <= _MOST_SECONDS:
        raise Refused("bad_request", field="seconds")  # nothing at all is what waiving says
    given = dict(gpus or {})
    if not given and run.gpus != 0:
        raise Refused("bad_request", field="gpus")
    if not all(0 <= count <= _MOST_GPUS for count in given.values()):
        raise Refused("bad_request", field="gpus")
    return {"seconds": seconds, "gpus": given}


def _priced(gpus: Mapping[str, int], price_list: PriceList, at: datetime) -> None:
    for kind, count in gpus.items():
        if count and price_list.price(kind, at) is None:
            raise Refused("no_price", field="gpus", resource=kind)


def _pending(run: LostRun, price_list: PriceList, type_of: TypeOfNodes) -> int | None:
    """By the last sight of it, and never past its limit; None when nobody can say."""
    seconds = max(0, int((run.last_seen - run.start).total_seconds()))
    if run.time_limit_minutes:
        seconds = min(seconds, run.time_limit_minutes * 60)
    facts = RunFacts(
        state=run.state,
        group=run.group,
        partition=run.partition,
        start=run.start,
        end=run.start + timedelta(seconds=seconds),
        elapsed_seconds=seconds,
        suspended_seconds=0,
        cpus=run.cpus,
        gpus=run.gpus,
        alloc_tres=run.alloc_tres,
        node_list=run.node_list,
    )
    usage = usage_of(facts, type_of=type_of, suspended=Suspended.RUNNING)
    if isinstance(usage, Doubt):
        return None
    found = bill(usage, qos=run.qos, at=run.start, prices=price_list)
    return found.total if isinstance(found, Bill) else None


def _tell_lost_holds(session: "Session", *, now: datetime) -> None:
    lost = reviews.lost_holds(session, before=now - LOST_AFTER)
    keys = {f"hold_lost:{one.id}": one for one in lost}
    for key, one in keys.items():
        facts = {"hold": one.id, "group": one.group, "job": one.slurm_id, "amount": one.amount}
        notices.tell(session, key, kind=Kind.HOLD_LOST.value, facts=facts, now=now)
    gone = set(notices.open_keys(session, [Kind.HOLD_LOST.value])) - set(keys)
    notices.over(session, gone, now=now)
