"""What a form has shown of the start, for the submission to keep.

Slurm's estimate was asked for by a button: the form carries it to the submit, sealed, since nobody
shall write a record of forecasts by hand. Ours is made anew at the submit, as the form made it.
"""

from contextlib import suppress
from dataclasses import dataclass
from datetime import datetime

from flask import current_app
from itsdangerous import BadData, URLSafeTimedSerializer

from gateway.core import forecast as f
from gateway.core.ask import Ask
from gateway.core.policy import judge
from gateway.errors import Busy
from gateway.services import forecast_form, forecast_submit
from gateway.services import offer as offers
from gateway.web.access import viewer
from gateway.web.deps import deps

_LONGEST_SECONDS = 3600  # an older estimate is none any more


@dataclass(frozen=True, slots=True)
class Told:
    asked: f.Ask
    ours: f.Forecast | f.NoForecast
    model: str | None
    slurm: datetime | None


def sealed(ask: Ask, start: datetime) -> str:
    """Slurm's estimate for what the form says now."""
    asked = _asked(ask)
    return "" if asked is None else _seal().dumps([start.isoformat(), *_shape(asked)])


def told(ask: Ask, slurm_seen: str) -> Told | None:
    """None for what cannot be sent, and for arrays: one record of them stands for many starts."""
    asked = _asked(ask)
    if asked is None:
        return None
    forecaster = deps().forecaster
    (ours,) = forecaster.forecast([asked])
    return Told(asked, ours, forecaster.version, _opened(slurm_seen, asked))


def keep(submission_id: int, seen: Told | None) -> None:
    """The submission is sent already: a busy database costs a line of the record, no more."""
    if seen is None:
        return
    with suppress(Busy):
        forecast_submit.keep(
            submission_id,
            seen.asked,
            ours=seen.ours,
            model=seen.model,
            slurm=seen.slurm,
            begin=deps().begin,
        )


def _asked(ask: Ask) -> f.Ask | None:
    have = deps()
    template = have.catalogue.get(ask.template)
    if template is None:
        return None
    reading = judge(ask, offers.offer(viewer(), begin=have.read), template.manifest).reading
    return None if reading.array else forecast_form.question(reading, have.clock())


def _shape(asked: f.Ask) -> list[str | int | None]:
    shape = (asked.group, asked.partition, asked.qos, asked.gpu_type)
    return [*shape, asked.nodes, asked.gpus, asked.cpus, asked.limit_minutes]


def _opened(slurm_seen: str, asked: f.Ask) -> datetime | None:
    """None where it was for another shape, is too old, or is not ours."""
    if not slurm_seen:
        return None
    try:
        start, *shape = _seal().loads(slurm_seen, max_age=_LONGEST_SECONDS)
    except BadData:
        return None
    return datetime.fromisoformat(start) if shape == _shape(asked) else None


def _seal() -> URLSafeTimedSerializer:
    # The person's own: nobody's estimate is another's.
    return URLSafeTimedSerializer(str(current_app.secret_key), salt=f"start-{viewer().person_id}")
