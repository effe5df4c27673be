"""The portal with its gate, on a site with prices, for tests: money, plain sbatch, sacctmgr."""

from collections.abc import Callable
from dataclasses import replace
from typing import Any

from sqlalchemy import select

from gateway.core.credits import MILLION
from gateway.core.gate import Mode
from gateway.core.ledger import EntryKind, NewEntry
from gateway.services import credit, enforce
from gateway.store import gate as gates
from gateway.store import ledger
from gateway.store import money_models as mm
from gateway.store.gate import GateRow
from gateway.store.uow import Begin
from gateway.testing.fakejobs import FakeJob
from gateway.testing.money import one_credit_an_hour
from gateway.testing.portal import ASK, CLUSTER, portal
from gateway.wire import messages as m

ONE_HOUR = replace(ASK, nodes="1", nproc_per_node="1", time_limit="01:00:00")  # worth 1


class Gated:
    """The portal with its gate, on a site with prices; `turn` is the worker's."""

    def __init__(self, begin: Begin, *, mode: Mode = Mode.ENFORCE) -> None:
        self.begin, self.mode = begin, mode
        self.site = portal(begin)
        self.broker = self.site.broker
        self.memory = enforce.Memory()
        self.plain = 0
        self.stopwatch: Callable[[], float] = lambda: 0.0
        one_credit_an_hour(begin)

    def turn(self, *, poll: bool = True, seconds: float = 10) -> enforce.Report:
        self.broker.advance(seconds)
        if poll:
            self.site.poll()
        return self.again()

    def again(self) -> enforce.Report:
        return enforce.enforce(
            begin=self.begin,
            read=self.begin,
            broker=self.broker,
            cluster=CLUSTER,
            memory=self.memory,
            now=self.site.now,
            mode=self.mode,
            stopwatch=self.stopwatch,
        )

    def give(self, amount: float, group: str = "nlp") -> None:
        credit.top_up(group, int(amount * MILLION), begin=self.begin, now=self.site.now)

    def sbatch(
        self,
        user: str = "nlp-1",
        *,
        minutes: int = 60,
        gpus: int = 1,
        group: str = "nlp",
        **values: Any,
    ) -> int:
        """Past the portal: its mark is nobody's submission."""
        self.plain += 1
        facts: dict[str, Any] = {
            "token": f"{self.plain:032x}",
            "user": user,
            "name": "plain",
            "account": group,
            "partition": "a100",
            "qos": "normal",
            "nodes": 1,
            "gpus_per_node": gpus,
            "gpu_type": "a100",
            "cpus_per_task": 1,
            "time_limit_minutes": minutes,
            "working_directory": f"/home/{user}",
            "output": "%j.out",
            "script": "#!/bin/sh\nsleep 1\n",
        }
        job_id: int = self.broker.submit(m.SubmitRequest(**(facts | values))).job_id
        return job_id

    def fill(self) -> None:
        """All cards of a100, by another group."""
        self.give(10_000, "vision")
        for _ in range(4):
            self.sbatch("vision-1", group="vision", gpus=8, minutes=600)
        self.broker.advance(1)

    def limits(self, group: str = "nlp", user: str | None = None) -> tuple[int | None, int | None]:
        found = self.broker.limits[(group, user)]
        return found.grp_submit_jobs, found.grp_gpu_run_minutes

    def own(
        self, *, submit: int | None = None, minutes: int | None = None, group: str = "nlp"
    ) -> None:
        """Somebody with sacctmgr."""
        before = self.broker.limits[(group, None)]
        self.broker.limits[(group, None)] = replace(
            before, grp_submit_jobs=submit, grp_gpu_run_minutes=minutes
        )

    def job(self, slurm_id: int) -> FakeJob:
        job: FakeJob = self.broker.jobs[slurm_id]
        return job

    def row(self, group: str = "nlp", user: str = "") -> GateRow | None:
        with self.begin() as session:
            return gates.gate(session, group, user)

    def held(self) -> list[int]:
        with self.begin() as session:
            return [one.slurm_id for one in gates.held_jobs(session).values()]

    def told(self, *, gone: bool = False) -> list[str]:
        with self.begin() as session:
            query = select(mm.Notice.key).order_by(mm.Notice.key)
            if not gone:
                query = query.where(mm.Notice.gone_at.is_(None))
            return list(session.scalars(query))

    def rules(self, group: str = "nlp", **values: Any) -> None:
        with self.begin() as session:
            ledger.lock(session, [group], now=self.site.now)
            ledger.set_rules(session, group, **values)

    def cap(self, user: str, per_month: float, group: str = "nlp") -> None:
        with self.begin() as session:
            session.add(mm.MemberCap(group=group, user=user, per_month=int(per_month * MILLION)))

    def spend(self, amount: float, group: str = "nlp") -> None:
        """As a correction does: the balance goes below zero."""
        with self.begin() as session:
            now = self.site.now
            balance = ledger.lock(session, [group], now=now)[group][0].id
            cost, key = -int(amount * MILLION), f"test:{now.timestamp()}"
            ledger.post(session, [NewEntry(now, balance, group, EntryKind.CORRECTION, cost, key)])
