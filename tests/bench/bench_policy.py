"""The pages of policy on a large site: 60 QoS, 500 groups, 10,000 open jobs, on SQLite.

    python tests/bench/bench_policy.py

Measured through the app without a socket: 200 requests of each page.
"""

import json
import random
import statistics
import tempfile
import time
from collections.abc import Iterator
from dataclasses import replace
from datetime import timedelta
from pathlib import Path

from flask.testing import FlaskClient
from sqlalchemy import insert
from web_client import hidden

from gateway.config import load_settings
from gateway.core.policy_change import Item, Source
from gateway.core.qos import GroupPolicy, Qos, tres
from gateway.core.tres import GPU
from gateway.services import policy_changes, policy_drift
from gateway.services.policy_present import present
from gateway.services.poll import POLICY
from gateway.store import polls, snapshot
from gateway.store.models import Job, table_of
from gateway.store.schema import upgrade
from gateway.store.uow import Begin, make_begin, make_engine
from gateway.testing.builders import NOW, PASSWORD, add_person
from gateway.testing.fakebroker import FakeBroker
from gateway.web.app import create_app
from gateway.wire import policy as p

GOAL = 80
QOS, GROUPS, JOBS = 60, 500, 10_000
PAGES = {
    "list": "/admin/qos",
    "qos": "/admin/qos/q00",
    "groups": "/admin/policy/groups",
    "edit": "/admin/qos/q00/edit",
    "change": "/admin/changes/1",  # of the shares of all groups, as each night makes one
}


def policy_pages(folder: Path, *, repeat: int = 200) -> Iterator[dict[str, object]]:
    engine = make_engine(f"sqlite:///{folder / 'policy.db'}")
    upgrade(engine)
    begin = make_begin(engine)
    _fill(begin)
    _propose(begin)
    app = create_app(
        load_settings({"SLUICE_HOME": str(folder)}),
        begin=begin,
        read=make_begin(engine, read_only=True),
        broker=FakeBroker(),
        clock=lambda: NOW + timedelta(minutes=2),
    )
    client = app.test_client()
    _sign_in(client)
    for name, path in PAGES.items():
        before = time.process_time()
        times = [_timed(client, path) for _ in range(repeat)]
        processor = (time.process_time() - before) * 1000 / repeat
        yield {
            "bench": f"policy/{name}",
            "median_ms": round(statistics.median(times), 1),
            "p95_ms": round(statistics.quantiles(times, n=20)[-1], 1),
            "processor_ms": round(processor, 1),
            "goal_p95_ms": GOAL,
        }
    engine.dispose()


def _sign_in(client: FlaskClient) -> None:
    fields = hidden(client.get("/sign-in").text)
    fields |= {"login": "boss", "password": PASSWORD}
    if client.post("/sign-in", data=fields).status_code != 303:
        raise RuntimeError("cannot sign in")


def _timed(client: FlaskClient, path: str) -> float:
    started = time.perf_counter()
    answer = client.get(path)
    took = (time.perf_counter() - started) * 1000
    if answer.status_code != 200:
        raise RuntimeError(f"{path}: {answer.status_code}")
    return took


def _fill(begin: Begin) -> None:
    add_person(begin, "boss", role="administrator")
    names = [f"q{number:02d}" for number in range(QOS)]
    groups = [f"g{number:03d}" for number in range(GROUPS)]
    with begin() as session:
        snapshot.replace_policy(
            session,
            associations=(),
            qos=tuple(_qos(names, number) for number in range(QOS)),
            accounts=tuple(_account(name, names) for name in groups),
            fair_shares=(),
        )
        polls.succeeded(session, POLICY, began=NOW, at=NOW)
        chance = random.Random(5)  # the same sample each time
        rows = [_job(chance, names, groups, number) for number in range(JOBS)]
        session.execute(insert(table_of(Job)), rows)
    policy_drift.look(begin=begin, read=begin, now=NOW)


def _propose(begin: Begin) -> None:
    with begin() as session:
        groups = present(session).groups.values()
    policy_changes.propose(
        [Item(group, replace(group, shares=11)) for group in groups],
        viewer=None,
        reason="",
        source=Source.CONTRIBUTION,
        second_approval=True,
        key="contribution:night",
        begin=begin,
        now=NOW,
    )


def _qos(names: list[str], number: int) -> Qos:
    return Qos(
        name=names[number],
        description=f"number {number}",
        priority=number * 10,
        preempts=tuple(names[:3]) if number > 10 else (),
        grp_tres=tres({GPU: 512, "cpu": 8192}),
        grp_submit_jobs=5000,
        max_tres_per_account=tres({GPU: 128}),
        max_jobs_per_account=200,
        max_tres_per_user=tres({GPU: 32, "mem": 1_048_576}),
        max_submit_per_user=100,
        max_tres_per_job=tres({GPU: 64}),
        max_wall_minutes=2880,
    )


def _account(name: str, names: list[str]) -> p.Account:
    policy = GroupPolicy(name=name, qos=tuple(names[:40]), default_qos=names[0], shares=10)
    return p.Account(policy, None, name, "site", ())


def _job(
    chance: random.Random, names: list[str], groups: list[str], number: int
) -> dict[str, object]:
    runs = number % 2 == 0
    return {
        "cluster": "dev",
        "slurm_id": number + 1,
        "user": f"user{chance.randrange(5000):04d}",
        "name": "train",
        "group_name": chance.choice(groups),
        "partition": "a100",
        "qos": chance.choice(names),
        "state": "RUNNING" if runs else "PENDING",
        "active": True,
        "submit_time": NOW,
        "last_submit_time": NOW,
        "start_time": NOW if runs else None,
        "nodes": 1,
        "cpus": 16,
        "gpus": 4,
        "gpu_type": "a100",
        "working_directory": "~",
        "restarts": 0,
        "accounted": False,
        "seen_at": NOW,
    }


if __name__ == "__main__":
    with tempfile.TemporaryDirectory(prefix="sluice-") as place:
        for line in policy_pages(Path(place)):
            print(json.dumps(line), flush=True)
