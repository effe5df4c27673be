"""The forecast record: how good forecasts of starts have been, Slurm's and ours side by side."""

from collections.abc import Iterable
from dataclasses import replace

from flask import Blueprint, Response, render_template, request
from flask.typing import ResponseReturnValue
from werkzeug.datastructures import MultiDict

from gateway.core.access import Permission
from gateway.core.wait_figures import GPU_CLASSES, Dimension
from gateway.core.wait_sight import Sight
from gateway.errors import NotFound
from gateway.services import forecast_record as service
from gateway.services.forecast_record import Record
from gateway.store.queries.forecasts import SUBMIT, WAITING, Asked
from gateway.web import wait_filter_form, wait_filters
from gateway.web.access import requires, viewer
from gateway.web.deps import deps
from gateway.web.texts import gettext
from gateway.web.texts import lazy_gettext as _l
from gateway.web.views import recordview, waits_frame

bp = Blueprint("forecast_record", __name__, url_prefix="/waits/forecast")

_FILTERS = (
    Dimension.PARTITION,
    Dimension.GPU_TYPE,
    Dimension.GPU_CLASS,
    Dimension.GROUP,
    Dimension.QOS,
)
_OTHERS = frozenset(("period", "from", "to", "moment"))


@bp.get("")
@requires(Permission.USE_PORTAL)
def index() -> ResponseReturnValue:
    typed, moment = _typed()
    keep = {} if moment == SUBMIT else {"moment": moment}
    known = service.choices(_asked(typed, moment), sight=_sight(), read=deps().read)
    by_dimension = {Dimension(name): values for name, values in known.items()}
    endpoint = "forecast_record.index"
    filters = wait_filter_form.view(typed, endpoint, by_dimension, with_wait=False, keep=keep)
    names = {one.value for one in _FILTERS}
    shown = [one for one in (*filters.controls, *filters.more) if one.name in names]
    return render_template(
        "pages/forecast_record.html",
        tabs=waits_frame.tabs(),
        filters=replace(filters, controls=tuple(shown), more=(), more_open=not typed.period),
        moments=_moments(typed, moment),
        record=recordview.build(_record(typed, moment)),
        csv={
            part: typed.url("forecast_record.csv", part=part, **keep) for part in recordview.PARTS
        },
    )


@bp.get("/<part>.csv")
@requires(Permission.USE_PORTAL)
def csv(part: str) -> ResponseReturnValue:
    """Scores by all, cards and partition; or the bins of the charts."""
    if part not in recordview.PARTS:
        raise NotFound(part)
    typed, moment = _typed()
    wait_filters.whole(typed)
    name = {"Content-Disposition": f'attachment; filename="forecast-{part}.csv"'}
    lines = recordview.csv(part, _record(typed, moment))
    return Response(lines, mimetype="text/csv", headers=name)


def _typed() -> tuple[wait_filters.Asked, str]:
    names = {one.value for one in _FILTERS} | _OTHERS
    args: Iterable[tuple[str, str]] = request.args.items(multi=True)
    mine = MultiDict([(name, value) for name, value in args if name in names])
    have = deps()
    also = {"moment": (_l("Moment"), (SUBMIT, WAITING))}
    zone = have.settings.timezone
    typed = wait_filters.read(mine, now=have.clock(), zone=zone, also=also)
    return typed, WAITING if request.args.get("moment") == WAITING else SUBMIT


def _asked(typed: wait_filters.Asked, moment: str) -> Asked:
    only, now = typed.question.only, deps().clock()
    classes = only.get(Dimension.GPU_CLASS, ())
    return Asked(
        since=typed.question.since or now - service.KEPT,
        until=typed.question.until or now,
        moment=moment,
        partitions=only.get(Dimension.PARTITION, ()),
        qos=only.get(Dimension.QOS, ()),
        groups=only.get(Dimension.GROUP, ()),
        gpu_types=only.get(Dimension.GPU_TYPE, ()),
        gpus=tuple((low, high) for name, low, high in GPU_CLASSES if name in classes),
    )


def _record(typed: wait_filters.Asked, moment: str) -> Record:
    have = deps()
    return service.record(
        _asked(typed, moment),
        sight=_sight(),
        read=have.read,
        now=have.clock(),
    )


def _sight() -> Sight:
    return Sight.of(viewer(), deps().settings.waits_k)


def _moments(typed: wait_filters.Asked, moment: str) -> list[tuple[str, str, bool]]:
    """Word, address, whether it is chosen."""
    words = ((SUBMIT, gettext("At submit")), (WAITING, gettext("While it waited")))
    here = "forecast_record.index"
    return [
        (word, typed.url(here, moment=None if one == SUBMIT else one), one == moment)
        for one, word in words
    ]
