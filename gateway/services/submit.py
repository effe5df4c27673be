"""Press Submit: judge, look at the folder, keep the submission, and try to deliver it once.

The submission is stored before Slurm is called, with the token that finds its job again. A form
posted twice is one submission, whichever process meets it.
"""

import secrets
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import asdict, dataclass, replace
from datetime import UTC, datetime, tzinfo
from typing import TYPE_CHECKING

from gateway.brokerclient.port import Broker
from gateway.core import quoting, smoke
from gateway.core.access import Permission, Viewer
from gateway.core.ask import Ask, FieldProblem
from gateway.core.months import month_start
from gateway.core.offer import Offer
from gateway.core.pricing import NoPrice
from gateway.core.quoting import Shape
from gateway.errors import BrokerSilent, BrokerUnreachable, Busy, NotFound, Refused
from gateway.services import budgets, dataset_look, deliver, hold, quote, recipe_parts
from gateway.services.draft import Draft, InvalidAsk, draft, in_folder
from gateway.services.environments import Environment
from gateway.services.offer import offer_in
from gateway.services.templates import Catalogue
from gateway.store import datasets, events, prices, submissions
from gateway.store.uow import Begin
from gateway.wire import codec

if TYPE_CHECKING:
    from sqlalchemy.orm import Session

__all__ = ["InvalidAsk", "ask_of", "ask_of_job", "submit"]

_LONGEST_KEY = 64


def submit(
    ask: Ask,
    *,
    form_key: str,
    viewer: Viewer,
    begin: Begin,
    read: Begin,
    broker: Broker,
    catalogue: Catalogue,
    environments: Sequence[Environment],
    now: datetime,
    cluster: str = "cluster",
    zone: tzinfo = UTC,
    smoke_on: str | None = None,
    after: int | None = None,
    on_nodes: str | None = None,
) -> int:
    """The submission's id, the same one for the same `form_key`. `read` is a begin that only
    reads: judging a form must not wait for somebody who writes. Where the site has prices, the
    worst case is held in the transaction that keeps the submission; `zone` says when a member's
    month begins. With `smoke_on`, a partition or empty, the form's smoke job is sent in its
    place; with `after`, a smoke job's submission, it is sent once that has a job, to start when
    that has ended well (services.smoke); with `on_nodes`, names with commas between them, it runs
    there and nowhere else.

    Raises InvalidAsk with problems at fields, Refused, BrokerRefused when the broker will not
    look at this person's folder, or Busy when nothing could be kept. A broker that is away is
    no error: the submission waits in the outbox and its state says so.
    """
    if not 0 < len(form_key) <= _LONGEST_KEY or not viewer.may(Permission.SUBMIT_JOB):
        raise Refused("bad_request")
    with read() as session:
        first = submissions.by_form_key(session, person_id=viewer.person_id, form_key=form_key)
        if first is not None:
            return first
        offer = offer_in(session, viewer)
    made = _drafted(
        ask,
        smoke_on,
        viewer=viewer,
        offer=offer,
        catalogue=catalogue,
        environments=environments,
    )
    made = _looked_at(_pinned(made, on_nodes), viewer=viewer, broker=broker)
    dataset_look.require(made.datasets, viewer=viewer, broker=broker)
    new = _new(ask, made, form_key=form_key, viewer=viewer, cluster=cluster)
    new = replace(new, purpose=None if smoke_on is None else smoke.PURPOSE, after_id=after)
    wanted = _Hold(
        quote.shape_of(made.reading, offer), new.request["account"], viewer.unix_user, zone
    )
    submission_id, claimed = _keep(new, wanted, made, begin=begin, now=now)
    if claimed is not None:
        # Busy after this point costs nothing: the outbox finds the job by its token.
        with suppress(Busy):
            deliver.carry_out(claimed, begin=begin, broker=broker, now=now)
    return submission_id


def _drafted(
    ask: Ask,
    smoke_on: str | None,
    *,
    viewer: Viewer,
    offer: Offer,
    catalogue: Catalogue,
    environments: Sequence[Environment],
) -> Draft:
    """The form's job, or its smoke job. Raises InvalidAsk where the form itself cannot work."""
    made = draft(ask, viewer=viewer, offer=offer, catalogue=catalogue, environments=environments)
    if smoke_on is None:
        return made
    if made.problems:
        raise InvalidAsk(made.problems)
    return draft(
        smoke.trial(ask, made.reading, offer, partition=smoke_on),
        viewer=viewer,
        offer=offer,
        catalogue=catalogue,
        environments=environments,
        smoke=True,
    )


def _pinned(made: Draft, on_nodes: str | None) -> Draft:
    if made.request is None or on_nodes is None:
        return made
    request = replace(made.request, on_nodes=on_nodes)
    return in_folder(replace(made, request=request), request.working_directory)


@dataclass(frozen=True, slots=True)
class _Hold:
    """What is to be held for the submission."""

    shape: Shape | None
    group: str
    user: str
    zone: tzinfo

    def place(self, session: "Session", submission_id: int, *, now: datetime) -> None:
        """Raises InvalidAsk when the group cannot pay, or a budget of it stands against the job.
        Nothing where the site has no prices."""
        price_list = prices.load(session)
        if not price_list.is_on(now) or self.shape is None:
            return
        task = quoting.price(self.shape, seconds=self.shape.minutes * 60, at=now, prices=price_list)
        if isinstance(task, NoPrice):
            raise InvalidAsk((quote.no_price(task),))
        worst = quoting.times(task, self.shape.tasks)
        try:
            budgets.check(session, self.group, worst.total, now)
            hold.place(
                session,
                worst,
                submission_id=submission_id,
                group=self.group,
                user=self.user,
                tasks=self.shape.tasks,
                month_began=month_start(now, self.zone),
                now=now,
            )
        except Refused as no:  # ShortOfCredit, or a budget
            raise InvalidAsk((FieldProblem("group", no.code, dict(no.facts)),)) from no


def _keep(
    new: submissions.NewSubmission,
    wanted: _Hold,
    made: Draft,
    *,
    begin: Begin,
    now: datetime,
) -> tuple[int, deliver.Claimed | None]:
    """Store it with its hold and claim the first attempt at once; no claim when it was there
    already. A group that cannot pay leaves nothing behind."""
    with begin() as session:
        submission_id, is_new = submissions.add(session, new, now=now)
        if not is_new:
            return submission_id, None
        wanted.place(session, submission_id, now=now)
        datasets.add_uses(session, submission_id, [v.version_id for v in made.datasets.versions])
        if made.template is not None:
            recipe_parts.note(session, submission_id, made.template, made.environment)
        events.add(
            session,
            "submitted",
            at=now,
            submission_id=submission_id,
            person_id=new.person_id,
        )
        return submission_id, deliver.claim(session, submission_id, now=now)


def ask_of(submission_id: int, *, viewer: Viewer, begin: Begin) -> Ask:
    """One's own earlier values, as typed, for "resubmit with changes"."""
    with begin() as session:
        row = submissions.get(session, submission_id)
    return _own_ask(row, viewer)


def ask_of_job(job_id: int, *, viewer: Viewer, begin: Begin) -> Ask:
    """The same, from the job's page. NotFound for jobs that the portal did not make."""
    with begin() as session:
        row = submissions.of_job(session, job_id)
    return _own_ask(row, viewer)


def _own_ask(row: submissions.SubmissionRow | None, viewer: Viewer) -> Ask:
    if row is None or row.person_id != viewer.person_id:
        raise NotFound("submission")
    return codec.parse(Ask, row.ask)


def _looked_at(made: Draft, *, viewer: Viewer, broker: Broker) -> Draft:
    """The draft in the folder as the broker sees it, or InvalidAsk."""
    if made.request is None or made.problems:
        raise InvalidAsk(made.problems)
    typed = made.reading.working_directory or ""
    try:
        state = broker.check_folder(typed, user=viewer.unix_user)
    except (BrokerUnreachable, BrokerSilent):
        return made  # the broker looks again when it submits
    problem = state.problem or (None if state.writable else "not_permitted")
    if problem is not None:
        raise InvalidAsk((FieldProblem("working_directory", f"folder_{problem}"),))
    folder = made.request.working_directory
    if typed.startswith("~") and not _is_same(folder, state.path, viewer=viewer, broker=broker):
        folder = state.path
    found = in_folder(made, folder)
    if found.problems:
        raise InvalidAsk(found.problems)
    return found


def _is_same(folder: str, real: str, *, viewer: Viewer, broker: Broker) -> bool:
    """A path is kept as people write it: where links lead may be another place on the nodes."""
    if folder == real:
        return True
    try:
        return broker.check_folder(folder, user=viewer.unix_user).path == real
    except (BrokerUnreachable, BrokerSilent):
        return False


def _new(
    ask: Ask, made: Draft, *, form_key: str, viewer: Viewer, cluster: str
) -> submissions.NewSubmission:
    assert made.request is not None
    token = secrets.token_hex(16)
    request = codec.dump(replace(made.request, token=token, script=""))
    del request["script"]
    return submissions.NewSubmission(
        token=token,
        form_key=form_key,
        person_id=viewer.person_id,
        cluster=cluster,
        template=ask.template,
        ask=asdict(ask),
        request=request,
        script=made.request.script,
        run=_run(made),
    )


def _run(made: Draft) -> str | None:
    """The name of the run folder, where the template asks for one and it was typed."""
    found = made.reading.values.get("run_name")
    return found or None if isinstance(found, str) else None
