"""The lines of a job's history."""

from collections.abc import Mapping

from gateway.web.messages import TEXTS, sentence
from gateway.web.show import minutes_words
from gateway.web.texts import gettext
from gateway.web.texts import lazy_gettext as _l

EVENT_TEXTS = {
    "submitted": _l("Submitted through the portal"),
    "sent": _l("Sent to Slurm"),
    "accepted": _l("Slurm accepted it"),
    "accepted_differs": _l("Slurm accepted something else than was asked, so it was cancelled"),
    "refused": _l("Slurm refused it"),
    "denied": _l("Slurm was asked, and does not have it"),
    "found": _l("Found in Slurm by its mark"),
    "withdrawn": _l("Taken back before Slurm had it"),
    "duplicate_cancelled": _l("A second copy was cancelled"),
    "left_queue": _l("Left the queue"),
    "cancel": _l("Cancel"),
    "cancel_array": _l("Cancel of the whole array"),
    "hold": _l("Hold"),
    "release": _l("Release"),
    "requeue": _l("Requeue"),
    "requeued": _l("Back in the queue, to start again"),
    "set_time_limit": _l("Change of the time limit"),
    "extend": _l("Extension of the time limit"),
    "gate_held": _l("Held until the group can pay for it"),
    "gate_released": _l("Let through: the group can pay for it"),
    "gate_stop": _l("Given a last stretch, no credit is left: the time limit was set"),
    "after_smoke": _l("Its smoke job is in Slurm: it will start when that has passed"),
    "smoke_failed": _l("Its smoke job did not pass, so it was cancelled"),
    "smoke_not_sent": _l("Its smoke job never came to Slurm, so this one was not sent"),
    "on_stall_set": _l("The group's rule for stalled training runs was set"),
    "datasets_copying": _l(
        "Its datasets are being copied to the nodes where it is planned to start"
    ),
    "datasets_copied": _l("Its datasets are on the nodes"),
    "dataset_damaged": _l("Files of a dataset were found to differ from what was published"),
    "gate_waits": _l("Paid for, and waits until the group is open for it"),
}
_ACTS = frozenset(
    {"cancel", "cancel_array", "hold", "release", "requeue", "set_time_limit", "extend"}
)


def event_text(kind: str, detail: Mapping[str, object]) -> str:
    """What happened, and for an act what came of it."""
    text = str(EVENT_TEXTS.get(kind, kind))
    minutes = detail.get("minutes")
    if isinstance(minutes, int):
        text = gettext("%(what)s to %(time)s", what=text, time=minutes_words(minutes))
    about = detail.get("about")
    if isinstance(about, str) and about:
        text = gettext("%(what)s: %(about)s", what=text, about=about)
    restart = detail.get("restart")
    if isinstance(restart, int):
        text = gettext("%(what)s (restart %(number)s)", what=text, number=restart)
    outcome = str(detail.get("outcome") or detail.get("code") or "")
    if kind in _ACTS and outcome == "done":
        return text
    if outcome == "unknown":
        return gettext("%(what)s: Slurm did not answer", what=text)
    if outcome in TEXTS:
        return f"{text}: {sentence(outcome)}"
    return text
