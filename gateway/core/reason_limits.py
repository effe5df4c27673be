"""Which limit each of Slurm's reason words speaks of: whose field, and of which resource.

`LIMITS` has every word of `reasons.REASONS` that names a limit. Slurm says GRES for every generic
resource; here that is the GPUs, of any type.
"""

from dataclasses import dataclass

from gateway.core.caps import CPU, NODE, Holder
from gateway.core.reasons import REASONS, reason_word
from gateway.core.tres import GPU


@dataclass(frozen=True, slots=True)
class LimitOf:
    """`key`: a field of core.qos, or max_nodes and max_time_minutes of a partition; None: Slurm
    does not say which. `tres` None: no resource, or Slurm does not say which."""

    holder: Holder
    key: str | None
    tres: str | None = None


# Slurm's spellings of a resource inside a reason word, and its own name.
_RESOURCES = {
    "Cpu": CPU,
    "CPU": CPU,
    "Mem": "mem",
    "Memory": "mem",
    "Node": NODE,
    "GRES": GPU,
    "License": "license",
    "BB": "bb",
    "Billing": "billing",
    "Energy": "energy",
    "Unknown": None,
}
# {} stands for the resource.
_OF_RESOURCE = {
    (Holder.GROUP, "grp_tres"): "AssocGrp{} AssocGrp{}Limit",
    (Holder.GROUP, "grp_tres_minutes"): "AssocGrp{}Minutes AssocGrp{}MinutesLimit",
    (Holder.GROUP, "grp_tres_run_minutes"): "AssocGrp{}RunMinutes AssocGrp{}RunMinutesLimit",
    (Holder.GROUP, "max_tres_per_job"): "AssocMax{}PerJob AssocMax{}PerJobLimit",
    (Holder.GROUP, "max_tres_per_node"): "AssocMax{}PerNode",
    (Holder.GROUP, "max_tres_minutes_per_job"): "AssocMax{}MinutesPerJob"
    " AssocMax{}MinutesPerJobLimit",
    (Holder.QOS, "grp_tres"): "QOSGrp{} QOSGrp{}Limit",
    (Holder.QOS, "grp_tres_minutes"): "QOSGrp{}Minutes QOSGrp{}MinutesLimit",
    (Holder.QOS, "grp_tres_run_minutes"): "QOSGrp{}RunMinutes QOSGrp{}RunMinutesLimit",
    (Holder.QOS, "max_tres_per_account"): "Max{}PerAccount",
    (Holder.QOS, "max_tres_run_minutes_per_account"): "Max{}RunMinsPerAccount",
    (Holder.QOS, "max_tres_per_user"): "QOSMax{}PerUser QOSMax{}PerUserLimit",
    (Holder.QOS, "max_tres_run_minutes_per_user"): "Max{}RunMinsPerUser",
    (Holder.QOS, "max_tres_per_job"): "QOSMax{}PerJob QOSMax{}PerJobLimit",
    (Holder.QOS, "max_tres_per_node"): "QOSMax{}PerNode",
    (Holder.QOS, "max_tres_minutes_per_job"): "QOSMax{}MinutesPerJob QOSMax{}MinutesPerJobLimit",
    (Holder.QOS, "min_tres_per_job"): "QOSMin{} QOSMin{}NotSatisfied",
}
_WITHOUT = {
    (Holder.GROUP, "grp_jobs"): "AssocGrpJobsLimit",
    (Holder.GROUP, "grp_submit_jobs"): "AssocGrpSubmitJobsLimit",
    (Holder.GROUP, "grp_wall_minutes"): "AssocGrpWallLimit",
    (Holder.GROUP, "max_jobs"): "AssocMaxJobsLimit AssociationJobLimit",
    (Holder.GROUP, "max_submit_jobs"): "AssocMaxSubmitJobLimit",
    (Holder.GROUP, "max_wall_minutes"): "AssocMaxWallDurationPerJobLimit AssociationTimeLimit",
    (Holder.GROUP, None): "AssociationResourceLimit",
    (Holder.QOS, "grp_jobs"): "QOSGrpJobsLimit QOSJobLimit",
    (Holder.QOS, "grp_submit_jobs"): "QOSGrpSubmitJobsLimit",
    (Holder.QOS, "grp_wall_minutes"): "QOSGrpWallLimit",
    (Holder.QOS, "max_jobs_per_user"): "QOSMaxJobsPerUserLimit",
    (Holder.QOS, "max_submit_per_user"): "QOSMaxSubmitJobPerUserLimit",
    (Holder.QOS, "max_jobs_per_account"): "MaxJobsPerAccount",
    (Holder.QOS, "max_submit_per_account"): "MaxSubmitJobsPerAccount",
    (Holder.QOS, "max_wall_minutes"): "QOSMaxWallDurationPerJobLimit QOSTimeLimit",
    (Holder.QOS, "usage_threshold_millionths"): "QOSUsageThreshold",
    (Holder.QOS, None): "QOSResourceLimit",
    (Holder.PARTITION, "max_nodes"): "PartitionNodeLimit",
    (Holder.PARTITION, "max_time_minutes"): "PartitionTimeLimit",
}


def _table() -> dict[str, LimitOf]:
    found = {
        word: LimitOf(holder, key)
        for (holder, key), words in _WITHOUT.items()
        for word in words.split()
    }
    for (holder, key), patterns in _OF_RESOURCE.items():
        for spelling, tres in _RESOURCES.items():
            for pattern in patterns.split():
                word = pattern.format(spelling)
                if word in REASONS:
                    found[word] = LimitOf(holder, key, tres)
    return found


LIMITS = _table()


def limit_of(reason: str | None) -> LimitOf | None:
    """The limit that a reason as Slurm prints it speaks of; None: it names none."""
    return LIMITS.get(reason_word(reason))


def word_of(holder: Holder, key: str, tres: str | None) -> str:
    """Slurm's word for who waits for a limit, the way back of `limit_of`.

    `tres` None: a limit on no resource. Of several spellings the longer one is in use.
    """
    wanted = LimitOf(holder, key, _named(tres))
    words = [word for word, limit in LIMITS.items() if limit == wanted]
    return next((word for word in words if word.endswith(("Limit", "NotSatisfied"))), words[0])


def _named(tres: str | None) -> str | None:
    """The resource as `_RESOURCES` names it; None for one that Slurm has no word for."""
    base = (tres or "").partition("/")[0]
    if base == GPU.partition("/")[0]:
        return GPU
    if base == "license":
        return base
    return tres if tres in _RESOURCES.values() else None
