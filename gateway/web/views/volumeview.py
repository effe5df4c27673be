"""What the pages of volumes say in words, and the chart of one."""

from collections.abc import Sequence
from datetime import UTC, date, datetime, timedelta

from gateway.core.volumes import Day, Full, format_size
from gateway.services.volume_pages import Pending, Picture
from gateway.store.volume_work import RequestRow
from gateway.web.charts import Series, chart, thinned
from gateway.web.deps import deps
from gateway.web.messages import sentence
from gateway.web.money import day, money_text
from gateway.web.texts import gettext
from gateway.web.views.traincharts import Charted, TableRow
from gateway.web.volume_texts import ASKS

_PLACES = 180
_TABLE_ROWS = 60


def size(count: int | None) -> str:
    """An en dash for what is not known: never a zero."""
    return "–" if count is None else format_size(count)


def limit(one: Picture) -> str:
    if one.row.limit_bytes is None and one.row.problem is None:
        return gettext("no limit")
    return size(one.row.limit_bytes)


def growth(one: Picture) -> str:
    """`+424 GB`."""
    if one.growth is None:
        return "–"
    sign = "+" if one.growth > 0 else "−" if one.growth < 0 else ""
    return sign + format_size(abs(one.growth))


def full_words(one: Picture) -> str:
    """When it is full, with the doubt; why there is no day, where there is none."""
    full = one.full
    if full is None:
        return _no_day(one)
    at, first = day(full.at), day(full.earliest)
    if full.latest is None:
        return gettext("about %(at)s, from %(first)s, or never", at=at, first=first)
    if full.latest == full.earliest:
        return gettext("about %(at)s", at=at)
    last = day(full.latest)
    return gettext("about %(at)s (%(first)s – %(last)s)", at=at, first=first, last=last)


def _no_day(one: Picture) -> str:
    if one.row.limit_bytes is None:
        return "–"
    if one.growth is None:
        return gettext("too little is known yet")
    return gettext("it does not grow") if one.growth <= 0 else gettext("cannot be told")


def tone(one: Picture) -> str:
    """The bar's kind."""
    share = one.percent or 0
    return "late" if share >= 90 else "waiting" if share >= 80 else "running"


def asked_words(one: Pending) -> str:
    """`1 TB → 3 TB`, with what that costs."""
    wanted = gettext("no limit") if one.one.wanted_bytes is None else size(one.one.wanted_bytes)
    step = f"{size(one.have)} → {wanted}"
    return step if one.more is None else f"{step} · {more_words(one.more)}"


def more_words(more: int) -> str:
    """`+61.44 a month`."""
    sign = "+" if more >= 0 else "−"
    return gettext("%(amount)s a month", amount=f"{sign}{money_text(abs(more))}")


def preview_words(before: int | None, after: int | None, more: int | None) -> str:
    """`+2 TB: 61.44 a month`."""
    if before is None or after is None:
        return ""
    step = after - before
    grown = ("+" if step >= 0 else "−") + format_size(abs(step))
    if more is None:
        return gettext("%(grown)s: storage costs nothing here.", grown=grown)
    return gettext("%(grown)s: %(amount)s a month", grown=grown, amount=money_text(more))


def happened(one: RequestRow) -> str:
    """What became of a request, in words."""
    words = str(ASKS[one.state])
    if one.state.value == "applied":
        before = size(one.before_bytes)
        after = gettext("no limit") if one.after_bytes is None else size(one.after_bytes)
        words += f": {before} → {after}"
    if one.code:
        words += ": " + sentence(one.code)
    return words


def use_chart(days: Sequence[Day], full: Full | None) -> Charted | None:
    """Used and limit, day by day, and on to the day when it is full; None before anything was
    read."""
    marked = [(_noon(one.day), one) for one in thinned(days, _PLACES)]
    # A day that nobody read is a gap, not a line through it.
    lines = [
        Series("main", gettext("used"), [(at, one.used, 0) for at, one in marked]),
        Series("high", gettext("limit"), [(at, one.limit, 0) for at, one in marked]),
        Series("ahead", gettext("estimate"), _ahead(days, full)),
    ]
    drawn = chart([one for one in lines if any(y is not None for _, y, _ in one.values)])
    if drawn is None:
        return None
    rows = [
        TableRow(datetime.fromtimestamp(at, UTC), None, [size(one.used), size(one.limit)])
        for at, one in reversed(marked[-_TABLE_ROWS:])
    ]
    now = next((one.used for one in reversed(days) if one.used is not None), None)
    title = gettext("Used, by day")
    return Charted(
        key="use",
        title=title,
        now=size(now),
        label=gettext("%(title)s; the table beneath has the numbers", title=title),
        low=size(int(drawn.low)) if drawn.low else "0",
        high=size(int(drawn.high)),
        chart=drawn,
        heads=[gettext("Used"), gettext("Limit")],
        rows=rows,
        note=gettext("The last figures of each day. 1 TB is 1,024 GB, as file systems count."),
    )


def _ahead(days: Sequence[Day], full: Full | None) -> list[tuple[float, float | None, int]]:
    """From the last figure as far ahead as the chart looks back, at most to the limit."""
    last = next((one for one in reversed(days) if one.used is not None), None)
    if full is None or last is None or last.used is None:
        return []
    back = max(1, (last.day - days[0].day).days)
    ahead = min(back, (full.at - last.day).days)
    if ahead <= 0:
        return []
    end = last.used + full.per_day * ahead
    end = end if last.limit is None else min(end, last.limit)
    return [(_noon(last.day), last.used, 0), (_noon(last.day + timedelta(days=ahead)), end, 0)]


def _noon(at: date) -> float:
    """In the middle of the day, so that every zone near the site's shows the same date."""
    begins = datetime(at.year, at.month, at.day, tzinfo=deps().settings.timezone)
    return (begins + timedelta(hours=12)).timestamp()
