"""Where a wait went: the causes into which its seconds are split (docs/engineering/waits.md)."""

from collections.abc import Iterator, Sequence
from enum import StrEnum
from itertools import pairwise

from gateway.core.caps import Holder
from gateway.core.reason_limits import limit_of
from gateway.core.reasons import reason_key, reason_word


class Cause(StrEnum):
    """In the order in which they are shown. The person's own doing first."""

    DEFERRAL = "deferral"  # before eligible: dependency, hold, begin time
    ARRAY_THROTTLE = "array_throttle"  # the array's own limit of tasks at once, also before that
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


# Before a job is eligible these are told apart from the rest, which is deferral. Slurm 26.05 calls
# the tasks of a throttled array eligible only once the throttle lets them go, and takes a job that
# is held, by whomever, for eligible since its release.
_EARLY = {"JobArrayTaskLimit": Cause.ARRAY_THROTTLE, HELD_BY_GATE: Cause.GROUP_LIMIT}


def cause_of(reason: str | None) -> Cause:
    """The cause of the seconds in which an eligible job waits for this reason of Slurm's.

    Some stay unknown because Slurm says them of two things: PartitionNodeLimit and Constraints of
    a job that is too large and of nodes that are down; and those of core.wait_doubts, which the
    poll has told apart before it wrote them where that can be done.
    """
    if reason == HELD_BY_GATE:
        return Cause.GROUP_LIMIT
    limit = limit_of(reason)
    if limit is None:
        return _without_limit(reason)
    key = limit.key or ""
    if key.endswith("_per_user"):
        return Cause.USER_LIMIT
    if limit.holder is Holder.GROUP or key.endswith("_per_account"):
        return Cause.GROUP_LIMIT
    return Cause.QOS_LIMIT if limit.holder is Holder.QOS else Cause.UNKNOWN


def cause_at(reason: str | None, *, eligible: bool) -> Cause:
    """The same, also before the job is eligible."""
    if eligible:
        return cause_of(reason)
    word = reason if reason == HELD_BY_GATE else reason_word(reason)
    return _EARLY.get(word, Cause.DEFERRAL)


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

    All times are whole seconds since 1970. `reasons` are (since, reason as a poll saw it), in
    order; each holds until the next, the last one until `until`. None: Slurm had not looked at the
    job; that time, and the time before the first reason, is what the next reason says if it came
    within `look_s`, else unknown. `gaps` (since, until), none over another: nobody looked, unknown.
    Before `eligible` (None: never) time is deferral, but for what `cause_at` tells apart.
    """
    parts = dict.fromkeys(Cause, 0)
    until = max(until, submit)
    begin = until if eligible is None else min(max(eligible, submit), until)
    if not reasons:  # the short way for the millions of rows that no poll saw
        return parts | {Cause.DEFERRAL: begin - submit, Cause.UNKNOWN: until - begin}
    for since, end, reason, seen in _stretches(submit, begin, reasons, look_s):
        parts[cause_at(reason if seen else None, eligible=False)] += end - since
    for since, end, reason, seen in _stretches(begin, until, reasons, look_s):
        blind = sum(max(0, min(end, last) - max(since, first)) for first, last in gaps)
        parts[Cause.UNKNOWN] += blind
        parts[cause_of(reason) if seen else Cause.UNKNOWN] += end - since - blind
    return parts


def _without_limit(reason: str | None) -> Cause:
    key = reason_key(reason)
    if key == "nodes_unavailable" and "eserved" in str(reason):
        # In Slurm's words a node in a reservation is not available. What else it may be is doubt.
        return Cause.RESERVATION if "Reserved for maint" in str(reason) else Cause.UNKNOWN
    return _OF_KEY.get(key, Cause.UNKNOWN)


def _stretches(
    begin: int, until: int, reasons: Sequence[tuple[int, str | None]], look_s: int
) -> Iterator[tuple[int, int, str | None, bool]]:
    """From `begin` to `until` without a hole: since, end, reason, and whether that is known."""
    looks = [(max(since, begin), reason) for since, reason in reasons if since <= until]
    blank: int | None = None
    for (since, reason), (end, _) in pairwise([(begin, None), *looks, (until, None)]):
        is_blank = reason_key(reason) == "none"
        if blank is not None and not is_blank:
            yield blank, since, reason, since - blank <= look_s
            blank = None
        if is_blank and blank is None:
            blank = since
        elif not is_blank:
            yield since, end, reason, True
    if blank is not None:
        yield blank, until, None, False
