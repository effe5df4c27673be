"""What Slurm's words say of a node: whether it may start something."""

# Slurm's words for a node that starts nothing new. A node that saves power is not among them:
# Slurm wakes it for a job.
_OUT_OF_SERVICE = frozenset(
    {
        *("DOWN", "DRAIN", "DRAINED", "DRAINING", "FAIL", "FAILING", "ERROR", "FUTURE", "UNKNOWN"),
        *("INVALID", "INVALID_REG", "MAINT", "MAINTENANCE", "NOT_RESPONDING", "NO_RESPOND"),
        *("REBOOT", "REBOOT_ISSUED", "REBOOT_REQUESTED"),
    }
)
# Those that a reservation alone keeps out of service: it ends by itself.
_RESERVED = frozenset({"MAINT", "MAINTENANCE", "RESERVED"})
_LOST = frozenset({"DOWN", "NOT_RESPONDING", "NO_RESPOND"})


def in_service(state: str) -> bool:
    """Whether Slurm may start something on a node in this state."""
    return not _words(state) & _OUT_OF_SERVICE


def is_broken(state: str) -> bool:
    """Out of service for another reason than a reservation."""
    return bool(_words(state) & (_OUT_OF_SERVICE - _RESERVED))


def is_lost(state: str) -> bool:
    """Whether Slurm hears nothing of it, or has given it up with what ran there."""
    return bool(_words(state) & _LOST)


def _words(state: str) -> set[str]:
    return {word.strip("*~#!%$@^-") for word in state.upper().split("+")}
