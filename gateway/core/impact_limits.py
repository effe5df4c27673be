"""Judge one number of a changed limit by the jobs that are there; see `impact_rules`."""

from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from datetime import datetime

from gateway.core import limit_rules as rules
from gateway.core.caps import KEYS, TOGETHER, Holder, Way
from gateway.core.impact import (
    ActiveJob,
    Affected,
    Doubt,
    Effect,
    FieldImpact,
    PastUsage,
    Site,
    Unknown,
)
from gateway.core.limit_rules import LimitChange
from gateway.core.policy_change import Item, Of
from gateway.core.qos import Scope
from gateway.core.reason_limits import word_of
from gateway.core.tres import GPU

_MINUTE, _MILLION = 60, 1_000_000
_TYPED = f"{GPU}:"


@dataclass(frozen=True, slots=True)
class Limit:
    """One number of a changed field. What each job asks of it is worked out once, at `of`."""

    item: Item
    number: LimitChange
    site: Site
    now: datetime
    of_qos: bool
    way: Way
    reason: str  # Slurm's, of who waits for it

    @classmethod
    def of(cls, item: Item, number: LimitChange, *, site: Site, now: datetime) -> "Limit":
        of_qos, key = item.of is Of.QOS, number.field.key
        reason = word_of(Holder.QOS if of_qos else Holder.GROUP, key, number.tres)
        return cls(item, number, site, now, of_qos, KEYS[key][0], reason)

    def judge(self, queue: Sequence[ActiveJob]) -> Iterator[FieldImpact | Unknown]:
        """`queue`: all open jobs in the order in which they would start."""
        mine = [job for job in queue if self._speaks_of(job)]
        sized = [(job, size) for job in mine if (size := self._size(job)) is not None]
        if len(sized) < len(mine) or not _is_counted(self.number.tres):
            yield self._unknown(Doubt.TRES)
        if not _is_counted(self.number.tres):
            return
        if self.way is Way.SPENT:
            found, doubt = self._by_usage(mine)
            yield from [doubt] if doubt else []
        elif self.way in TOGETHER:
            found = self._together(sized)
        else:
            found = [one for job, size in sized if (one := self._alone(job, size))]
        yield FieldImpact(
            self.item.of,
            self.item.name,
            self.number.field,
            self.number.tres,
            self.number.before,
            self.number.after,
            tuple(found),
        )

    def _speaks_of(self, job: ActiveJob) -> bool:
        if self.of_qos:
            return job.qos == self.item.name
        if job.group not in inside(self.site, self.item.name):
            return False
        if (job.group, job.user) in self.site.own.get((self.item.name, self._key), frozenset()):
            return False
        qos = self.site.qos.get(job.qos)
        return qos is None or not rules.goes_before(self._key, self.number.tres, qos)

    def _whose(self, job: ActiveJob) -> str | None:
        """Whose jobs are counted together with this one's."""
        scope = self.number.field.scope
        if scope is Scope.PERSON:
            return job.user if self.of_qos else f"{job.group}/{job.user}"
        if scope is Scope.GROUP:
            return job.group if self.of_qos else self.item.name
        return None

    def _size(self, job: ActiveJob) -> int | None:
        """What this job (one task of an array) adds to what is compared, now that it runs or
        when it starts; None: the job table does not say."""
        if self.way is Way.WALL:
            return job.time_limit_minutes
        amount = 1 if self.number.tres is None else amount_of(job, self.number.tres)
        if amount is None:
            return None
        match self.way:
            case Way.SHARED_MINUTES:
                return amount * self._minutes_left(job)
            case Way.MINUTES:
                used = self._minutes_run(job) if job.running else job.time_limit_minutes or 0
                return amount * used
            case Way.NODE:
                return -(-amount // max(1, job.nodes))
        return amount

    def _together(self, sized: Iterable[tuple[ActiveJob, int]]) -> list[Affected]:
        by_key: dict[str | None, list[tuple[ActiveJob, int]]] = defaultdict(list)
        for job, size in sized:
            by_key[self._whose(job)].append((job, size))
        return [found for key, jobs in by_key.items() for found in self._of_key(key, jobs)]

    def _of_key(self, key: str | None, jobs: list[tuple[ActiveJob, int]]) -> Iterator[Affected]:
        used = sum(size for job, size in jobs if job.running)
        after = self.number.after
        if _over(used, after) and not _over(used, self.number.before):
            for job, _ in jobs:
                if job.running:
                    yield Affected(Effect.ABOVE, job, None, key, used, after)
        before_queue, after_queue = _Queue(self.number.before, used), _Queue(after, used)
        for job, size in jobs:
            if job.running or job.blocked:
                continue
            was, will = before_queue.take(job, size), after_queue.take(job, size)
            if effect := self._moved(job, was, will):
                reason = None if effect is Effect.LET_GO else self.reason
                yield Affected(effect, job, reason, key, used + size, after)

    def _moved(self, job: ActiveJob, was: "Effect | None", will: "Effect | None") -> Effect | None:
        if will is None and _same(job.reason, self.reason):
            return Effect.LET_GO
        if will is was or will is None or was is Effect.WAITS:
            return None
        return will

    def _alone(self, job: ActiveJob, size: int) -> Affected | None:
        after = self.number.after
        was, will = self._breaks(size, self.number.before), self._breaks(size, after)
        if not will and not job.running and _same(job.reason, self.reason):
            return Affected(Effect.LET_GO, job, None, None, size, after)
        if self.way is Way.MINUTES and job.running and not will:
            # It goes on until its minutes reach the limit.
            limit = (amount_of(job, self.number.tres or "") or 0) * (job.time_limit_minutes or 0)
            was, will = self._breaks(limit, self.number.before), self._breaks(limit, after)
            if will and not was and self.site.ends_running is not False:
                return Affected(Effect.MAY_END, job, None, None, size, after)
            return None
        if was or not will:
            return None
        if not job.running:
            return Affected(Effect.WAITS, job, self.reason, None, size, after)
        effect = self._ending(sure=True) if self.way is Way.MINUTES else Effect.ABOVE
        return Affected(effect, job, None, None, size, after)

    def _ending(self, *, sure: bool) -> Effect:
        """With `safe` in AccountingStorageEnforce Slurm lets run what is above (seen)."""
        if self.site.ends_running is False:
            return Effect.ABOVE
        return Effect.ENDED if sure and self.site.ends_running else Effect.MAY_END

    def _breaks(self, size: int, limit: int | None) -> bool:
        if limit is None:
            return False
        return size < limit if self.way is Way.LEAST else size > limit

    def _by_usage(self, mine: list[ActiveJob]) -> tuple[list[Affected], Unknown | None]:
        """What reaches the limit by our count may have reached it by Slurm's, which decays. Where
        nothing decays, and at 0, it has."""
        before, after = self.number.before, self.number.after
        waiting = [job for job in mine if not job.running and not job.blocked]
        if after is None or (before is not None and after > before):
            kept = [job for job in waiting if _same(job.reason, self.reason)]
            if after is None:
                return [Affected(Effect.LET_GO, job, None, None, None, None) for job in kept], None
            return [], self._unknown(Doubt.USAGE, self._most_used(mine)) if kept else None
        most = self._most_used(mine)
        if most < after:
            return [], None
        sure = after == 0 or self.item.object in self.site.never_decays
        ending = self._ending(sure=sure)
        found = [Affected(ending, job, None, None, most, after) for job in mine if job.running]
        if not sure:
            return found, self._unknown(Doubt.USAGE, most)
        found += [Affected(Effect.WAITS, job, self.reason, None, most, after) for job in waiting]
        return found, None

    def _most_used(self, mine: list[ActiveJob]) -> int:
        past = self.site.usage.get(self.item.object, PastUsage())
        tres = self.number.tres
        running = [job for job in mine if job.running]
        if tres is None:
            return past.wall + sum(self._counted(job, 1) for job in running)
        return past.minutes.get(tres, 0) + sum(
            self._counted(job, amount_of(job, tres) or 0) for job in running
        )

    def _counted(self, job: ActiveJob, amount: int) -> int:
        """The usage of a running job so far, by the usage factor of its QoS."""
        qos = self.site.qos.get(job.qos)
        factor = qos.usage_factor_millionths if qos else _MILLION
        return amount * self._minutes_run(job) * factor // _MILLION

    @property
    def _key(self) -> str:
        return self.number.field.key

    def _minutes_run(self, job: ActiveJob) -> int:
        began = job.start_time or self.now
        return max(0, int((self.now - began).total_seconds())) // _MINUTE

    def _minutes_left(self, job: ActiveJob) -> int:
        left = job.time_limit_minutes or 0
        return max(0, left - self._minutes_run(job)) if job.running else left

    def _unknown(self, doubt: Doubt, most: int | None = None) -> Unknown:
        number = self.number
        name = (self.item.of, self.item.name, number.field, number.tres)
        return Unknown(*name, doubt, most, number.after)


@dataclass(slots=True)
class _Queue:
    """The pending jobs of a key under one limit, taken one after the other."""

    limit: int | None
    used: int
    ahead: int = 0

    def take(self, job: ActiveJob, size: int) -> Effect | None:
        """Whether it would wait for the limit; what would not is ahead of all that follow."""
        if _over(self.used + size, self.limit):
            return Effect.WAITS
        if _over(self.used + self.ahead + size * job.tasks, self.limit):
            return Effect.WAITS_LATER
        self.ahead += size * job.tasks
        return None


def amount_of(job: ActiveJob, tres: str) -> int | None:
    """How much of a resource the job holds or asks for; None: the job table does not say."""
    if tres.startswith(_TYPED):
        if job.gpus and job.gpu_type is None:
            return None
        return job.gpus if job.gpu_type == tres.removeprefix(_TYPED) else 0
    return {"cpu": job.cpus, "node": job.nodes, GPU: job.gpus}.get(tres)


def _is_counted(tres: str | None) -> bool:
    return tres in {None, "cpu", "node", GPU} or str(tres).startswith(_TYPED)


def _over(used: int, limit: int | None) -> bool:
    return limit is not None and used > limit


def _same(printed: str | None, reason: str) -> bool:
    """Slurm has two spellings of some words, and details behind others."""
    word = (printed or "").partition(",")[0].partition(" ")[0].strip("()")
    return word.casefold().removesuffix("limit") == reason.casefold().removesuffix("limit")


def inside(site: Site, group: str) -> frozenset[str]:
    """The groups whose jobs a group's limits speak of: it and those below it."""
    return site.inside.get(group, frozenset({group}))
