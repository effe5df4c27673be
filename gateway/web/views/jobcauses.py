"""Where a job's wait went, on its page."""

from dataclasses import dataclass

from gateway.services import wait_causes
from gateway.web.deps import deps
from gateway.web.show import duration
from gateway.web.views.jobview import JobView
from gateway.web.wait_cause_texts import CAUSE_MEANINGS, CAUSE_WORDS, share_text


@dataclass(frozen=True, slots=True)
class CauseView:
    word: str
    meaning: str
    time: str
    share: str


def build(page: JobView) -> list[CauseView]:
    """The largest part first; none of a job that no poll saw wait."""
    have = deps()
    with have.read() as session:
        parts = wait_causes.of_job(session, page.job, now=have.clock())
    whole = sum(parts.values()) if parts else 0
    if not parts or not whole:
        return []
    ordered = sorted(parts.items(), key=lambda part: -part[1])
    return [
        CauseView(
            str(CAUSE_WORDS[cause]),
            str(CAUSE_MEANINGS[cause]),
            duration(seconds),
            share_text(seconds / whole),
        )
        for cause, seconds in ordered
        if seconds
    ]
