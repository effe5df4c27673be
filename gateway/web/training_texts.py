"""What a training run told, in words. Texts from its files are a person's own: they are shown to
that person alone, and never stand in a sentence's place."""

from collections.abc import Mapping
from datetime import UTC, datetime

from gateway.core.goodput import Use
from gateway.core.training.lines import DONE_ALREADY, Event
from gateway.core.training.stalls import OnStall
from gateway.web.show import plain, seconds_text, short, size_text
from gateway.web.texts import Lazy, gettext
from gateway.web.texts import lazy_gettext as _l

# What the templates end with (docs/checkpoints.md). Any other code is the program's own.
EXIT_CODES: Mapping[int, Lazy] = {
    65: _l(
        "A dataset folder is not there, not readable, or can be written to: correct the "
        "path, or have the folder made read-only."
    ),
    69: _l(
        "The run's checkpoints are in the second place only, which does not answer: "
        "submit again when it does."
    ),
    73: _l(
        "Another job has the run's folder, or it cannot be written: wait for that job, "
        "cancel it, or choose another run name."
    ),
    75: _l(
        "It saved and would go on, but its restarts are spent: submit again with the same run name."
    ),
    76: _l("It was asked to stop and saved nothing new: save more often, or ask for more time."),
    77: _l("The script ended without an error, and without run.finish(): let it get there."),
    78: _l("A setting makes no sense; the end of the output names it."),
    79: _l(
        "The checkpoint is of another number of processes: ask for that number, or have "
        "it converted."
    ),
}

# A word, and what it means.
USES: Mapping[Use, tuple[Lazy, Lazy]] = {
    Use.USEFUL: (
        _l("Useful"),
        _l("Steps that had never been made before, with the saves between them."),
    ),
    Use.REPEATED: (
        _l("Repeated"),
        _l("Steps made again after a restart: what came after the checkpoint was lost."),
    ),
    Use.STARTING: (
        _l("Starting up"),
        _l("From the first second on nodes until all ranks met and the checkpoint was loaded."),
    ),
    Use.IDLE: (
        _l("Idle"),
        _l(
            "No step for two minutes, and whole minutes in which no GPU did anything; and what"
            " comes after the training was over."
        ),
    ),
    Use.STALLED: (
        _l("Stalled"),
        _l("From the last step before the stall guard spoke until the next step, or the end."),
    ),
    Use.NOT_MEASURED: (
        _l("Not measured"),
        _l("Nobody told what was done, as by scripts that report nothing."),
    ),
}

ON_STALL: Mapping[OnStall, tuple[Lazy, Lazy]] = {
    OnStall.NOTHING: (
        _l("Tell, and do nothing"),
        _l("The run's page says so; it goes on holding its GPUs."),
    ),
    OnStall.HOLD: (
        _l("Stop it and hold it"),
        _l("The job goes back into the queue and is held there, until somebody decides."),
    ),
    OnStall.REQUEUE: (
        _l("Stop it and let it go on"),
        _l(
            "The job goes back into the queue and goes on from its last checkpoint, within its cap."
        ),
    ),
}

SIGNS: Mapping[str, Lazy] = {
    "ranks": _l("ranks are missing"),
    "steps": _l("no step is made"),
    "log": _l("the log is silent"),
    "cards": _l("the GPUs do nothing"),
}

_DONE_ABOUT_IT: Mapping[str, Lazy] = {
    "nothing": _l("Nothing was done: that is the group's rule."),
    "hold": _l("It is stopped and held: that is the group's rule."),
    "requeue": _l("It is stopped and put back into the queue: that is the group's rule."),
}

_ACTIONS: Mapping[str, Lazy] = {
    "exit": _l("The script ended with code %(code)s"),
    "requeue": _l("Put back into the queue, to go on from its checkpoint"),
    "requeuehold": _l("Put back into the queue and held, for somebody to decide"),
    "wait": _l("Waits for Slurm to take it: preempted"),
}

_REASONS: Mapping[str, Lazy] = {
    "USR1": _l("the time limit or a preemption is near"),
    "TERM": _l("Slurm ends the run"),
    "stall": _l("it stalled"),
}

_OUR_REASONS = frozenset({*_REASONS, DONE_ALREADY})

_PLAIN: Mapping[str, Lazy] = {
    "save_begin": _l("Saving step %(step)s"),
    "save_failed": _l("Saving step %(step)s failed"),
    "pruned": _l("The checkpoint of step %(step)s was deleted: newer ones are complete"),
    "uploaded": _l("The checkpoint of step %(step)s is in the second place too"),
    "upload_failed": _l("The checkpoint of step %(step)s did not reach the second place"),
    "restored": _l("The checkpoint of step %(step)s was brought back from the second place"),
    "stopped": _l("Saved step %(step)s and stopped, as it was asked to"),
    "done": _l("The training is done, at step %(step)s"),
    "stacks": _l("What each rank was doing was written down"),
    "code": _l("The git commit of the working folder was noted"),
}

KINDS_IN_WORDS = frozenset(
    {*_PLAIN, "start", "ready", "model", "saved", "stop_requested", "stall", "smoke", "end"}
)


def told_text(event: Event) -> str:
    """One sentence, with numbers from the file and no text of it."""
    step = "?" if event.step is None else str(event.step)
    match event.kind:
        case "start":
            return _start(event)
        case "ready":
            world = event.facts.get("world", "?")
            if world == 1:
                return gettext("The script is ready, at step %(step)s", step=step)
            return gettext("All %(world)s ranks met, at step %(step)s", world=world, step=step)
        case "model":
            return _model(event)
        case "saved":
            return _saved(event, step)
        case "stop_requested":
            why = _REASONS.get(str(event.facts.get("reason")))
            asked = gettext("Asked to save and to stop")
            return f"{asked}: {why}" if why else asked
        case "stall":
            return stall_text(event)
        case "smoke":
            return _smoke(event)
        case "end" if event.facts.get("reason") == DONE_ALREADY:
            return gettext("This run was done already: nothing was trained")
        case "end":
            text = _ACTIONS.get(str(event.facts.get("action")), _ACTIONS["exit"])
            return text % {"code": event.facts.get("code", "?")}
    return str(_PLAIN[event.kind] % {"step": step}) if event.kind in _PLAIN else plain(event.kind)


def stall_text(event: Event) -> str:
    """Its signs and what was done about it."""
    signs = event.facts.get("signs")
    words = [str(SIGNS[sign]) for sign in signs if sign in SIGNS] if signs else []
    seen = gettext("A stall was seen: %(signs)s.", signs=gettext(", ").join(words) or "?")
    done = _DONE_ABOUT_IT.get(str(event.facts.get("rule")))
    return f"{seen} {done}" if done else seen


def own_words(event: Event) -> str:
    """What its files say in their own words: for their owner."""
    names = ("error", "text", "place", "path", "resume_path", "reason")
    found = [str(event.facts[name]) for name in names if event.facts.get(name)]
    return plain(" · ".join(word for word in found if word not in _OUR_REASONS))


def moment_of(at: float) -> datetime:
    return datetime.fromtimestamp(at, UTC)


def _start(event: Event) -> str:
    step = event.facts.get("resume_step")
    if step is None:
        return gettext("The script began, from the start: there is no checkpoint")
    return gettext("The script began, from the checkpoint of step %(step)s", step=step)


def _model(event: Event) -> str:
    params, flops = event.facts.get("params"), event.facts.get("flops_per_token")
    parts = [
        gettext("%(n)s parameters", n=short(params)) if params else "",
        gettext("%(n)s FLOPs a token", n=short(flops)) if flops else "",
    ]
    words = gettext(", ").join(part for part in parts if part)
    return gettext("The model: %(what)s", what=words or "?")


def _saved(event: Event, step: str) -> str:
    took, size = seconds_text(event.facts.get("seconds")), size_text(event.facts.get("bytes"))
    details = gettext(", ").join(part for part in (took, size) if part)
    text = gettext("Checkpoint of step %(step)s saved", step=step)
    return f"{text} ({details})" if details else text


def _smoke(event: Event) -> str:
    if event.facts.get("ok"):
        return gettext("The smoke job did all it should: ranks met, a step, a save and a load")
    return gettext("The smoke job failed")
