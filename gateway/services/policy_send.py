"""One change's items, brought to Slurm one after the other and settled by what is read back.

An item is marked before it is sent; no transaction is open across a call. What is marked and not
settled was cut short: Slurm is read, and says whether it has it.
"""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from typing import TYPE_CHECKING

from gateway.brokerclient.port import Broker
from gateway.core.policy_change import Item, ItemState, Of, Reading, changed, reading
from gateway.core.qos import GroupPolicy, Policy, Qos
from gateway.errors import BrokerRefused, BrokerUnreachable
from gateway.store import policy
from gateway.store.queries import policy_changes as rows
from gateway.store.queries.policy_changes import ChangeRow, ItemRow
from gateway.store.uow import Begin
from gateway.wire import policy as p

if TYPE_CHECKING:
    from sqlalchemy.orm import Session

# Longer than the longest call: who holds a claim past that is dead.
CLAIM = timedelta(minutes=3)
CHANGED = "policy_changed_meanwhile"
NOT_HEARD = "caller_refused"  # of a command run by another account: the worker may
_MAYBE_OURS = frozenset({CHANGED, "qos_exists"})  # of a second try: the first came through late


@dataclass(frozen=True, slots=True)
class Sender:
    """Raises BrokerUnreachable or BrokerSilent: the items left are for a later turn."""

    change: ChangeRow
    begin: Begin
    broker: Broker
    clock: Callable[[], datetime]

    def work(self) -> None:
        self._settle([row for row in self.change.items if row.state is ItemState.SENT])
        with self.begin() as session:
            again = rows.change(session, self.change.id)
        items = again.items if again else ()
        for batch in _batches([row for row in items if row.state is ItemState.WAITING]):
            if len(batch) > 1:
                self._send_shares(batch)
            else:
                self._send(batch[0])

    def _send(self, row: ItemRow) -> None:
        item = row.item
        if item.retires and self._still_used(item.name):
            self._refuse(row, "policy_qos_in_use")
        elif item.before == item.after:
            self._mark_only(row)
        else:
            self._write(row)

    def _still_used(self, qos: str) -> bool:
        accounts = self.broker.accounts()
        return any(qos in (*one.usable_qos, one.policy.default_qos) for one in accounts)

    def _mark_only(self, row: ItemRow) -> None:
        """A QoS that is retired, or brought back, as it is: Slurm is told nothing."""
        found = _Slurm(self.broker).policy(row.item)
        if reading(row.item, found) is Reading.AFTER:
            self._done(row, row.item.after)
        else:
            self._refuse(row, CHANGED, found)

    def _write(self, row: ItemRow) -> None:
        if not self._mark([row]):
            return
        try:
            found = self._told(row.item)
        except BrokerRefused as error:
            self._refused(row, error.code)
        except BrokerUnreachable:
            self._back_to_waiting([row])
            raise
        else:
            self._answered(row, found)

    def _told(self, item: Item) -> Policy:
        match item.before, item.after:
            case Qos() | None as before, Qos() as after:
                return self.broker.set_qos(p.SetQos(before, after))
            case GroupPolicy() as before, GroupPolicy() as after if item.only_shares:
                reply = self.broker.set_shares(_shares([item]))
                return replace(after, shares=_by_name(reply).get(item.name, before.shares))
            case GroupPolicy() as before, GroupPolicy() as after:
                return self.broker.set_group_policy(p.SetGroupPolicy(before, after)).policy
        raise TypeError(f"no write for {item.object}")

    def _send_shares(self, batch: Sequence[ItemRow]) -> None:
        batch = self._mark(batch)
        if not batch:
            return
        try:
            reply = _by_name(self.broker.set_shares(_shares([row.item for row in batch])))
        except BrokerRefused:
            self._back_to_waiting(batch)  # one of them is to blame: each goes alone
            for row in batch:
                self._write(row)
            return
        except BrokerUnreachable:
            self._back_to_waiting(batch)
            raise
        with self.begin() as session:
            for row in batch:
                before = row.item.before
                assert isinstance(before, GroupPolicy)  # only_shares
                shares = reply.get(before.name, before.shares)
                self._answer(session, row, replace(before, shares=shares))

    def _mark(self, batch: Sequence[ItemRow]) -> list[ItemRow]:
        """Those that may go. An object that another change has sent, and nobody knows whether Slurm
        has it, is left waiting: two at once could not be told apart by reading."""
        at = self.clock()
        with self.begin() as session:
            policy.lock(session)
            busy = rows.in_flight(session)
            free = [row for row in batch if (row.item.of, row.item.name) not in busy]
            marked = policy.mark_sent(session, [row.id for row in free], at=at)
            policy.hold_claim(session, self.change.id, until=at + CLAIM)
        return [row for row in free if row.id in marked]

    def _back_to_waiting(self, batch: Sequence[ItemRow]) -> None:
        with self.begin() as session:
            policy.mark_waiting(session, [row.id for row in batch])

    def _refused(self, row: ItemRow, code: str) -> None:
        if code == NOT_HEARD:
            self._back_to_waiting([row])
            raise BrokerUnreachable("the broker does not listen to this account")
        found = _Slurm(self.broker).policy(row.item) if code in _MAYBE_OURS else None
        if row.tries and reading(row.item, found) is Reading.AFTER:
            self._done(row, row.item.after)
        else:
            self._refuse(row, code, found)

    def _refuse(self, row: ItemRow, code: str, found: Policy | None = None) -> None:
        with self.begin() as session:
            policy.settle_item(
                session, row.id, ItemState.REFUSED, at=self.clock(), code=code, found=found
            )

    def _answered(self, row: ItemRow, found: Policy) -> None:
        with self.begin() as session:
            self._answer(session, row, found)

    def _answer(self, session: "Session", row: ItemRow, found: Policy) -> None:
        """By what Slurm has after a write that it says it took."""
        match reading(row.item, found):
            case Reading.AFTER:
                self._keep(session, row, ItemState.DONE, row.item.after)
            case Reading.BEFORE:
                policy.settle_item(
                    session,
                    row.id,
                    ItemState.REFUSED,
                    at=self.clock(),
                    code="policy_not_taken",
                    found=found,
                )
            case Reading.OTHER:
                self._keep(session, row, ItemState.HALF, found, code="policy_half_taken")

    def _done(self, row: ItemRow, found: Policy) -> None:
        with self.begin() as session:
            self._keep(session, row, ItemState.DONE, found)

    def _keep(
        self,
        session: "Session",
        row: ItemRow,
        state: ItemState,
        found: Policy,
        *,
        code: str | None = None,
    ) -> None:
        """The item and its version, in one transaction."""
        at, item = self.clock(), row.item
        if not policy.settle_item(session, row.id, state, at=at, code=code, found=found):
            return
        before = item.before
        newest = rows.versions(session, item.of, item.name, limit=1)
        if before is not None and newest and (said := newest[0].policy) is not None:
            # The rest is as that version says: what else Slurm has stays drift.
            before, found = changed(item, said, before), changed(item, said, found)
        policy.add_version(
            session,
            item.of,
            item.name,
            found,
            before=before,
            source=self.change.line.source,
            at=at,
            change_id=self.change.id,
            person_id=self.change.line.author_id,
            retired=item.retires if state is ItemState.DONE else None,
        )

    def _settle(self, unsure: Sequence[ItemRow]) -> None:
        """What was sent, and nobody knows how it ended."""
        slurm = _Slurm(self.broker)
        found = [(row, slurm.policy(row.item)) for row in unsure]
        if not found:
            return
        with self.begin() as session:
            for row, there in found:
                match reading(row.item, there):
                    case Reading.AFTER:
                        self._keep(session, row, ItemState.DONE, row.item.after)
                    case Reading.BEFORE:
                        policy.mark_waiting(session, [row.id])
                    case Reading.OTHER:
                        policy.settle_item(
                            session,
                            row.id,
                            ItemState.REFUSED,
                            at=self.clock(),
                            code=CHANGED,
                            found=there,
                        )


@dataclass(slots=True)
class _Slurm:
    """What Slurm has, each kind read once."""

    broker: Broker
    qos: dict[str, Policy] | None = None
    groups: dict[str, Policy] | None = None

    def policy(self, item: Item) -> Policy | None:
        if item.of is Of.QOS:
            if self.qos is None:
                self.qos = {one.name: one for one in self.broker.qos()}
            return self.qos.get(item.name)
        if self.groups is None:
            self.groups = {one.policy.name: one.policy for one in self.broker.accounts()}
        return self.groups.get(item.name)


def _batches(waiting: Sequence[ItemRow]) -> Iterator[Sequence[ItemRow]]:
    """One by one; what sets nothing but shares in calls of many."""
    batch: list[ItemRow] = []
    for row in waiting:
        if row.item.only_shares and len(batch) < p.MOST_SHARES:
            batch.append(row)
            continue
        if batch:
            yield batch
        batch = [row] if row.item.only_shares else []
        if not row.item.only_shares:
            yield [row]
    if batch:
        yield batch


def _shares(items: Sequence[Item]) -> p.SetShares:
    """Expected and wanted at the same place of both lists."""
    pairs = [(item.before, item.after) for item in items]
    groups = [
        (before, after)
        for before, after in pairs
        if isinstance(before, GroupPolicy) and isinstance(after, GroupPolicy)
    ]
    return p.SetShares(
        tuple(p.Shares(before.name, before.shares) for before, _ in groups),
        tuple(p.Shares(after.name, after.shares) for _, after in groups),
    )


def _by_name(reply: Sequence[p.Shares]) -> dict[str, int | None]:
    return {one.account: one.shares for one in reply}
