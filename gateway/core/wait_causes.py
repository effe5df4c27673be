"""Where a wait went: the causes into which its seconds are split (docs/engineering/waits.md)."""

from collections.abc import Iterator, Sequence
from enum import StrEnum
from itertools import pairwise

from gateway.core.caps import Holder
from gateway.core.reason_limits import limit_of
from gateway.core.reasons import reason_key


class Cause(StrEnum):
    """In the order in which they are shown. The person's own doing first."""

    DEFERRAL = "deferral"  # before eligible: dependency, hold, begin time
    ARRAY_THROTTLE = "array_throttle"  # the array's own limit of tasks at once
    USER_LIMIT = "user_limit"
    GROUP_LIMIT = "group_limit"
    QOS_LIMIT = "qos_limit"
    PRIORITY = "priority"  # behind others
    NO_GPUS = "no_gpus"  # first in line, nothing free
    NODES_DOWN = "nodes_down"
    RESERVATION = "reservation"  # or maintenance
    UNKNOWN = "unknown"


# Two polls at their slowest pace (core.pace): so long what a look saw is taken to last until the
# next one, and what the first look saw to have been so before it.
LOOK_S = 240

# What the poll writes in place of JobHeldAdmin for a job that the portal's own gate holds.
HELD_BY_GATE = "JobHeldAdmin:gate"

# Of the keys of core.reasons that name no limit. What is not here is unknown, on purpose: it is
# neither a place in the queue nor a limit that somebody could raise (licences, burst buffers, a
# prolog, rights that are gone, an ask that nothing fits), or how an earlier run ended.
_OF_KEY = {
    "dependency": Cause.DEFERRAL,
    "dependency_never": Cause.DEFERRAL,
    "held_by_user": Cause.DEFERRAL,
    "held_by_admin": Cause.DEFERRAL,
    "held_after_requeues": Cause.DEFERRAL,
    "begin_time": Cause.DEFERRAL,
    "array_limit": Cause.ARRAY_THROTTLE,
    "priority": Cause.PRIORITY,
    "resources": Cause.NO_GPUS,
    "nodes_unavailable": Cause.NODES_DOWN,
    "nodes_asleep": Cause.NODES_DOWN,
    "partition_down": Cause.NODES_DOWN,
    "reservation": Cause.RESERVATION,
    "reservation_gone": Cause.RESERVATION,
}


def cause_of(reason: str | None) -> Cause:
    """The cause of the seconds in which an eligible job waits for this reason of Slurm's.

    PartitionNodeLimit and Constraints stay unknown: each is what Slurm says of a job that is too
    large as well as of one whose nodes are down.
    """
    if reason == HELD_BY_GATE:
        return Cause.GROUP_LIMIT
    limit = limit_of(reason)
    if limit is None:
        # "Reserved for maintenance", "May be reserved for other job": the node is well.
        if reason is not None and reason.startswith("ReqNodeNotAvail") and "eserved" in reason:
            return Cause.RESERVATION
        return _OF_KEY.get(reason_key(reason), Cause.UNKNOWN)
    key = limit.key or ""
    if key.endswith("_per_user"):
        return Cause.USER_LIMIT
    if limit.holder is Holder.GROUP or key.endswith("_per_account"):
        return Cause.GROUP_LIMIT
    return Cause.QOS_LIMIT if limit.holder is Holder.QOS else Cause.UNKNOWN


def split(
    submit: int,
    eligible: int | None,
    until: int,
    reasons: Sequence[tuple[int, str | None]],
    *,
    gaps: Sequence[tuple[int, int]] = (),
    look_s: int = LOOK_S,
) -> dict[Cause, int]:
    """Seconds of each cause, all causes, 0 too; they sum to until - submit (0 where that is
    negative).

    All times are whole seconds since 1970. `reasons` are (since, reason as Slurm prints it), in
    order; each holds until the next, the last one until `until`. None: Slurm had not looked at the
    job; that time, and the time before the first reason, is what the next reason says if it came
    within `look_s`, else unknown. `gaps` (since, until), none over another: nobody looked, unknown.
    Before `eligible` (None: never) all is deferral.
    """
    parts = dict.fromkeys(Cause, 0)
    until = max(until, submit)
    begin = until if eligible is None else min(max(eligible, submit), until)
    parts[Cause.DEFERRAL] = begin - submit
    for since, end, cause in _stretches(begin, until, reasons, look_s):
        blind = sum(max(0, min(end, last) - max(since, first)) for first, last in gaps)
        parts[Cause.UNKNOWN] += blind
        parts[cause] += end - since - blind
    return parts


def _stretches(
    begin: int, until: int, reasons: Sequence[tuple[int, str | None]], look_s: int
) -> Iterator[tuple[int, int, Cause]]:
    """From `begin` to `until` without a hole."""
    looks = [(min(max(since, begin), until), reason) for since, reason in reasons]
    blank: int | None = None
    for (since, reason), (end, _) in pairwise([(begin, None), *looks, (until, None)]):
        if since >= end:
            continue
        if reason_key(reason) == "none":
            blank = since if blank is None else blank
            continue
        cause = cause_of(reason)
        if blank is not None:
            yield blank, since, cause if since - blank <= look_s else Cause.UNKNOWN
            blank = None
        yield since, end, cause
    if blank is not None:
        yield blank, until, Cause.UNKNOWN
