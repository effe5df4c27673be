"""A contribution run over many groups on a real cluster: computed, applied, read back."""

import json
import shutil
import sys
import tempfile
import time
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path
from secrets import token_hex

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "slurm"))

from broker_fixture import BrokerProcess

from contrib.devcluster.instance import Instance
from gateway.core.contribution import Formula, Kind, Rules, Shape
from gateway.core.credits import MILLION
from gateway.core.policy_change import ChangeState
from gateway.services import contribution, contribution_book, policy_apply, poll
from gateway.store import contribution as book
from gateway.store.contribution import NewLine
from gateway.store.uow import Begin, make_begin
from gateway.testing.database import database

GROUPS, PEOPLE_EACH, LINES_EACH = 500, 10, 5
KIND = Kind(key="money", name="Money", unit="CNY", weight=MILLION, half_life_days=180)
RULES = Rules(
    kinds=(KIND,),
    formula=Formula(shape=Shape.SQUARE_ROOT, base=100, scale=10 * MILLION),
    left_alone=("nlp", "vision", "biolab", "admins"),
)


def contribution_run() -> Iterator[dict[str, object]]:
    """`contribution`: a first run that changes every group, one that changes a tenth, and one that
    changes nothing."""
    home = Path(tempfile.mkdtemp(prefix="sluice-"))
    instance = Instance(home)
    try:
        instance.up(say=lambda text: print(text, file=sys.stderr))
        _fill(instance)
        process = BrokerProcess(instance)
        process.start()
        try:
            with database(home) as engine:
                yield _measured(instance, process, make_begin(engine))
        finally:
            process.stop()
    finally:
        instance.down()
        shutil.rmtree(home, ignore_errors=True)


def _fill(instance: Instance) -> None:
    lines = ["Cluster - 'dev'", "Parent - 'root'"]
    lines += [f"Account - '{_name(n)}':Description='bench':Organization='x'" for n in range(GROUPS)]
    for n in range(GROUPS):
        lines.append(f"Parent - '{_name(n)}'")
        people = [f"{_name(n)}-{k}" for k in range(PEOPLE_EACH)]
        lines += [f"User - '{one}':DefaultAccount='{_name(n)}'" for one in people]
    argv = ["sacctmgr", "--immediate", "load", "file=/dev/stdin"]
    done = instance.run(argv, stdin="\n".join(lines) + "\n")
    if done.returncode != 0:
        raise RuntimeError(done.stdout[-500:] + done.stderr[-500:])


def _measured(instance: Instance, process: BrokerProcess, begin: Begin) -> dict[str, object]:
    broker = process.client(60)
    poll.poll_policy(begin=begin, broker=broker, now=_now())
    contribution_book.set_rules(RULES, expected=None, begin=begin, now=_now())
    lines = [(n, (n + 1) * 100 + k, k * 40) for n in range(GROUPS) for k in range(LINES_EACH)]
    _bring(begin, lines)
    found: dict[str, object] = {"bench": "contribution", "groups": GROUPS}
    found["people"] = GROUPS * PEOPLE_EACH
    for name, more in (("all", 0), ("tenth", GROUPS // 10), ("none", 0)):
        _bring(begin, [(n, 10_000, 0) for n in range(more)])
        acts = _acts(process)
        started = time.perf_counter()
        run = contribution.compute(
            name, second_approval=False, viewer=None, begin=begin, now=_now(), zone=UTC
        )
        computed = time.perf_counter() - started
        if run.change_id is not None:
            state = policy_apply.apply(
                run.change_id, viewer=None, begin=begin, broker=broker, now=_now()
            )
            if state is not ChangeState.APPLIED:
                raise RuntimeError(f"the change is {state}")
        found[f"{name}_seconds"] = round(time.perf_counter() - started, 1)
        found[f"{name}_compute_seconds"] = round(computed, 2)
        found[f"{name}_changed"] = run.differing
        found[f"{name}_acts"] = _acts(process) - acts
    _compare(instance, begin)
    return found | {"goal_seconds": 60}


def _bring(begin: Begin, brought: list[tuple[int, int, int]]) -> None:
    """Group, amount, days ago."""
    with begin() as session:
        for group, amount, days in brought:
            day = (_now() - timedelta(days=days)).date()
            line = NewLine(token_hex(8), _name(group), "money", amount * MILLION, day, None, "")
            book.add_line(session, line, now=_now(), person_id=None)


def _compare(instance: Instance, begin: Begin) -> None:
    """sacctmgr says what the rules give."""
    with begin() as session:
        wanted = contribution.preview(session, RULES, now=_now(), zone=UTC).results
    words = ["show", "associations", "where", "cluster=dev", "user=", "format=account,fairshare"]
    printed = instance.run(["sacctmgr", "-nP", *words]).stdout.split()
    there = dict(line.split("|") for line in printed)
    for one in wanted:
        if one.untouched is None and there[one.before.name] != str(one.after.shares):
            raise RuntimeError(f"{one.before.name}: {there[one.before.name]}")


def _acts(process: BrokerProcess) -> int:
    """Writes of shares that the broker noted before it acted."""
    log = process.acts_log
    events = [json.loads(line) for line in log.read_text().splitlines()] if log.exists() else []
    return sum(one["event"] == "begin" and one["verb"] == "set-shares" for one in events)


def _name(group: int) -> str:
    return f"bench{group:03d}"


def _now() -> datetime:
    return datetime.now(UTC)
