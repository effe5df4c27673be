"""How busy the cards of each type were, as its page shows it."""

from collections.abc import Mapping, Sequence

from gateway.core.usage_figures import By, Cards
from gateway.store.queries.card_use import Measured
from gateway.web import usage_charts as charts
from gateway.web import usage_tables as tables
from gateway.web.show import plain
from gateway.web.texts import gettext, ngettext
from gateway.web.usage_tables import BY_WORDS, card_hours, key_word
from gateway.web.views.usageview import Section
from gateway.web.wait_filters import Asked


def cards(found: Sequence[Cards], told: Mapping[str, Measured], asked: Asked) -> list[Section]:
    """A type each; hours on types of which nobody knows how many cards there are come last."""
    known = [one for one in found if one.capacity_s]
    rest = [one for one in found if not one.capacity_s and one.gpu_seconds]
    sections = [_type(one, told.get(one.gpu_type), asked) for one in known]
    if rest:
        title = gettext("GPU-hours on cards of which nobody knows how many there are")
        hours = [(key_word(By.GPU_TYPE, one.gpu_type), None, one.whole) for one in rest]
        table = tables.table(title, str(BY_WORDS[By.GPU_TYPE]), tables.CARD_DAYS[:1], hours)
        sections.append(Section("cards", title, table, asked.url("usage.csv", part="cards")))
    return sections


def _type(one: Cards, told: Measured | None, asked: Asked) -> Section:
    share = tables.percent(one.gpu_seconds, one.capacity_s).text
    title = gettext("%(type)s: %(share)s allocated", type=plain(one.gpu_type), share=share)
    notes = [
        gettext(
            "%(used)s of %(all)s GPU-hours were allocated.",
            used=card_hours(one.gpu_seconds).text,
            all=card_hours(one.capacity_s).text,
        )
    ]
    assumed = sum(day.assumed for day in one.days)
    if assumed:
        notes.append(
            ngettext(
                "On %(num)d day nobody had counted the cards yet: as many as later are assumed.",
                "On %(num)d days nobody had counted the cards yet: as many as later are assumed.",
                assumed,
            )
        )
    if told is not None:
        notes.append(
            gettext(
                "Measured: cards were %(percent)s %% busy on average in the %(hours)s node hours "
                "that training runs told of. That is not part of the figures above.",
                percent=f"{told.percent:.0f}",
                hours=f"{told.node_minutes / 60:,.0f}",
            )
        )
    rows = [(day.day.isoformat(), None, day) for day in one.days]
    return Section(
        f"cards-{one.gpu_type}",
        title,
        tables.table(title, gettext("Day"), tables.CARD_DAYS, rows),
        asked.url("usage.csv", part="cards"),
        tuple(notes),
        lines=charts.cards(one, title),
    )
