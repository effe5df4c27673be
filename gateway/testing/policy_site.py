"""A site whose policy is changed: the made-up Slurm, its polls, and two administrators."""

from datetime import datetime, timedelta
from typing import Any
from uuid import uuid4

from gateway.core.access import Role, Viewer
from gateway.core.policy_change import ChangeState, Item, ItemState, Of, Source
from gateway.core.qos import GroupPolicy, Policy, Qos
from gateway.services import policy_apply, policy_changes, policy_drift, poll
from gateway.services.policy_present import present
from gateway.store import notices
from gateway.store.queries import policy_changes as rows
from gateway.store.uow import Begin
from gateway.testing import builders as b
from gateway.testing.fakebroker import FakeBroker


class PolicySite:
    """`now` moves by `wait` alone; a poll, and a look for drift, have gone by at the start."""

    def __init__(self, begin: Begin, *, polled: bool = True) -> None:
        self.begin, self.broker, self.now = begin, FakeBroker(), b.NOW
        self.ada = self._administrator("ada")
        self.bob = self._administrator("bob")
        if polled:
            self.poll()

    def wait(self, **much: float) -> None:
        self.now += timedelta(**(much or {"seconds": 5}))

    def poll(self) -> int:
        """One read of policy and a look for drift: how much there is."""
        self.wait()
        poll.poll_policy(begin=self.begin, broker=self.broker, now=self.now)
        return policy_drift.look(begin=self.begin, read=self.begin, now=self.now)

    def qos(self, name: str = "normal") -> Qos:
        """As the portal knows it."""
        with self.begin() as session:
            return present(session).qos[name]

    def group(self, name: str = "nlp") -> GroupPolicy:
        with self.begin() as session:
            return present(session).groups[name]

    def in_slurm(self, of: Of, name: str) -> Policy | None:
        if of is Of.QOS:
            return self.broker.policy.qos.get(name)
        account = self.broker.policy.accounts.get(name)
        return account.policy if account else None

    def propose(
        self, *items: Item, viewer: Viewer | None = None, second: bool = False, **more: Any
    ) -> int:
        facts = {"reason": "a test", "source": Source.FORM, "key": uuid4().hex} | more
        return policy_changes.propose(
            items,
            viewer=viewer or self.ada,
            second_approval=second,
            begin=self.begin,
            now=self.now,
            **facts,
        )

    def apply(self, change_id: int, begin: Begin | None = None) -> ChangeState:
        self.wait()
        return policy_apply.apply(
            change_id,
            viewer=self.ada,
            begin=begin or self.begin,
            broker=self.broker,
            now=self.now,
            stopwatch=lambda: 0.0,
        )

    def due(self) -> dict[int, ChangeState]:
        """A turn of the worker."""
        self.wait()
        report = policy_apply.apply_due(
            begin=self.begin, broker=self.broker, now=self.now, stopwatch=lambda: 0.0
        )
        return dict(report.states)

    def change(self, change_id: int) -> rows.ChangeRow:
        with self.begin() as session:
            found = rows.change(session, change_id)
        assert found is not None
        return found

    def items(self, change_id: int) -> dict[str, tuple[ItemState, str | None]]:
        return {row.object: (row.state, row.code) for row in self.change(change_id).items}

    def versions(self, of: Of, name: str) -> tuple[rows.VersionRow, ...]:
        """The oldest first."""
        with self.begin() as session:
            return rows.versions(session, of, name)[::-1]

    def drift(self) -> dict[str, policy_drift.Drift]:
        with self.begin() as session:
            return {one.object: one for one in policy_drift.find(session)}

    def told(self, kind: str) -> dict[str, datetime]:
        with self.begin() as session:
            return notices.open_keys(session, [kind])

    def agree(self) -> None:
        """Invariant 8: what Slurm has is what the newest versions say, and nothing else."""
        with self.begin() as session:
            newest = rows.newest(session)
        said = {which: row.policy for which, row in newest.items()}
        there: dict[tuple[Of, str], Policy] = {
            **{(Of.QOS, name): one for name, one in self.broker.policy.qos.items()},
            **{(Of.GROUP, name): one.policy for name, one in self.broker.policy.accounts.items()},
        }
        assert said == there

    def _administrator(self, login: str) -> Viewer:
        person = b.add_person(self.begin, login, role=Role.ADMINISTRATOR.value)
        return b.viewer(login, person_id=person, role=Role.ADMINISTRATOR)
