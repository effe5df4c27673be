"""What environments, their checks and the portal's own jobs refuse, and how such jobs ended."""

from gateway.web.texts import lazy_gettext as _l

ENVIRONMENT_ERRORS = {
    "environment_value": _l("This is not accepted: %(text)s."),
    "environment_name_taken": _l(
        "The name “%(name)s” is taken, perhaps by one that was retired: old jobs speak of it."
    ),
    "environment_group": _l("Slurm knows no such group."),
    "environment_not_yours": _l(
        "Only administrators do this for the site, and a group's leaders for their group."
    ),
    "environment_file": _l("That is no file of an exported environment."),
    "environment_never_checked": _l("No check has found anything yet that could be adopted."),
    "unknown_gpu_type": _l("No node has cards of this type now."),
    "check_no_place": _l(
        "%(login)s may use no partition that is open and has %(gpu_type)s for 15 minutes."
    ),
    "check_failed": _l("Something in the environment does not work on this card."),
    "service_login_missing": _l(
        "It takes a person as whom the portal's own jobs run: the setting service_login."
    ),
    "service_login_unknown": _l(
        "The setting service_login names %(login)s, who has no account here or is disabled."
    ),
    "site_jobs_full": _l(
        "%(most)s jobs of the portal's own are open already. Wait until some are over."
    ),
    "site_job_open": _l("Such a job is on its way already."),
    "site_job_bad_result": _l("The job wrote something else than a result."),
    "site_job_no_result": _l("The job ended without a result: its output says why."),
    "site_job_not_sent": _l("The job was never sent: the portal was stopped meanwhile."),
    "site_job_cancelled": _l("The job was cancelled."),
    "site_job_timeout": _l("The job did not come to its end within its time limit."),
    "site_job_node_fail": _l("A node of the job failed."),
    "site_job_out_of_memory": _l("The job needed more memory than it had."),
    "site_job_boot_fail": _l("The node of the job did not start."),
    "site_job_deadline": _l("The job reached its deadline."),
    "site_job_preempted": _l("The job was pushed off its node by a more urgent one."),
    "site_job_withdrawn": _l("The job was withdrawn before Slurm had it."),
    "site_job_refused": _l("Slurm did not accept the job."),
}
