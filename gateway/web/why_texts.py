"""The words of core.whynot and core.standing: each limit, each help, what is not known, each factor
of the priority."""

from collections.abc import Mapping

from gateway.core.caps import Holder
from gateway.web.texts import Lazy
from gateway.web.texts import lazy_gettext as _l

_QOS, _GROUP, _PARTITION = Holder.QOS, Holder.GROUP, Holder.PARTITION

# What a limit says; %(limit)s is an amount with its unit, %(name)s whose limit it is.
LIMIT_TEXTS: Mapping[tuple[Holder, str], Lazy] = {
    (_QOS, "max_tres_per_user"): _l("In QoS %(name)s one person may use %(limit)s at once."),
    (_QOS, "max_tres_per_account"): _l("In QoS %(name)s one group may use %(limit)s at once."),
    (_QOS, "grp_tres"): _l("All jobs of QoS %(name)s together may use %(limit)s at once."),
    (_QOS, "max_tres_per_job"): _l("A job in QoS %(name)s may have %(limit)s."),
    (_QOS, "max_tres_per_node"): _l("A job in QoS %(name)s may have %(limit)s on each node."),
    (_QOS, "max_tres_minutes_per_job"): _l(
        "A job in QoS %(name)s may use %(limit)s: its size times its time limit."
    ),
    (_QOS, "max_wall_minutes"): _l("A time limit in QoS %(name)s may be %(limit)s at most."),
    (_QOS, "min_tres_per_job"): _l("A job in QoS %(name)s must have at least %(limit)s."),
    (_QOS, "max_tres_run_minutes_per_user"): _l(
        "In QoS %(name)s one person's running jobs may have %(limit)s before them."
    ),
    (_QOS, "max_tres_run_minutes_per_account"): _l(
        "In QoS %(name)s one group's running jobs may have %(limit)s before them."
    ),
    (_QOS, "grp_tres_run_minutes"): _l(
        "All running jobs of QoS %(name)s together may have %(limit)s before them."
    ),
    (_QOS, "grp_tres_minutes"): _l("QoS %(name)s may use %(limit)s in all, as Slurm counts it."),
    (_QOS, "grp_wall_minutes"): _l("Jobs of QoS %(name)s may run for %(limit)s in all."),
    (_QOS, "max_jobs_per_user"): _l("In QoS %(name)s one person may run %(limit)s at once."),
    (_QOS, "max_jobs_per_account"): _l("In QoS %(name)s one group may run %(limit)s at once."),
    (_QOS, "grp_jobs"): _l("Of QoS %(name)s %(limit)s may run at once."),
    (_QOS, "max_submit_per_user"): _l(
        "In QoS %(name)s one person may have %(limit)s in the queue, those that run among them."
    ),
    (_QOS, "max_submit_per_account"): _l(
        "In QoS %(name)s one group may have %(limit)s in the queue, those that run among them."
    ),
    (_QOS, "grp_submit_jobs"): _l(
        "Of QoS %(name)s %(limit)s may be in the queue, those that run among them."
    ),
    (_GROUP, "grp_tres"): _l("Group %(name)s may use %(limit)s at once."),
    (_GROUP, "own_grp_tres"): _l("In group %(name)s this person may use %(limit)s at once."),
    (_GROUP, "max_tres_per_job"): _l("A job of group %(name)s may have %(limit)s."),
    (_GROUP, "max_tres_per_node"): _l("A job of group %(name)s may have %(limit)s on each node."),
    (_GROUP, "max_tres_minutes_per_job"): _l(
        "A job of group %(name)s may use %(limit)s: its size times its time limit."
    ),
    (_GROUP, "max_wall_minutes"): _l("A time limit in group %(name)s may be %(limit)s at most."),
    (_GROUP, "grp_tres_minutes"): _l(
        "Group %(name)s may use %(limit)s in all, as Slurm counts it."
    ),
    (_GROUP, "grp_wall_minutes"): _l("Jobs of group %(name)s may run for %(limit)s in all."),
    (_GROUP, "grp_tres_run_minutes"): _l(
        "The running jobs of group %(name)s together may have %(limit)s before them."
    ),
    (_GROUP, "grp_jobs"): _l("Group %(name)s may run %(limit)s at once."),
    (_GROUP, "max_jobs"): _l("In group %(name)s one person may run %(limit)s at once."),
    (_GROUP, "max_submit_jobs"): _l(
        "In group %(name)s one person may have %(limit)s in the queue, those that run among them."
    ),
    (_GROUP, "grp_submit_jobs"): _l(
        "Group %(name)s may have %(limit)s in the queue, those that run among them."
    ),
    (_PARTITION, "max_nodes"): _l("A job in partition %(name)s may have %(limit)s."),
    (_PARTITION, "max_time_minutes"): _l(
        "A time limit in partition %(name)s may be %(limit)s at most."
    ),
}

HELP_TEXTS: Mapping[str, Lazy] = {
    "fewer_gpus": _l("Ask for %(gpus)s on %(nodes)s: no limit that is known stops that now."),
    "fewer_nodes": _l("Ask for %(nodes)s: no limit that is known stops that now."),
    "more": _l("Ask for %(gpus)s on %(nodes)s: that is enough."),
    "shorter": _l("Set the time limit to %(time)s or less."),
    "other_qos": _l("Use QoS %(name)s: none of its limits holds this job back now."),
    "higher_qos": _l("QoS %(name)s stands before this one, and its limits allow this job."),
    "other_partition": _l("Use partition %(name)s: it is open, and this job fits there as it is."),
    "raise_qos_limit": _l("An administrator can raise this limit of QoS %(name)s."),
    "raise_group_limit": _l("The leader of %(name)s can ask an administrator to raise this limit."),
    "credit": _l(
        "The leader of your group can add credit; the portal then lets the job go by itself."
    ),
    "release": _l("Release it."),
    "cancel": _l("Cancel it: it will never start."),
    "ask_administrator": _l("Ask an administrator: only they can release it."),
}

UNKNOWN_TEXTS: Mapping[str, Lazy] = {
    "limit": _l(
        "Which limit it is, or its value, is not known here: Slurm does not say it, or it belongs"
        " to the partition."
    ),
    "usage": _l(
        "How much of it is used is not known here: Slurm counts that itself, or it is a resource"
        " that the portal does not count job by job."
    ),
    "asked": _l("How much of it this job asks for is not known here."),
    "end": _l("When enough is free again nobody can say: jobs without a time limit hold it."),
    "licences": _l("Which licences are taken, and by whom, is not known here."),
    "other_job": _l("Which job that is, Slurm does not tell the portal: squeue shows it."),
}

FACTOR_TEXTS: Mapping[str, Lazy] = {
    "of_qos": _l("QoS"),
    "fair_share": _l("Fair share"),
    "age": _l("Time waited"),
    "job_size": _l("Size"),
    "of_partition": _l("Partition"),
    "association": _l("Group and person"),
    "tres": _l("Resources asked for"),
    "site": _l("Set by the site"),
    "nice": _l("Nice"),
}
FACTOR_HELPS: Mapping[str, Lazy] = {
    "of_qos": _l("Each QoS has a priority of its own."),
    "fair_share": _l("The less your group has used of its share lately, the more."),
    "age": _l("It grows while the job waits for others."),
    "job_size": _l("By the nodes or CPUs that it asks for."),
    "of_partition": _l("Each partition has a priority of its own."),
    "association": _l("Set by the administrators for a group or a person."),
    "tres": _l("By the GPUs, CPUs and memory that it asks for."),
    "site": _l("Set by a rule of this site."),
    "nice": _l("Taken off at its owner's or an administrator's wish."),
}
