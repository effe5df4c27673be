"""Whatever happens, in whatever order: what Slurm has is what the newest versions say, and where
it is not, somebody was behind it and it is shown as drift."""

import random
from contextlib import suppress
from dataclasses import replace
from datetime import timedelta

import pytest

from gateway.core.policy_change import OPEN, Item, ItemState, Of
from gateway.errors import NotFound, Refused
from gateway.services import policy_drift, policy_history, policy_retire
from gateway.testing.policy_site import PolicySite

SEEDS = range(6)
STEPS = 25
NAMES = ("normal", "spot", "urgent")
GROUPS = ("nlp", "vision", "biolab")


class Killed(BaseException):
    """No rule of ours catches it."""


class Walk:
    """One seed's story. `behind`: objects that somebody, or Slurm itself, changed past us."""

    def __init__(self, begin, seed):
        self.site, self.dice = PolicySite(begin), random.Random(seed)
        self.behind, self.changes = set(), []

    def step(self):
        acts = (self.propose, self.propose, self.apply, self.apply, self.due, self.past_us)
        acts += (self.poll, self.undo, self.settle_drift, self.retire, self.scheduled)
        with suppress(Refused, NotFound):
            self.dice.choice(acts)()
        self.site.wait(seconds=self.dice.choice((1, 20, 300)))

    def item(self):
        if self.dice.random() < 0.4:
            group = self.site.group(self.dice.choice(GROUPS))
            some = {"shares": self.dice.randrange(9)}
            if self.dice.random() < 0.3:
                some["grp_jobs"] = self.dice.choice((None, 3, 5))
            return Item(group, replace(group, **some))
        qos = self.site.qos(self.dice.choice(NAMES))
        some = {"priority": self.dice.randrange(9), "max_wall_minutes": self.dice.choice((None, 9))}
        return Item(qos, replace(qos, **some))

    def propose(self, **more):
        items = {item.object: item for item in (self.item() for _ in range(3))}
        self.changes.append(self.site.propose(*items.values(), **more))

    def scheduled(self):
        soon = self.site.now + timedelta(minutes=self.dice.randrange(30))
        self.propose(starts_at=soon, ends_at=soon + timedelta(minutes=20))

    def apply(self):
        if not self.changes:
            return
        self.fault()
        try:
            self.site.apply(self.dice.choice(self.changes[-4:]), begin=self.mortal())
        except Killed:
            pass
        finally:
            self.heal()

    def due(self):
        self.fault()
        whole, self.site.begin = self.site.begin, self.mortal()
        try:
            self.site.due()
        except Killed:
            pass
        finally:
            self.site.begin = whole
            self.heal()

    def fault(self):
        broker = self.site.broker
        match self.dice.randrange(8):
            case 0:
                broker.silent_before_next()
            case 1:
                broker.silent_after_next()
            case 2:
                broker.unreachable = True
            case 3:
                broker.refuse_next("policy_refused")
            case 4:
                # Cut short as well, nobody can tell it from a change behind the portal's back.
                broker.policy.refuse_qos_fields = frozenset({"priority"})
                self.behind |= {f"qos:{name}" for name in NAMES}

    def heal(self):
        self.site.broker.unreachable = False
        self.site.broker.policy.refuse_qos_fields = frozenset()
        self.site.broker._faults.clear()

    def mortal(self):
        """`begin`, now and then dead before one of its transactions."""
        begin, left = self.site.begin, self.dice.choice((99, 99, 1, 2, 3, 4, 5))

        def one():
            nonlocal left
            left -= 1
            if not left:
                raise Killed
            return begin()

        return one

    def past_us(self):
        name = self.dice.choice(NAMES)
        qos = self.site.broker.policy.qos
        qos[name] = replace(qos[name], grp_jobs=self.dice.randrange(99))
        self.behind.add(f"qos:{name}")

    def poll(self):
        self.site.poll()

    def undo(self):
        change = self.dice.choice(self.changes or [0])
        self.changes.append(
            self.site.propose(*policy_history.undo_change(change, begin=self.site.begin))
        )

    def retire(self):
        name = self.dice.choice(("urgent", "spot"))
        items = policy_retire.retire(name, replacement=None, begin=self.site.begin)
        self.changes.append(self.site.propose(*items))

    def settle_drift(self):
        with self.site.begin() as session:
            drift = policy_drift.find(session)
        for one in drift:
            if self.dice.random() < 0.5:
                policy_drift.adopt(
                    one.of, one.name, viewer=None, begin=self.site.begin, now=self.site.now
                )

    def rest(self):
        """Slurm is well, and the worker has its time."""
        for _ in range(12):
            self.site.wait(minutes=10)
            self.site.due()
        self.site.poll()


@pytest.mark.parametrize("seed", SEEDS)
def test_slurm_and_the_audit_agree(begin, seed):
    walk = Walk(begin, seed)
    for _ in range(STEPS):
        walk.step()
    walk.rest()
    site, drift = walk.site, walk.site.drift()
    for change_id in walk.changes:
        change = site.change(change_id)
        assert change.state not in OPEN
        for row in change.items:
            assert row.state not in (ItemState.WAITING, ItemState.SENT) or not change.line.begun_at
            made = [
                v for v in site.versions(row.item.of, row.item.name) if v.change_id == change_id
            ]
            assert len(made) == (row.state in (ItemState.DONE, ItemState.HALF))
    for of, names in ((Of.QOS, NAMES), (Of.GROUP, GROUPS)):
        for name in names:
            newest = site.versions(of, name)[-1]
            if newest.policy != site.in_slurm(of, name):
                assert newest.object in drift
                assert newest.object in walk.behind
    assert set(drift) <= walk.behind
