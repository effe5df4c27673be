"""What the portal itself refuses, and each problem at a field of a form."""

from gateway.web.texts import lazy_gettext as _l

ERROR_TEXTS = {
    "internal": _l("Something went wrong here, not with you. It has been noted."),
    "bad_configuration": _l("The portal is not set up correctly. Tell an administrator."),
    "bad_manifest": _l("The template has a fault, so it cannot be used. Tell an administrator."),
    "refused": _l("That is not possible now."),
    "not_found": _l("There is no such thing here, or you may not see it."),
    "busy": _l("The portal's database is busy. Nothing of this request was kept: try again."),
    "bad_credentials": _l("The name or the password is wrong."),
    "wrong_password": _l("That is not your password now."),
    "too_many_attempts": _l("Too many attempts. Wait %(seconds)s seconds, then try again."),
    "not_signed_in": _l("Sign in first."),
    "bad_csrf": _l(
        "The page was open too long, so it could not be trusted any more. Nothing was done:"
        " send it again."
    ),
    "bad_request": _l("The portal could not read the request."),
    "unreadable_address": _l("No file is made of what cannot be read. %(what)s"),
    "method_not_allowed": _l("That address does not take this kind of request."),
    "too_large": _l("That is more than the portal takes at once."),
    "invalid_ask": _l("Some fields need another value."),
    "not_yours_to_act": _l("You may look at this job, but not act on it."),
    "already_ended": _l("The job has already ended."),
    "accounting_count_differs": _l(
        "Slurm's accounting counted other rows than it listed. The difference is kept for review."
    ),
    "job_not_waiting": _l(
        "The job does not wait any more, so it can be neither held nor released."
    ),
    "smoke_not_sent": _l(
        "Its smoke job never came to Slurm, so this one was not sent either. Nothing is charged."
    ),
    "already_sent": _l("Slurm has it already. Cancel the job instead."),
    "job_not_running": _l("The job does not run."),
    "output_unknown": _l("Slurm has not said where this job writes its output."),
    "bad_login": _l("A login has small letters, digits and . _ @ -"),
    "bad_unix_user": _l("That cannot be the Unix account of a person."),
    "bad_display_name": _l("Type a name of at most %(longest)s characters."),
    "login_taken": _l("This login is taken."),
    "unix_user_taken": _l("Somebody has this Unix account already."),
    "last_administrator": _l("That is the last administrator: make another one first."),
    "person_disabled": _l("This account is closed."),
    "password_too_short": _l("A password has at least %(shortest)s characters."),
    "password_too_long": _l("A password has at most %(longest)s characters."),
    "budget_name": _l("Type a name of at most %(longest)s characters."),
    "ends_before_start": _l("The end must come after the start."),
    "percent_out_of_range": _l("From %(least)s to %(most)s percent."),
    "percent_twice": _l("Each percentage once."),
    "bad_month": _l("Type a month such as 2026-11."),
    "month_not_over": _l("%(month)s is not over yet."),
    "month_closed": _l("%(month)s has been closed already."),
    "no_such_list": _l("There is no such price list. There are: %(lists)s."),
    "read_back_differs": _l(
        "Slurm said yes, and has another limit all the same. See who else sets it, and the"
        " broker's log of acts."
    ),
    "watched": _l("The gate only watches: nothing was written to Slurm."),
    "member_ambiguous": _l(
        "%(name)s is the login of one person and the Unix account of another. Type the Unix"
        " account of the first, or the login of the second."
    ),
    "member_letter_case": _l(
        "Slurm keeps names in small letters here, so it cannot tell this Unix account from"
        " another. An administrator can set PreserveCaseUser in slurmdbd.conf."
    ),
    "not_owner_of_files": _l("Only the owner of a job may read its files."),
}

PROBLEM_TEXTS = {
    "required": _l("Fill this in."),
    "unknown_field": _l("There is no field of this name."),
    "not_a_text": _l("A text is wanted here."),
    "not_a_value": _l("A text or a number is wanted here."),
    "not_an_object": _l("An object of names and values is wanted here."),
    "half_character": _l("A character here is not whole."),
    "not_a_number": _l("Type a whole number."),
    "not_an_integer": _l("Type a whole number."),
    "out_of_range": _l("From %(min)s to %(max)s."),
    "too_small": _l("At least %(min)s."),
    "too_big": _l("At most %(max)s."),
    "unknown_choice": _l("Choose one of the list."),
    "unknown_template": _l("This template is gone. Choose another."),
    "unknown_environment": _l("This environment is gone. Choose another."),
    "group_not_yours": _l("You do not belong to %(group)s (any more). Choose another group."),
    "group_leaving": _l(
        "You are being removed from %(group)s: it takes no new jobs of yours. Choose another group."
    ),
    "partition_not_allowed": _l("%(group)s may not use this partition. Choose another."),
    "partition_down": _l("This partition is closed now (%(state)s). Choose another."),
    "partition_without_gpus": _l(
        "This partition has no GPUs. Choose another, or a template without."
    ),
    "qos_not_allowed": _l("This QoS is not for you in %(partition)s. Choose another."),
    "gpu_type_not_there": _l("This partition has no such GPUs. Choose another type."),
    "time_limit_above_cap": _l("Longer than the %(by)s allows (%(max)s)."),
    "gpus_per_node_above_node": _l("GPUs of a node here: %(max)s at most."),
    "cpus_above_node": _l("That needs %(cpus)s CPUs on a node; a node here has %(max)s."),
    "nodes_above_partition": _l("Nodes here: %(max)s at most."),
    "gpus_above_job_limit": _l("%(gpus)s GPUs: one job may have %(max)s."),
    "gpus_above_user_limit": _l("%(gpus)s GPUs: one person may use %(max)s at once in this QoS."),
    "gpus_above_group_limit": _l("%(gpus)s GPUs: your group may use %(max)s at once."),
    "gpus_above_qos_limit": _l("%(gpus)s GPUs: all jobs of this QoS may use %(max)s at once."),
    "gpus_above_node_limit": _l("%(asked)s GPUs on a node: a job may have %(max)s on each."),
    "size_above_job_limit": _l("%(asked)s %(resource)s: one job may have %(max)s."),
    "size_above_node_limit": _l(
        "%(asked)s %(resource)s on a node: a job may have %(max)s on each."
    ),
    "size_above_user_limit": _l("%(asked)s %(resource)s: one person may use %(max)s at once."),
    "size_above_group_limit": _l("%(asked)s %(resource)s: your group may use %(max)s at once."),
    "size_above_qos_limit": _l(
        "%(asked)s %(resource)s: all jobs of this QoS may use %(max)s at once."
    ),
    "size_below_least": _l("%(asked)s %(resource)s: a job in %(name)s needs at least %(max)s."),
    "time_above_job_minutes": _l(
        "%(resource)s × time limit is %(asked)s; one job may have %(max)s (%(name)s)."
    ),
    "tasks_above_submit_limit": _l("%(tasks)s tasks: only %(max)s jobs may be in the queue."),
    "nothing_may_start": _l("A limit of %(name)s lets no job start at all. Ask an administrator."),
    "name_too_long": _l("At most %(max)s characters."),
    "name_characters": _l("Letters, digits and . _ - + only, and no dash at the beginning."),
    "folder_too_long": _l("At most %(max)s bytes."),
    "folder_not_absolute": _l("Type the whole path, beginning with / or ~/."),
    "folder_characters": _l("“%(character)s” cannot stand in the path."),
    "folder_parent": _l("Type the path without .. and with ~ only at its beginning."),
    "time_limit_empty": _l("Type a time limit, such as 12:00:00 for 12 hours."),
    "time_limit_none": _l("A job needs an end: type a time limit, such as 12:00:00 for 12 hours."),
    "time_limit_unreadable": _l(
        "Type it as minutes (90), hours:minutes:seconds (12:00:00) or days-hours (2-12)."
    ),
    "time_limit_out_of_range": _l("Minutes and seconds go up to 59, hours after days up to 23."),
    "time_limit_too_long": _l("That is longer than Slurm can count."),
    "script_empty": _l("The script is empty."),
    "script_no_shebang": _l("The first line must say what runs it, such as #!/bin/bash."),
    "script_too_long": _l("The script is longer than Slurm takes (%(bytes)s bytes)."),
    "script_nul": _l("Line %(line)s holds a character that no script may have."),
    "script_lone_cr": _l(
        "Line %(line)s ends in the way of old Macintosh files. Save it with Unix line ends."
    ),
    "script_not_unicode": _l("Line %(line)s is not valid Unicode text."),
    "field_required": _l("Fill this in."),
    "field_too_long": _l("At most %(max)s characters."),
    "field_control_character": _l(
        "Character %(place)s cannot be seen (%(character)s). Type it again instead of pasting it."
    ),
    "field_flag": _l("Tick it or leave it."),
    "field_quotes": _l("A quotation mark is missing its partner."),
    "field_no_program": _l("The first word must be a program."),
    "field_leading_dash": _l("This cannot begin with a dash."),
    "field_integer": _l("Type a whole number."),
    "field_hours": _l("Type hours, such as 2 or 0.5."),
    "field_too_small": _l("At least %(min)s."),
    "field_too_large": _l("At most %(max)s."),
    "field_path_home": _l("Type the whole path: ~ is not read here."),
    "field_path_parent": _l("Type the path without ..: it must say where it leads."),
    "field_path_relative": _l("Type a path that begins with a slash."),
    "field_characters": _l(
        "“%(character)s” cannot stand here. Letters, digits, spaces and the usual signs of "
        "paths can."
    ),
    "field_pattern": _l("This does not have the form that the template wants."),
    "field_choice": _l("Choose one of the list."),
    "table_name": _l(
        "“%(name)s” in the first line is no name: letters, digits, _ and - after a letter."
    ),
    "table_name_twice": _l("“%(name)s” stands twice in the first line."),
    "table_no_rows": _l("Under the line of names there is no row of values."),
    "table_too_many_rows": _l("%(rows)s rows: at most %(max)s."),
    "table_row": _l("Row %(row)s has %(values)s values; there are %(names)s names."),
    "table_quotes": _l("A quotation mark in the table is missing its partner."),
    "job_too_dear": _l(
        "Not enough credit: the job could cost up to %(need)s, the group has %(free)s, so "
        "%(missing)s is missing. Shorten the time limit, take fewer or cheaper cards or another "
        "group, or ask whoever leads the group for a top-up."
    ),
    "member_cap_reached": _l(
        "The job could cost up to %(need)s, and your own limit of this month has %(free)s left. "
        "A leader of the group can raise it."
    ),
    "budget_stopped": _l(
        "The budget “%(budget)s” takes no new jobs at %(percent)s percent. This job may cost"
        " %(need)s; %(free)s is left until then."
    ),
    "budget_needs_approval": _l(
        "The budget “%(budget)s” needs a leader's approval for jobs beyond %(percent)s percent."
        " This job may cost %(need)s; %(free)s is left until then."
    ),
    "directive_refused": _l("This value cannot stand in a job script."),
}
