"""Why a job waits, or how it ended: a sentence for each key of core.reasons."""

from gateway.web.texts import lazy_gettext as _l

REASON_TEXTS = {
    "none": _l("Slurm has not looked at this job yet. That takes a few seconds."),
    "priority": _l("Jobs with a higher priority stand before this one."),
    "resources": _l("Next in line: waiting until enough GPUs, CPUs or memory are free."),
    "dependency": _l("Waiting for another job that this one depends on."),
    "dependency_never": _l(
        "The job that this one depends on did not end as required, so this one will never "
        "start. Cancel it."
    ),
    "held_by_user": _l("Held by its owner. Release it, and it joins the queue."),
    "held_by_admin": _l(
        "Held by an administrator, or by the portal because your group has no credit left. You"
        " cannot release it: ask the leader of your group."
    ),
    "held_after_requeues": _l(
        "Held: it failed to launch or was requeued too often. Look at the output, then release it."
    ),
    "begin_time": _l("Its begin time has not come yet."),
    "array_limit": _l("As many tasks of this array run as it allows itself at once."),
    "licenses": _l("Waiting for a licence."),
    "cleaning": _l("Slurm is still tidying up after its last run."),
    "starting": _l("About to start: Slurm is preparing it."),
    "nodes_unavailable": _l(
        "Nodes that it needs are down, drained or reserved. It starts when they return."
    ),
    "nodes_asleep": _l("Waiting until nodes may be powered up."),
    "partition_down": _l("The partition is closed for now. The job starts when it opens."),
    "partition_node_limit": _l(
        "It asks for more nodes than the partition allows. Submit it with fewer."
    ),
    "partition_time_limit": _l(
        "Its time limit is longer than the partition allows. Shorten the time limit."
    ),
    "partition_config": _l("The partition does not allow this kind of job. Choose another."),
    "memory_limit": _l("It asks for more memory than a job may have here."),
    "reservation": _l("Waiting for its reservation to begin."),
    "reservation_gone": _l("Its reservation is gone. Cancel it and submit it without one."),
    "constraints": _l("No node has what it asks for. Submit it with other wishes."),
    "burst_buffer": _l("Its data are being brought to fast storage."),
    "account_not_allowed": _l("This group may not use the partition. Choose another partition."),
    "qos_not_allowed": _l("This QoS may not be used here. Choose another QoS."),
    "qos_usage": _l("The group has used too little or too much for this QoS."),
    "accounting_policy": _l("A limit of the group or of the QoS holds it back."),
    "group_jobs": _l("Your group already runs as many jobs as it may. One must end first."),
    "group_submits": _l(
        "Your group may put no more jobs into the queue: it has as many as it may, or its credit"
        " is used up."
    ),
    "group_resources": _l("Your group already uses as many resources as it may at once."),
    "group_gpus": _l("Your group already uses all the GPUs that it may use at once."),
    "group_run_time": _l(
        "Your group's running jobs could still use as much time as they may together. It starts"
        " when they have less left."
    ),
    "group_gpu_run_time": _l(
        "Your group's running jobs could still use as much GPU time as its limit, or its credit,"
        " allows. It starts when they have less left, or when the group has credit again."
    ),
    "group_time": _l("Your group has used up its time. An administrator can raise it."),
    "qos_jobs": _l("This QoS already runs as many jobs as it may."),
    "qos_submits": _l("This QoS has as many jobs in the queue as it may."),
    "qos_resources": _l("This QoS already uses as many resources as it may at once."),
    "qos_gpus": _l("All the GPUs that this QoS may use at once are in use."),
    "qos_time": _l("The time of this QoS is used up."),
    "own_jobs": _l("You already run as many jobs as one person may in this QoS."),
    "own_submits": _l("You have as many jobs in the queue as one person may in this QoS."),
    "own_resources": _l("You already use as many resources as one person may in this QoS."),
    "own_gpus": _l("You already use as many GPUs as one person may in this QoS."),
    "own_time": _l("You have used up the time that one person may have at once."),
    "too_large": _l(
        "It asks for more than one job may have. It will never start: submit a smaller one."
    ),
    "too_large_gpus": _l(
        "It asks for more GPUs than one job may have. It will never start: submit it with fewer."
    ),
    "too_long": _l(
        "Its time limit is longer than one job may have. It will never start: shorten the limit."
    ),
    "too_small": _l("It asks for less than this QoS wants a job to have."),
    "too_small_gpus": _l("It asks for fewer GPUs than this QoS wants a job to have."),
    "ended_launch": _l("It could not be launched: often the folder or the user is missing there."),
    "ended_exit_code": _l("The script ended with an error. The end of the output says more."),
    "ended_time_limit": _l("It reached its time limit and was stopped."),
    "ended_inactive": _l("It did nothing for too long and was stopped."),
    "ended_signal": _l("A signal ended it."),
    "ended_deadline": _l("It could not have ended before its deadline."),
    "ended_out_of_memory": _l("It used more memory than it had asked for."),
    "ended_system": _l("The cluster failed under it. That was not your script."),
    "other": _l("Slurm gives a reason that this portal does not know yet."),
}
