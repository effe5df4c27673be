"""Fill a SQLite file with as many jobs as a large site has, the same ones each time.

python tests/bench/make_store.py FILE [--active 100000] [--ended 1000000]
"""

import argparse
import json
import random
import sqlite3
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

from gateway.store.schema import upgrade
from gateway.store.uow import make_engine
from gateway.testing import builders as b
from gateway.wire.codec import dump

NOW = datetime(2026, 3, 2, 9, 0, tzinfo=UTC)
DAYS = 500
USERS = 300
GROUPS = [f"g{n:02d}" for n in range(25)]
NODES = 500
ENDED = ["COMPLETED"] * 78 + ["FAILED"] * 9 + ["CANCELLED"] * 7 + ["TIMEOUT"] * 4
ENDED += ["OUT_OF_MEMORY", "PREEMPTED"]
PARTITIONS = ["a100"] * 60 + ["rtx4090"] * 28 + ["cpu"] * 10 + ["debug"] * 2
QOS = ["normal"] * 80 + ["spot"] * 17 + ["urgent"] * 3
TEMPLATES = ["ddp"] * 40 + ["single-gpu"] * 25 + ["command"] * 15 + [None] * 20
NAMES = ["train", "eval", "sweep", "finetune-llm", "preprocess", "bench"]
REASONS = ["Priority"] * 70 + ["Resources"] * 20 + ["QOSMaxGRESPerUser"] * 8 + ["Dependency"] * 2
# What occurs a few times among a million.
RARE = {"state": "NODE_FAIL", "partition": "old", "qos": "reservation", "template": "rare"}
COLUMNS = [
    "id",
    "cluster",
    "slurm_id",
    "user",
    "uid",
    "name",
    "group_name",
    "partition",
    "qos",
    "template",
    "state",
    "active",
    "reason",
    "submit_time",
    "last_submit_time",
    "eligible_time",
    "start_time",
    "end_time",
    "time_limit_minutes",
    "nodes",
    "cpus",
    "gpus",
    "gpu_type",
    "node_list",
    "priority",
    "restarts",
    "exit_code",
    "exit_signal",
    "working_directory",
    "output",
    "seen_at",
]


def make_store(path: Path, *, active: int, ended: int) -> None:
    """A new file; one that is there already is an error."""
    if path.exists():
        raise FileExistsError(path)
    engine = make_engine(f"sqlite:///{path}")
    upgrade(engine)
    engine.dispose()
    chance = random.Random(7)  # the same jobs each time, not secrets
    with sqlite3.connect(path) as connection:
        connection.execute("PRAGMA synchronous = OFF")
        connection.execute("PRAGMA cache_size = -1000000")
        marks = ", ".join("?" * len(COLUMNS))
        names = ", ".join(f'"{name}"' for name in COLUMNS)
        connection.executemany(
            f"INSERT INTO job ({names}) VALUES ({marks})",
            _jobs(chance, active=active, ended=ended),
        )
        _rare(connection, ended)
        _runs(connection)
        _money(connection)
        _people(connection)
        _cluster(connection, chance)
        connection.commit()
        connection.execute("PRAGMA wal_checkpoint(TRUNCATE)")
    connection.close()


def _jobs(chance: random.Random, *, active: int, ended: int) -> Iterator[tuple[Any, ...]]:
    total = active + ended
    step = timedelta(days=DAYS) / total
    for n in range(1, total + 1):
        submit = NOW - step * (total - n)
        is_active = n > ended
        user = min(int(chance.paretovariate(0.9)) - 1, USERS - 1)
        yield _job(chance, n, user, submit, is_active=is_active)


def _job(
    chance: random.Random, n: int, user: int, submit: datetime, *, is_active: bool
) -> tuple[Any, ...]:
    state = chance.choice(ENDED)
    if is_active:
        state = "RUNNING" if chance.random() < 0.06 else "PENDING"
    eligible = submit + timedelta(seconds=chance.choice([0, 0, 0, 3600]))
    start = eligible + timedelta(minutes=chance.expovariate(1 / 90))
    end = start + timedelta(minutes=chance.expovariate(1 / 200))
    pending = state == "PENDING"
    gpus = chance.choice([0, 1, 1, 2, 4, 8, 8, 16])
    partition = chance.choice(PARTITIONS)
    name = f"{chance.choice(NAMES)}-{chance.randrange(400)}"
    # A person has one or two groups.
    group = GROUPS[(user + (chance.random() < 0.2)) % len(GROUPS)]
    return (
        n, b.CLUSTER, 1000 + n, f"user{user:03d}", 20000 + user, name, group, partition,
        chance.choice(QOS), chance.choice(TEMPLATES), state, is_active,
        chance.choice(REASONS) if pending else None,
        _text(submit), _text(submit), _text(eligible),
        None if pending else _text(start),
        _text(end) if not is_active else None,
        chance.choice([60, 240, 1440, 4320]), max(1, gpus // 8), 4 * max(1, gpus), gpus,
        partition if gpus else None, None if pending else f"{partition}-{n % NODES}",
        n % 10_000, 0, None if is_active else int(state == "FAILED"), None if is_active else 0,
        f"/home/user{user:03d}", f"/home/user{user:03d}/slurm-{1000 + n}.out", _text(NOW),
    )  # fmt: skip


def _rare(connection: sqlite3.Connection, ended: int) -> None:
    for n, (column, value) in enumerate(RARE.items()):
        ids = [(value, (ended // 40) * k + n + 1) for k in range(40)]
        connection.executemany(f'UPDATE job SET "{column}" = ? WHERE id = ?', ids)
    # A group that leaves a common partition alone: two common values that never meet.
    connection.execute(
        "UPDATE job SET partition = 'a100', gpu_type = 'a100'"
        " WHERE group_name = 'g01' AND partition = 'rtx4090'"
    )


def _runs(connection: sqlite3.Connection) -> None:
    connection.execute(
        "INSERT INTO run (job_id, cluster, slurm_id, state, submit_time, eligible_time, start_time,"
        " end_time, elapsed_seconds, suspended_seconds, nodes, cpus, gpus, alloc_tres, node_list,"
        " exit_code, exit_signal, restarts)"
        " SELECT id, cluster, slurm_id, state, submit_time, eligible_time, start_time, end_time,"
        " 600, 0, nodes, cpus, gpus, 'cpu=' || cpus, node_list, exit_code, exit_signal, 0"
        " FROM job WHERE NOT active"
    )


def _money(connection: sqlite3.Connection) -> None:
    """Prices, a pot for each group, and a charge for each run that ended."""
    first = _text(NOW - timedelta(days=DAYS + 1))
    connection.executemany(
        "INSERT INTO price (list_name, resource, per_hour, starts, set_at)"
        " VALUES ('site', ?, ?, ?, ?)",
        [(kind, 3_500_000, first, first) for kind in ("a100", "rtx4090", "debug", "old")],
    )
    connection.execute(
        "INSERT INTO qos_terms (qos, factor_millionths, preempted, starts, set_at)"
        " VALUES ('spot', 820000, 'free', ?, ?)",
        (first, first),
    )
    for group in GROUPS:
        connection.execute(
            "INSERT INTO account (group_name, at_zero, overdraft, warning_minutes, committed)"
            " VALUES (?, 'hold', 0, 30, 0)",
            (group,),
        )
        connection.execute(
            'INSERT INTO pot (group_name, kind, "key", reason, note, starts,'
            ' carry_over_millionths, "left", created_at)'
            " VALUES (?, 'balance', ?, 'balance', '', ?, 0, ?, ?)",
            (group, f"balance:{group}", first, 10**12, first),
        )
    connection.execute(
        'INSERT INTO charge (run_id, group_name, "user", state, amount, card_seconds, items,'
        " version, at)"
        " SELECT run.id, job.group_name, job.user, 'posted', job.gpus * 583334, job.gpus * 600,"
        " json_array(json_object('resource', job.partition, 'pot_id', 1, 'unit_seconds',"
        " job.gpus * 600, 'per_hour', 3500000, 'factor_millionths', 1000000, 'amount',"
        " job.gpus * 583334)), 1, run.end_time FROM run JOIN job ON job.id = run.job_id"
    )


def _people(connection: sqlite3.Connection) -> None:
    connection.executemany(
        "INSERT INTO person (id, login, unix_user, display_name, password_hash, role, created_at)"
        " VALUES (?, ?, ?, ?, '', 'researcher', ?)",
        [(n + 1, f"user{n:03d}", f"user{n:03d}", f"User {n}", _text(NOW)) for n in range(USERS)],
    )
    known = [
        b.association(f"user{n:03d}", GROUPS[(n + k) % len(GROUPS)], is_coordinator=n < 25)
        for n in range(USERS)
        for k in range(2)
    ]
    connection.executemany(
        'INSERT INTO association_now ("user", account, facts) VALUES (?, ?, ?)',
        [(one.user, one.account, json.dumps(dump(one))) for one in known],
    )


def _cluster(connection: sqlite3.Connection, chance: random.Random) -> None:
    kinds = ["a100"] * 350 + ["rtx4090"] * 150
    for n, kind in enumerate(kinds):
        state = chance.choice(["MIXED"] * 8 + ["IDLE", "MIXED+DRAIN"])
        node = b.node(f"{kind}-{n}", gpu_type=kind, state=state, gpus_used=chance.randrange(9))
        connection.execute(
            "INSERT INTO node_now (name, facts) VALUES (?, ?)", (node.name, json.dumps(dump(node)))
        )
    for name in ("a100", "rtx4090", "cpu", "debug", "old"):
        facts = json.dumps(dump(b.partition(name)))
        connection.execute("INSERT INTO partition_now (name, facts) VALUES (?, ?)", (name, facts))
    for name in ("normal", "spot", "urgent"):
        facts = json.dumps(dump(b.qos(name)))
        connection.execute("INSERT INTO qos_now (name, facts) VALUES (?, ?)", (name, facts))
    for name in ("queue", "cluster", "policy", "accounting"):
        connection.execute(
            "INSERT INTO poll (name, tried_at, succeeded_at) VALUES (?, ?, ?)",
            (name, _text(NOW), _text(NOW)),
        )
    connection.execute(
        "INSERT INTO queue_now (partition, gpu_type, group_name, state, reason, jobs, gpus,"
        " oldest_eligible) SELECT partition, gpu_type, group_name, state, reason, count(*),"
        " sum(gpus), min(eligible_time) FROM job WHERE active GROUP BY 1, 2, 3, 4, 5"
    )


def _text(at: datetime) -> str:
    return at.replace(tzinfo=None).isoformat(sep=" ", timespec="microseconds")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("file", type=Path)
    parser.add_argument("--active", type=int, default=100_000)
    parser.add_argument("--ended", type=int, default=1_000_000)
    given = parser.parse_args()
    make_store(given.file, active=given.active, ended=given.ended)


if __name__ == "__main__":
    main()
