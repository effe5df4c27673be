"""When a waiting job will probably start, on its page: the newest forecast, and those before."""

from dataclasses import dataclass
from datetime import datetime

from gateway.core.forecast import ForecastSource, NoForecast
from gateway.services.forecast_keep import FIRST
from gateway.services.standing import standing
from gateway.store.forecasts import Newest
from gateway.store.queries import forecasts as reads
from gateway.store.queries.forecasts import KeptRow
from gateway.web.access import viewer
from gateway.web.deps import deps
from gateway.web.show import duration
from gateway.web.texts import gettext, ngettext
from gateway.web.views.jobview import JobView
from gateway.web.views.startbox import no_forecast, rests_on


@dataclass(frozen=True, slots=True)
class BeforeView:
    """An earlier forecast; `came` says how far off it was, once that is known."""

    made_at: datetime
    key: str
    source: str
    p50_at: datetime
    p90_at: datetime | None
    came: str


@dataclass(frozen=True, slots=True)
class JobStartView:
    """`told` stands in the place of times that nobody can give. `behind` counts jobs before it.
    `p50` is empty once that moment has passed: the worker has made no newer forecast."""

    told: str
    p50: str
    p50_at: datetime | None
    p90_at: datetime | None
    rests: str
    behind: str
    made_at: datetime | None
    slurm_at: datetime | None
    before: tuple[BeforeView, ...]

    @property
    def waits(self) -> bool:
        return bool(self.told or self.p50_at or self.slurm_at)


def build(page: JobView) -> JobStartView | None:
    """None where nothing was ever forecast."""
    submission = page.detail.submission.row.id if page.detail.submission else None
    waits = page.active and page.job.start_time is None and page.detail.left_queue_at is None
    with deps().read() as session:
        newest = reads.newest(session, page.job.id) if waits else {}
        kept = reads.of_job(session, page.job.id, submission)
        place = standing(session, page.job, viewer=viewer()) if newest else None
    if not newest and not kept:
        return None
    ours, slurm = newest.get(ForecastSource.HISTORY), newest.get(ForecastSource.SLURM)
    if ours is None and waits and kept and _is_first(kept[0], page):
        ours = _of_submit(kept, page)
    told = no_forecast(NoForecast(ours.why), page.job.partition) if ours and ours.why else ""
    p50_at = ours.p50_at if ours else None
    gone = (p50_at - deps().clock()).total_seconds() if p50_at else 0.0
    return JobStartView(
        told=told,
        p50=duration(gone) if gone > 0 else "",
        p50_at=p50_at,
        p90_at=ours.p90_at if ours else None,
        rests=rests_on(ours.jobs, page.job.partition) if ours and ours.jobs else "",
        behind=_behind(place.before) if place is not None else "",
        made_at=ours.made_at if ours else None,
        slurm_at=slurm.p50_at if slurm else page.estimated_start,
        before=tuple(_before(one, page.job.start_time) for one in kept),
    )


def _is_first(one: KeptRow, page: JobView) -> bool:
    """A job that was sent a moment ago: until the worker's next turn what the form said holds."""
    return deps().clock() - one.made_at < FIRST and page.job.restarts == 0


def _of_submit(kept: list[KeptRow], page: JobView) -> Newest | None:
    found = next((one for one in kept if one.source is ForecastSource.HISTORY), None)
    if found is None:
        return None
    return Newest(page.job.id, found.source, found.made_at, found.p50_at, found.p90_at, 0, None)


def _behind(before: int) -> str:
    if not before:
        return gettext("First of those that wait there.")
    return ngettext("Behind about %(num)d job.", "Behind about %(num)d jobs.", before)


def _before(one: KeptRow, start: datetime | None) -> BeforeView:
    words = {ForecastSource.HISTORY: gettext("ours"), ForecastSource.SLURM: gettext("Slurm's plan")}
    return BeforeView(
        one.made_at, one.source.value, words[one.source], one.p50_at, one.p90_at, _came(one, start)
    )


def _came(one: KeptRow, start: datetime | None) -> str:
    """What happened, against what was said."""
    if start is None or start < one.made_at:
        return ""
    off = (start - one.p50_at).total_seconds()
    if one.p90_at is not None and start > one.p90_at:
        return gettext("started %(time)s later, after its p90", time=duration(off))
    if off > 0:
        return gettext("started %(time)s later", time=duration(off))
    return gettext("started %(time)s sooner", time=duration(-off))
