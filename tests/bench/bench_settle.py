"""How many ended runs are charged a second, and that the ledger proves itself afterwards.

    python tests/bench/bench_settle.py [--runs 100000]

Half of the runs have a hold of their own submission, as jobs from the portal do.
"""

import argparse
import json
import tempfile
import time
from collections.abc import Iterator
from datetime import timedelta
from pathlib import Path

from sqlalchemy import insert

from gateway.core.credits import MILLION
from gateway.services import credit, settle
from gateway.services.verify import verify
from gateway.store import money_models as mm
from gateway.store.models import Job, Run, Submission, table_of
from gateway.store.schema import upgrade
from gateway.store.uow import Begin, make_begin, make_engine
from gateway.testing.builders import NOW, add_person
from gateway.testing.money import one_credit_an_hour

GOAL = 5000
GROUPS = 20
HELD = 10 * MILLION


def settlement(folder: Path, *, runs: int = 100_000) -> Iterator[dict[str, object]]:
    engine = make_engine(f"sqlite:///{folder / 'settle.db'}")
    upgrade(engine)
    begin = make_begin(engine)
    _fill(begin, runs)
    started = time.perf_counter()
    report = settle.settle(begin=begin, now=NOW)
    took = time.perf_counter() - started
    verified = verify(read=make_begin(engine, read_only=True))
    engine.dispose()
    yield {
        "bench": "settle",
        "runs": report.posted,
        "seconds": round(took, 2),
        "runs_a_second": round(report.posted / took),
        "goal": GOAL,
        "met": report.posted / took >= GOAL,
        "broken": len(verified.broken),
        **verified.looked_at,
    }


def _fill(begin: Begin, runs: int) -> None:
    one_credit_an_hour(begin, "a100")
    person = add_person(begin)
    for number in range(GROUPS):
        credit.top_up(f"g{number:02d}", 10**6 * MILLION, begin=begin, now=NOW)
    with begin() as session:
        balances = {
            pot.group: pot.id for pot in session.query(mm.Pot).filter(mm.Pot.kind == "balance")
        }
        rows = list(_rows(runs, person, balances))
        connection = session.connection()
        for place, table in enumerate((Job, Submission, mm.Hold, mm.Entry, Run)):
            values = [row[place] for row in rows if row[place] is not None]
            connection.execute(insert(table_of(table)), values)
        for pot_id in balances.values():
            held = sum(row[3]["amount"] for row in rows if row[3] and row[3]["pot_id"] == pot_id)
            session.get_one(mm.Pot, pot_id).left += held


def _rows(runs: int, person: int, balances: dict[str, int]) -> Iterator[tuple]:
    for number in range(1, runs + 1):
        group = f"g{number % GROUPS:02d}"
        at = NOW - timedelta(days=30) + timedelta(seconds=number)
        token = f"{number:032x}" if number % 2 else None
        seconds = 60 + number * 7919 % 86_000
        tres = "cpu=16,mem=64G,node=1,billing=16,gres/gpu=4,gres/gpu:a100=4"
        place = {"cluster": "dev", "slurm_id": number, "submit_time": at, "group_name": group}
        who = {"user": "member", "partition": "a100", "qos": "normal", "state": "COMPLETED"}
        size = {"nodes": 1, "cpus": 16, "gpus": 4, "restarts": 0}
        job = place | who | size | {"id": number, "name": "train", "active": False, "token": token}
        job |= {"last_submit_time": at, "working_directory": "/home", "seen_at": at}
        job |= {"accounted": True, "template": "ddp"}
        run = place | who | size | {"job_id": number, "start_time": at, "to_settle": True}
        run |= {"end_time": at + timedelta(seconds=seconds), "elapsed_seconds": seconds}
        run |= {"suspended_seconds": 0, "alloc_tres": tres, "node_list": "a100-1"}
        if token is None:
            yield job, None, None, None, run
            continue
        submission = {"id": number, "token": token, "form_key": token, "person_id": person}
        submission |= {"cluster": "dev", "state": "accepted", "template": "ddp", "ask": {}}
        submission |= {"request": {}, "script": "", "created_at": at, "job_id": number}
        hold = {"id": number, "submission_id": number, "group_name": group, "user": "member"}
        hold |= {"tasks": 1, "per_task": HELD, "amount": HELD, "opened_at": at}
        entry = {"at": at, "pot_id": balances[group], "group_name": group, "kind": "hold"}
        entry |= {"amount": -HELD, "key": f"hold:{number}:0", "hold_id": number}
        yield job, submission | {"attempts": 1}, hold, entry, run


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--runs", type=int, default=100_000)
    runs = parser.parse_args().runs
    with tempfile.TemporaryDirectory(prefix="sluice-") as folder:
        for line in settlement(Path(folder), runs=runs):
            print(json.dumps(line))


if __name__ == "__main__":
    main()
