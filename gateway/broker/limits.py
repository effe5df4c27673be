"""Limits of accounts and of their members, read and written with sacctmgr.

sacctmgr may exit with 0 when a name matched nothing, and takes an empty condition as "all of
them": names are checked and must be known before a write, and every write is read back.
"""

import re
from collections.abc import Sequence
from dataclasses import dataclass

from gateway.broker.commands import Commands
from gateway.broker.sacctmgr import refusal, show
from gateway.core.tres import GPU, parse_tres
from gateway.errors import BrokerRefused, BrokerSilent, GatewayError
from gateway.wire import messages as m

_QOS_FORMAT = "Name,GrpSubmit,GrpTRESRunMins"
_FORMAT = "Account,User,Partition,GrpSubmit,MaxSubmit,GrpTRESRunMins"
# No comma, bracket or quote: sacctmgr reads each as several names.
_NAME = re.compile(r"[A-Za-z0-9_][A-Za-z0-9_.+-]{0,63}", re.ASCII)
_REFUSALS = (
    ("privilege", "limits_not_permitted"),
    ("permission denied", "limits_not_permitted"),
    ("no TRES known by type", "gpus_not_tracked"),
    ("Nothing modified", "no_such_association"),
)
_ROOT = "root"
_NO_LIMIT = -1
_MOST_JOBS = 2**31 - 1  # Slurm keeps 32 bits, and the last values mean something else
_MOST_MINUTES = 2**40


@dataclass(frozen=True, slots=True)
class Limits:
    commands: Commands
    cluster: str

    def read(self) -> m.GroupLimitsList:
        """Of every association of this cluster, accounts' own and users'."""
        words = ["show", "associations", f"cluster={self.cluster}", f"format={_FORMAT}"]
        rows = show(self.commands, words, columns=_FORMAT.count(",") + 1)
        return m.GroupLimitsList(tuple(_limits(row) for row in rows))

    def overriding_qos(self) -> tuple[str, ...]:
        """QoS with limits of these kinds: Slurm looks no further where a QoS says something."""
        rows = show(self.commands, ["show", "qos", f"format={_QOS_FORMAT}"], columns=3)
        return tuple(name for name, submit, minutes in rows if submit or GPU in parse_tres(minutes))

    def write(self, asked: m.SetGroupLimits) -> m.GroupLimits:
        """What Slurm has afterwards; nothing is sent when it has that already.

        BrokerSilent from the write on, for whatever is not known then.
        """
        check(asked, cluster=self.cluster)
        before = self._found(asked)
        words = _changes(asked, before)
        if not words:
            return before[0]
        done = self.commands.run([*self._modify(asked), *words], acts=True)
        if done.status != 0:
            raise refusal(done, _REFUSALS)
        try:
            return _furthest(asked, self._found(asked))
        except GatewayError as error:
            raise BrokerSilent(f"limits of {asked.account} were sent, then: {error}") from error

    def _found(self, asked: m.SetGroupLimits) -> tuple[m.GroupLimits, ...]:
        of_account = [one for one in self.read().limits if one.account == asked.account]
        if not of_account:
            raise BrokerRefused(asked.account, code="no_such_account")
        found = tuple(one for one in of_account if one.user == asked.user)
        if not found:
            raise BrokerRefused(f"{asked.user} in {asked.account}", code="no_such_association")
        return found

    def _modify(self, asked: m.SetGroupLimits) -> list[str]:
        where = [f"name={asked.account}"]
        if asked.user is not None:
            where = [f"name={asked.user}", f"account={asked.account}"]
        kind = "account" if asked.user is None else "user"
        where.append(f"cluster={self.cluster}")
        return ["sacctmgr", "--immediate", "modify", kind, "where", *where, "set"]


def check(asked: m.SetGroupLimits, *, cluster: str) -> None:
    """BrokerRefused for what must not come near a condition of sacctmgr."""
    _require(_NAME.fullmatch(asked.account), "bad_account")
    _require(asked.user is None or _NAME.fullmatch(asked.user), "bad_user")
    _require(_NAME.fullmatch(cluster), "bad_cluster")
    # Everything hangs below this one: its limits are the whole cluster's.
    _require(asked.account != _ROOT, "root_account_refused")
    for value, most in (
        (asked.grp_submit_jobs, _MOST_JOBS),
        (asked.grp_gpu_run_minutes, _MOST_MINUTES),
    ):
        _require(value is None or 0 <= value <= most, "bad_limit")


def _changes(asked: m.SetGroupLimits, found: Sequence[m.GroupLimits]) -> list[str]:
    """Only what differs: a resource that is not named keeps the limit that a person gave it."""
    words = []
    if any(one.grp_submit_jobs != asked.grp_submit_jobs for one in found):
        words.append(f"GrpSubmitJobs={_sent(asked.grp_submit_jobs)}")
    if any(one.grp_gpu_run_minutes != asked.grp_gpu_run_minutes for one in found):
        words.append(f"GrpTRESRunMins={GPU}={_sent(asked.grp_gpu_run_minutes)}")
    return words


def _sent(limit: int | None) -> int:
    return _NO_LIMIT if limit is None else limit


def _furthest(asked: m.SetGroupLimits, found: Sequence[m.GroupLimits]) -> m.GroupLimits:
    return next((one for one in found if _changes(asked, [one])), found[0])


def _limits(row: Sequence[str]) -> m.GroupLimits:
    account, user, partition, submit, most, run_minutes = row
    return m.GroupLimits(
        account=account,
        user=user or None,
        partition=partition or None,
        grp_submit_jobs=int(submit) if submit else None,
        max_submit_jobs=int(most) if most else None,
        grp_gpu_run_minutes=parse_tres(run_minutes).get(GPU),
        grp_run_minutes_text=run_minutes,
    )


def _require(fine: object, code: str) -> None:
    if not fine:
        raise BrokerRefused(code, code=code)
