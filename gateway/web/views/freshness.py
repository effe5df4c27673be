"""How old what a page shows is: nobody should take the last look for now."""

from dataclasses import dataclass
from datetime import datetime

from markupsafe import Markup

from gateway.store.queries.health import PollRow
from gateway.web.show import ago, moment
from gateway.web.texts import gettext

LATE_SECONDS = 60.0


@dataclass(frozen=True, slots=True)
class Fresh:
    text: Markup | str
    late: bool


def fresh(poll: PollRow | None, now: datetime) -> Fresh:
    """As of when; and since when Slurm has been silent, where it has."""
    if poll is None or poll.succeeded_at is None:
        return Fresh(gettext("The portal has not heard from Slurm yet."), late=True)
    if is_late(poll, now):
        text = gettext("Slurm has not answered since %(when)s; this is how it was then.")
        return Fresh(_with(text, moment(poll.succeeded_at)), late=True)
    return Fresh(_with(gettext("as of %(when)s"), ago(poll.succeeded_at)), late=False)


def is_late(poll: PollRow, now: datetime) -> bool:
    """Older than three of its own intervals, or never."""
    if poll.succeeded_at is None:
        return True
    age = (now - poll.succeeded_at).total_seconds()
    return age > max(LATE_SECONDS, 3 * (poll.interval_seconds or 0))


def _with(text: str, when: Markup | str) -> Markup:
    before, _, after = text.partition("%(when)s")
    return Markup("{}{}{}").format(before, when, after)
