"""What would help a job that waits, each tried against the limits and what runs now."""

from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime
from functools import cached_property

from gateway.core.caps import Cap, Holder, Shape, Way, breaks
from gateway.core.usage import FreeNode, Running, Whose, nodes_that_fit, used

# Every code, for the texts.
CODES = (
    "fewer_gpus",
    "fewer_nodes",
    "more",
    "shorter",
    "other_qos",
    "higher_qos",
    "other_partition",
    "raise_qos_limit",
    "raise_group_limit",
    "credit",
    "release",
    "cancel",
    "ask_administrator",
)
_MOST_NODES = 64
_MOST_LONGER = 1 << 14  # minutes tried one by one would be many: they are halved instead


@dataclass(frozen=True, slots=True)
class Help:
    """`free_now`: nodes have room for that now. `name` is of a QoS, group or partition."""

    code: str
    name: str | None = None
    gpus: int | None = None
    nodes: int | None = None
    minutes: int | None = None
    free_now: bool = False


@dataclass(frozen=True, slots=True)
class Choice:
    """A QoS that the owner may use in the partition, and what it would bring."""

    caps: tuple[Cap, ...]
    max_minutes: int | None
    priority: int = 0


@dataclass(frozen=True)
class Trial:
    """All that a proposal is tried against. `qos` are the owner's in this partition by name;
    `partitions` are others of theirs that are open and can hold the job as it is."""

    whose: Whose
    shape: Shape
    own_qos: str
    now: datetime
    caps: tuple[Cap, ...] = ()
    running: tuple[Running, ...] = ()
    nodes: tuple[FreeNode, ...] = ()
    qos: Mapping[str, Choice] = field(default_factory=dict)
    partitions: tuple[str, ...] = ()
    max_minutes: int | None = None
    max_nodes: int | None = None
    gated: bool = False
    # What is taken of each limit, once it has been counted: proposals are tried by the dozen.
    counted: dict[Cap, int | None] = field(default_factory=dict, compare=False, repr=False)

    def taken(self, cap: Cap) -> int | None:
        """What running jobs take of it, in its unit; None: not known."""
        if cap not in self.counted:
            self.counted[cap] = used(cap, self.whose, self._near(cap), self.now)
        return self.counted[cap]

    def holds(self, shape: Shape, caps: Sequence[Cap] | None = None) -> bool:
        """Whether no limit that is known here stops such a job now. How many may be queued is
        no matter: it is queued already."""
        tried = self.caps if caps is None else caps
        return not any(
            breaks(cap, shape, self.taken(cap) or 0) for cap in tried if cap.way is not Way.QUEUED
        )

    def has_room(self, shape: Shape) -> bool:
        return nodes_that_fit(shape, self.nodes) >= shape.nodes

    def _near(self, cap: Cap) -> Iterable[Running]:
        """Those of its QoS or groups: dozens of limits are not each held against every job."""
        if cap.holder is Holder.QOS:
            return self._by_qos.get(cap.name.casefold(), ())
        groups = cap.accounts or {cap.name}
        return [one for group in groups for one in self._by_group.get(group, ())]

    @cached_property
    def _by_qos(self) -> Mapping[str, list[Running]]:
        found: dict[str, list[Running]] = defaultdict(list)
        for one in self.running:
            found[one.qos.casefold()].append(one)
        return found

    @cached_property
    def _by_group(self) -> Mapping[str, list[Running]]:
        found: dict[str, list[Running]] = defaultdict(list)
        for one in self.running:
            found[one.group].append(one)
        return found


def for_limit(cap: Cap, trial: Trial) -> tuple[Help, ...]:
    """Against a limit of a QoS or a group."""
    found: list[Help] = []
    match cap.way:
        case Way.SHARED | Way.AMOUNT | Way.NODE:
            found += _fewer(trial)
        case Way.SHARED_MINUTES | Way.MINUTES:
            found += [*_shorter(trial), *_fewer(trial)]
        case Way.WALL:
            found += _shorter(trial)
        case Way.LEAST:
            found += _more(trial)
        case Way.RUNNING | Way.QUEUED | Way.SPENT:
            pass
    found += _other_qos(trial)
    if trial.gated:
        found.append(Help("credit"))
    else:
        code = "raise_qos_limit" if cap.holder is Holder.QOS else "raise_group_limit"
        found.append(Help(code, name=cap.name))
    return tuple(found)


def for_key(key: str, trial: Trial, *, fits_minutes: int | None = None) -> tuple[Help, ...]:
    """Against a reason that names no limit of a QoS or group. `fits_minutes`: what still fits
    before a reservation."""
    match key:
        case "held_by_user" | "held_after_requeues":
            return (Help("release"),)
        case "held_by_admin":
            return (Help("credit" if trial.gated else "ask_administrator"),)
        case "dependency_never" | "reservation_gone":
            return (Help("cancel"),)
        case "partition_node_limit":
            return (*_fewer(trial), *_partitions(trial))
        case "partition_time_limit":
            return (*_shorter(trial), *_partitions(trial))
        case "partition_down" | "account_not_allowed" | "partition_config" | "constraints":
            return tuple(_partitions(trial))
        case "qos_not_allowed":
            return tuple(_other_qos(trial))
        case "priority" | "resources" | "nodes_unavailable":
            fitting = [] if fits_minutes is None else [Help("shorter", minutes=fits_minutes)]
            return (*fitting, *_smaller_now(trial), *_higher_qos(trial))
        case _:
            return ()


def _fewer(trial: Trial) -> Iterator[Help]:
    """The largest smaller job that no limit stops now."""
    most = trial.max_nodes
    for shape in _smaller(trial.shape):
        if (most is None or shape.nodes <= most) and trial.holds(shape):
            yield _as_help(shape, trial)
            return


def _smaller_now(trial: Trial) -> Iterator[Help]:
    """The largest smaller job that there is room for at this moment."""
    if trial.has_room(trial.shape):
        return
    for shape in _smaller(trial.shape):
        if trial.has_room(shape) and trial.holds(shape):
            yield _as_help(shape, trial)
            return


def _as_help(shape: Shape, trial: Trial) -> Help:
    code = "fewer_gpus" if trial.shape.gpus else "fewer_nodes"
    room = trial.has_room(shape)
    return Help(code, gpus=shape.gpus, nodes=shape.nodes, free_now=room)


def _smaller(shape: Shape) -> Iterator[Shape]:
    for nodes in range(shape.nodes - 1, 0, -1):
        yield replace(shape, nodes=nodes)
    for per in range(shape.gpus_per_node - 1, 0, -1):
        cpus = None if shape.cpus is None else -(-shape.cpus * per // shape.gpus_per_node)
        yield replace(shape, nodes=1, gpus_per_node=per, cpus=cpus)


def _more(trial: Trial) -> Iterator[Help]:
    for nodes in range(trial.shape.nodes + 1, _MOST_NODES + 1):
        shape = replace(trial.shape, nodes=nodes)
        if trial.holds(shape):
            yield Help("more", gpus=shape.gpus, nodes=nodes, free_now=trial.has_room(shape))
            return


def _shorter(trial: Trial) -> Iterator[Help]:
    """The longest time limit below its own that no limit stops: they are ordered, so by halves."""
    low, high = 0, trial.shape.minutes or trial.max_minutes or _MOST_LONGER
    if trial.max_minutes is not None:
        high = min(high, trial.max_minutes + 1)
    while high - low > 1:
        middle = (low + high) // 2
        if trial.holds(replace(trial.shape, minutes=middle)):
            low = middle
        else:
            high = middle
    if low:
        yield Help("shorter", minutes=low)


def _takes(choice: Choice, trial: Trial) -> bool:
    """Whether no limit of this QoS stops the job as it is."""
    longest, minutes = choice.max_minutes, trial.shape.minutes
    in_time = longest is None or (minutes is not None and minutes <= longest)
    return in_time and trial.holds(trial.shape, choice.caps)


def _other_qos(trial: Trial) -> Iterator[Help]:
    room = trial.has_room(trial.shape)
    for name, choice in trial.qos.items():
        if name != trial.own_qos and _takes(choice, trial):
            yield Help("other_qos", name=name, free_now=room)


def _higher_qos(trial: Trial) -> Iterator[Help]:
    own = trial.qos.get(trial.own_qos)
    for name, choice in trial.qos.items():
        if own is not None and choice.priority > own.priority and _takes(choice, trial):
            yield Help("higher_qos", name=name)


def _partitions(trial: Trial) -> Iterable[Help]:
    return (Help("other_partition", name=name) for name in trial.partitions)
