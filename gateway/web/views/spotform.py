"""The spot adviser's form: what stands in the address, and the adviser's question from it."""

from typing import Any

from werkzeug.datastructures import MultiDict
from wtforms import StringField

from gateway.core.planner.typed import count
from gateway.services.spot import Asked, SiteRecord
from gateway.web.formbase import Choice, Posted, said
from gateway.web.texts import gettext
from gateway.web.texts import lazy_gettext as _l

_EXAMPLE = {"hours": "12", "cards": "8", "save_minutes": "1", "restart_minutes": "5"}


class SpotForm(Posted):
    """Texts as typed: what a number may be the adviser's own rules say, at its field."""

    gpu_type = Choice(said(_l("GPU type")))
    qos = Choice(said(_l("QoS")))
    hours = StringField(
        said(_l("Hours of work")), description=said(_l("as it would take without interruptions"))
    )
    cards = StringField(said(_l("Cards in all")))
    interval_minutes = StringField(
        said(_l("Minutes between checkpoints")), description=said(_l("empty: the best interval"))
    )
    save_minutes = StringField(said(_l("Minutes that a checkpoint takes")))
    restart_minutes = StringField(said(_l("Minutes that a restart costs")))
    wait_minutes = StringField(
        said(_l("Minutes in the queue after a preemption")),
        description=said(_l("empty: this site's own mean, else 15, an assumption")),
    )
    between_hours = StringField(
        said(_l("Hours between preemptions")),
        description=said(_l("empty: this site's own record, else 6, an assumption")),
    )


FIELDS = tuple(name for name in vars(SpotForm) if not name.startswith("_"))
_NUMBERS = tuple(name for name in FIELDS if name not in {"gpu_type", "qos"})


def read(sent: MultiDict[str, str], *, site: SiteRecord, types: tuple[str, ...]) -> SpotForm:
    """As the address has it, with what is missing at its usual value."""
    given = {name: sent[name].strip() for name in FIELDS if name in sent}
    usual = {"gpu_type": types[0] if types else ""}
    form = SpotForm(formdata=None, data=_EXAMPLE | usual | given, meta={"csrf": False})
    form.gpu_type.choices = [(one, one) for one in types]
    if not types:
        form.gpu_type.choices = [("", gettext("any"))]
    known = sorted({one.qos for one in site.records})
    form.qos.choices = [("", gettext("the one that is used most")), *((one, one) for one in known)]
    return form


def asked(form: SpotForm) -> Asked:
    """Refused, with the field."""
    given: dict[str, Any] = {}
    for name in _NUMBERS:
        text = str(form[name].data or "")
        if text:
            given[name] = count(name, text)
    return Asked(
        **({"hours": float("nan")} | given),
        gpu_type=str(form.gpu_type.data or ""),
        qos=str(form.qos.data or "") or None,
    )
