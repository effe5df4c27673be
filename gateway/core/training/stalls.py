"""What a group wants done about a training run that stalls."""

from enum import StrEnum


class OnStall(StrEnum):
    """The stall guard on the nodes acts by it; the run's owner is told in each case."""

    NOTHING = "nothing"
    HOLD = "hold"  # stop it, and hold it for somebody's decision
    REQUEUE = "requeue"  # stop it, and let it go on from its last checkpoint
