"""The words of changes of policy: states, where they come from, what they do to jobs."""

from collections.abc import Mapping

from gateway.core.impact import Doubt, Effect
from gateway.core.policy_change import ChangeState, ItemState, Of, Source
from gateway.web.texts import Lazy
from gateway.web.texts import lazy_gettext as _l

# A word, what it means, and the mark of macros/show.html.
STATE_TEXTS: Mapping[ChangeState, tuple[Lazy, Lazy, str]] = {
    ChangeState.PROPOSED: (
        _l("proposed"),
        _l("A second administrator has to approve it. Nothing was sent to Slurm."),
        "waiting",
    ),
    ChangeState.APPROVED: (
        _l("ready"),
        _l("Nothing was sent to Slurm yet: the worker does it as soon as it can."),
        "waiting",
    ),
    ChangeState.APPLYING: (_l("applying"), _l("It is being sent to Slurm."), "running"),
    ChangeState.UNKNOWN: (
        _l("unknown"),
        _l("Slurm did not answer. The worker reads what Slurm has and settles it."),
        "unknown",
    ),
    ChangeState.APPLIED: (
        _l("applied"),
        _l("Slurm has all of it: it was read back and compared."),
        "done",
    ),
    ChangeState.PARTLY: (
        _l("partly applied"),
        _l("Slurm has some of it. What is missing stands below, with the reason."),
        "failed",
    ),
    ChangeState.REFUSED: (
        _l("refused"),
        _l("Nothing was done. The reasons stand below."),
        "failed",
    ),
    ChangeState.WITHDRAWN: (_l("withdrawn"), _l("Nothing was sent to Slurm."), "cancelled"),
    ChangeState.ENDED: (
        _l("went back"),
        _l("Its time is over, and what it changed was set back."),
        "again",
    ),
}

SOURCE_TEXTS: Mapping[Source, Lazy] = {
    Source.FORM: _l("form"),
    Source.FILE: _l("file"),
    Source.UNDO: _l("undo"),
    Source.FOUND: _l("found in Slurm"),
    Source.ADOPTED: _l("adopted from Slurm"),
    Source.RESTORED: _l("restored"),
    Source.CONTRIBUTION: _l("contribution"),
    Source.SCHEDULE: _l("end of a change"),
}

ITEM_TEXTS: Mapping[ItemState, tuple[Lazy, str]] = {
    ItemState.WAITING: (_l("not sent yet"), "waiting"),
    ItemState.SENT: (_l("sent, no answer yet"), "unknown"),
    ItemState.DONE: (_l("done, and read back"), "done"),
    ItemState.HALF: (_l("Slurm took only some of it"), "failed"),
    ItemState.REFUSED: (_l("refused"), "failed"),
}

KIND_TEXTS: Mapping[Of, Lazy] = {Of.QOS: _l("QoS"), Of.GROUP: _l("Group")}
# Within a sentence.
OBJECT_TEXTS: Mapping[Of, Lazy] = {Of.QOS: _l("QoS %(name)s"), Of.GROUP: _l("group %(name)s")}


def object_words(name: str) -> str:
    """`qos:high` is "QoS high", `group:nlp` is "group nlp"."""
    kind, _, short = name.partition(":")
    return OBJECT_TEXTS[Of(kind)] % {"name": short} if kind in list(Of) else name


# How many jobs, and a mark. The order is that of the page: what hurts most comes first.
EFFECT_TEXTS: Mapping[Effect, tuple[Lazy, str]] = {
    Effect.ENDED: (_l("running: would be killed"), "failed"),
    Effect.MAY_END: (_l("running: may be killed, by what Slurm itself has counted"), "failed"),
    Effect.ABOVE: (_l("running: above the limit, and run on"), "running"),
    Effect.WAITS: (_l("waiting: would be held by the limit"), "waiting"),
    Effect.WAITS_LATER: (_l("waiting: held once those before it have started"), "waiting"),
    Effect.LET_GO: (_l("waiting: would not wait for this limit any more"), "done"),
}

DOUBT_TEXTS: Mapping[Doubt, Lazy] = {
    Doubt.TRES: _l("The portal does not know how much of this resource each job has."),
    Doubt.USAGE: _l("Only Slurm knows the usage, which decays, that the limit is compared with."),
    Doubt.UNJUDGED: _l("What it does to jobs cannot be said beforehand."),
}
