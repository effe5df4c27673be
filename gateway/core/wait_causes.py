"""Where a wait went: the causes into which its seconds are split."""

from enum import StrEnum


class Cause(StrEnum):
    """In the order in which they are shown. The person's own doing first."""

    DEFERRAL = "deferral"  # before eligible: dependency, hold, begin time
    ARRAY_THROTTLE = "array_throttle"  # the array's own limit of tasks at once
    USER_LIMIT = "user_limit"
    GROUP_LIMIT = "group_limit"
    QOS_LIMIT = "qos_limit"
    PRIORITY = "priority"  # behind others
    NO_GPUS = "no_gpus"  # first in line, nothing free
    NODES_DOWN = "nodes_down"
    RESERVATION = "reservation"  # or maintenance
    UNKNOWN = "unknown"
