"""Spot beside the form: for how much less, how often it is interrupted here, and what is amiss."""

from dataclasses import dataclass
from urllib.parse import urlencode

from flask import url_for

from gateway.core.ask import Ask
from gateway.core.manifest import Manifest
from gateway.core.offer import Offer
from gateway.core.policy import Reading
from gateway.core.spot import is_far
from gateway.services.spot_line import SAVE_SECONDS, SpotLine, spot_line
from gateway.web.deps import deps
from gateway.web.money import money_text
from gateway.web.planner_words import hours_figure
from gateway.web.show import duration, minutes_words
from gateway.web.texts import gettext, ngettext

_FIELD = "checkpoint_hours"
_LEAST_HOURS, _MOST_HOURS = 0.05, 168.0


@dataclass(frozen=True, slots=True)
class SpotBox:
    """`sets` is what the button changes, as a form sends it; `use_interval` the same for the
    interval, empty where there is nothing to set. `percent` is the difference with its sign."""

    name: str
    steady: str
    is_chosen: bool
    sets: str
    percent: str
    price: str
    often: str
    best: str
    warnings: tuple[str, ...]
    use_interval: str
    use_words: str
    url: str


def build(reading: Reading, offer: Offer, ask: Ask, manifest: Manifest) -> SpotBox | None:
    """None where there is no choice between spot and another QoS."""
    have = deps()
    line = spot_line(reading, offer, begin=have.read, now=have.clock(), zone=have.settings.timezone)
    if line is None:
        return None
    saves = any(one.name == _FIELD for one in manifest.fields)
    typed = _hours(ask.values.get(_FIELD, "")) if saves else None
    warnings = tuple(_warnings(line, saves=saves, typed=typed))
    use = _use(line) if typed is not None and warnings and line.best is not None else ""
    return SpotBox(
        name=line.spot,
        steady=line.steady,
        is_chosen=line.is_chosen,
        sets=urlencode({"qos": line.steady if line.is_chosen else line.spot}),
        percent=_percent(line),
        price=_price(line),
        often=_often(line),
        best=_best(line) if saves else "",
        warnings=warnings,
        use_interval=f"{_FIELD}={use}" if use else "",
        use_words=gettext("Use %(hours)s h", hours=use) if use else "",
        url=_url(reading, line, typed),
    )


def _percent(line: SpotLine) -> str:
    """−18 %, with a real minus."""
    if not line.instead or line.cost is None:
        return ""
    change = round(100 * (line.cost - line.instead) / line.instead)
    return f"{'−' if change < 0 else '+' if change else '±'}{abs(change)} %"


def _price(line: SpotLine) -> str:
    if line.cost is None or line.instead is None:
        return ""
    words = gettext(
        "%(cost)s instead of %(instead)s in QoS %(qos)s",
        cost=money_text(line.cost),
        instead=money_text(line.instead),
        qos=line.steady,
    )
    if line.gives_back:
        words += gettext("; preempted runs are given back")
    return words


def _often(line: SpotLine) -> str:
    if line.often is None:
        return gettext(
            "May be interrupted, and begins again by itself. How often cannot be said: too few "
            "preemptions are on record here."
        )
    facts = {
        "hours": hours_figure(line.often.hours / line.often.events),
        "type": line.gpu_type,
        "low": hours_figure(1 / line.often.high),
        "high": hours_figure(1 / line.often.low),
    }
    count = line.often.events
    if line.at_hour:
        return ngettext(
            "May be interrupted: here about every %(hours)s h on %(type)s at this hour of the day "
            "(an estimate by %(num)s preemption; 95 %%: %(low)s to %(high)s h).",
            "May be interrupted: here about every %(hours)s h on %(type)s at this hour of the day "
            "(an estimate by %(num)s preemptions; 95 %%: %(low)s to %(high)s h).",
            count,
            **facts,
        )
    return ngettext(
        "May be interrupted: here about every %(hours)s h on %(type)s "
        "(an estimate by %(num)s preemption; 95 %%: %(low)s to %(high)s h).",
        "May be interrupted: here about every %(hours)s h on %(type)s "
        "(an estimate by %(num)s preemptions; 95 %%: %(low)s to %(high)s h).",
        count,
        **facts,
    )


def _best(line: SpotLine) -> str:
    if line.best is None:
        return ""
    return gettext(
        "Best checkpoint interval about %(time)s, where a save takes %(save)s.",
        time=duration(line.best),
        save=duration(SAVE_SECONDS),
    )


def _warnings(line: SpotLine, *, saves: bool, typed: float | None) -> list[str]:
    if not line.is_chosen:
        return []
    if not saves:
        return [
            gettext(
                "This template saves no checkpoints: a job that is preempted begins again from "
                "its start."
            )
        ]
    if typed == 0:
        return [
            gettext(
                "It saves only when it is warned: a stop without a warning loses all of its work."
            )
        ]
    if typed is None or line.best is None or not is_far(typed * 3600, line.best):
        return []
    return [
        gettext(
            "A checkpoint every %(time)s is far from the best interval, which is about %(best)s.",
            time=minutes_words(max(1, round(typed * 60))),
            best=duration(line.best),
        )
    ]


def _use(line: SpotLine) -> str:
    hours = (line.best or 0) / 3600
    return f"{min(max(round(hours, 2), _LEAST_HOURS), _MOST_HOURS):g}"


def _hours(text: str) -> float | None:
    try:
        hours = float(text or "nan")
    except ValueError:
        return None
    return hours if 0 <= hours <= _MOST_HOURS else None


def _url(reading: Reading, line: SpotLine, typed: float | None) -> str:
    """The adviser, with what is known of this job."""
    minutes = reading.time_limit_minutes
    given = {
        "hours": f"{minutes / 60:g}" if minutes else "",
        "cards": str(reading.gpus or ""),
        "gpu_type": line.gpu_type,
        "qos": line.spot,
        "interval_minutes": f"{typed * 60:g}" if typed else "",
    }
    return f"{url_for('spot.index')}?{urlencode({k: v for k, v in given.items() if v})}"
