"""The words of QoS and groups' policies: each field with what Slurm does at it, flags, preemption
modes, scopes, and what is refused."""

from collections.abc import Mapping
from dataclasses import dataclass

from gateway.core.qos import Scope
from gateway.web.texts import Lazy
from gateway.web.texts import lazy_gettext as _l


@dataclass(frozen=True, slots=True)
class FieldText:
    """`help` says what Slurm does at the limit; `unit` is empty where the value says its own."""

    word: Lazy
    help: Lazy
    unit: Lazy | None = None


JOBS = _l("jobs")
_RUN_MINUTES = _l(
    "Resources times the time that running jobs have left. What would go above waits until"
    " others have run down."
)
_ACCRUE = _l("So many waiting jobs grow in priority by age; the others wait without growing.")
_SUBMIT = _l("Waiting and running jobs together. One more is refused when it is submitted.")
_RUNNING = _l("One more waits until one of these has ended.")

FIELD_TEXTS: Mapping[str, FieldText] = {
    "description": FieldText(_l("Description"), _l("What it is for, in a few words.")),
    "priority": FieldText(
        _l("Priority"),
        _l("Against other QoS: the one with the highest number gives its jobs the most points."),
    ),
    "flags": FieldText(_l("Rules"), _l("What else Slurm does with jobs of this QoS.")),
    "usage_factor_millionths": FieldText(
        _l("Usage factor"),
        _l("What a job uses counts so many times in Slurm's fair share. 0: it counts nothing."),
    ),
    "limit_factor_millionths": FieldText(
        _l("Limit factor"),
        _l("The limits of groups on resources count so many times for jobs of this QoS."),
    ),
    "usage_threshold_millionths": FieldText(
        _l("Least fair share"),
        _l("A group below it is refused at submit, where the rule on the usage threshold is set."),
    ),
    "preempts": FieldText(
        _l("Pushes off"),
        _l("Running jobs of these QoS make room, at once, for a waiting job of this one."),
    ),
    "preempt_mode": FieldText(
        _l("When pushed off"), _l("What happens to a job of this QoS that must make room.")
    ),
    "preempt_exempt_seconds": FieldText(
        _l("Safe at first"), _l("A job cannot be pushed off before it has run so long.")
    ),
    "grace_seconds": FieldText(
        _l("Warning before being pushed off"),
        _l("So long a job may go on after the warning, to write a checkpoint."),
    ),
    "grp_tres": FieldText(
        _l("In use at once"), _l("A job that would go above waits until enough is free.")
    ),
    "grp_tres_minutes": FieldText(
        _l("Used in all"),
        _l(
            "When it is used up, what waits stays, and running jobs are killed where the"
            " cluster does not enforce “safe”. Usage decays."
        ),
    ),
    "grp_tres_run_minutes": FieldText(_l("Promised to running jobs"), _RUN_MINUTES),
    "grp_jobs": FieldText(_l("Running jobs"), _RUNNING, JOBS),
    "grp_jobs_accrue": FieldText(_l("Jobs that gain age"), _ACCRUE, JOBS),
    "grp_submit_jobs": FieldText(_l("Submitted jobs"), _SUBMIT, JOBS),
    "grp_wall_minutes": FieldText(
        _l("Run time in all"),
        _l(
            "Of all jobs added up. When it is used up, running jobs are killed where the"
            " cluster does not enforce “safe”. Usage decays."
        ),
    ),
    "max_tres_per_account": FieldText(
        _l("In use at once"), _l("A job that would go above waits until the group uses less.")
    ),
    "max_tres_run_minutes_per_account": FieldText(_l("Promised to running jobs"), _RUN_MINUTES),
    "max_jobs_per_account": FieldText(_l("Running jobs"), _RUNNING, JOBS),
    "max_jobs_accrue_per_account": FieldText(_l("Jobs that gain age"), _ACCRUE, JOBS),
    "max_submit_per_account": FieldText(_l("Submitted jobs"), _SUBMIT, JOBS),
    "max_tres_per_user": FieldText(
        _l("In use at once"), _l("A job that would go above waits until the person uses less.")
    ),
    "max_tres_run_minutes_per_user": FieldText(_l("Promised to running jobs"), _RUN_MINUTES),
    "max_jobs_per_user": FieldText(_l("Running jobs"), _RUNNING, JOBS),
    "max_jobs_accrue_per_user": FieldText(_l("Jobs that gain age"), _ACCRUE, JOBS),
    "max_submit_per_user": FieldText(_l("Submitted jobs"), _SUBMIT, JOBS),
    "max_tres_per_job": FieldText(
        _l("Size at most"),
        _l("A larger job waits for ever; with the rule on refusal it is refused at submit."),
    ),
    "max_tres_per_node": FieldText(
        _l("On each node at most"),
        _l("A job that takes more of a node waits for ever, or is refused at submit by the rule."),
    ),
    "max_tres_minutes_per_job": FieldText(
        _l("Used by one job"),
        _l("A job that has used so much is killed where the cluster does not enforce “safe”."),
    ),
    "max_wall_minutes": FieldText(
        _l("Longest time limit"),
        _l("A job that asks for more waits for ever; with the rule on refusal it is refused."),
    ),
    "min_tres_per_job": FieldText(
        _l("Size at least"),
        _l("A smaller job waits for ever; with the rule on refusal it is refused at submit."),
    ),
    "min_priority": FieldText(
        _l("Least priority to start"), _l("A job whose priority is lower waits until it has grown.")
    ),
    "qos": FieldText(
        _l("QoS that may be used"),
        _l("A job in another one is refused. What waits in one that is taken away does not start."),
    ),
    "default_qos": FieldText(
        _l("QoS when none is named"), _l("For jobs that do not say which they want.")
    ),
    "shares": FieldText(
        _l("Shares"),
        _l("The group's part of the cluster, against the shares of the groups beside it."),
    ),
    "max_jobs": FieldText(_l("Running jobs"), _RUNNING, JOBS),
    "max_submit_jobs": FieldText(_l("Submitted jobs"), _SUBMIT, JOBS),
}

FLAG_TEXTS: Mapping[str, tuple[Lazy, Lazy]] = {
    "DenyOnLimit": (
        _l("Refuse what is above a limit"),
        _l("A job that can never fit is refused at submit, and does not wait for ever."),
    ),
    "EnforceUsageThreshold": (
        _l("Refuse groups below the least fair share"),
        _l("Without this the least fair share has no effect."),
    ),
    "PartitionMinNodes": (
        _l("May go below the partition's least nodes"),
        _l("Jobs may ask for fewer nodes than the partition demands."),
    ),
    "PartitionMaxNodes": (
        _l("May go above the partition's most nodes"),
        _l("Jobs may ask for more nodes than the partition allows."),
    ),
    "PartitionTimeLimit": (
        _l("May go above the partition's time limit"),
        _l("Jobs may ask for a longer time than the partition allows."),
    ),
    "RequiresReservation": (
        _l("Only inside a reservation"),
        _l("A job that names no reservation is refused."),
    ),
    "OverPartQOS": (
        _l("Goes before the partition's QoS"),
        _l("Where a partition has a QoS of its own, these limits count and not its."),
    ),
    "NoReserve": (
        _l("No place is kept"),
        _l("The scheduler keeps no start time for these jobs: they start when there is room."),
    ),
    "NoDecay": (
        _l("Usage does not decay"),
        _l("What was used counts for ever, against the limits on usage in all."),
    ),
    "Relative": (
        _l("Limits are percentages"),
        _l("Limits on resources for all jobs together are percent of the cluster."),
    ),
    "UsageFactorSafe": (
        _l("Start only what can end"),
        _l("A job starts only when its whole time, times the usage factor, fits what is left."),
    ),
}

MODE_TEXTS: Mapping[str, tuple[Lazy, Lazy]] = {
    "cluster": (_l("as the cluster says"), _l("What Slurm's configuration sets for all.")),
    "requeue": (_l("waits again"), _l("The job is stopped and starts again later.")),
    "cancel": (_l("is cancelled"), _l("The job ends there and does not come back.")),
    "suspend": (_l("is suspended"), _l("The job keeps its memory and goes on when there is room.")),
    "gang": (_l("takes turns"), _l("Jobs share the cards in turns.")),
    "within": (
        _l("also within the QoS"),
        _l("Jobs of this QoS may push off others of it with a lower priority."),
    ),
}

QOS_SCOPES: Mapping[Scope, Lazy] = {
    Scope.GENERAL: _l("In general"),
    Scope.ALL: _l("All its jobs together"),
    Scope.GROUP: _l("Each group"),
    Scope.PERSON: _l("Each person"),
    Scope.JOB: _l("Each job"),
}
GROUP_SCOPES: Mapping[Scope, Lazy] = {
    Scope.GENERAL: _l("In general"),
    Scope.GROUP: _l("The whole group"),
    Scope.PERSON: _l("Each person of it"),
    Scope.JOB: _l("Each job of it"),
}

# Slurm's own resources; GPUs, of which a type may be named, are `gpu_word`'s.
TRES_WORDS: Mapping[str, Lazy] = {
    "cpu": _l("CPUs"),
    "mem": _l("memory"),
    "node": _l("nodes"),
    "billing": _l("billing units"),
    "energy": _l("energy"),
    "fs/disk": _l("disk"),
    "vmem": _l("virtual memory"),
    "pages": _l("pages"),
}

POLICY_ERRORS: Mapping[str, Lazy] = {
    "policy_bad_name": _l(
        "Small letters, digits and _ . - only, beginning with a letter, a digit or _,"
        " at most 60 characters."
    ),
    "policy_bad_text": _l("At most 200 characters, without quotes, \\ or |."),
    "policy_bad_number": _l("That is out of the range that Slurm can keep."),
    "policy_unknown_word": _l("Choose at least one, of the list."),
    "policy_bad_tres": _l("Choose a resource of the list."),
    "policy_bad_memory": _l(
        "Slurm cannot keep memory of just this size. Use whole GiB, and not more than"
        " 1,048,576 GiB."
    ),
    "policy_two_modes": _l(
        "“as the cluster says” stands alone, and a job can be made to wait, be cancelled or be"
        " suspended in one way only."
    ),
    "policy_default_not_listed": _l("The default is not among the QoS that the group may use."),
    "policy_twice": _l("Each resource once."),
    "policy_preempts_itself": _l("A QoS cannot push off its own jobs here."),
    "policy_whole_number": _l("Type a whole number, or nothing for no limit."),
    "policy_number": _l("Type a number such as 64 or 1.5."),
    "policy_needed": _l("Type a number. 0 is a number as well."),
    "policy_factor": _l("Type a number such as 1 or 0.82, with at most six decimals."),
    "policy_time": _l(
        "Type minutes (90), hours:minutes:seconds (12:00:00) or days-hours (2-12), or leave it"
        " empty."
    ),
    "policy_zero": _l("0 means that nothing is allowed. Say so with the tick, or leave it empty."),
    "policy_row_number": _l("Type a number, or leave the whole row empty."),
    "policy_row_resource": _l("Choose which resource."),
    "policy_form_out_of_date": _l(
        "Slurm has something else than when you opened this form. What you typed is kept:"
        " compare it with what is there now, and send it again."
    ),
    "policy_nothing_changes": _l("Nothing is different from what Slurm has."),
    "policy_object_twice": _l("Each QoS and each group once."),
    "policy_unknown_qos": _l("There is no QoS %(qos)s."),
    "policy_retired_qos": _l("The QoS %(qos)s is retired. Bring it back first."),
    "policy_default_not_allowed": _l(
        "%(qos)s is not among the QoS that the group may use. Allow it, or choose another default."
    ),
    "policy_bad_reason": _l("At most %(most)s characters, without control characters."),
    "policy_ends_too_early": _l("The end must come after the start, and after now."),
    "policy_own_approval": _l("Another administrator has to approve it."),
    "policy_not_waiting": _l("It does not wait for a decision any more."),
    "policy_too_late": _l("It was sent to Slurm already. Undo it instead."),
    "policy_default_needed": _l(
        "Choose another default that %(group)s may use: it has this one as its default."
    ),
    "policy_last_qos": _l("%(group)s has no other QoS. Give it another one first."),
    "policy_not_retired": _l("%(qos)s is not retired."),
    "policy_qos_in_use": _l("A group still may use it. Take it from the group first."),
    "policy_not_taken": _l("Slurm said yes, and has what it had before all the same."),
    "policy_half_taken": _l("Slurm said yes, and took only some of it."),
    "policy_no_drift": _l("Slurm and the portal agree about it again."),
    "policy_cannot_restore": _l("The portal cannot bring this back: make it anew in Slurm."),
    "qos_exists": _l("There is a QoS of this name already."),
    "no_such_qos": _l("Slurm knows no such QoS (any more)."),
    "policy_changed_meanwhile": _l(
        "Slurm has something else by now. Nothing was overwritten: look at it and propose anew."
    ),
    "policy_preemption_loop": _l("The QoS would push each other off in a circle."),
    "policy_not_permitted": _l("Slurm does not let the portal change policy."),
    "policy_unknown_tres": _l("Slurm does not track this resource."),
    "policy_refused": _l("Slurm refused it. Its words are in the broker's log of acts."),
    "member_has_jobs": _l("This person has jobs in the group that wait or run."),
    "member_default_account": _l(
        "It is the person's default group. Give them another default first."
    ),
    "no_such_unix_user": _l("There is no such Unix account on the cluster."),
}
