"""What a script can be refused. Each sentence is for the person whose script it is."""

from __future__ import annotations


class WrongWorld(RuntimeError):
    """The ranks are not as many as they should be, or have not met."""


class NoCheckpoint(RuntimeError):
    """The checkpoint to begin with is not complete, or not the same for all ranks."""
