"""What Slurm or the broker refused: a sentence for each code that says what one can do."""

from gateway.web.texts import lazy_gettext as _l

SLURM_TEXTS = {
    "slurm_refused": _l(
        "Slurm refused this, with a reason that the portal does not know. Nothing was "
        "started. The administrators can find it in the log."
    ),
    "invalid_partition": _l("Slurm does not know this partition any more. Choose another."),
    "access_denied": _l("Slurm does not let you use this. Ask the leader of your group."),
    "partition_group_denied": _l(
        "Your Unix groups may not use this partition. Choose another, or ask an administrator."
    ),
    "nodes_not_in_partition": _l("The nodes you named are not in this partition."),
    "too_many_cpus": _l(
        "The job asks for more CPUs than a node has. Use fewer processes on each node."
    ),
    "invalid_node_count": _l(
        "The partition has fewer nodes than the job asks for. Use fewer nodes."
    ),
    "job_table_full": _l("The cluster's queue is full. Wait until some jobs have ended."),
    "script_missing": _l("Slurm got no script. Submit again; tell an administrator if it stays."),
    "not_owner": _l("The job belongs to somebody else."),
    "text_too_long": _l(
        "A text is too long for Slurm. Shorten the name, the arguments or the folder."
    ),
    "node_config_unavailable": _l(
        "No node of the partition has what the job asks for. Use fewer GPUs or processes on"
        " each node, or another GPU type."
    ),
    "partition_config_unavailable": _l(
        "The partition does not allow this many nodes or this long a time. Use less, or "
        "another partition."
    ),
    "nodes_busy": _l("The nodes are busy now."),
    "invalid_job_id": _l("Slurm does not know the job any more: it has ended a while ago."),
    "invalid_node_name": _l("Slurm does not know one of the nodes you named."),
    "controller_cannot_write": _l(
        "Slurm's controller cannot write to its disk. Nothing was started. The "
        "administrators must look at it."
    ),
    "job_in_transition": _l("The job is just changing its state. Try again in a few seconds."),
    "already_done": _l("The job has already ended."),
    "job_pending": _l("The job still waits: this needs one that runs."),
    "invalid_task_count": _l("The number of tasks does not fit the nodes."),
    "invalid_feature": _l("No node has the feature that the job asks for."),
    "not_supported": _l("This Slurm does not support that."),
    "operation_disabled": _l("The administrators have switched this off in Slurm."),
    "invalid_dependency": _l("The job depends on one that Slurm does not know."),
    "batch_only": _l("This works only for batch jobs."),
    "licenses_unavailable": _l("The licences are not available."),
    "job_held": _l("The job is held. Release it first."),
    "invalid_memory": _l("The job asks for more memory than a node has."),
    "invalid_account": _l(
        "Slurm does not let you use this group here. If you have just joined it, wait a "
        "minute; otherwise ask its leader."
    ),
    "invalid_licenses": _l("Slurm does not know this licence."),
    "accounting_policy": _l(
        "A limit of your group or of the QoS does not allow this job now. Ask for less, or "
        "wait until other jobs have ended."
    ),
    "association_submit_limit": _l(
        "Your group has as many jobs in the queue as it may. Wait until some have ended, or"
        " cancel some."
    ),
    "group_submit_limit": _l(
        "Your group may put no more jobs into the queue: it has as many as it may, or its credit"
        " is used up. Ask its leader."
    ),
    "association_time_limit": _l("The time limit is longer than your group allows. Shorten it."),
    "association_limit": _l(
        "The job asks for more than your group may use. Use fewer GPUs or nodes."
    ),
    "qos_submit_limit": _l(
        "You have as many jobs in the queue as this QoS allows. Wait until some have ended,"
        " or choose another QoS."
    ),
    "qos_time_limit": _l(
        "The time limit is longer than this QoS allows. Shorten it, or choose another QoS."
    ),
    "qos_limit": _l(
        "The job asks for more than this QoS allows. Use fewer GPUs, or choose another QoS."
    ),
    "invalid_time_limit": _l("The time limit is longer than the partition allows. Shorten it."),
    "reservation_denied": _l("You may not use this reservation."),
    "invalid_reservation": _l("Slurm does not know this reservation."),
    "invalid_time_value": _l("Slurm could not read a time. Type it as hours:minutes:seconds."),
    "reservation_unusable": _l("The reservation cannot be used now."),
    "invalid_wckey": _l("Slurm does not know this workload key."),
    "missing_working_directory": _l("The working folder is missing."),
    "invalid_qos": _l("Your group may not use this QoS here. Choose another QoS."),
    "node_unavailable": _l("The nodes that the job needs are not available."),
    "invalid_cpu_count": _l("The number of CPUs does not fit the nodes."),
    "partition_unavailable": _l("The partition cannot take jobs of this group or QoS now."),
    "circular_dependency": _l("The jobs would wait for each other."),
    "invalid_gres": _l("Slurm does not know this GPU type. Choose another."),
    "job_not_pending": _l("The job does not wait any more, so this cannot be changed."),
    "qos_threshold": _l("Your group's use is not within what this QoS wants."),
    "step_limit": _l("The job has as many steps as it may."),
    "job_suspended": _l("The job is suspended."),
    "invalid_array": _l(
        "Slurm takes no array of so many tasks (MaxArraySize of the site). Use a shorter table."
    ),
    "job_started": _l("The job has started meanwhile."),
    "job_not_running": _l("The job does not run."),
    "job_not_pending_nor_running": _l("The job has ended meanwhile."),
    "job_not_suspended": _l("The job is not suspended."),
    "job_not_finished": _l("The job has not ended yet."),
    "slurm_internal": _l("Slurm has an internal fault. The administrators must look at it."),
    "partition_down": _l("The partition is closed and takes no jobs now. Choose another."),
    "duplicate_gres": _l("GPUs are asked for twice."),
    "submissions_disabled": _l(
        "The administrators have stopped new jobs for now. Try again later."
    ),
    "group_missing": _l("Your Unix group is not known to Slurm. Ask an administrator."),
    "invalid_tres": _l("Slurm does not know a resource that the job asks for."),
    "unsupported_gres": _l("This kind of GPU request is not supported here."),
    "invalid_time_min": _l("The shortest time is longer than the time limit."),
    "environment_missing": _l("Slurm could not make the job's environment."),
    "insufficient_gres": _l(
        "The partition's nodes have fewer GPUs than the job asks for. Use fewer GPUs on "
        "each node, or another GPU type."
    ),
    "group_invalid": _l("Your Unix group is not valid on the cluster. Ask an administrator."),
    "group_unknown": _l("The cluster does not know your Unix group. Ask an administrator."),
    "user_invalid": _l("Your Unix account is not valid on the cluster. Ask an administrator."),
    "user_unknown": _l("The cluster does not know your Unix account. Ask an administrator."),
    "missing_time_limit": _l("Slurm wants a time limit here."),
    "time_limit_raise": _l(
        "A time limit can be raised only while the job waits, and never above what the "
        "partition allows. Lowering it is always possible."
    ),
    "accepted_differs": _l(
        "Slurm accepted something else than this page showed, so the job was cancelled at "
        "once. Tell an administrator."
    ),
    "empty_answer": _l(
        "Slurm answered with an empty list, which cannot be true. The portal asks again by itself."
    ),
    # The broker's own
    "bad_message": _l(
        "The portal and its broker do not understand each other: one of them is older. Tell"
        " an administrator."
    ),
    "unknown_user": _l("The cluster does not know your Unix account. Ask an administrator."),
    "system_account": _l("Jobs cannot run under a system account."),
    "caller_refused": _l("The broker does not listen to this portal. Tell an administrator."),
    "unknown_verb": _l(
        "The broker does not know this request: it is older than the portal. Tell an administrator."
    ),
    "too_large_body": _l("The request was too large for the broker."),
    "busy_killed": _l("Slurm took too long to answer, and the request was ended."),
    "slurm_unreachable": _l("Slurm does not answer now. Nothing was lost: try again in a minute."),
    "slurm_unknown": _l(
        "Slurm has not answered. It may have done it or not: the next look at the queue "
        "will tell, so wait a moment before you try again."
    ),
    "file_missing": _l("There is no such file (yet)."),
    "file_not_regular": _l("That is no regular file, so the portal does not read it."),
    "file_not_permitted": _l("You may not read that file with your Unix account."),
    "file_outside": _l("That file lies outside the folders that the portal may read."),
    "file_timeout": _l("The file system took too long to answer. Try again."),
    "folder_missing": _l("There is no such folder. Make it first, or choose another."),
    "folder_not_a_folder": _l("That is a file, not a folder."),
    "folder_not_permitted": _l(
        "You may not enter and write in that folder with your Unix account; the job writes its "
        "output there."
    ),
    "folder_outside": _l("That lies outside the folders that jobs may use."),
    "folder_exists": _l("There is something of that name already: nothing was changed."),
    "folder_no_room": _l("There is no room left, or your quota is full: nothing was made."),
    "folder_bad_files": _l("These files cannot be laid into a folder as they are."),
    "root_refused": _l("Jobs cannot run as root."),
    "bad_name": _l("The job's name holds a character that Slurm cannot take."),
    "bad_path": _l("A path must be whole, on one line and not too long."),
    "bad_signal": _l("The template asks for a signal that does not exist. Tell an administrator."),
    "bad_token": _l(
        "The portal and its broker do not understand each other. Tell an administrator."
    ),
    "script_without_shebang": _l("The script's first line must say what runs it."),
    "script_with_nul": _l("The script holds a character that no script may have."),
    "script_with_carriage_return": _l("The script has line ends of another system."),
    "script_not_text": _l("The script is not valid Unicode text."),
    "script_too_large": _l("The script is longer than Slurm takes."),
    "held_by_admin": _l(
        "An administrator holds this job, or the portal because your group has no credit left."
        " You cannot release it: ask the leader of your group."
    ),
    "held_by_owner": _l("Its owner holds the job already."),
    "not_held_by_admin": _l("No administrator holds this job."),
    "bad_account": _l("That cannot be the name of a group."),
    "bad_user": _l("That cannot be the name of a member."),
    "bad_cluster": _l("The broker does not know its cluster's name. Tell an administrator."),
    "bad_limit": _l("That number cannot be a limit in Slurm."),
    "root_account_refused": _l(
        "Every group hangs below the account root: the portal sets no limits there."
    ),
    "no_such_account": _l("Slurm does not know this group (any more). Nothing was changed."),
    "no_such_association": _l("This person is not a member of the group. Nothing was changed."),
    "limits_not_permitted": _l(
        "Slurm does not let the broker change limits. Nothing was changed: an administrator must"
        " give its account the right."
    ),
    "gpus_not_tracked": _l(
        "Slurm does not count GPUs here (AccountingStorageTRES lacks gres/gpu), so their time"
        " cannot be limited. Nothing was changed."
    ),
}
