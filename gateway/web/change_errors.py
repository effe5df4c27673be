"""Why a change of policy cannot be proposed, approved, taken back, or was not done."""

from collections.abc import Mapping

from gateway.web.texts import Lazy
from gateway.web.texts import lazy_gettext as _l

CHANGE_ERRORS: Mapping[str, Lazy] = {
    "policy_nothing_changes": _l("That is what Slurm has already: nothing would change."),
    "policy_object_twice": _l("%(object)s is in it twice."),
    "policy_unknown_qos": _l("Slurm knows no QoS %(qos)s."),
    "policy_retired_qos": _l("QoS %(qos)s is retired. Bring it back first."),
    "policy_bad_reason": _l("A reason is plain text of at most %(most)s characters."),
    "policy_ends_too_early": _l("The end must lie after the start, and not in the past."),
    "policy_own_approval": _l("It is your own change: another administrator has to approve it."),
    "policy_not_waiting": _l("This change does not wait for an approval (any more)."),
    "policy_too_late": _l("The change was begun already. Undo it instead."),
    "policy_not_taken": _l("Slurm said yes and changed nothing."),
    "policy_half_taken": _l("Slurm took only some of it. What it has now is kept as a version."),
    "policy_qos_in_use": _l("A group may still use it, or has it as its default."),
    "policy_default_needed": _l(
        "It is the default of %(group)s. Choose another one that this group may use."
    ),
    "policy_last_qos": _l("It is the only QoS of %(group)s. Give this group another one first."),
    "policy_not_retired": _l("QoS %(qos)s is not retired."),
    "policy_cannot_restore": _l("Slurm has it no more, and the portal cannot make it again."),
    "policy_no_drift": _l("Slurm has what the newest version says: there is nothing to settle."),
}
