"""The words of the state filter: a class of states in small letters, one state in capitals."""

from gateway.core.states import JobState
from gateway.store.queries.filters import StateClass
from gateway.web.show import state_text
from gateway.web.texts import gettext


def read(typed: str) -> str:
    """A class or a state however it is spelt: only capitals throughout mean the one state."""
    lower = typed.lower()
    return lower if lower in list(StateClass) and not typed.isupper() else typed.upper()


def choices() -> list[tuple[str, str]]:
    """For the select: the words for several states, then each of Slurm's own."""
    classes = [
        (StateClass.PENDING.value, gettext("Waiting")),
        (StateClass.RUNNING.value, gettext("Running")),
        (StateClass.FAILED.value, gettext("Failed")),
        (StateClass.ENDED.value, gettext("Ended")),
    ]
    return classes + [(one.value, f"{one.value} – {state_text(one.value)}") for one in JobState]
