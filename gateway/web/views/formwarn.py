"""What the form warns about without refusing it, each at the field that would change it."""

from collections.abc import Mapping
from dataclasses import dataclass

from markupsafe import Markup, escape

from gateway.core.policy import Reading
from gateway.services.ahead import TooFew, warn
from gateway.web.access import viewer
from gateway.web.deps import deps
from gateway.web.show import limit_typed, minutes_words
from gateway.web.texts import ngettext
from gateway.web.views.whyview import clash_line


@dataclass(frozen=True, slots=True)
class Warned:
    """`nearest` is what a button sets the field to, `shown` how the button says it."""

    field: str
    text: Markup
    nearest: str | None
    shown: str


def warnings(reading: Reading) -> Mapping[str, Warned]:
    """By field; from the database alone."""
    have = deps()
    found = warn(reading, viewer=viewer(), begin=have.read, now=have.clock())
    told: dict[str, Warned] = {}
    if found.clash is not None:
        fits = found.clash.fits_minutes
        told["time_limit"] = Warned(
            "time_limit",
            clash_line(found.clash),
            limit_typed(fits) if fits else None,
            minutes_words(fits) if fits else "",
        )
    if found.too_few is not None:
        told["nodes"] = _too_few(found.too_few)
    return told


def _too_few(few: TooFew) -> Warned:
    text = ngettext(
        "Only %(num)d of %(all)s nodes that can hold it is in service: it waits until more are.",
        "Only %(num)d of %(all)s nodes that can hold it are in service: it waits until more are.",
        few.serving,
        all=few.fitting,
    )
    count = str(few.serving) if few.serving else None
    return Warned("nodes", escape(text), count, count or "")
