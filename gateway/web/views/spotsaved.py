"""What spot really saved, in words: money and time, honest where it cost more."""

from dataclasses import dataclass

from gateway.core.spot_saved import Saved
from gateway.services import spot
from gateway.store.queries.jobs import JobRow
from gateway.web.access import viewer
from gateway.web.deps import deps
from gateway.web.money import money_text
from gateway.web.show import duration
from gateway.web.texts import gettext, ngettext


@dataclass(frozen=True, slots=True)
class SavedView:
    """`elsewhere` None: a package paid, so there is nothing to compare."""

    head: str
    qos: str
    normal: str
    charged: int
    elsewhere: int | None
    lines: tuple[str, ...]


def build(job: JobRow) -> SavedView | None:
    """None for a job that did not run in spot, runs still, or waits for its charge."""
    have = deps()
    with have.read() as session:
        found = spot.saved(session, job, viewer=viewer(), now=have.clock())
    return _view(found) if found else None


def _view(found: Saved) -> SavedView:
    return SavedView(
        head=_head(found),
        qos=found.qos,
        normal=found.normal,
        charged=found.charged,
        elsewhere=found.elsewhere,
        lines=tuple(line for line in (_runs(found), _again(found)) if line),
    )


def _head(found: Saved) -> str:
    amount, later = found.money, duration(found.later)
    if amount is None:
        return gettext("A package paid, at its own price: there is no list price to compare with.")
    if amount < 0:
        words = gettext("Spot cost %(amount)s more than %(qos)s would have")
    elif found.again is None:
        words = gettext("Spot saved at most %(amount)s against %(qos)s")
    else:
        words = gettext("Spot saved %(amount)s against %(qos)s")
    words %= {"amount": money_text(abs(amount)), "qos": found.normal}
    if not found.later:
        return gettext("%(words)s, and was done no later.", words=words)
    if found.again is None:
        return gettext("%(words)s, and was done at least %(time)s later.", words=words, time=later)
    return gettext("%(words)s, and was done %(time)s later.", words=words, time=later)


def _runs(found: Saved) -> str:
    if not found.preempted:
        return gettext("It was not preempted.")
    return ngettext(
        "Preempted %(num)d time in %(runs)s runs; it waited %(time)s to run again.",
        "Preempted %(num)d times in %(runs)s runs; it waited %(time)s to run again.",
        found.preempted,
        runs=found.runs,
        time=duration(found.waited),
    )


def _again(found: Saved) -> str:
    if not found.preempted:
        return ""
    if found.again is None:
        return gettext(
            "How much it did again nobody measured: its script tells no steps. On the other QoS "
            "that work would not have been needed, so the comparison is the best case for spot."
        )
    return gettext(
        "It spent %(time)s on starting again and on steps that it had made before; on the other "
        "QoS that would not have been charged.",
        time=duration(found.again),
    )
