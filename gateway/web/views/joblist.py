"""The job list: filters read from the address, and the rows as they are shown."""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from datetime import UTC, datetime, timedelta
from typing import Any

from flask import request, url_for
from markupsafe import Markup

from gateway.core.access import Permission, Viewer
from gateway.core.arrays import job_number
from gateway.core.states import JobState, parse_state
from gateway.core.waits import waits
from gateway.services.costs import JobCost
from gateway.store.queries.filters import JobFilters, Scope, Sort, StateClass
from gateway.store.queries.jobs import ClassCounts, JobPage, JobRow
from gateway.store.queries.search import Counted
from gateway.web.deps import deps
from gateway.web.i18n import zone
from gateway.web.show import duration, limit_words, reason_text, state_text
from gateway.web.texts import gettext, ngettext
from gateway.web.timeline import Share, shares
from gateway.web.views import appview, costview, statewords

PAGE = 50
_FILTERS = ("state", "group", "partition", "name", "id", "user", "since", "until")
_CARRIED = ("who", "sort", "dir")
_LONGEST = 200


@dataclass(frozen=True, slots=True)
class Asked:
    """What the address asks for, in the words of the store."""

    scope: Scope
    filters: JobFilters
    sort: Sort
    descending: bool
    cursor: str | None
    typed: dict[str, str]


@dataclass(frozen=True, slots=True)
class Chip:
    word: str
    url: str
    on: bool = False


@dataclass(frozen=True, slots=True)
class Head:
    """A column's title; with a `url` it sorts."""

    word: str
    url: str | None = None
    sorted: str = ""
    number: bool = False
    roomy: bool = False


@dataclass(frozen=True, slots=True)
class Row:
    job: JobRow
    number: str
    own: bool
    time: str
    bar: list[Share]
    why: str
    cost: Markup | str
    opens: str = ""  # where an application is opened


def asked(args: Mapping[str, str], viewer: Viewer) -> Asked:
    """Nonsense in a filter is as if it were not there: a saved address must not break."""
    typed = {name: args.get(name, "").strip()[:_LONGEST] for name in (*_FILTERS, *_CARRIED)}
    typed["state"] = statewords.read(typed["state"])
    sort = Sort(typed["sort"]) if typed["sort"] in list(Sort) else Sort.SUBMIT
    filters = JobFilters(
        states=(typed["state"],) if typed["state"] else (),
        group=typed["group"] or None,
        partition=typed["partition"] or None,
        name=typed["name"] or None,
        slurm_id=_number(typed["id"]),
        user=typed["user"] or None,
        since=_moment(typed["since"]),
        until=_moment(typed["until"]),
    )
    descending = typed["dir"] != "up"
    scope = _scope(typed, viewer)
    return Asked(scope, filters, sort, descending, args.get("cursor"), typed)


def rows(
    page: JobPage, viewer: Viewer, now: datetime, costs: Mapping[int, JobCost] | None
) -> list[Row]:
    """`costs` None: the site charges nothing."""
    return [row(job, viewer, now, (costs or {}).get(job.id)) for job in page.rows]


def row(job: JobRow, viewer: Viewer, now: datetime, cost: JobCost | None) -> Row:
    time, bar = _time(job, now)
    own = job.user == viewer.unix_user
    return Row(
        job, number(job), own, time, bar, why(job), costview.cell(cost), appview.opens(job, viewer)
    )


def number(job: JobRow) -> str:
    return job_number(job.slurm_id, job.array_job_id, job.array_task)


def why(job: JobRow) -> str:
    """Why it waits, in words; for the rest what the state means, where that adds something."""
    state = parse_state(job.state)[0]
    if state.is_pending:
        return reason_text(job.reason)
    if state is JobState.RUNNING or state.succeeded:
        return ""
    return state_text(job.state)


def splits(asked: Asked) -> bool:
    """Without a wish for states or order, what waits or runs stands before what has ended."""
    plain_order = asked.sort is Sort.SUBMIT and asked.descending
    return plain_order and not asked.filters.states and asked.filters.slurm_id is None


def active_part(asked: Asked) -> Asked:
    return replace(asked, filters=replace(asked.filters, states=(StateClass.ACTIVE,)))


def ended_part(asked: Asked) -> Asked:
    """The rest: a state that nobody knows is in neither word, and must not vanish."""
    states = (StateClass.ENDED.value, JobState.UNKNOWN.value)
    return replace(asked, filters=replace(asked.filters, states=states))


def chips(typed: Mapping[str, str], viewer: Viewer, counts: ClassCounts) -> list[Chip]:
    """Whose jobs, then which of them with their numbers."""
    who = typed["who"] or "mine"
    whose = [("mine", gettext("Mine")), ("groups", gettext("My groups"))]
    if viewer.may(Permission.SEE_ALL_JOBS):
        whose.append(("all", gettext("Everyone")))
    found = [Chip(word, _url(typed, who=name), on=name == who) for name, word in whose]
    classes = [
        (StateClass.PENDING, gettext("Waiting"), counts.pending),
        (StateClass.RUNNING, gettext("Running"), counts.running),
        (StateClass.FAILED, gettext("Failed"), counts.failed),
        (StateClass.ENDED, gettext("Ended"), counts.ended),
    ]
    return found + [_class_chip(typed, state, word, count) for state, word, count in classes]


def filters_set(typed: Mapping[str, str]) -> list[Chip]:
    """A chip for each filter that is set; a click takes it away."""
    words = {
        "state": gettext("State"),
        "group": gettext("Group"),
        "partition": gettext("Partition"),
        "name": gettext("Name"),
        "id": gettext("Id"),
        "user": gettext("Person"),
        "since": gettext("From"),
        "until": gettext("Until"),
    }
    return [
        Chip(f"{word}: {typed[name]}", _url(typed, **{name: ""}))
        for name, word in words.items()
        if typed[name] and not (name == "state" and typed[name] in list(StateClass))
    ]


def heads(typed: Mapping[str, str], *, priced: bool) -> list[Head]:
    return [
        Head(gettext("State")),
        Head(gettext("Id"), number=True),
        Head(gettext("Name")),
        Head(gettext("Group"), roomy=True),
        _sorting(typed, Sort.GPUS, gettext("GPUs"), number=True),
        _sorting(typed, Sort.RUN_TIME, gettext("Time")),
        *([Head(gettext("Cost"), number=True)] if priced else []),
        _sorting(typed, Sort.WAIT, gettext("Why")),
        _sorting(typed, Sort.SUBMIT, gettext("Submitted"), number=True),
    ]


def range_words(page: JobPage) -> str:
    """How many there are, and what of them was looked at."""
    words = ngettext("%(num)d job", "%(num)d jobs", page.counted.number)
    if page.counted.more:
        words = gettext("more than %(number)s jobs", number=page.counted.number)
    if page.sorted_among:
        words += " · " + gettext("the newest %(number)s in order", number=page.sorted_among)
    if page.looked_to is not None:
        day = page.looked_to.astimezone(zone(deps().settings.timezone)).strftime("%Y-%m-%d %H:%M")
        words += " · " + gettext("looked back to %(day)s", day=day)
    return words


def page_url(typed: Mapping[str, str], cursor: str | None) -> str | None:
    return _url(typed, cursor=cursor) if cursor else None


def is_filtered(typed: Mapping[str, str]) -> bool:
    return any(typed[name] for name in _FILTERS)


def carried(typed: Mapping[str, str]) -> list[tuple[str, str]]:
    return [(name, typed[name]) for name in _CARRIED if typed[name]]


def here() -> str:
    return request.full_path.rstrip("?")


def _scope(typed: Mapping[str, str], viewer: Viewer) -> Scope:
    """A search by id, or for a person, is not only among one's own."""
    sees_all = viewer.may(Permission.SEE_ALL_JOBS)
    who = typed["who"]
    if not who and (typed["id"] or typed["user"]):
        who = "all" if sees_all else "groups"
    if who == "all" and sees_all:
        return Scope.all()
    if who in {"groups", "all"}:
        return Scope.of_groups(viewer.groups, viewer.unix_user)
    return Scope.mine(viewer.unix_user)


def _time(job: JobRow, now: datetime) -> tuple[str, list[Share]]:
    """Run time against the limit as a bar; before that the wait so far."""
    found = waits(job.submit_time, job.eligible_time, job.start_time, _ended(job), now)
    if job.start_time is None or found.run_time is None:
        waited = found.waiting_so_far or found.gave_up_after
        if waited is None:
            return gettext("not eligible yet") if job.active else "–", []
        return gettext("waits %(time)s", time=duration(waited)) if job.active else gettext(
            "gave up after %(time)s", time=duration(waited)
        ), []
    ran = duration(found.run_time)
    if not job.active:
        return ran, []
    if job.time_limit_minutes is None:
        return gettext("%(time)s, no limit", time=ran), []
    limit = timedelta(minutes=job.time_limit_minutes)
    kind = "late" if found.run_time > limit * 0.9 else "running"
    bar = shares((kind, found.run_time.total_seconds()), whole=limit.total_seconds())
    text = gettext("%(time)s of %(limit)s", time=ran, limit=limit_words(job.time_limit_minutes))
    return text, bar


def _ended(job: JobRow) -> datetime | None:
    """What Slurm calls the end of a job that runs is only its limit."""
    return None if job.active else job.end_time


def _class_chip(typed: Mapping[str, str], state: StateClass, word: str, count: Counted) -> Chip:
    on = typed["state"] == state.value
    shown = f"{count.number}+" if count.more else str(count.number)
    return Chip(f"{word} {shown}", _url(typed, state="" if on else state.value), on=on)


def _sorting(typed: Mapping[str, str], sort: Sort, word: str, *, number: bool = False) -> Head:
    now = typed["sort"] or Sort.SUBMIT.value
    up = typed["dir"] == "up"
    if now != sort.value:
        return Head(word, _url(typed, sort=sort.value, dir=""), number=number)
    turned = _url(typed, sort=sort.value, dir="" if up else "up")
    return Head(word, turned, "ascending" if up else "descending", number)


def _url(typed: Mapping[str, str], **changes: str | None) -> str:
    wanted: dict[str, Any] = {**typed, **changes}
    return url_for("jobs.index", **{name: text for name, text in wanted.items() if text})


def _number(text: str) -> int | None:
    digits = text.partition("_")[0]
    return int(digits) if digits.isascii() and digits.isdigit() and len(digits) < 12 else None


def _moment(text: str) -> datetime | None:
    """A time typed in the reader's zone."""
    try:
        found = datetime.fromisoformat(text)
        if found.tzinfo is None:
            found = found.replace(tzinfo=zone(deps().settings.timezone))
        return found.astimezone(UTC)
    except (ValueError, OverflowError):  # the calendar's ends lie beyond it in another zone
        return None


def shows_waiting(asked: Asked) -> bool:
    """Submissions stand on top of one's own jobs, on the first page, unless filters speak of
    what a submission does not have."""
    typed = asked.typed
    plain_list = not is_filtered(typed) or typed["state"] in {"pending", "active"}
    return plain_list and asked.cursor is None and typed["who"] in {"", "mine"}
