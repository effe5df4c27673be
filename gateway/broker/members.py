"""People of accounts: associations, coordinators and default accounts, written with sacctmgr.

Slurm takes any partition's name and any user's, and keeps a coordinator who has left: what it does
not look at is looked at here, and every write is read back.
"""

import re
from collections.abc import Sequence
from dataclasses import dataclass

from gateway.broker.commands import Commands
from gateway.broker.sacctmgr import refusal, show
from gateway.broker.slurm import Accounts
from gateway.core.qos_checks import NAME
from gateway.errors import BrokerRefused, BrokerSilent, GatewayError
from gateway.wire import policy as p

# Capital letters: a slurmdbd with PreserveCaseUser keeps them.
_USER = re.compile(r"[A-Za-z0-9_][A-Za-z0-9_.-]{0,63}", re.ASCII)
_ROOT = "root"
_EVERY_PARTITION = ""
_CLOSED, _OPEN = 0, -1
_KEEPS_CASE = "preservecaseuser"
_REFUSALS = (
    ("Job(s) active", "member_has_jobs"),
    ("default account of a user", "member_default_account"),
    ("privilege", "policy_not_permitted"),
    ("permission denied", "policy_not_permitted"),
    ("Nothing modified", "no_such_association"),
    ("Nothing deleted", "no_such_association"),
)


@dataclass(frozen=True, slots=True)
class Members:
    """`people` resolves Unix accounts, and refuses root and system accounts."""

    commands: Commands
    cluster: str
    people: Accounts

    def add(self, asked: p.MemberRequest) -> p.Membership:
        """Associations like those of the account's other people; nothing when they are there."""
        check(asked.account, asked.user, cluster=self.cluster)
        self.people(asked.user)
        self._require_letter_case(asked.user)
        rows = self._associations(asked.account)
        mine = {row.partition for row in rows if row.user == asked.user}
        others = {row.partition for row in rows if row.user not in ("", asked.user, _ROOT)}
        missing = _places(others) - mine
        # Who has one for all of them lacks none, whatever the others have.
        if _EVERY_PARTITION in mine or not missing:
            return self._membership(asked.account, asked.user)
        words = ["add", "user", f"name={asked.user}", f"account={asked.account}"]
        words.append(f"cluster={self.cluster}")
        if _EVERY_PARTITION not in missing:
            words.append(f"partition={','.join(sorted(missing))}")
        return self._written(asked.account, asked.user, [words])

    def remove(self, asked: p.MemberRequest) -> p.Membership:
        """All of the person's associations in the account, then that they lead it."""
        before = self._known(asked.account, asked.user)
        writes = []
        if before.partitions:
            where = [f"name={asked.user}", f"account={asked.account}", f"cluster={self.cluster}"]
            writes.append(["remove", "user", "where", *where])
        if before.is_coordinator:
            writes.append(_lead(asked.account, asked.user, leads=False))
        return self._written(asked.account, asked.user, writes)

    def set(self, asked: p.SetMember) -> p.Membership:
        """Only what differs is sent."""
        before = self._known(asked.account, asked.user)
        if not before.partitions:
            raise BrokerRefused(f"{asked.user} in {asked.account}", code="no_such_association")
        return self._written(asked.account, asked.user, self._changes(asked, before))

    def _changes(self, asked: p.SetMember, before: p.Membership) -> list[list[str]]:
        writes = []
        if asked.closed is not None and asked.closed != before.closed:
            where = [f"name={asked.user}", f"account={asked.account}", f"cluster={self.cluster}"]
            limit = f"MaxSubmitJobs={_CLOSED if asked.closed else _OPEN}"
            writes.append(["modify", "user", "where", *where, "set", limit])
        if asked.is_coordinator is not None and asked.is_coordinator != before.is_coordinator:
            leads = asked.is_coordinator
            writes.append(_lead(asked.account, asked.user, leads=leads))
        if asked.is_default and not before.is_default:
            where = [f"name={asked.user}", f"cluster={self.cluster}"]
            default = f"DefaultAccount={asked.account}"
            writes.append(["modify", "user", "where", *where, "set", default])
        return writes

    def _require_letter_case(self, user: str) -> None:
        """Slurm would make another person's name of it, and the right one would stay outside."""
        if user == user.lower():
            return
        words = ["show", "configuration"]
        rows = show(self.commands, words, columns=1)
        if not any(_KEEPS_CASE in row[0].lower() for row in rows):
            raise BrokerRefused(user, code="member_letter_case")

    def _known(self, account: str, user: str) -> p.Membership:
        check(account, user, cluster=self.cluster)
        found = self._membership(account, user)
        if not found.partitions and not found.is_coordinator:
            raise BrokerRefused(f"{user} in {account}", code="no_such_association")
        return found

    def _written(self, account: str, user: str, writes: Sequence[Sequence[str]]) -> p.Membership:
        """Send, then read back. BrokerSilent from the first write on, for what is not known or
        was refused half way."""
        for number, words in enumerate(writes):
            done = self.commands.run(["sacctmgr", "--immediate", *words], acts=True)
            if done.status != 0:
                error = refusal(done, _REFUSALS)
                raise error if number == 0 else BrokerSilent(f"half of it was done: {error}")
        try:
            return self._membership(account, user)
        except GatewayError as error:
            if not writes:
                raise
            raise BrokerSilent(f"{user} in {account} was sent, then: {error}") from error

    def _membership(self, account: str, user: str) -> p.Membership:
        mine = [row for row in self._associations(account) if row.user == user]
        return p.Membership(
            account=account,
            user=user,
            partitions=tuple(sorted(row.partition for row in mine)),
            is_coordinator=user in self._coordinators(account),
            is_default=bool(mine) and self._default_account(user) == account,
            closed=bool(mine) and all(row.submits == str(_CLOSED) for row in mine),
        )

    def _associations(self, account: str) -> list["_Row"]:
        """Of the account's own and of its people, with the limits that each has itself."""
        where = [f"cluster={self.cluster}", f"account={account}", "WOPLimits"]
        words = ["show", "associations", *where, "format=User,Account,Partition,MaxSubmit"]
        rows = [_Row(*row) for row in show(self.commands, words, columns=4)]
        # Of accounts below this one Slurm shows nothing here; what it adds one day stays out.
        found = [row for row in rows if row.account == account]
        if not found:
            raise BrokerRefused(account, code="no_such_account")
        return found

    def _coordinators(self, account: str) -> list[str]:
        where = [f"name={account}", "withcoordinator"]
        words = ["show", "accounts", *where, "format=Account,Coordinators"]
        rows = show(self.commands, words, columns=2)
        return [name for row in rows if row[0] == account for name in row[1].split(",")]

    def _default_account(self, user: str) -> str | None:
        where = [f"name={user}", f"cluster={self.cluster}"]
        words = ["show", "users", *where, "format=User,DefaultAccount"]
        rows = show(self.commands, words, columns=2)
        return next((row[1] for row in rows if row[0] == user), None)


@dataclass(frozen=True, slots=True)
class _Row:
    user: str  # "": the account's own
    account: str
    partition: str
    submits: str


def check(account: str, user: str, *, cluster: str) -> None:
    """BrokerRefused for what must not come near a condition of sacctmgr."""
    for fine, code in (
        (NAME.fullmatch(account), "bad_account"),
        (account != _ROOT, "root_account_refused"),
        (_USER.fullmatch(user), "bad_user"),
        (user != _ROOT, "root_refused"),
        (NAME.fullmatch(cluster), "bad_cluster"),
    ):
        if not fine:
            raise BrokerRefused(code, code=code)


def _places(others: set[str]) -> set[str]:
    """Partitions by name, or the one entry that stands for all of them."""
    return {_EVERY_PARTITION} if _EVERY_PARTITION in others or not others else others


def _lead(account: str, user: str, *, leads: bool) -> list[str]:
    if leads:
        return ["add", "coordinator", f"account={account}", f"names={user}"]
    return ["remove", "coordinator", "where", f"account={account}", f"names={user}"]
