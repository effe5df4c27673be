"""Changes of policy as proposals. Nothing here speaks with Slurm: `policy_apply` does."""

import re
from collections.abc import Iterable
from datetime import datetime
from typing import TYPE_CHECKING

from gateway.core.access import Viewer
from gateway.core.policy_change import (
    ChangeState,
    Item,
    Source,
    as_slurm_keeps,
    in_order,
    of,
    preemption_loop,
)
from gateway.core.qos import GroupPolicy, Qos
from gateway.core.qos_checks import problems
from gateway.errors import NotFound, Refused
from gateway.services.policy_present import Present, present
from gateway.store import notices, policy
from gateway.store.queries import policy_changes as rows
from gateway.store.uow import Begin

if TYPE_CHECKING:
    from sqlalchemy.orm import Session

LONGEST_REASON = 500
_REASON = re.compile(r"[^\x00-\x09\x0b-\x1f\x7f]*")  # several lines are welcome
FAILED = "policy_failed:"


def propose(
    items: Iterable[Item],
    *,
    viewer: Viewer | None,
    reason: str,
    source: Source,
    second_approval: bool,
    key: str,
    begin: Begin,
    now: datetime,
    starts_at: datetime | None = None,
    ends_at: datetime | None = None,
    about_id: int | None = None,
) -> int:
    """The change's id, the same for the same `key`. Nothing is sent.

    Without `second_approval` it is decided by that: `policy_apply.apply` may follow at once, and
    the worker applies what nobody did, at `starts_at` where it is given. Items that change
    nothing are left out. `viewer` None: the command line, or the worker.
    Refused: the codes of core.qos_checks and policy_nothing_changes, policy_object_twice,
    qos_exists, no_such_account, policy_unknown_qos, policy_retired_qos, policy_preemption_loop,
    policy_bad_reason, policy_ends_too_early; `object` names the item, `field` its field.
    """
    _check_words(reason, starts_at=starts_at, ends_at=ends_at, now=now)
    wanted = [as_slurm_keeps(item) for item in items]
    _check_shape(wanted)
    new = policy.NewChange(
        key=key,
        source=source,
        state=ChangeState.PROPOSED if second_approval else ChangeState.APPROVED,
        reason=reason.strip(),
        person_id=viewer.person_id if viewer else None,
        proposed_at=now,
        needs_approval=second_approval,
        starts_at=starts_at,
        ends_at=ends_at,
        about_id=about_id,
    )
    with begin() as session:
        return _add(session, new, wanted)


def _add(session: "Session", new: policy.NewChange, wanted: list[Item]) -> int:
    known = rows.by_key(session, new.key)
    if known is not None:
        return known
    there = present(session)
    changing = [item for item in wanted if _changes_something(item, there)]
    if not changing:
        raise Refused("policy_nothing_changes")
    _check_names(changing, there)
    made = policy.add(session, new, in_order(changing))
    return _required(session, new.key) if made is None else made


def approve(change_id: int, *, viewer: Viewer, begin: Begin, now: datetime) -> None:
    """A second administrator's yes. NotFound; Refused policy_own_approval, policy_not_waiting."""
    with begin() as session:
        change = _change(session, change_id)
        if change.line.author_id == viewer.person_id:
            raise Refused("policy_own_approval")
        values = {"approved_by": viewer.person_id, "approved_at": now}
        if not policy.decide(session, change_id, values):
            raise Refused("policy_not_waiting")


def withdraw(change_id: int, *, viewer: Viewer, begin: Begin, now: datetime) -> None:
    """Of what has done nothing yet, by any administrator. NotFound; Refused policy_too_late."""
    with begin() as session:
        _change(session, change_id)
        values = {"withdrawn_by": viewer.person_id, "withdrawn_at": now}
        if not policy.move(session, change_id, ChangeState.WITHDRAWN, values):
            raise Refused("policy_too_late")


def seen(change_id: int, *, begin: Begin, now: datetime) -> None:
    """An administrator has seen that it failed, or could not go back: the notice is over."""
    with begin() as session:
        notices.over(session, [f"{FAILED}{change_id}"], now=now)


def _required(session: "Session", key: str) -> int:
    known = rows.by_key(session, key)
    if known is None:
        raise NotFound("no such change")
    return known


def _change(session: "Session", change_id: int) -> rows.ChangeRow:
    change = rows.change(session, change_id)
    if change is None:
        raise NotFound("no such change of policy")
    return change


def _check_words(
    reason: str, *, starts_at: datetime | None, ends_at: datetime | None, now: datetime
) -> None:
    if len(reason) > LONGEST_REASON or not _REASON.fullmatch(reason):
        raise Refused("policy_bad_reason", field="reason", most=LONGEST_REASON)
    if ends_at is not None and ends_at <= max(starts_at or now, now):
        raise Refused("policy_ends_too_early", field="ends_at")


def _check_shape(items: list[Item]) -> None:
    """What is wrong with an item whatever else exists."""
    objects = [item.object for item in items]
    for item in items:
        before, after = item.before, item.after
        if before is not None and (of(before), before.name) != (of(after), after.name):
            raise Refused("policy_bad_name", field="name", object=item.object)
        if objects.count(item.object) > 1:
            raise Refused("policy_object_twice", field="name", object=item.object)
        for problem in problems(after, before):
            raise Refused(problem.code, field=problem.key, object=item.object)


def _changes_something(item: Item, there: Present) -> bool:
    retires = item.retires is not None and item.retires != (item.name in there.retired)
    return item.before is None or bool(item.changes) or retires


def _check_names(items: list[Item], there: Present) -> None:
    """QoS that an item names must be there, and not in a circle."""
    wanted = {item.name: item.after for item in items if isinstance(item.after, Qos)}
    known = there.qos | wanted
    retired = there.retired - {item.name for item in items if item.retires is False}
    for item in items:
        if item.before is None:
            _check_new(item, there)
        named = {change.field.key for change in item.changes}
        if isinstance(item.after, Qos):
            _check_known(item, "preempts", item.after.preempts, known)
        elif named & {"qos", "default_qos"}:
            _check_group(item, item.after, retired, known)
    loop = preemption_loop({name: one.preempts for name, one in known.items()})
    if loop is not None and any(set(one.preempts) for one in wanted.values()):
        raise Refused("policy_preemption_loop", field="preempts", object=f"qos:{loop}")


def _check_new(item: Item, there: Present) -> None:
    if isinstance(item.after, GroupPolicy):
        raise Refused("no_such_account", field="name", object=item.object)
    if item.name in there.qos:
        raise Refused("qos_exists", field="name", object=item.object)


def _check_known(item: Item, field: str, names: Iterable[str], known: dict[str, Qos]) -> None:
    for name in names:
        if name not in known:
            raise Refused("policy_unknown_qos", field=field, object=item.object, qos=name)


def _check_group(
    item: Item, wanted: GroupPolicy, retired: frozenset[str], known: dict[str, Qos]
) -> None:
    _check_known(item, "qos", wanted.qos, known)
    if wanted.default_qos is not None:
        _check_known(item, "default_qos", [wanted.default_qos], known)
    before = item.before.qos if isinstance(item.before, GroupPolicy) else ()
    for name in sorted((set(wanted.qos) - set(before)) & retired):
        raise Refused("policy_retired_qos", field="qos", object=item.object, qos=name)
