"""Submit, and deliver at once where Slurm answers: the form and the API share this path."""

from dataclasses import dataclass
from datetime import datetime

import structlog
from flask import url_for

from gateway.core import smoke as smoke_rules
from gateway.core.ask import Ask
from gateway.errors import BrokerRefused, BrokerSilent, BrokerUnreachable, Refused
from gateway.services import deliver, smoke, submit
from gateway.services import estimate as estimates
from gateway.store.queries import job as reads
from gateway.store.queries.job import SubmissionDetail
from gateway.web import offering, startseen
from gateway.web.access import viewer
from gateway.web.deps import deps
from gateway.web.messages import error_sentence
from gateway.web.texts import gettext

log = structlog.get_logger(__name__)


@dataclass(frozen=True, slots=True)
class Sent:
    """A submission as it stands after the attempt; with its job as soon as there is one."""

    now: SubmissionDetail

    @property
    def url(self) -> str:
        row = self.now.row
        if row.job_id is not None:
            return url_for("jobs.show", job_id=row.job_id)
        return url_for("submissions.show", submission_id=row.id)


@dataclass(frozen=True, slots=True)
class Told:
    """An estimate, or why there is none."""

    at: datetime | None
    text: str
    seen: str = ""  # the same for the form to carry to the submit


def send(ask: Ask, form_key: str, *, slurm_seen: str = "") -> Sent:
    """Keep it, and try to deliver it at once, with what was forecast for it; `slurm_seen` is
    Slurm's estimate as the form carried it. Raises InvalidAsk; what Slurm says stays with the
    submission, which is kept whatever happens now."""
    told = startseen.told(ask, slurm_seen)
    submission_id = _submit(ask, form_key)
    startseen.keep(submission_id, told)
    found = detail(submission_id)
    assert found is not None  # it was kept a moment ago
    return Sent(found)


def send_smoke(ask: Ask, form_key: str, *, previous: int | None, then_long: bool) -> int:
    """Send the form's smoke job, and with `then_long` the form's own job after it: the smoke
    job's submission. Raises InvalidAsk; then the smoke job may have been sent already."""
    have = deps()
    key = smoke_rules.key(form_key, ask, previous=previous)
    smoke_id = _submit(ask, key, smoke_on=have.settings.smoke_partition)
    if then_long:
        long_id = _submit(ask, form_key, after=smoke_id)
        smoke.release(begin=have.begin, read=have.read, now=have.clock())
        deliver.deliver(long_id, begin=have.begin, broker=have.broker, now=have.clock())
    return smoke_id


def _submit(
    ask: Ask, form_key: str, *, smoke_on: str | None = None, after: int | None = None
) -> int:
    have = deps()
    return submit.submit(
        ask,
        form_key=form_key,
        viewer=viewer(),
        begin=have.begin,
        read=have.read,
        broker=have.broker,
        catalogue=have.catalogue,
        environments=offering.environments(),
        now=have.clock(),
        cluster=have.settings.cluster_name,
        zone=have.settings.timezone,
        smoke_on=smoke_on,
        after=after,
    )


def detail(submission_id: int) -> SubmissionDetail | None:
    with deps().read() as session:
        return reads.submission(session, submission_id)


def estimate(ask: Ask) -> Told:
    """Slurm's estimate; a refusal is told in words, since it would meet the submit as well."""
    have = deps()
    try:
        found = estimates.estimate(
            ask,
            viewer=viewer(),
            begin=have.read,
            broker=have.broker,
            catalogue=have.catalogue,
            environments=offering.environments(),
        )
    except submit.InvalidAsk:
        return Told(None, gettext("Some fields need another value first."))
    except (Refused, BrokerRefused, BrokerUnreachable, BrokerSilent) as error:
        log.warning("no_estimate", code=error.code, text=str(error)[:500])
        return Told(None, error_sentence(error))
    if found.start_time is None:
        return Told(None, gettext("Slurm gives no estimate for this job."))
    return Told(found.start_time, "", startseen.sealed(ask, found.start_time))
