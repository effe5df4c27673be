"""Any order of submits, ends, requeues, corrections, repeats, lapses and refunds keeps the ledger
whole, and the end is what the runs alone say."""

import itertools
import tempfile
from contextlib import suppress
from datetime import timedelta
from pathlib import Path

from hypothesis import HealthCheck, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, rule
from sqlalchemy import select

from gateway.core.credits import MILLION
from gateway.core.pricing import cost
from gateway.errors import NotFound, Refused
from gateway.services import credit, refund, settle
from gateway.services.draft import InvalidAsk
from gateway.services.verify import verify
from gateway.store import models as t
from gateway.store import money_models as mm
from gateway.store.uow import make_begin
from gateway.testing.database import database
from gateway.testing.money import one_credit_an_hour
from gateway.testing.portal import ask, portal


class Money(RuleBasedStateMachine):
    """A portal on a real store, FakeBroker, and whatever happens."""

    @initialize()
    def open(self):
        self.folder = tempfile.TemporaryDirectory()
        self.database = database(Path(self.folder.name))
        self.begin = make_begin(self.database.__enter__())
        self.site = portal(self.begin)
        self.keys = map(str, itertools.count())
        one_credit_an_hour(self.begin, "a100", starts=self.site.now - timedelta(days=1))
        credit.top_up("nlp", 60 * MILLION, begin=self.begin, now=self.site.now)

    def teardown(self):
        if hasattr(self, "site"):
            self.site.broker.unreachable = False
            for job_id, job in self.site.broker.jobs.items():
                if not job.ended:
                    self.site.broker.finish(job_id)
            self.site.run_outbox(seconds=900, step=30)
            for job_id, job in self.site.broker.jobs.items():
                if not job.ended:
                    self.site.broker.finish(job_id)
            self.site.work()
            self.site.work()
            self.everything_is_paid_and_nothing_held()
        self.database.__exit__(None, None, None)
        self.folder.cleanup()

    @rule(
        cards=st.integers(1, 8),
        hours=st.integers(1, 3),
        fault=st.sampled_from([None] * 4 + ["no", "mute", "lost", "away"]),
    )
    def submit(self, cards, hours, fault):
        broker = self.site.broker
        broker.unreachable = fault == "away"
        if fault == "no":
            broker.refuse_next("invalid_qos")
        elif fault == "mute":
            broker.silent_after_next()
        elif fault == "lost":
            broker.silent_before_next()
        try:
            self.site.submit(
                ask(nodes="1", nproc_per_node=str(cards), time_limit=f"{hours}:00:00"),
                key=next(self.keys),
            )
        except InvalidAsk:
            broker._faults.clear()
        broker.unreachable = False

    @rule(seconds=st.integers(1, 5000))
    def pass_time(self, seconds):
        self.site.broker.advance(seconds)

    @rule(
        pick=st.integers(0, 50),
        how=st.sampled_from(["finish", "cancel", "preempt", "node", "requeue"]),
    )
    def end(self, pick, how):
        broker = self.site.broker
        going = [job for job in broker.jobs.values() if not job.ended]
        if not going:
            return
        job = going[pick % len(going)]
        if how == "cancel":
            broker.cancel(job.job_id, user="nlp-1")
        elif job.state == "PENDING":
            return
        elif how == "finish":
            broker.finish(job.job_id)
        elif how == "preempt":
            broker.preempt(job.job_id)
        elif how == "node":
            broker.fail_node(job.job_id)
        else:
            broker.requeue(job.job_id, user="nlp-1")

    @rule()
    def poll(self):
        self.site.poll()

    @rule()
    def ingest(self):
        self.site.ingest()

    @rule(batch=st.integers(1, 3))
    def settle(self, batch):
        settle.settle(begin=self.begin, now=self.site.now, batch=batch)

    @rule()
    def work(self):
        self.site.deliver_due()
        self.site.work()

    @rule(pick=st.integers(0, 50), seconds=st.integers(0, 7200))
    def correct(self, pick, seconds):
        """Accounting corrects an end, also of a run that was charged."""
        with self.begin() as session:
            runs = session.scalars(select(t.Run).where(t.Run.end_time.is_not(None))).all()
            if runs:
                run = runs[pick % len(runs)]
                run.elapsed_seconds = seconds
                run.end_time = run.start_time + timedelta(seconds=seconds)
                run.seen_until, run.to_settle = None, True
                self._correct_at_source(run)

    @rule(pick=st.integers(0, 50), undo=st.booleans())
    def give_back(self, pick, undo):
        with self.begin() as session:
            charges = list(session.scalars(select(mm.Charge.id)))
        if not charges:
            return
        charge = charges[pick % len(charges)]
        given = {"begin": self.begin, "now": self.site.now, "person_id": None}
        with suppress(Refused, NotFound):
            if undo:
                refund.undo(charge, **given)
            else:
                refund.refund(charge, note="a fault of the portal", **given)

    @rule(amount=st.integers(1, 20), days=st.integers(1, 3), carry=st.sampled_from([0, 500_000]))
    def grant(self, amount, days, carry):
        credit.grant(
            "nlp",
            amount * MILLION,
            reason="trial",
            key=next(self.keys),
            expires=self.site.now + timedelta(hours=days),
            carry_over_millionths=carry,
            begin=self.begin,
            now=self.site.now,
        )

    @invariant()
    def nothing_is_broken(self):
        if hasattr(self, "site"):
            assert verify(read=self.begin).broken == ()

    def _correct_at_source(self, run):
        """So that the next import says the same."""
        for job in self.site.broker.jobs.values():
            for place, record in enumerate(job.runs):
                if (record.job_id, record.submit_time) == (run.slurm_id, run.submit_time):
                    changed = {"elapsed_seconds": run.elapsed_seconds, "end_time": run.end_time}
                    job.runs[place] = type(record)(
                        **{n: getattr(record, n) for n in record.__slots__} | changed
                    )

    def everything_is_paid_and_nothing_held(self):
        with self.begin() as session:
            assert all(h.amount == 0 for h in session.scalars(select(mm.Hold))), "still held"
            runs = session.scalars(select(t.Run)).all()
            owed = sum(cost(r.elapsed_seconds * r.gpus, MILLION, MILLION) for r in runs)
            charged = sum(session.scalars(select(mm.Charge.amount)))
        assert charged == owed
        assert verify(read=self.begin).broken == ()


Money.TestCase.settings = settings(
    max_examples=25,
    stateful_step_count=30,
    deadline=None,
    suppress_health_check=list(HealthCheck),
)
TestMoney = Money.TestCase
