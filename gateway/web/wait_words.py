"""Sentences about waits: the first line of the page, and what stands beside figures."""

from gateway.core.wait_figures import Dimension, Figures
from gateway.services.seen_waits import SeenOverview
from gateway.web.show import duration
from gateway.web.texts import gettext, ngettext
from gateway.web.wait_filters import PERIODS, Asked
from gateway.web.wait_texts import value_word


def first_line(asked: Asked, seen: SeenOverview) -> str:
    """How long jobs waited to run how long, and whether it gets worse."""
    now = seen.now
    if now is None or now.wait.mean_s is None or now.wait.median_s is None:
        return ""
    facts = {
        "jobs": _whose(asked, now.wait.n),
        "wait": duration(now.wait.mean_s),
        "run": duration(now.run.mean_s or 0),
        "median": duration(now.wait.median_s),
        "when": _when(asked),
    }
    if now.run.mean_s is None:
        line = gettext("%(jobs)s waited %(wait)s (median %(median)s) %(when)s.", **facts)
    else:
        line = gettext(
            "%(jobs)s waited %(wait)s to run %(run)s (median wait %(median)s) %(when)s.", **facts
        )
    before = seen.before
    if before is not None and before.wait.mean_s is not None:
        line += " " + gettext("Before: %(wait)s.", wait=duration(before.wait.mean_s))
    return line


def longest_line(seen: SeenOverview) -> str:
    """The class of cards that waits longest; empty where there is nothing to compare."""
    rows = [(row[1].wait.mean_s or 0.0, *row) for row in seen.rows.rows if row[1].wait.n]
    if len(rows) < 2:
        return ""
    mean, key, figures = max(rows, key=lambda row: row[0])
    facts = {"wait": duration(mean), "run": duration(figures.run.mean_s or 0)}
    word = value_word(Dimension.GPU_CLASS, key)
    return gettext("Longest: jobs on %(cards)s, %(wait)s to run %(run)s.", cards=word, **facts)


def beside(figures: Figures) -> str:
    """How many jobs are behind a figure, and how many are not in it."""
    words = [jobs_words(figures.wait.n)]
    if figures.never_started:
        words.append(gettext("%(n)s never started", n=f"{figures.never_started:,}"))
    if figures.waiting:
        words.append(gettext("%(n)s waiting", n=f"{figures.waiting:,}"))
    return " · ".join(words)


def jobs_words(count: int) -> str:
    return ngettext("%(shown)s job", "%(shown)s jobs", count, shown=f"{count:,}")


def hidden_words(hidden: int, least: int, dimension: Dimension | None = None) -> str:
    """Nobody should take what is hidden for what is not there."""
    if not hidden:
        return ""
    if dimension is Dimension.USER:
        return gettext("Of other people nothing is shown.")
    return ngettext(
        "%(num)d row is hidden: fewer than %(least)s people, or it would tell of them.",
        "%(num)d rows are hidden: fewer than %(least)s people, or they would tell of them.",
        hidden,
        least=least,
    )


def more_words(rest: int) -> str:
    """What a long table leaves to the CSV."""
    if rest <= 0:
        return ""
    return ngettext("%(num)d more in the CSV.", "%(num)d more in the CSV.", rest)


def _whose(asked: Asked, count: int) -> str:
    classes = asked.question.only.get(Dimension.GPU_CLASS, ())
    words = jobs_words(count)
    if len(classes) != 1:
        return words
    word = value_word(Dimension.GPU_CLASS, classes[0])
    return gettext("%(jobs)s on %(cards)s", jobs=words, cards=word)


def _when(asked: Asked) -> str:
    if asked.period == "all":
        return gettext("in all that is on record")
    if asked.period:
        return gettext("in the last %(period)s", period=PERIODS[asked.period])
    return gettext("in the chosen period")
