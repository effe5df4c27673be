"""What is said of volumes: refusals, and why a figure is not known."""

from gateway.core.volumes import Ask, State
from gateway.web.texts import lazy_gettext as _l

VOLUME_ERRORS = {
    "no_such_area": _l("There is no such area for volumes."),
    "no_such_volume": _l("The file system has no volume of this name."),
    "volume_area_full": _l("The file system is full, or takes no writes."),
    "volume_area_gone": _l("The file system is not mounted where the volumes should be."),
    "volume_area_open": _l(
        "Others than root may write in the area itself, so nothing is done there. Tell an"
        " administrator."
    ),
    "volume_area_unread": _l("Its area could not be read, so these figures are old."),
    "volume_bad_limit": _l("A limit is a whole number of MB, up to 1,024 PB."),
    "volume_bad_name": _l(
        "A name has small letters, digits, _ and -, begins with a letter, and"
        " has 40 characters at most."
    ),
    "volume_bad_size": _l("Type a size such as 500 GB or 2 TB."),
    "volume_below_use": _l(
        "More than that is used. Nothing would be deleted, and nobody could write there until"
        " enough was removed. Tick that this is meant."
    ),
    "volume_changed_meanwhile": _l(
        "The limit is another by now: somebody else changed it. Look again, then decide."
    ),
    "volume_exists": _l("Something of this name is there already."),
    "volume_gone": _l("It is not there any more: somebody removed it behind the portal's back."),
    "volume_limit_differs": _l(
        "Its limit is another than the portal set: somebody changed it behind the portal's back."
    ),
    "volume_no_limits": _l("This area only measures: nothing can be limited there."),
    "volume_no_such_group": _l("The file system's host knows no such Unix group."),
    "volume_not_limited": _l(
        "It is a plain folder, which nothing limits or counts: it was not made as a volume."
    ),
    "volume_not_more": _l("That is not more than there is. Smaller limits are administrators'."),
    "volume_not_there": _l("It is not there (any more, or yet)."),
    "volume_nothing_differs": _l("Nothing differs from what the portal set."),
    "volume_over_cap": _l(
        "That is beyond what the group's leaders may agree to: it takes an administrator."
    ),
    "volume_quota_lost": _l("The file system has no quota group of it, so nobody counts it."),
    "volume_quota_off": _l("Quotas are not switched on in the file system, so nothing is counted."),
    "volume_quota_stale": _l(
        "The file system says that its counts are not right: a rescan of its quotas is needed."
    ),
    "volume_reason_missing": _l("Say why: whoever asked reads it."),
    "volume_request_done": _l("Somebody else has answered this request."),
    "volume_request_open": _l("Another limit is asked for already: answer or withdraw that first."),
    "volume_system_group": _l("That is a group of the system, not of people."),
    "volume_timeout": _l("It took too long to read, so nothing is known of it now."),
    "volume_tool_failed": _l("The file system's program did not do what it should."),
    "volume_tool_missing": _l("The file system's program is not installed where the broker runs."),
    "volume_unreadable": _l("A part of it could not be read, so its size is not known."),
    "volume_which": _l("Several areas have a volume %(name)s: %(areas)s. Write AREA/NAME."),
}

STATES = {
    State.MAKING: _l("being made"),
    State.THERE: _l("there"),
    State.RETIRED: _l("retired"),
}

ASKS = {
    Ask.OPEN: _l("asked for"),
    Ask.AGREED: _l("agreed, not written yet"),
    Ask.APPLIED: _l("done"),
    Ask.REFUSED: _l("refused"),
    Ask.FAILED: _l("failed"),
    Ask.WITHDRAWN: _l("withdrawn"),
}
