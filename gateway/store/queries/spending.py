"""What a group's credit went on: by member, by day, by job. Refunds are taken off.

Windows are half open. Amounts are millionths; what was spent is a positive number.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from datetime import UTC, date, datetime, timedelta, tzinfo
from typing import Any

from sqlalchemy import BigInteger, Select, and_, case, cast, func, or_, select
from sqlalchemy.orm import Session

from gateway.store import money_models as mm
from gateway.store.models import Job, Run
from gateway.store.queries.statement import SPENDING

_QUARTER = 900  # seconds: every zone's midnight is a multiple of it
_MOST_JOBS = 400  # SQLite before 3.32 takes 999 values a statement, and the ids stand in it twice


@dataclass(frozen=True, slots=True)
class MemberSpend:
    """`charged` with its corrections, `refunded` with what was undone; `spent` is the rest."""

    user: str
    charged: int
    refunded: int
    runs: int
    card_seconds: int

    @property
    def spent(self) -> int:
        return self.charged - self.refunded


@dataclass(frozen=True, slots=True)
class DaySpend:
    """A day of the site's zone."""

    day: date
    spent: int


@dataclass(frozen=True, slots=True)
class JobCost:
    """A job with what its runs cost so far. `from_packages` is the part of `charged` that
    packages paid; `reviews` of its runs wait for a person, with `pending` as the estimate."""

    job_id: int
    cluster: str
    slurm_id: int
    array_job_id: int | None
    array_task: int | None
    name: str
    user: str
    group: str
    qos: str | None
    state: str
    runs: int
    charged: int
    refunded: int
    from_packages: int
    card_seconds: int
    reviews: int
    pending: int
    last_at: datetime

    @property
    def spent(self) -> int:
        return self.charged - self.refunded


def spent(session: Session, group: str, *, since: datetime, until: datetime) -> int:
    """Charges less refunds that were posted in the window."""
    query = select(func.coalesce(-func.sum(mm.Entry.amount), 0)).where(
        *_posted(group, since, until)
    )
    return int(session.scalar(query) or 0)


def by_member(
    session: Session, group: str, *, since: datetime, until: datetime
) -> list[MemberSpend]:
    """Who spent most comes first. Card-seconds and runs are of charges first posted then."""
    is_charge = mm.Entry.kind.in_(("charge", "correction"))
    query = (
        select(
            mm.Charge.user,
            -func.sum(case((is_charge, mm.Entry.amount), else_=0)),
            func.sum(case((is_charge, 0), else_=mm.Entry.amount)),
        )
        .join(mm.Charge, mm.Charge.id == mm.Entry.charge_id)
        .where(*_posted(group, since, until))
        .group_by(mm.Charge.user)
    )
    used = _used(session, group, since=since, until=until)
    amounts = {row[0]: (int(row[1]), int(row[2])) for row in session.execute(query)}
    found = [
        MemberSpend(user, *amounts.get(user, (0, 0)), *used.get(user, (0, 0)))
        for user in {*amounts, *used}
    ]
    return sorted(found, key=lambda row: (-row.spent, row.user))


def by_day(
    session: Session, group: str, *, since: datetime, until: datetime, zone: tzinfo
) -> list[DaySpend]:
    """Each day of the window in the site's zone, also those on which nothing was spent."""
    quarter = _quarter(session)
    query = (
        select(quarter, -func.sum(mm.Entry.amount))
        .where(*_posted(group, since, until))
        .group_by(quarter)
    )
    days = dict.fromkeys(_days(since, until, zone), 0)
    for number, amount in session.execute(query):
        at = datetime.fromtimestamp(int(number) * _QUARTER, UTC)
        day = max(at, since).astimezone(zone).date()
        days[day] = days.get(day, 0) + int(amount)
    return [DaySpend(day, amount) for day, amount in sorted(days.items())]


def jobs(
    session: Session,
    group: str,
    *,
    user: str | None = None,
    since: datetime | None = None,
    until: datetime | None = None,
    limit: int = 50,
) -> list[JobCost]:
    """The group's jobs with a charge or a run in review, the last charged first."""
    wanted = _Wanted(group, user, since, until)
    return _jobs(session, wanted, _newest(session, wanted, limit=min(limit, _MOST_JOBS)))


def of_job(session: Session, job_id: int) -> JobCost | None:
    """One job's costs; None when nothing was charged or is in review for it."""
    return next(iter(_jobs(session, _Wanted(), [job_id])), None)


@dataclass(frozen=True, slots=True)
class _Wanted:
    """Which charges count."""

    group: str | None = None
    user: str | None = None
    since: datetime | None = None
    until: datetime | None = None

    def where(self, *, leading: bool) -> list[Any]:
        """Conditions. Not `leading`: in a form that no index serves, since the jobs are known
        and their few runs shall lead, not all charges of the group."""
        charge = mm.Charge
        group, user, at = (
            column if leading else func.coalesce(column, column)
            for column in (charge.group, charge.user, charge.at)
        )
        given: list[tuple[Any, Any]] = [
            (self.group, lambda: group == self.group),
            (self.user, lambda: user == self.user),
            (self.since, lambda: at >= self.since),
            (self.until, lambda: at < self.until),
        ]
        return [condition() for value, condition in given if value is not None]


def _posted(group: str, since: datetime, until: datetime) -> tuple[Any, ...]:
    entry = mm.Entry
    return (entry.group == group, entry.at >= since, entry.at < until, entry.kind.in_(SPENDING))


def _used(
    session: Session, group: str, *, since: datetime, until: datetime
) -> dict[str, tuple[int, int]]:
    query = (
        select(mm.Charge.user, func.count(), func.sum(mm.Charge.card_seconds))
        .where(mm.Charge.group == group, mm.Charge.at >= since, mm.Charge.at < until)
        .where(mm.Charge.state == "posted")
        .group_by(mm.Charge.user)
    )
    return {row[0]: (row[1], int(row[2])) for row in session.execute(query)}


def _jobs(session: Session, wanted: _Wanted, job_ids: list[int]) -> list[JobCost]:
    """One row a job. Only the jobs of the answer are summed up: a group may have a million."""
    where = [*wanted.where(leading=False), Run.job_id.in_(job_ids)]
    cost = _sums(where).subquery().c
    query = (
        select(
            Job.id,
            Job.cluster,
            Job.slurm_id,
            Job.array_job_id,
            Job.array_task,
            Job.name,
            Job.user,
            Job.group,
            Job.qos,
            Job.state,
            cost.runs,
            cost.charged,
            cost.refunded,
            _from_packages(where, cost.job_id),
            cost.card_seconds,
            cost.reviews,
            cost.pending,
            cost.last_at,
        )
        .join(Job, Job.id == cost.job_id)
        .order_by(cost.last_at.desc(), Job.id.desc())
    )
    return [_job_cost(tuple(row)) for row in session.execute(query)]


def _newest(session: Session, wanted: _Wanted, *, limit: int) -> list[int]:
    """The jobs that were charged last, along the index of a group's charges."""
    found: dict[int, None] = {}
    query = (
        select(Run.job_id, mm.Charge.at, mm.Charge.id)
        .select_from(mm.Charge)
        .join(Run, Run.id == mm.Charge.run_id)
        .where(*wanted.where(leading=True))
        .order_by(mm.Charge.at.desc(), mm.Charge.id.desc())
        .limit(2 * limit)
    )
    page = session.execute(query).all()
    while page and len(found) < limit:
        found |= dict.fromkeys(row[0] for row in page)
        at, last = page[-1][1], page[-1][2]
        earlier = or_(mm.Charge.at < at, and_(mm.Charge.at == at, mm.Charge.id < last))
        page = session.execute(query.where(earlier)).all() if len(found) < limit else page
    return list(found)[:limit]


def _job_cost(row: tuple[Any, ...]) -> JobCost:
    values: list[Any] = [*row[:10], *(int(number) for number in row[10:17]), row[17]]
    return JobCost(*values)


def _sums(wanted: list[Any]) -> Select[Any]:
    charge = mm.Charge
    in_review = charge.state == "review"
    given = case((mm.Refund.undone_at.is_(None), mm.Refund.amount), else_=0)
    return (
        select(
            Run.job_id.label("job_id"),
            func.count().label("runs"),
            func.sum(charge.amount).label("charged"),
            func.coalesce(func.sum(given), 0).label("refunded"),
            func.sum(charge.card_seconds).label("card_seconds"),
            func.sum(case((in_review, 1), else_=0)).label("reviews"),
            func.sum(case((in_review, func.coalesce(charge.pending, 0)), else_=0)).label("pending"),
            func.max(charge.at).label("last_at"),
        )
        .select_from(charge)
        .join(Run, Run.id == charge.run_id)
        .outerjoin(mm.Refund, mm.Refund.charge_id == charge.id)
        .where(*wanted)
        .group_by(Run.job_id)
    )


def _from_packages(wanted: list[Any], job_id: Any) -> Any:
    return (
        select(func.coalesce(-func.sum(mm.Entry.amount), 0))
        .select_from(mm.Entry)
        .join(mm.Pot, mm.Pot.id == mm.Entry.pot_id)
        .join(mm.Charge, mm.Charge.id == mm.Entry.charge_id)
        .join(Run, Run.id == mm.Charge.run_id)
        .where(Run.job_id == job_id, mm.Pot.kind == "package", *wanted)
        .where(mm.Entry.kind.in_(("charge", "correction")))
        .scalar_subquery()
    )


def _quarter(session: Session) -> Any:
    """The quarter of an hour since 1970 in which a line was posted, in either dialect."""
    if session.get_bind().dialect.name == "sqlite":
        return cast(func.strftime("%s", mm.Entry.at), BigInteger) // _QUARTER
    return cast(func.floor(func.extract("epoch", mm.Entry.at) / _QUARTER), BigInteger)


def _days(since: datetime, until: datetime, zone: tzinfo) -> Iterator[date]:
    day = since.astimezone(zone).date()
    last = (until - timedelta(microseconds=1)).astimezone(zone).date()
    while day <= last:
        yield day
        day += timedelta(days=1)
