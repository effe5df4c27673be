"""Why a job waits (or ended): each reason word of Slurm 26.05, and the message key it gets.

The list is what `slurm_job_state_reason_string` of 26.05 returns for its whole table. Over
200 words share a few dozen sentences: what one can do about it decides the key, not Slurm's name.
"""

import re

_LIMITED = (
    "Cpu",
    "CPU",
    "Mem",
    "Memory",
    "Node",
    "GRES",
    "License",
    "BB",
    "Billing",
    "Energy",
    "Unknown",
)

_PLAIN = {
    "none": "None",
    "priority": "Priority",
    "resources": "Resources",
    "dependency": "Dependency",
    "dependency_never": "DependencyNeverSatisfied",
    "held_by_user": "JobHeldUser",
    "held_by_admin": "JobHeldAdmin",
    "held_after_requeues": "JobHoldMaxRequeue",
    "begin_time": "BeginTime",
    "array_limit": "JobArrayTaskLimit",
    "licenses": "Licenses",
    "cleaning": "Cleaning",
    "starting": "Prolog SchedDefer FedJobLock MpiPortsBusy NvidiaImexChannels",
    "nodes_unavailable": "ReqNodeNotAvail NodeDown",
    "nodes_asleep": "MaxPoweredUpNodes",
    "partition_down": "PartitionDown PartitionInactive",
    "partition_node_limit": "PartitionNodeLimit",
    "partition_time_limit": "PartitionTimeLimit",
    "partition_config": "PartitionConfig",
    "memory_limit": "MaxMemPerLimit",
    "reservation": "Reservation",
    "reservation_gone": "ReservationDeleted ReservationInvalid",
    "constraints": "BadConstraints Constraints",
    "burst_buffer": "BurstBufferResources BurstBufferStageIn BurstBufferOperation",
    "account_not_allowed": "AccountNotAllowed InvalidAccount",
    "qos_not_allowed": "QOSNotAllowed InvalidQOS",
    "qos_usage": "QOSUsageThreshold",
    "accounting_policy": "AccountingPolicy",
    "group_jobs": "AssociationJobLimit AssocGrpJobsLimit AssocMaxJobsLimit MaxJobsPerAccount",
    "group_submits": "AssocGrpSubmitJobsLimit AssocMaxSubmitJobLimit MaxSubmitJobsPerAccount",
    "group_resources": "AssociationResourceLimit AssocGrpCpuLimit AssocGrpMemLimit"
    " AssocGrpNodeLimit",
    "group_time": "AssociationTimeLimit AssocGrpWallLimit AssocGrpCPUMinutesLimit",
    "group_run_time": "AssocGrpCPURunMinutesLimit",
    "qos_jobs": "QOSJobLimit QOSGrpJobsLimit",
    "qos_submits": "QOSGrpSubmitJobsLimit",
    "qos_resources": "QOSResourceLimit QOSGrpCpuLimit QOSGrpMemLimit QOSGrpNodeLimit",
    "qos_time": "QOSTimeLimit QOSGrpWallLimit QOSGrpCPUMinutesLimit QOSGrpCPURunMinutesLimit",
    "own_jobs": "QOSMaxJobsPerUserLimit",
    "own_submits": "QOSMaxSubmitJobPerUserLimit",
    "own_resources": "QOSMaxCpuPerUserLimit QOSMaxNodePerUserLimit",
    "too_large": "AssocMaxCpuPerJobLimit AssocMaxNodePerJobLimit QOSMaxCpuPerJobLimit"
    " QOSMaxNodePerJobLimit",
    "too_long": "AssocMaxWallDurationPerJobLimit AssocMaxCpuMinutesPerJobLimit"
    " QOSMaxWallDurationPerJobLimit QOSMaxCpuMinutesPerJobLimit",
    "too_small": "QOSMinCpuNotSatisfied",
    # Not reasons to wait: how a run ended.
    "ended_launch": "JobLaunchFailure",
    "ended_exit_code": "NonZeroExitCode",
    "ended_time_limit": "TimeLimit",
    "ended_inactive": "InactiveLimit",
    "ended_signal": "RaisedSignal",
    "ended_deadline": "DeadLine",
    "ended_out_of_memory": "OutOfMemory",
    "ended_system": "SystemFailure",
}

# {} stands for what is limited: GRES, nearly always the GPUs, gets keys of its own.
_FAMILIES = {
    "group": "AssocGrp{} Max{}PerAccount",
    "group_time": "AssocGrp{}Minutes",
    "group_run_time": "AssocGrp{}RunMinutes Max{}RunMinsPerAccount",
    "qos": "QOSGrp{}",
    "qos_time": "QOSGrp{}Minutes QOSGrp{}RunMinutes",
    "own": "QOSMax{}PerUser",
    "own_time": "Max{}RunMinsPerUser",
    "too_large": "AssocMax{}PerJob AssocMax{}PerNode QOSMax{}PerJob QOSMax{}PerNode",
    "too_long": "AssocMax{}MinutesPerJob QOSMax{}MinutesPerJob",
    "too_small": "QOSMin{}",
}
_COUNTS = {"group": "group_resources", "qos": "qos_resources", "own": "own_resources"}
_GPU_KEYS = {
    **{family: f"{family}_gpus" for family in ("group", "qos", "own", "too_large", "too_small")},
    # The portal's own gate shuts with this one (set-group-limits).
    "group_run_time": "group_gpu_run_time",
}


def _table() -> dict[str, str]:
    table = {word: key for key, words in _PLAIN.items() for word in words.split()}
    for family, patterns in _FAMILIES.items():
        for what in _LIMITED:
            key = _COUNTS.get(family, family)
            if what == "GRES":
                key = _GPU_KEYS.get(family, key)
            for pattern in patterns.split():
                table.setdefault(pattern.format(what), key)
    return table


_KEYS = _table()
REASONS: frozenset[str] = frozenset(_KEYS)
REASON_KEYS: frozenset[str] = frozenset({*_KEYS.values(), "other"})

_WORD = re.compile(r"[A-Za-z]+", re.ASCII)

# squeue prints these sentences in place of a word.
_SENTENCES = (
    ("nodes required for job are down", "nodes_unavailable"),
    ("job requeued in held state", "held_after_requeues"),
    ("launch failed requeued held", "held_after_requeues"),
    ("requested nodes are busy", "resources"),
)


def reason_word(text: str | None) -> str:
    """Slurm's own word in a reason as it prints it, without details; empty: there is none."""
    printed = (text or "None").strip().strip("()")
    if printed.endswith("_JobArrayTaskLimit"):
        return "JobArrayTaskLimit"
    word = _WORD.match(printed)
    rest = printed[word.end() :] if word else ""
    return "" if word is None or (rest and rest[0] not in ",:( ") else word[0]


def reason_key(text: str | None) -> str:
    """The message key for a reason as Slurm prints it, with or without details; unknown: other."""
    printed = (text or "None").strip().strip("()").lower()
    for sentence, key in _SENTENCES:
        if printed.startswith(sentence):
            return key
    return _KEYS.get(reason_word(text), "other")
