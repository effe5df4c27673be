"""The portal without its pages: a store, a FakeBroker and the use cases, moved by one clock."""

from collections.abc import Callable
from dataclasses import dataclass, field, replace
from datetime import datetime
from typing import Any

from sqlalchemy import select

from gateway.config import assets
from gateway.core.access import Viewer
from gateway.core.ask import Ask
from gateway.services import credit, deliver, hold, ingest, poll, reconcile, settle, submit
from gateway.services.environments import NONE
from gateway.services.templates import Catalogue
from gateway.store import models as t
from gateway.store.uow import Begin
from gateway.testing import builders as b
from gateway.testing.fakebroker import FakeBroker

CLUSTER = b.CLUSTER

ASK = Ask(
    template="ddp",
    group="nlp",
    partition="a100",
    qos="normal",
    nodes="2",
    nproc_per_node="4",
    time_limit="1-00:00:00",
    name="train",
    working_directory="~",
    values={"script": "train.py"},
)


def ask(**changes: Any) -> Ask:
    return replace(ASK, **changes)


@dataclass
class Portal:
    """`now` is FakeBroker's clock, or `clock`. `viewer` is a member of nlp."""

    begin: Begin
    broker: Any  # FakeBroker, or the real one with a `clock`
    viewer: Viewer
    clock: Callable[[], datetime] | None = None
    catalogue: Catalogue = field(
        default_factory=lambda: Catalogue.load((assets() / "sbatch_templates",))
    )

    @property
    def now(self) -> datetime:
        found: datetime = self.clock() if self.clock else self.broker.now
        return found

    def submit(self, wanted: Ask = ASK, *, key: str = "form-1", **changes: Any) -> int:
        given: dict[str, Any] = {"viewer": self.viewer, "begin": self.begin, "now": self.now}
        given["environments"] = (NONE,)
        return submit.submit(
            wanted,
            form_key=key,
            read=self.begin,
            broker=self.broker,
            catalogue=self.catalogue,
            **(given | changes),
        )

    def deliver_due(self) -> int:
        return deliver.deliver_due(begin=self.begin, broker=self.broker, now=self.now)

    def poll(self) -> poll.PollReport:
        return poll.poll_queue(begin=self.begin, broker=self.broker, cluster=CLUSTER, now=self.now)

    def poll_policy(self) -> None:
        poll.poll_cluster(begin=self.begin, broker=self.broker, now=self.now)
        poll.poll_policy(begin=self.begin, broker=self.broker, now=self.now)

    def ingest(self) -> ingest.IngestReport:
        return ingest.ingest(begin=self.begin, broker=self.broker, cluster=CLUSTER, now=self.now)

    def reconcile(self) -> reconcile.ReconcileReport:
        return reconcile.reconcile(
            begin=self.begin, broker=self.broker, cluster=CLUSTER, now=self.now
        )

    def settle(self) -> settle.SettleReport:
        """What the worker does with ended runs, in its order."""
        report = settle.settle(begin=self.begin, now=self.now)
        hold.release_due(begin=self.begin, now=self.now)
        credit.expire_due(begin=self.begin, now=self.now)
        return report

    def work(self) -> None:
        """One turn of the worker: queue, accounting, money."""
        self.poll()
        self.ingest()
        self.reconcile()
        self.settle()

    def run_outbox(self, *, seconds: float, step: float = 5.0) -> None:
        """Let time pass with the outbox at work, and no poll."""
        passed = 0.0
        while passed < seconds:
            self.broker.advance(step)
            self.deliver_due()
            passed += step

    def submission(self, submission_id: int) -> t.Submission:
        with self.begin() as session:
            return session.get_one(t.Submission, submission_id)

    def jobs(self) -> list[t.Job]:
        with self.begin() as session:
            return list(session.scalars(select(t.Job).order_by(t.Job.id)))

    def runs(self) -> list[t.Run]:
        with self.begin() as session:
            return list(session.scalars(select(t.Run).order_by(t.Run.submit_time)))

    def events(self, submission_id: int) -> list[str]:
        with self.begin() as session:
            query = select(t.Event.kind).where(t.Event.submission_id == submission_id)
            return list(session.scalars(query.order_by(t.Event.id)))


def portal(
    begin: Begin,
    *,
    user: str = "nlp-1",
    broker: Any = None,
    clock: Callable[[], datetime] | None = None,
) -> Portal:
    """A portal whose store has read the policy of its cluster; FakeBroker's by default."""
    person_id = b.add_person(begin, user)
    viewer = b.viewer(user, person_id=person_id, groups=("nlp",))
    made = Portal(begin, broker or FakeBroker(), viewer, clock)
    made.poll_policy()
    return made
