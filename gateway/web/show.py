"""How values look: durations in words, moments in the reader's zone, bars and marks."""

from datetime import UTC, date, datetime, timedelta
from functools import lru_cache

from flask import Flask, g
from markupsafe import Markup

from gateway.core.durations import format_time_limit, parts
from gateway.core.reasons import reason_key
from gateway.core.states import parse_state
from gateway.web.deps import deps
from gateway.web.i18n import zone
from gateway.web.reason_texts import REASON_TEXTS
from gateway.web.state_texts import STATE_TEXTS, SUBMISSION_TEXTS, mark
from gateway.web.texts import format_datetime, gettext, ngettext

MINUTE, HOUR, DAY = 60, 3600, 86400

# Marks that turn the reading direction or hide: a job's name must not make a row read backwards.
_UNSEEN = dict.fromkeys(
    (
        *range(9),
        11,
        12,
        *range(14, 32),
        *range(127, 160),
        1564,
        *range(8203, 8208),
        *range(8232, 8239),
        *range(8288, 8304),
        65279,
    ),
    "�",
)
_UNSEEN_INLINE = _UNSEEN | {0x09: " ", 0x0A: " ", 0x0D: " "}


def init_show(app: Flask) -> None:
    """Give the templates their filters."""
    app.jinja_env.filters.update(
        duration=duration,
        minutes=minutes_words,
        limit=limit_words,
        plain=plain,
        mark=mark,
        state_text=state_text,
        submission_text=submission_text,
        reason_text=reason_text,
        moment=moment,
        ago=ago,
        card_squares=card_squares,
        bytes=size_text,
        seconds=seconds_text,
    )


def duration(value: timedelta | float | None) -> str:
    """The two largest units: 3 h 12 min. Empty for None."""
    if value is None:
        return ""
    seconds = int(value.total_seconds() if isinstance(value, timedelta) else value)
    if seconds < MINUTE:
        return gettext("%(n)s s", n=seconds)
    if seconds < HOUR:
        return gettext("%(n)s min", n=seconds // MINUTE)
    if seconds < DAY:
        return _two(
            gettext("%(n)s h", n=seconds // HOUR),
            gettext("%(n)s min", n=seconds % HOUR // MINUTE),
            seconds % HOUR // MINUTE,
        )
    return _two(
        gettext("%(n)s d", n=seconds // DAY),
        gettext("%(n)s h", n=seconds % DAY // HOUR),
        seconds % DAY // HOUR,
    )


def short(value: float) -> str:
    """Three figures and a letter: 208k, 1.24M, 0.0031."""
    number, letter = _scaled(value)
    return f"{number}{letter}"


def size_text(size: float | None) -> str:
    """Decimal, as disks and cards are sold: 1 GB is 10^9 bytes. Empty for None."""
    if size is None:
        return ""
    number, letter = _scaled(size)
    return f"{number} {letter}B"


def seconds_text(seconds: float | None) -> str:
    """Short times with their parts of a second, longer ones in words. Empty for None."""
    if seconds is None or seconds >= MINUTE:
        return duration(seconds)
    return gettext("%(n)s s", n=short(seconds))


def minutes_words(minutes: int | None) -> str:
    """A time limit in full words, so that nobody takes minutes for hours."""
    if minutes is None:
        return gettext("no limit")
    days, hours, rest = parts(minutes)
    words = [
        ngettext("%(num)d day", "%(num)d days", days) if days else "",
        ngettext("%(num)d hour", "%(num)d hours", hours) if hours else "",
        ngettext("%(num)d minute", "%(num)d minutes", rest) if rest else "",
    ]
    return " ".join(word for word in words if word) or ngettext(
        "%(num)d minute", "%(num)d minutes", 0
    )


def limit_words(minutes: int | None) -> str:
    """A time limit where there is little room."""
    return gettext("no limit") if minutes is None else duration(minutes * MINUTE)


def limit_typed(minutes: int) -> str:
    """A time limit as one would type it."""
    return format_time_limit(minutes).removeprefix("0-")


def plain(text: object) -> str:
    """One line without characters that hide, or that turn the line around."""
    return str(text).translate(_UNSEEN_INLINE)


def plain_block(text: str) -> str:
    """Several lines, as `plain`; carriage returns of progress bars become line ends."""
    return text.replace("\r\n", "\n").replace("\r", "\n").translate(_UNSEEN)


def moment(at: datetime | None, style: str = "short") -> Markup | str:
    """A time in the reader's zone; the absolute time is in its title and in `datetime`. `style`
    is short, full, or minute: of an estimate, which knows no seconds."""
    if at is None:
        return ""
    here, today = _here(at)
    if style == "full":
        shown = here.strftime("%Y-%m-%d %H:%M:%S")
    elif here.date() == today:
        shown = here.strftime("%H:%M" if style == "minute" else "%H:%M:%S")
    elif here.year == today.year:
        shown = format_datetime(at, gettext("MMM d, HH:mm"))
    else:
        shown = here.strftime("%Y-%m-%d %H:%M")
    return _time(at, here, shown)


def ago(at: datetime | None) -> Markup | str:
    """How long ago, in words, with the absolute time beneath."""
    if at is None:
        return gettext("never")
    here, _ = _here(at)
    gone = max(deps().clock() - at, timedelta(0))
    return _time(at, here, gettext("%(duration)s ago", duration=duration(gone)))


def state_text(state: str) -> str:
    return str(STATE_TEXTS[parse_state(state)[0]])


def submission_text(state: str) -> str:
    return str(SUBMISSION_TEXTS[state])


def reason_text(reason: str | None) -> str:
    return str(REASON_TEXTS[reason_key(reason)])


@lru_cache(maxsize=1024)
def card_squares(cards: tuple[str, ...]) -> Markup:
    """A node's GPUs as squares of an SVG. A thousand nodes share a few dozen different rows, and
    drawing each anew took half of the cluster page's time."""
    square = Markup(
        '<rect class="card-{}" x="{}" y="1" width="10" height="10" rx="1.5" stroke-width="1"{}/>'
    )
    dashed = Markup(' stroke-dasharray="2 1.5"')
    drawn = (
        square.format(card, place * 12 + 1, dashed if card == "down" else "")
        for place, card in enumerate(cards)
    )
    return Markup().join(drawn)


def _scaled(value: float) -> tuple[str, str]:
    size = abs(value)
    for letter, one in (("T", 1e12), ("G", 1e9), ("M", 1e6), ("k", 1e3)):
        if size >= one * 0.9995:
            return f"{value / one:.3g}", letter
    return (f"{value:.3g}" if size >= 1e-3 or not size else f"{value:.1e}"), ""


def _here(at: datetime) -> tuple[datetime, date]:
    """The time in the reader's zone, and which day it is there now."""
    if "reader" not in g:
        reader = zone(deps().settings.timezone)
        g.reader = reader, deps().clock().astimezone(reader).date()
    reader, today = g.reader
    return at.astimezone(reader), today


def _time(at: datetime, here: datetime, shown: str) -> Markup:
    machine = at.astimezone(UTC).strftime("%Y-%m-%dT%H:%M:%SZ")
    title = here.strftime("%Y-%m-%d %H:%M:%S %Z (UTC%z)")
    return Markup('<time datetime="{}" title="{}">{}</time>').format(machine, title, shown)


def _two(first: str, second: str, count: int) -> str:
    return f"{first} {second}" if count else first
