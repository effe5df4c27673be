"""Changes of policy: what an item is, which states follow which, and what a read-back means."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from enum import StrEnum

from gateway.core.qos import Change, GroupPolicy, Policy, Qos, changes, value
from gateway.core.qos_checks import as_kept


class Of(StrEnum):
    """Kinds of policy objects."""

    QOS = "qos"
    GROUP = "group"


class Source(StrEnum):
    """Where a change, or a version, comes from."""

    FORM = "form"
    FILE = "file"
    UNDO = "undo"
    FOUND = "found"  # versions alone: Slurm had it when the portal saw it first
    ADOPTED = "adopted"  # versions alone: drift that an administrator took over
    RESTORED = "restored"  # drift that is set back
    CONTRIBUTION = "contribution"
    SCHEDULE = "schedule"  # the way back at the end of a change


class ChangeState(StrEnum):
    """Of a change as a whole."""

    PROPOSED = "proposed"  # a second administrator has to approve
    APPROVED = "approved"  # due now, or at its start
    APPLYING = "applying"
    UNKNOWN = "unknown"  # Slurm did not answer: settled by reading it
    APPLIED = "applied"
    PARTLY = "partly"  # something was done, something was not
    REFUSED = "refused"  # nothing was done
    WITHDRAWN = "withdrawn"
    ENDED = "ended"  # it was applied, and went back at its end


FOLLOWS: dict[ChangeState, frozenset[ChangeState]] = {
    ChangeState.PROPOSED: frozenset({ChangeState.APPROVED, ChangeState.WITHDRAWN}),
    ChangeState.APPROVED: frozenset({ChangeState.APPLYING, ChangeState.WITHDRAWN}),
    ChangeState.APPLYING: frozenset(
        {
            ChangeState.APPROVED,  # Slurm was not there, and nothing was done
            ChangeState.UNKNOWN,
            ChangeState.APPLIED,
            ChangeState.PARTLY,
            ChangeState.REFUSED,
        }
    ),
    ChangeState.UNKNOWN: frozenset({ChangeState.APPLYING}),
    ChangeState.APPLIED: frozenset({ChangeState.ENDED}),
    ChangeState.PARTLY: frozenset({ChangeState.ENDED}),
    ChangeState.REFUSED: frozenset(),
    ChangeState.WITHDRAWN: frozenset(),
    ChangeState.ENDED: frozenset(),
}
# What the worker takes up when nobody else does.
OPEN = (ChangeState.APPROVED, ChangeState.APPLYING, ChangeState.UNKNOWN)


class ItemState(StrEnum):
    """Of one object of a change."""

    WAITING = "waiting"
    SENT = "sent"  # marked before it is sent: whether Slurm has it is not known
    DONE = "done"
    HALF = "half"  # Slurm took some of it: `found` says what
    REFUSED = "refused"


@dataclass(frozen=True, slots=True)
class Item:
    """One object as it shall be. `before` is what the form showed, None: it is made.

    `retires` of a QoS: the portal offers it no more once all groups have let go of it; False
    brings it back. None leaves that as it is.
    """

    before: Policy | None
    after: Policy
    retires: bool | None = None

    @property
    def of(self) -> Of:
        return of(self.after)

    @property
    def name(self) -> str:
        return self.after.name

    @property
    def object(self) -> str:
        return object_name(self.of, self.name)

    @property
    def changes(self) -> tuple[Change, ...]:
        """Field by field; of what is made, all that differs from a new one without any limit."""
        return changes(self.before or blank(self.after), self.after)

    @property
    def only_shares(self) -> bool:
        """Whether it can go with others in one call."""
        return self.before is not None and [c.field.key for c in self.changes] == ["shares"]


def of(policy: Policy) -> Of:
    return Of.QOS if isinstance(policy, Qos) else Of.GROUP


def object_name(kind: Of, name: str) -> str:
    """`qos:high`, `group:nlp`."""
    return f"{kind}:{name}"


def blank(policy: Policy) -> Policy:
    """One of the kind and name as it is without any setting."""
    if isinstance(policy, Qos):
        return Qos(name=policy.name)
    return GroupPolicy(name=policy.name)


def as_slurm_keeps(item: Item) -> Item:
    """With `after` as Slurm would give it back, so that a read-back can be compared."""
    match item.before, item.after:
        case Qos() | None as before, Qos() as after:
            return replace(item, after=as_kept(after, before))
        case GroupPolicy() | None as before, GroupPolicy() as after:
            return replace(item, after=as_kept(after, before))
    return item  # of two kinds: refused elsewhere


class Reading(StrEnum):
    """What Slurm has, seen from an item."""

    AFTER = "after"
    BEFORE = "before"
    OTHER = "other"


def reading(item: Item, found: Policy | None) -> Reading:
    """What a read says of an item that was sent, or shall be. `found` None: there is none.

    Of an item that sets nothing but shares only the shares are compared: nothing else is sent.
    """
    if item.only_shares and found is not None and item.before is not None:
        found = with_shares(item.before, found)
    if found == item.after:
        return Reading.AFTER
    return Reading.BEFORE if found == item.before else Reading.OTHER


def with_shares(policy: Policy, other: Policy) -> Policy:
    """A group's policy with the shares of another."""
    if isinstance(policy, Qos) or isinstance(other, Qos):
        return other
    return replace(policy, shares=other.shares)


def changed(item: Item, policy: Policy, other: Policy) -> Policy:
    """`policy` with what the item changes as `other` has it."""
    fields = {one.field.key: value(other, one.field) for one in item.changes}
    return replace(policy, **fields)  # type: ignore[arg-type]


def outcome(states: Iterable[ItemState]) -> ChangeState:
    """What a change is once nobody works at it any more."""
    seen = set(states)
    if ItemState.SENT in seen:
        return ChangeState.UNKNOWN
    touched = bool(seen & {ItemState.DONE, ItemState.HALF})
    if ItemState.WAITING in seen:
        return ChangeState.APPLYING if touched else ChangeState.APPROVED
    if seen <= {ItemState.DONE}:
        return ChangeState.APPLIED
    return ChangeState.PARTLY if touched else ChangeState.REFUSED


def way_back(item: Item, now: Policy) -> Item | None:
    """The fields that the item changed as they were before it, and what else is there as it is.

    Where one of them was changed meanwhile, the item's `before` says what should be there: Slurm
    has something else, so it is refused when it is applied. None: all of it is back already.
    """
    if item.before is None:
        raise ValueError("what was made does not go back, it retires")
    back = {change.field.key: change.before for change in item.changes}
    if all(getattr(now, key) == was for key, was in back.items()):
        return None
    expected = replace(now, **{c.field.key: c.after for c in item.changes})  # type: ignore[arg-type]
    return Item(expected, replace(expected, **back))  # type: ignore[arg-type]


def in_order(items: Sequence[Item]) -> tuple[Item, ...]:
    """As Slurm has to be told: QoS before what names them, those that let go of another before
    those that take it, and what retires after all groups have let go of it."""
    made = [item for item in items if item.before is None]
    rest = sorted(
        (item for item in items if item.before is not None),
        key=lambda item: (item.retires is True, item.of is Of.GROUP, _takes(item)),
    )
    return (*_by_preemption(made), *rest)


def _takes(item: Item) -> bool:
    """Whether a QoS shall preempt another that it did not preempt before."""
    if not isinstance(item.after, Qos) or not isinstance(item.before, Qos):
        return False
    return bool(set(item.after.preempts) - set(item.before.preempts))


def _by_preemption(made: Sequence[Item]) -> list[Item]:
    """New QoS, each after those that it preempts; of a loop, which Slurm refuses, in any order."""
    left, placed = list(made), list[Item]()
    while left:
        names = {item.name for item in left}
        ready = [item for item in left if not names - {item.name} & set(_preempts(item.after))]
        placed += ready or left
        left = [item for item in left if item not in placed]
    return placed


def _preempts(policy: Policy) -> tuple[str, ...]:
    return policy.preempts if isinstance(policy, Qos) else ()


def preemption_loop(preempts: dict[str, tuple[str, ...]]) -> str | None:
    """A QoS that, by way of others, preempts itself."""
    for start in sorted(preempts):
        seen, ahead = set[str](), list(preempts[start])
        while ahead:
            name = ahead.pop()
            if name == start:
                return start
            if name not in seen:
                seen.add(name)
                ahead += preempts.get(name, ())
    return None
