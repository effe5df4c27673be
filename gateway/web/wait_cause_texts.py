"""Words for where waits went: causes, and the conclusion that is drawn."""

from gateway.core.wait_causes import Cause
from gateway.core.wait_conclusion import LEAST_JOBS, Conclusion, Verdict
from gateway.web.texts import Lazy
from gateway.web.texts import lazy_gettext as _l

CAUSE_WORDS: dict[Cause, Lazy] = {
    Cause.DEFERRAL: _l("Deferral"),
    Cause.ARRAY_THROTTLE: _l("Throttled array"),
    Cause.USER_LIMIT: _l("Limit per person"),
    Cause.GROUP_LIMIT: _l("Limit of the group"),
    Cause.QOS_LIMIT: _l("Limit of the QoS"),
    Cause.PRIORITY: _l("Behind others"),
    Cause.NO_GPUS: _l("Nothing free"),
    Cause.NODES_DOWN: _l("Nodes down or drained"),
    Cause.RESERVATION: _l("Reserved, maintenance"),
    Cause.UNKNOWN: _l("Unknown"),
}
CAUSE_MEANINGS: dict[Cause, Lazy] = {
    Cause.DEFERRAL: _l("Before the job could have started: a dependency, a hold, a begin time."),
    Cause.ARRAY_THROTTLE: _l("The array's own limit of tasks at once."),
    Cause.USER_LIMIT: _l("What one person may hold at once in the QoS was taken."),
    Cause.GROUP_LIMIT: _l("What the group may hold was taken, or its credit was used up."),
    Cause.QOS_LIMIT: _l("What all jobs of the QoS together, or one of them, may hold."),
    Cause.PRIORITY: _l("Jobs of higher priority stood before it."),
    Cause.NO_GPUS: _l("First in line, but not enough cards, processors or memory were free."),
    Cause.NODES_DOWN: _l("The nodes that it needed were out of service."),
    Cause.RESERVATION: _l("The nodes were reserved, or a maintenance stood before."),
    Cause.UNKNOWN: _l(
        "Nobody looked (an imported history, or the worker was off), or Slurm's reason is none of"
        " these."
    ),
}
_SENTENCES: dict[Conclusion, Lazy] = {
    Conclusion.TOO_FEW: _l("Too few jobs to say: fewer than %(least)s."),
    Conclusion.NO_WAIT: _l("Nobody waited."),
    Conclusion.NOBODY_LOOKED: _l("Nobody looked: %(share)s of the wait has no known cause."),
    Conclusion.OWN_CHOICE: _l(
        "Most of the wait was asked for: %(share)s was dependencies, holds, begin times and"
        " throttled arrays."
    ),
    Conclusion.USER_LIMIT: _l(
        "A larger limit per person would have helped: it was %(share)s of the wait."
    ),
    Conclusion.GROUP_LIMIT: _l(
        "A larger limit of the group would have helped: it was %(share)s of the wait."
    ),
    Conclusion.QOS_LIMIT: _l(
        "Another QoS, or a larger limit of it, would have helped: it was %(share)s of the wait."
    ),
    Conclusion.FULL: _l(
        "A larger limit would not have helped: %(share)s of the wait was a full partition."
    ),
    Conclusion.FULL_AND_LIMITS: _l(
        "A larger limit would have helped in part: %(limits)s of the wait was limits, %(share)s a"
        " full partition."
    ),
    Conclusion.NODES_DOWN: _l("Nodes that were down or drained were %(share)s of the wait."),
    Conclusion.RESERVATION: _l("Reservations and maintenance were %(share)s of the wait."),
}
_LARGEST: dict[Conclusion, Lazy] = {
    Conclusion.NOBODY_LOOKED: _l("No single cause: the largest part, %(share)s, is unknown."),
    Conclusion.OWN_CHOICE: _l("No single cause: %(share)s was asked for by the jobs themselves."),
    Conclusion.USER_LIMIT: _l("No single cause: the limit per person was %(share)s."),
    Conclusion.GROUP_LIMIT: _l("No single cause: the limit of the group was %(share)s."),
    Conclusion.QOS_LIMIT: _l("No single cause: the limit of the QoS was %(share)s."),
    Conclusion.FULL: _l("No single cause: a full partition was %(share)s."),
    Conclusion.NODES_DOWN: _l("No single cause: nodes that were down were %(share)s."),
    Conclusion.RESERVATION: _l("No single cause: reservations were %(share)s."),
}


def sentence(verdict: Verdict) -> str:
    """The conclusion in the reader's language."""
    return str(_said(verdict)) % _facts(verdict)


def english(verdict: Verdict) -> str:
    """The same for the command line."""
    return _said(verdict).english % _facts(verdict)


def _said(verdict: Verdict) -> Lazy:
    return _SENTENCES[verdict.conclusion] if verdict.largest is None else _LARGEST[verdict.largest]


def _facts(verdict: Verdict) -> dict[str, object]:
    return {
        "share": share_text(verdict.share),
        "limits": share_text(verdict.limits),
        "least": LEAST_JOBS,
    }


def share_text(share: float) -> str:
    """Whole percent; what is there is not called nothing."""
    percent = share * 100
    if 0 < percent < 1:
        return "<1 %"
    return f"{int(percent + 0.5)} %"
