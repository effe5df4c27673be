"""The verdict of a form's smoke job, beside the form."""

from collections.abc import Mapping
from dataclasses import dataclass

from flask import url_for

from gateway.core import smoke as smoke_rules
from gateway.core.ask import Ask
from gateway.core.planner.figures import GB
from gateway.core.planner.filling import is_called
from gateway.core.states import JobState, parse_state
from gateway.errors import NotFound
from gateway.store.queries import costs
from gateway.store.queries.smoke import Smoke, smoke
from gateway.web.access import viewer
from gateway.web.deps import deps
from gateway.web.ids import LARGEST_ID
from gateway.web.messages import sentence
from gateway.web.show import plain, reason_text, size_text, state_text
from gateway.web.texts import gettext, ngettext
from gateway.web.views import costview, plannumbers
from gateway.wire import codec

# The file with the verdict is read some seconds after the job's end; later it will not come.
_VERDICT_SECONDS = 120
_LOST = frozenset({"refused", "withdrawn"})


@dataclass(frozen=True, slots=True)
class Fact:
    name: str
    value: str


@dataclass(frozen=True, slots=True)
class AfterView:
    """The long job that waits for it."""

    text: str
    url: str


@dataclass(frozen=True, slots=True)
class SmokeView:
    """`waits`: ask again. `changed`: the form is no longer the one that it was for."""

    id: int
    word: str
    mark: str
    text: str
    waits: bool
    changed: bool
    facts: tuple[Fact, ...]
    job_url: str
    log_url: str
    hold: costview.HoldView | None
    after: AfterView | None
    minutes: int = smoke_rules.MINUTES


def number(text: str) -> int | None:
    """The smoke job's submission as the form carries it."""
    return int(text) if text.isascii() and text.isdigit() and int(text) <= LARGEST_ID else None


def view(carried: str, ask: Ask) -> SmokeView | None:
    """None where the form has had none, or what it says is not one's own."""
    found = _carried(carried)
    if found is None:
        return None
    word, mark, text, waits = _verdict(found)
    # The long job of one that failed is cancelled some seconds later: the box says so then.
    waits = waits or (mark == "failed" and found.after is not None and not found.after.is_over)
    with deps().read() as session:
        held = costs.of_submission(session, found.submission_id)
    page = url_for("jobs.show", job_id=found.job_id) if found.job_id is not None else ""
    return SmokeView(
        id=found.submission_id,
        word=word,
        mark=mark,
        text=text,
        waits=waits,
        changed=not smoke_rules.is_same(_ask(found.ask), ask),
        facts=tuple(_facts(found)),
        job_url=page or url_for("submissions.show", submission_id=found.submission_id),
        log_url=f"{page}#output" if page else "",
        hold=costview.hold(held),
        after=_after(found),
    )


def over(carried: str) -> int | None:
    """The form's smoke job when it has ended: another press is another smoke job."""
    found = _carried(carried)
    ended = found is not None and not found.active
    return found.submission_id if found and (ended or found.state in _LOST) else None


def form_key(key: str, carried: str) -> str:
    """The form's own key. Where the job that waited for the smoke job is over, it is used up:
    another one is made of it, the same for each press."""
    found = _carried(carried)
    if found is None or found.after is None or not found.after.is_over:
        return key
    return smoke_rules.next_key(key, found.submission_id)


def own_ask(submission_id: int) -> Ask:
    """The form that a smoke job was for. NotFound for another's."""
    found = _own(submission_id)
    if found is None:
        raise NotFound(f"smoke job {submission_id}")
    return _ask(found.ask)


def _carried(text: str) -> Smoke | None:
    submission_id = number(text)
    return _own(submission_id) if submission_id is not None else None


def _own(submission_id: int) -> Smoke | None:
    with deps().read() as session:
        found = smoke(session, submission_id)
    return found if found is not None and found.person_id == viewer().person_id else None


def _ask(stored: Mapping[str, object]) -> Ask:
    return codec.parse(Ask, dict(stored))


def _verdict(found: Smoke) -> tuple[str, str, str, bool]:
    """Word, mark, sentence, and whether to ask again."""
    if found.job_state is None:
        return _without_job(found)
    state = parse_state(found.job_state)[0]
    if found.told is not None:
        return _told(found.told)
    if found.active:
        word = gettext("runs") if state is JobState.RUNNING else gettext("waits")
        mark = "running" if state is JobState.RUNNING else "waiting"
        text = reason_text(found.reason) if state.is_pending else ""
        return word, mark, text, True
    fresh = found.end_time is None or (
        (deps().clock() - found.end_time).total_seconds() < _VERDICT_SECONDS
    )
    if state.succeeded:
        text = gettext("The job ended with code 0. It told no more of itself.")
        if fresh:
            text = gettext("The job ended with code 0. If it told more, that follows in a moment.")
        return gettext("passed"), "done", text, fresh
    text = state_text(found.job_state)
    if found.exit_code:
        text = gettext("%(what)s Its exit code was %(code)s.", what=text, code=found.exit_code)
    return gettext("failed"), "failed", text, fresh


def _without_job(found: Smoke) -> tuple[str, str, str, bool]:
    if found.state in _LOST:
        text = sentence(found.error_code) if found.error_code else ""
        return gettext("not sent"), "failed", text, False
    return gettext("on its way"), "waiting", gettext("Slurm does not have it yet."), True


def _told(told: Mapping[str, object]) -> tuple[str, str, str, bool]:
    if told.get("ok") is True:
        return gettext("passed"), "done", "", False
    text = plain(told.get("text") or "")
    return gettext("failed"), "failed", text, False


def _facts(found: Smoke) -> list[Fact]:
    """What the run folder says: ranks, step, memory, save and load."""
    told = found.told or {}
    facts = []
    world, step, peak = (_number(told, name) for name in ("world", "step_seconds", "peak_bytes"))
    if world is not None:
        ranks = ngettext("%(num)d rank", "%(num)d ranks", int(world))
        facts.append(Fact(gettext("met"), ranks))
    if step is not None:
        facts.append(Fact(gettext("a step"), plannumbers.seconds(step)))
    if peak is not None:
        facts.append(Fact(gettext("peak memory"), _memory(peak, found)))
    save, size = _number(told, "save_seconds"), _number(told, "save_bytes")
    if save is not None:
        facts.append(Fact(gettext("a save"), _save(save, size)))
    if told.get("loaded") is not None:
        loaded = gettext("yes") if told["loaded"] is True else gettext("no")
        facts.append(Fact(gettext("loaded again"), loaded))
    return facts


def _memory(peak: float, found: Smoke) -> str:
    """Against the card: as it says itself, or as its type is known by one size."""
    need = f"{peak / GB:.1f}"
    have = found.card_bytes or _known_bytes(found.gpu_type)
    if have is None:
        return gettext("%(gb)s GB", gb=need)
    return gettext("%(need)s of %(have)s GB", need=need, have=f"{have / GB:.3g}")


def _known_bytes(gpu_type: str | None) -> float | None:
    sizes = {card.memory for card in deps().cards.values() if is_called(card, gpu_type or "")}
    return sizes.pop() if len(sizes) == 1 else None


def _save(seconds: float, size: float | None) -> str:
    took = plannumbers.seconds(seconds)
    if size is None:
        return took
    return gettext("%(time)s, %(size)s", time=took, size=size_text(size))


def _number(told: Mapping[str, object], name: str) -> float | None:
    value = told.get(name)
    return float(value) if isinstance(value, int | float) and value is not True else None


def _after(found: Smoke) -> AfterView | None:
    after = found.after
    if after is None:
        return None
    if after.job_id is None:
        url = url_for("submissions.show", submission_id=after.submission_id)
        if after.is_over:
            return AfterView(gettext("The long job was not sent."), url)
        return AfterView(gettext("The long job is sent when Slurm has the smoke job."), url)
    text = gettext("The long job %(id)s starts when this one has passed.", id=after.slurm_id)
    state = parse_state(after.job_state or "")[0]
    if not state.is_pending:
        text = gettext(
            "The long job is %(id)s: %(state)s",
            id=after.slurm_id,
            state=state_text(after.job_state or ""),
        )
    return AfterView(text, url_for("jobs.show", job_id=after.job_id))
