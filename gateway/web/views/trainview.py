"""A training run as the job's page shows it: one run over its jobs, charts, checkpoints, goodput,
and what happened. Figures are for whoever may see the job; the files' own words for their owner.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any

from gateway.core.goodput import Goodput, Use
from gateway.core.training.checkpoints import Checkpoint, resumes_from
from gateway.core.training.lines import Event
from gateway.errors import NotFound
from gateway.services.training_run import Cost, TrainingRun, training_run
from gateway.store.queries import training as reads
from gateway.store.queries.job import JobDetail
from gateway.store.queries.jobs import JobRow
from gateway.store.queries.training import NodeNow
from gateway.web import trainjson
from gateway.web.access import viewer
from gateway.web.deps import deps
from gateway.web.show import plain
from gateway.web.timeline import Share, shares
from gateway.web.training_texts import USES, moment_of, own_words, told_text
from gateway.web.views import joblist
from gateway.web.views.jobview import JobView
from gateway.web.views.traincharts import Charted, Figures, charted, csv_lines

MOST_EVENTS, MOST_CHECKPOINTS = 100, 40
MANY_JOBS = 5
# Only what happens; that a save began is told by its end.
_UNTOLD = frozenset({"save_begin"})
_NOW_SECONDS = 300


@dataclass(frozen=True, slots=True)
class StretchView:
    number: str
    job_id: int
    is_here: bool
    state: str
    start: datetime
    end: datetime | None
    wait: timedelta | None
    ran: timedelta
    resumed: int | None
    reached: int | None
    lost: int | None
    useful: str


@dataclass(frozen=True, slots=True)
class UseView:
    """`hours` are card-hours in words, `percent` of all of them."""

    kind: str
    word: str
    meaning: str
    hours: str
    percent: str
    share: Share | None


@dataclass(frozen=True, slots=True)
class CheckpointView:
    """`path`, `place` and `trouble` are for the owner; `safe` and `late` for everyone."""

    step: int
    at: datetime
    seconds: float | None
    bytes: int | None
    local: bool
    safe: bool
    late: bool
    is_next: bool
    path: str
    place: str
    trouble: str


@dataclass(frozen=True, slots=True)
class ToldView:
    at: datetime
    kind: str
    text: str
    own: str


@dataclass(frozen=True, slots=True)
class OtherJob:
    id: int
    number: str
    state: str
    is_here: bool
    submitted: datetime


@dataclass(frozen=True, slots=True)
class CardView:
    node: str
    card: int
    util: float | None
    mem: int
    mem_total: int
    power: float | None
    ecc: int


@dataclass(frozen=True, slots=True)
class NodeView:
    """`short` of ranks: fewer live there than should."""

    name: str
    at: datetime
    procs: int | None
    expected: int | None
    cards: list[CardView]

    @property
    def is_short(self) -> bool:
        return None not in (self.procs, self.expected) and (self.procs or 0) < (self.expected or 0)


@dataclass(frozen=True, slots=True)
class TrainView:
    """What the templates of the training's part of a job's page need."""

    name: str | None
    jobs: list[OtherJob]
    stretches: list[StretchView]
    waited: timedelta
    ran: timedelta
    restarts: int
    cap: int | None
    lost: int | None
    step: int | None
    cost: Cost | None
    uses: list[UseView]
    useful: str
    own: bool
    figures: Figures
    charts: list[Charted]
    nodes: list[NodeView]
    checkpoints: list[CheckpointView]
    gone: int
    is_done_already: bool
    done_by: OtherJob | None
    events: list[ToldView]

    @property
    def is_cut(self) -> bool:
        """There may be jobs of the run that were not looked at."""
        return len(self.jobs) >= reads.MOST_JOBS

    @property
    def is_long(self) -> bool:
        """To look at it adds up so many jobs that it is done less often."""
        return len(self.jobs) > MANY_JOBS

    @property
    def gpus_seen(self) -> int:
        return sum(len(node.cards) for node in self.nodes)


def build(page: JobView) -> TrainView | None:
    """None for a job that has told nothing yet."""
    if not page.training.told:
        return None
    job, now = page.job, deps().clock()
    with deps().read() as session:
        run = training_run(session, job.id, viewer=viewer(), now=now)
        drawn = charted(session, run, job)
        since = now.timestamp() - _NOW_SECONDS
        nodes = reads.nodes_now(session, job.id, since=since) if job.active else []
    return _view(run, drawn, nodes, page)


def csv(page: JobView) -> str:
    """All that is kept of its metrics; the head alone for a job that has told none."""
    with deps().read() as session:
        run = training_run(session, page.job.id, viewer=viewer(), now=deps().clock())
        return "".join(csv_lines(session, run, page.job))


def as_json(page: JobView) -> dict[str, Any]:
    """The same facts for the API."""
    if not page.training.told:
        raise NotFound(f"training of job {page.job.id}")
    with deps().read() as session:
        run = training_run(session, page.job.id, viewer=viewer(), now=deps().clock())
        figures, _ = charted(session, run, page.job)
    cap, own = restart_cap(page.detail), page.rights.read_files
    return trainjson.training(run, figures, cap=cap, own=own)


def _view(
    run: TrainingRun,
    drawn: tuple[Figures, list[Charted]],
    nodes: Sequence[NodeNow],
    page: JobView,
) -> TrainView:
    own = page.rights.read_files
    there = [one for one in run.checkpoints if one.is_there]
    told = [event for event in run.events if event.kind not in _UNTOLD]
    is_done = run.is_done_already or any(event.kind == "done" for event in told)
    return TrainView(
        name=run.name,
        jobs=[_other(job, page.job.id) for job in reversed(run.jobs)],
        stretches=[_stretch(run, n, page.job.id) for n in range(len(run.stretches))],
        waited=run.waited,
        ran=run.ran,
        restarts=run.restarts,
        cap=restart_cap(page.detail),
        lost=run.steps_lost,
        step=run.step,
        cost=run.cost,
        uses=uses(run.goodput),
        useful=percent(run.goodput, Use.USEFUL),
        own=own,
        figures=drawn[0],
        charts=drawn[1],
        nodes=[_node(node) for node in nodes],
        checkpoints=_checkpoints(there, own=own, is_done=is_done),
        gone=len(run.checkpoints) - len(there),
        is_done_already=run.is_done_already,
        done_by=_other(run.done_by, page.job.id) if run.done_by else None,
        events=[_told(event, own=own) for event in reversed(told[-MOST_EVENTS:])],
    )


def restart_cap(detail: JobDetail) -> int | None:
    """How often the job may go back into the queue by itself, as its form said."""
    values = detail.submission.ask.get("values") if detail.submission else None
    typed = values.get("max_restarts") if isinstance(values, dict) else None
    text = str(typed)
    return int(text) if text.isascii() and text.isdigit() and len(text) < 6 else None


def uses(found: Goodput) -> list[UseView]:
    """In the order of the bar, without what there was nothing of."""
    seconds = {use: found.parts[use] for use in Use if found.parts[use]}
    bar = {one.kind: one for one in shares(*((use.value, n) for use, n in seconds.items()))}
    return [
        UseView(
            kind=use.value,
            word=str(USES[use][0]),
            meaning=str(USES[use][1]),
            hours=_hours(n),
            percent=percent(found, use),
            share=bar.get(use.value),
        )
        for use, n in seconds.items()
    ]


def _hours(card_seconds: int) -> str:
    """Card-hours, with more decimals the fewer they are: a minute is not nothing."""
    hours = card_seconds / 3600
    if hours >= 100:
        return f"{hours:,.1f}"
    return f"{hours:.2f}" if hours >= 1 or not hours else f"{hours:.4f}"


def percent(found: Goodput, use: Use) -> str:
    """Empty where nothing was charged. Never rounded to all or to nothing."""
    if not found.total:
        return ""
    share = found.share(use) * 100
    if 0 < share < 0.1:
        return "< 0.1 %"
    return f"{min(share, 99.9) if found.parts[use] < found.total else share:.1f} %"


def _stretch(run: TrainingRun, place: int, here: int) -> StretchView:
    one = run.stretches[place]
    return StretchView(
        number=joblist.number(one.job),
        job_id=one.job.id,
        is_here=one.job.id == here,
        state=one.state,
        start=one.start,
        end=one.end,
        wait=one.wait,
        ran=one.ran,
        resumed=one.resumed,
        reached=one.reached,
        lost=one.lost,
        useful=percent(one.goodput, Use.USEFUL),
    )


def _other(job: JobRow, here: int) -> OtherJob:
    return OtherJob(job.id, joblist.number(job), job.state, job.id == here, job.submit_time)


def _checkpoints(found: Sequence[Checkpoint], *, own: bool, is_done: bool) -> list[CheckpointView]:
    """The newest first. A run that is done is not restarted: it takes none."""
    taken = None if is_done else resumes_from(found)
    return [
        CheckpointView(
            step=one.step,
            at=moment_of(one.at),
            seconds=one.seconds,
            bytes=one.bytes,
            local=one.local,
            safe=one.is_safe,
            late=one.trouble is not None and not one.is_safe,
            is_next=one is taken,
            path=plain(one.path or "") if own and one.local else "",
            place=plain(one.place or "") if own else "",
            trouble=plain(one.trouble or "") if own else "",
        )
        for one in reversed(found[-MOST_CHECKPOINTS:])
    ]


def _told(event: Event, *, own: bool) -> ToldView:
    words = own_words(event) if own else ""
    return ToldView(moment_of(event.at), event.kind, told_text(event), words)


def _node(node: NodeNow) -> NodeView:
    cards = [
        CardView(
            node=node.node,
            card=card.i,
            util=card.util,
            mem=card.mem_max,
            mem_total=card.mem_total,
            power=card.power_sum / card.power_looks if card.power_looks else None,
            ecc=card.ecc_max,
        )
        for card in node.cards
    ]
    return NodeView(node.node, moment_of(node.last_at), node.procs, node.expected, cards)
