"""The words of money: what is refused, kinds of entries, why a run is reviewed, rules at zero."""

from collections.abc import Mapping

from gateway.core.billing import Doubt, RefundReason
from gateway.core.budgets import Action, Category
from gateway.core.closing import Kind
from gateway.core.ledger import AtZero, EntryKind
from gateway.core.pots import PotKind
from gateway.web.texts import Lazy
from gateway.web.texts import lazy_gettext as _l

MONEY_ERRORS = {
    "credits_unreadable": _l("Type an amount in figures, such as 120 or 0.82."),
    "credits_too_fine": _l("An amount has at most six decimals."),
    "credits_too_large": _l("At most %(most)s."),
    "amount_not_positive": _l("Type more than zero."),
    "amount_is_zero": _l("Type another amount than zero."),
    "bad_name": _l("Letters, digits and . _ : - only, beginning with a letter or digit."),
    "carry_over_out_of_range": _l("From 0 to 100 percent."),
    "expires_before_start": _l("Choose a day to come."),
    "days_out_of_range": _l("From 1 to 3660 days."),
    "factor_out_of_range": _l("From 0 to 100."),
    "price_negative": _l("A price cannot be below zero."),
    "price_exists": _l(
        "There is a row for %(resource)s from that moment already. Choose another moment."
    ),
    "price_in_the_past": _l("Prices begin now or later: what was charged by then stays as it is."),
    "no_price": _l("%(resource)s has no price yet. Ask an administrator, or choose another type."),
    "name_taken": _l("This name is taken."),
    "no_such_offer": _l("This package is not sold any more. Choose another."),
    "not_enough_credit": _l("That needs %(need)s; %(free)s is free."),
    "budget_too_long": _l("At most ten years, and no further from today than that."),
    "key_used": _l("This key was used before, for another amount or group."),
    "no_group": _l("Accounting names no group for it: let it go, or mend the record in Slurm."),
    "no_such_code": _l("There is no such code, or it has ended."),
    "code_used": _l("This group has redeemed the code before."),
    "code_used_up": _l("All of this code's shares are taken."),
    "same_group": _l("Choose another group than the one that lends."),
    "no_such_group": _l("Slurm knows no such group."),
    "top_up_never_lapses": _l("A top-up never lapses. Leave day and share empty, or make a grant."),
    "more_than_owed": _l("Only %(owed)s is still owed."),
    "note_missing": _l("Say why in a few words: it stays with the record."),
    "nothing_charged": _l("Nothing was charged for this run, so there is nothing to give back."),
    "refunded_before": _l("This charge has been refunded before."),
    "refund_undone_before": _l("This refund has been undone before."),
    "not_a_member": _l("Nobody of this name is in the group."),
    "seconds_unreadable": _l(
        "Type the time as hours (24 or 1.5), hours:minutes:seconds (24:00:00) or days-hours (1-3)."
    ),
    "no_cards": _l("Say how many cards of which type, or choose to charge nothing."),
    "bad_day": _l("Choose a day."),
    "bad_moment": _l("Type a date and a time."),
    "not_minutes": _l("Type minutes from 0 to 10080."),
}

ENTRY_KINDS = {
    EntryKind.TOP_UP: _l("Top-up"),
    EntryKind.GRANT: _l("Grant"),
    EntryKind.PACKAGE: _l("Package"),
    EntryKind.HOLD: _l("Held for jobs"),
    EntryKind.RELEASE: _l("Released"),
    EntryKind.CHARGE: _l("Charge"),
    EntryKind.CORRECTION: _l("Correction"),
    EntryKind.REFUND: _l("Refund"),
    EntryKind.REFUND_UNDONE: _l("Refund undone"),
    EntryKind.EXPIRE: _l("Lapsed"),
    EntryKind.CARRY_OVER: _l("Carried over"),
    EntryKind.LEND: _l("Loan"),
    EntryKind.RETURN: _l("Loan returned"),
    EntryKind.STORAGE: _l("Storage"),
}

POT_KINDS = {
    PotKind.PACKAGE: _l("Package"),
    PotKind.GRANT: _l("Grant"),
    PotKind.LOAN: _l("Loan"),
    PotKind.BALANCE: _l("Balance"),
}

# Reasons of grants that the portal itself offers or writes; others are shown as typed.
GRANT_REASONS: Mapping[str, Lazy] = {
    "trial": _l("Trial"),
    "project": _l("Project"),
    "teaching": _l("Teaching"),
    "compensation": _l("Compensation"),
    "campaign": _l("Campaign"),
    "carried_over": _l("Carried over"),
    "other": _l("Other"),
}

# What an administrator may give, beside a top-up.
GRANTS = {
    "trial": _l("Grant: trial"),
    "project": _l("Grant: project"),
    "teaching": _l("Grant: teaching"),
    "compensation": _l("Grant: compensation"),
    "other": _l("Grant: other"),
}

AT_ZERO = {
    AtZero.FINISH: (
        _l("Let jobs finish, down to the overdraft"),
        _l(
            "Running jobs go on while the balance is above the overdraft; below it they are warned"
            " and end. What waits is held."
        ),
    ),
    AtZero.HOLD: (
        _l("Let jobs finish, whatever it costs"),
        _l(
            "Running jobs go on to their end, and the balance goes below zero. What waits is held"
            " until there is credit again."
        ),
    ),
    AtZero.STOP: (
        _l("Stop what runs"),
        _l(
            "Running jobs are warned and end after the warning time, in which they can write a"
            " checkpoint. What waits is held."
        ),
    ),
}

CATEGORIES = {
    Category.CARD_HOURS: _l("Card-hours paid elsewhere"),
    Category.STORAGE: _l("Storage"),
    Category.DATA_WORK: _l("Work on data"),
    Category.OTHER: _l("Other"),
}

ACTIONS = {
    Action.NOTIFY: _l("the group is told"),
    Action.APPROVE: _l("new jobs need a leader's approval"),
    Action.STOP: _l("new jobs are refused"),
}

# Why a run waits in the review, and what to do about it.
DOUBTS = {
    Doubt.GPUS_UNKNOWN: (
        _l("Accounting does not say how many GPUs it had."),
        _l("See the raw text and the job, then charge the cards that it held."),
    ),
    Doubt.GPU_TYPE_UNKNOWN: (
        _l("Nobody can tell which type its GPUs were."),
        _l("See on which nodes it ran, then charge the cards of that type."),
    ),
    Doubt.GPUS_NOT_TRACKED: (
        _l("This cluster's accounting does not count GPUs."),
        _l(
            "Add gres/gpu to AccountingStorageTRES in slurm.conf, or no run can be charged by"
            " itself. Charge this one by hand."
        ),
    ),
    Doubt.NO_PRICE: (
        _l("Its GPU type had no price when it started."),
        _l("Add a price from before its start: then it is charged by itself. Or decide here."),
    ),
    Doubt.TIMES_DIFFER: (
        _l("Its start, end and elapsed time do not fit each other."),
        _l("Decide for how long it held its cards."),
    ),
    Doubt.END_BEFORE_LAST_SEEN: (
        _l("Accounting ends it before the queue last saw it run: somebody mended the record."),
        _l("Do not take the mended end for true. Decide by when it was last seen."),
    ),
    Doubt.NO_END: (
        _l("Accounting has no end for it, and Slurm does not know the job any more."),
        _l(
            "Decide by when it was last seen, and no longer than its time limit; then mend the"
            " record with sacctmgr show runawayjobs."
        ),
    ),
    Doubt.NO_GROUP: (
        _l("Accounting names no group for it."),
        _l("Nobody can be charged. Let it go, or mend the record in Slurm."),
    ),
    Doubt.UNSETTLED: (
        _l("Settling it failed; the worker's log says why."),
        _l("Charge its cards by hand, or let it go. What was charged before stays."),
    ),
}

REFUND_REASONS: Mapping[str, Lazy] = {
    RefundReason.NODE_FAIL: _l("A node failed"),
    RefundReason.BOOT_FAIL: _l("A node did not boot"),
    RefundReason.PREEMPTED: _l("Preempted, and this QoS does not charge that"),
    RefundReason.ADMINISTRATOR_KILL: _l("An administrator ended the job"),
    RefundReason.DATASET: _l("A dataset of the catalogue was not there, so nothing could begin"),
    RefundReason.PORTAL_FAULT: _l("Given back by a person"),
}

# What a refund or a decision goes by.
EVIDENCE: Mapping[str, Lazy] = {
    "note": _l("Note"),
    "state": _l("State"),
    "nodes": _l("Nodes"),
    "at": _l("When"),
    "by": _l("By"),
    "seconds": _l("Seconds"),
    "gpus": _l("GPUs"),
    "waive": _l("Let go"),
}

# How ledger and accounting differ for a run, when a month is closed.
DIFFERENCES = {
    Kind.NO_CHARGE: _l("Nobody charged it"),
    Kind.NOT_SETTLED: _l("Waits to be settled"),
    Kind.CARD_SECONDS: _l("Charged for other card-seconds"),
    Kind.GROUP: _l("Charged to another group"),
    Kind.ENTRIES: _l("The charge is not the sum of its lines"),
}

CHARGE_STATES = {
    "posted": _l("Charged"),
    "review": _l("In review"),
    "waived": _l("Waived"),
}
