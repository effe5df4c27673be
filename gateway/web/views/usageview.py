"""The pages of use: their sections, in words, with charts and tables."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TypeVar

from flask import url_for

from gateway.core.access import Permission, group_rights
from gateway.core.usage_figures import (
    DIMENSIONS,
    By,
    LimitBin,
    Limits,
    LimitWait,
    Use,
    advised_limit,
)
from gateway.core.wait_figures import UNKNOWN
from gateway.store.queries.group_spend import Spend
from gateway.web import usage_charts as charts
from gateway.web import usage_tables as tables
from gateway.web.access import viewer
from gateway.web.deps import deps
from gateway.web.show import duration, state_text
from gateway.web.texts import gettext, ngettext
from gateway.web.usage_tables import BY_WORDS, card_hours, key_word
from gateway.web.views.usageparts import Part
from gateway.web.wait_charts import Histogram, Lines
from gateway.web.wait_filters import Asked
from gateway.web.wait_tables import WaitTable
from gateway.web.wait_words import hidden_words, more_words

T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class Section:
    """A chart with its table. One of `bars`, `columns`, `lines`, or the table alone."""

    key: str
    title: str
    table: WaitTable
    csv: str
    notes: tuple[str, ...] = ()
    bars: charts.Bars | None = None
    columns: Histogram | None = None
    lines: Lines | None = None


def use(part: Part[Use], by: By, asked: Asked) -> Section:
    """Each row leads to what is in it."""
    title = gettext("GPU-hours by %(what)s", what=_small(by))
    named = [(key_word(by, keys[0]), row) for keys, row in part.rows]
    rows = [(name, _closer(asked, by, keys[0]), row) for (keys, row), (name, _) in
            zip(part.rows, named, strict=True)]  # fmt: skip
    words = [
        (name, _hours_words(row.gpu_seconds), float(row.gpu_seconds), None) for name, row in named
    ]
    return Section(
        "use",
        title,
        tables.table(title, str(BY_WORDS[by]), part.columns, rows),
        asked.url("usage.csv", part="use", by=by.value),
        (*_hidden(part, by), *_folded(words)),
        bars=charts.bars(words, title),
    )


def crossed(part: Part[Use], by: Sequence[By], asked: Asked) -> Section:
    title = gettext("GPU-hours by %(one)s and %(other)s", one=_small(by[0]), other=_small(by[1]))
    rows = [row for _, row in part.rows]
    csv = {"by": by[0].value, "and": by[1].value}
    return Section(
        "crossed",
        title,
        tables.crossed(title, by, rows),
        asked.url("usage.csv", part="use", **csv),
        _crossed_notes(part, by[0]),
    )


def ledger(part: Part[Spend], asked: Asked) -> Section:
    """Each line leads to its statement."""
    title = gettext("What the statements say")
    rows = [
        (
            f"{group} · {month}",
            url_for("group.statement", name=group, month=month)
            if group_rights(viewer(), group).see
            else None,
            row,
        )
        for (group, month), row in part.rows
    ]
    return Section(
        "ledger",
        title,
        tables.table(title, gettext("Group and month"), part.columns, rows),
        asked.url("usage.csv", part="ledger"),
    )


def limits(part: Part[Limits], asked: Asked) -> Section:
    title = gettext("GPU-hours used of those that time limits asked for, by group")
    words = [
        (
            keys[0],
            gettext(
                "%(used)s of %(asked)s h",
                used=card_hours(row.used_gpu_seconds).text,
                asked=card_hours(row.reserved_gpu_seconds).text,
            ),
            float(row.used_gpu_seconds),
            float(row.reserved_gpu_seconds),
        )
        for keys, row in part.rows
    ]
    rows = [(key_word(By.GROUP, keys[0]), None, row) for keys, row in part.rows]
    return Section(
        "limits",
        title,
        tables.table(title, str(BY_WORDS[By.GROUP]), part.columns, rows),
        asked.url("usage.csv", part="limits"),
        (*_hidden(part, By.GROUP), *_folded(words)),
        bars=charts.bars(words, title),
    )


def bins(part: Part[LimitBin], asked: Asked) -> Section:
    title = gettext("How much of their time limit runs used")
    rows = [(keys[0], None, row) for keys, row in part.rows]
    return Section(
        "bins",
        title,
        tables.table(title, gettext("Used of the limit"), part.columns, rows),
        asked.url("usage.csv", part="bins"),
        _hidden(part, By.GROUP),
        columns=charts.bins([row for _, row in part.rows], title),
    )


def advice(of: Limits, who: str) -> str:
    """One sentence from the numbers; empty where they say nothing."""
    shorter = advised_limit(of)
    if shorter is None or of.p90_s is None or of.median_limit_s is None:
        return ""
    return gettext(
        "%(who)s: 90 %% of the completed runs ended within %(ran)s, and half of them asked for "
        "%(asked)s or more. A limit of %(shorter)s fits into gaps that are too short now, so that "
        "jobs can start sooner; those that need longer keep theirs.",
        who=who,
        ran=duration(of.p90_s),
        asked=duration(of.median_limit_s),
        shorter=duration(shorter),
    )


def failures(part: Part[Use], everything: int, asked: Asked) -> Section:
    """`everything`: card-seconds of all runs, whatever became of them."""
    title = gettext("GPU-hours of runs that did not complete, by state")
    words = [
        (
            keys[0],
            gettext(
                "%(hours)s h, %(share)s of all",
                hours=card_hours(row.gpu_seconds).text,
                share=tables.percent(row.gpu_seconds, everything).text,
            ),
            float(row.gpu_seconds),
            None,
        )
        for keys, row in part.rows
    ]
    rows = [
        (f"{keys[0]} – {state_text(keys[0])}", _closer(asked, By.STATE, keys[0]), row)
        for keys, row in part.rows
    ]
    return Section(
        "failures",
        title,
        tables.table(title, str(BY_WORDS[By.STATE]), part.columns, rows),
        asked.url("usage.csv", part="failures"),
        _hidden(part, By.STATE),
        bars=charts.bars(words, title, "failed"),
    )


def failures_by(part: Part[Use], by: By, asked: Asked) -> Section:
    title = gettext("The same by %(what)s", what=_small(by))
    rows = [row for _, row in part.rows]
    return Section(
        f"failures-{by.value}",
        title,
        tables.crossed(title, (by, By.STATE), rows),
        asked.url("usage.csv", part="failures", by=by.value),
        _crossed_notes(part, by),
    )


def larger(part: Part[LimitWait], asked: Asked) -> Section:
    """Who may change a limit is led to where it can be tried."""
    title = gettext("Hours that jobs waited for limits, by group")
    words = [
        (keys[0], gettext("%(hours)s h", hours=card_hours(row.limit_s).text), row.limit_s, None)
        for keys, row in part.rows
    ]
    rows = [(key_word(By.GROUP, keys[0]), _policy(keys[0]), row) for keys, row in part.rows]
    return Section(
        "larger",
        title,
        tables.table(title, str(BY_WORDS[By.GROUP]), part.columns, rows),
        asked.url("usage.csv", part="larger"),
        _folded(words),
        bars=charts.bars(words, title, "waiting"),
    )


def _policy(group: str) -> str | None:
    if group == UNKNOWN or not viewer().may(Permission.SEE_POLICY):
        return None
    if viewer().may(Permission.MANAGE_POLICY):
        return url_for("policy.edit", kind="group", name=group)
    return url_for("policy.show", kind="group", name=group)


def _closer(asked: Asked, by: By, key: str) -> str | None:
    """The same page about this row alone."""
    if by is By.MONTH:
        return None
    following = By.MONTH if by is By.USER else By.USER if by is By.GROUP else By.GROUP
    return asked.url("usage.index", **{DIMENSIONS[by].value: key}, by=following.value)


def _hidden(part: Part[T], by: By) -> tuple[str, ...]:
    words = hidden_words(part.hidden, deps().settings.waits_k, DIMENSIONS.get(by))
    return (words,) if words else ()


def _crossed_notes(part: Part[Use], by: By) -> tuple[str, ...]:
    """What is hidden here are single cells, which look like those where there is nothing."""
    found: list[str] = []
    if part.hidden and by is not By.USER:
        found.append(
            ngettext(
                "%(num)d cell is hidden (–) and in no sum: fewer than %(least)s people, or it "
                "would tell of them.",
                "%(num)d cells are hidden (–) and in no sum: fewer than %(least)s people, or they "
                "would tell of them.",
                part.hidden,
                least=deps().settings.waits_k,
            )
        )
    else:
        found += _hidden(part, by)
    rest = more_words(len({keys[0] for keys, _ in part.rows}) - tables.MOST_DOWN)
    return (*found, rest) if rest else tuple(found)


def _folded(rows: Sequence[object]) -> tuple[str, ...]:
    more = len(rows) - charts.MOST_BARS
    if more <= 0:
        return ()
    return (ngettext("%(num)d more in the table.", "%(num)d more in the table.", more),)


def _small(by: By) -> str:
    return (
        str(BY_WORDS[by])[:1].lower() + str(BY_WORDS[by])[1:]
        if by not in _NAMES
        else str(BY_WORDS[by])
    )


def _hours_words(card_seconds: int) -> str:
    return gettext("%(hours)s h", hours=card_hours(card_seconds).text)


_NAMES = frozenset({By.GPU_TYPE, By.QOS})
