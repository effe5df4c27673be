"""What a group or the administrators are told. Each kind has a text."""

from enum import StrEnum


class Kind(StrEnum):
    # To the group.
    GATE_CLOSED = "gate_closed"  # free
    GATE_MEMBER = "gate_member"  # user
    GATE_HELD = "gate_held"  # jobs, need, free
    GATE_STOP = "gate_stop"  # job, user, minutes
    VOLUME_FILLS = "volume_fills"  # volume, percent
    VOLUME_FULL = "volume_full"  # volume, percent
    # To the administrators.
    VOLUME_DRIFT = "volume_drift"  # volume, group, code
    GATE_NOT_TAKEN = "gate_not_taken"  # group, user, code
    GATE_UNREAD = "gate_unread"  # code
    GATE_DRIFT = "gate_drift"  # group, user, found, set
    GATE_LEAK = "gate_leak"  # group, job, qos
    GATE_NO_PRICE = "gate_no_price"  # resource
    LIMITS_NOT_ENFORCED = "limits_not_enforced"  # enforced
    GPUS_NOT_TRACKED = "gpus_not_tracked"
    QOS_OVERRIDES = "qos_overrides"  # qos
    HOLD_LOST = "hold_lost"  # hold, group, job, amount
    POLICY_DRIFT = "policy_drift"  # object, how, fields
    POLICY_FAILED = "policy_failed"  # change, object, code
    POLICY_NOT_BACK = "policy_not_back"  # change, about, object, code


# Alarms: what an administrator must look at.
ALARMS = frozenset(
    {
        Kind.GATE_NOT_TAKEN,
        Kind.GATE_UNREAD,
        Kind.GATE_LEAK,
        Kind.LIMITS_NOT_ENFORCED,
        Kind.GPUS_NOT_TRACKED,
        Kind.QOS_OVERRIDES,
        Kind.HOLD_LOST,
        Kind.POLICY_DRIFT,
        Kind.POLICY_FAILED,
        Kind.POLICY_NOT_BACK,
        Kind.VOLUME_DRIFT,
    }
)
