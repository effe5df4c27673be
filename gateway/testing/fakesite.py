"""A made-up cluster for FakeBroker: people, groups, partitions. Like the development cluster's."""

from dataclasses import dataclass

from gateway.core.qos import tres
from gateway.core.tres import GPU
from gateway.wire import messages as m

FACTS = m.AccountingFacts(
    tracked=("cpu", "mem", "energy", "node", "billing", "gres/gpu", "gres/gpu:a100"),
    enforced=("associations", "limits", "qos", "safe"),
    priority_decay_half_life_seconds=7 * 86400,
)


@dataclass(frozen=True, slots=True)
class FakePerson:
    name: str
    uid: int
    groups: tuple[str, ...]  # the first one is the default
    leads: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class FakePartition:
    name: str
    node_count: int
    gpus_per_node: int
    gpu_type: str | None
    max_minutes: int
    cpus_per_node: int = 32
    is_default: bool = False

    def node_names(self) -> tuple[str, ...]:
        return tuple(f"{self.name}-{n + 1}" for n in range(self.node_count))


@dataclass(frozen=True, slots=True)
class FakeSite:
    people: tuple[FakePerson, ...]
    partitions: tuple[FakePartition, ...]
    qos: tuple[m.Qos, ...]
    group_qos: dict[str, tuple[str, ...]]
    group_gpus: dict[str, int]  # GrpTRES; none: no limit

    def person(self, name: str) -> FakePerson | None:
        return next((person for person in self.people if person.name == name), None)

    def partition(self, name: str) -> FakePartition | None:
        return next((item for item in self.partitions if item.name == name), None)

    def priority(self, qos: str) -> int:
        return next((item.priority for item in self.qos if item.name == qos), 0)

    def no_limits(self) -> tuple[m.GroupLimits, ...]:
        """The associations of accounts and people, none with a limit of the kind."""
        people = [(group, person.name) for person in self.people for group in person.groups]
        return tuple(
            m.GroupLimits(group, user, None, None, None, None, "")
            for group, user in (*((group, None) for group in self.group_qos), *people)
        )


def lab() -> FakeSite:
    """Three groups on six GPU nodes and one for trying."""
    return FakeSite(
        people=(
            FakePerson("nlp-lead", 20001, ("nlp",), ("nlp",)),
            FakePerson("nlp-1", 20002, ("nlp",)),
            FakePerson("nlp-2", 20003, ("nlp", "vision")),
            FakePerson("vision-lead", 20004, ("vision",), ("vision",)),
            FakePerson("vision-1", 20005, ("vision",)),
            FakePerson("biolab-lead", 20006, ("biolab",), ("biolab",)),
            FakePerson("biolab-1", 20007, ("biolab",)),
        ),
        partitions=(
            FakePartition("a100", 4, 8, "a100", 7 * 1440, is_default=True),
            FakePartition("rtx4090", 2, 8, "rtx4090", 7 * 1440),
            FakePartition("debug", 1, 2, "a100", 30),
        ),
        qos=(
            _qos("normal", 100, preempts=("spot",)),
            _qos("spot", 10, usage=820_000),
            _qos("urgent", 1000, preempts=("spot",), per_user=8),
        ),
        group_qos={
            "nlp": ("normal", "spot", "urgent"),
            "vision": ("normal", "spot", "urgent"),
            "biolab": ("normal", "spot"),
        },
        group_gpus={"biolab": 16},
    )


def _qos(
    name: str,
    priority: int,
    *,
    preempts: tuple[str, ...] = (),
    usage: int = 1_000_000,
    per_user: int | None = None,
) -> m.Qos:
    limits = {} if per_user is None else {GPU: per_user}
    return m.Qos(
        name=name,
        description=name,
        priority=priority,
        usage_factor_millionths=usage,
        preempts=preempts,
        preempt_mode=("requeue",) if name == "spot" else ("cluster",),
        max_tres_per_user=tres(limits),
    )
