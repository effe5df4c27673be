"""Why a run's charge waits for a person: what that means for whoever ran it, and what to do.

What happened stands in money_texts.DOUBTS, where the review of the administrators has it too.
"""

from gateway.core.billing import Doubt
from gateway.web.texts import lazy_gettext as _l

_NOTHING_TO_DO = _l("You need not do anything: an administrator decides.")
_TELL = _l("If you know what it had, tell an administrator: that helps to decide.")

MEANS = {
    Doubt.GPUS_UNKNOWN: (
        _l(
            "So nobody can say for certain what it cost. Nothing is charged until a person decides."
        ),
        _TELL,
    ),
    Doubt.GPU_TYPE_UNKNOWN: (
        _l("Types differ in price, so nothing is charged until a person decides which it was."),
        _TELL,
    ),
    Doubt.GPUS_NOT_TRACKED: (
        _l("The record shows no GPU, and to charge nothing would be wrong. It waits for a person."),
        _l("An administrator has to switch the count on in Slurm. You need not do anything."),
    ),
    Doubt.NO_PRICE: (
        _l("It is charged as soon as an administrator has set a price from before its start."),
        _NOTHING_TO_DO,
    ),
    Doubt.TIMES_DIFFER: (
        _l("So its run time is not certain. Nothing is charged until a person decides."),
        _l("If you know when it ended, tell an administrator: its output may show it."),
    ),
    Doubt.END_BEFORE_LAST_SEEN: (
        _l("The recorded end is too early to be true. Nothing is charged until a person decides."),
        _NOTHING_TO_DO,
    ),
    Doubt.NO_END: (
        _l("Slurm has lost it. Nothing is charged until a person decides when it ended."),
        _l("If you know when it ended, tell an administrator: its output may show it."),
    ),
    Doubt.NO_GROUP: (
        _l("No group can be charged for it."),
        _NOTHING_TO_DO,
    ),
    Doubt.UNSETTLED: (
        _l("Something went wrong in the portal. Nothing is charged until a person decides."),
        _NOTHING_TO_DO,
    ),
}
