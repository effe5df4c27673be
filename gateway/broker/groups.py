"""Slurm's accounts: what policy says of each, read and written with sacctmgr.

What an account says itself, not what it inherits (`WOPLimits`): what is written is what
is read. An account without a list of its own has the QoS of the account above it.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

from gateway.broker import policy_words, sacctmgr
from gateway.broker.commands import Commands
from gateway.broker.qos import checked
from gateway.broker.slots import Slots
from gateway.core.qos import GROUP_FIELDS, Change, GroupPolicy, changes
from gateway.core.qos_checks import NAME
from gateway.errors import BrokerRefused, BrokerSilent, BrokerUnreachable, GatewayError
from gateway.wire import policy as p

_OWN = ",".join(["Account", "ParentName", *(field.column for field in GROUP_FIELDS)])
_OF_ACCOUNT = "Account,Coordinators,Organization,Description"  # what may hold a separator last
_ROOT = "root"
_FEW = 4  # accounts that are told one by one
_QOS, _SHARES = (next(f for f in GROUP_FIELDS if f.key == key) for key in ("qos", "shares"))


@dataclass(frozen=True, slots=True)
class Groups:
    """`alone` is the one slot of all who write policy."""

    commands: Commands
    cluster: str
    alone: Slots

    def read(self) -> p.Accounts:
        """Every account of this cluster but root."""
        own = self._show([_OWN, "WOPLimits"])
        shown = self._show(["Account,QOS"])
        usable = {row[0]: tuple(sorted(sacctmgr.names(row[1]))) for row in shown}
        facts = self._facts()
        return p.Accounts(
            tuple(_account(row, usable.get(row[0], ()), facts) for row in own if row[0] != _ROOT)
        )

    def write(self, asked: p.SetGroupPolicy) -> p.Account:
        """Change what differs, in one call; what Slurm has afterwards.

        BrokerRefused before the call or by it; BrokerSilent from the call on for what is unknown.
        """
        wanted = checked(asked.wanted, asked.expected)
        if asked.expected.name != wanted.name:
            raise BrokerRefused(wanted.name, code="policy_bad_name")
        self._require_cluster()
        with self.alone.taken():
            now = _found(self.read(), wanted.name)
            if now.policy != asked.expected:
                raise BrokerRefused(wanted.name, code="policy_changed_meanwhile")
            todo = changes(now.policy, wanted)
            if not todo:
                return now
            self._send(wanted.name, todo)
            return _found(self._read_back(wanted.name), wanted.name)

    def write_shares(self, asked: p.SetShares) -> p.SharesNow:
        """A few accounts that differ take a call each; many take one together. All are read back
        once.

        Of a few, an account that Slurm refuses stays as it was and the others are written; when it
        refuses every one, the first refusal is raised. Of many, all are refused or none.
        """
        check_shares(asked)
        self._require_cluster()
        with self.alone.taken():
            found = self.read()
            for one in asked.expected:
                if _found(found, one.account).policy.shares != one.shares:
                    raise BrokerRefused(one.account, code="policy_changed_meanwhile")
            todo = _differing(asked)
            if len(todo) > _FEW:
                self._load(found, [after for _, after in todo])
            else:
                self._each(todo)
            back = self._read_back("shares") if todo else found
        names = [one.account for one in asked.wanted]
        return p.SharesNow(tuple(_shares(_found(back, name)) for name in names))

    def _each(self, todo: Sequence[tuple[p.Shares, p.Shares]]) -> None:
        refusals = [no for before, after in todo if (no := self._try(before, after))]
        if refusals and len(refusals) == len(todo):
            raise refusals[0]

    def _load(self, found: p.Accounts, wanted: Sequence[p.Shares]) -> None:
        """By `sacctmgr load`: it sets what its file says and nothing else, and slurmctld reckons
        its tree anew once, not for each account (0.1 to 0.3 s with 5,000 people)."""
        text = policy_words.shares_file(
            self.cluster,
            [
                (_found(found, one.account).parent or _ROOT, one.account, one.shares)
                for one in wanted
            ],
        )
        argv = ["sacctmgr", "--immediate", "load", "file=/dev/stdin"]
        done = self.commands.run(argv, stdin=text, acts=True)
        if done.status != 0:
            raise policy_words.refusal(done, unmatched="no_such_account")

    def _try(self, before: p.Shares, after: p.Shares) -> BrokerRefused | None:
        try:
            self._send(after.account, [Change(_SHARES, before.shares, after.shares)])
        except BrokerRefused as error:
            return error
        return None

    def _send(self, name: str, todo: Sequence[Change]) -> None:
        where = ["modify", "account", "where", f"name={name}", f"cluster={self.cluster}", "set"]
        argv = ["sacctmgr", "--immediate", *where, *policy_words.words(todo)]
        done = self.commands.run(argv, acts=True)
        if done.status != 0:
            raise policy_words.refusal(done, unmatched="no_such_account")

    def _require_cluster(self) -> None:
        """sacctmgr takes an empty condition as "all of them"."""
        if not NAME.fullmatch(self.cluster):
            raise BrokerRefused(self.cluster, code="bad_cluster")

    def _read_back(self, what: str) -> p.Accounts:
        try:
            return self.read()
        except GatewayError as error:
            raise BrokerSilent(f"policy of {what} was sent, then: {error}") from error

    def _show(self, asked: Sequence[str]) -> list[list[str]]:
        columns, *options = asked
        where = ["where", f"cluster={self.cluster}", "user="]  # of accounts alone
        words = ["show", "associations", *where, *options, f"format={columns}"]
        return sacctmgr.show(self.commands, words, columns=columns.count(",") + 1)

    def _facts(self) -> dict[str, list[str]]:
        words = ["show", "accounts", "withcoordinator", f"format={_OF_ACCOUNT}"]
        return {row[0]: row[1:] for row in sacctmgr.show(self.commands, words, columns=4)}


def _account(
    row: Sequence[str], usable: tuple[str, ...], facts: Mapping[str, Sequence[str]]
) -> p.Account:
    try:
        found = {
            field.key: policy_words.parse(field.kind, text)
            for field, text in zip(GROUP_FIELDS, row[2:], strict=True)
        }
    except ValueError as error:
        raise BrokerUnreachable(f"sacctmgr printed of account {row[0]}: {error}") from error
    policy = GroupPolicy(name=row[0], **found)  # type: ignore[arg-type]
    if policy.qos:
        # sacctmgr prints `+x`, an addition to what is inherited, as if it were the list.
        policy = replace(policy, qos=usable)
    coordinators, organization, description = facts.get(row[0], ("", "", ""))
    return p.Account(
        policy=policy,
        parent=None if row[1] == _ROOT else row[1],
        description=description,
        organization=organization,
        coordinators=tuple(sorted(sacctmgr.names(coordinators))),
        usable_qos=usable,
    )


def check_shares(asked: p.SetShares) -> None:
    """BrokerRefused for lists that do not fit together, and names and numbers that are none."""
    names = [one.account for one in asked.wanted]
    if not 0 < len(names) <= p.MOST_SHARES or len(set(names)) != len(names):
        raise BrokerRefused(f"shares of {len(names)} accounts", code="policy_refused")
    if [one.account for one in asked.expected] != names:
        raise BrokerRefused("expected and wanted name others", code="policy_bad_name")
    for one in asked.wanted:
        checked(GroupPolicy(name=one.account, shares=one.shares), None)


def _differing(asked: p.SetShares) -> list[tuple[p.Shares, p.Shares]]:
    pairs = zip(asked.expected, asked.wanted, strict=True)
    return [(before, after) for before, after in pairs if before != after]


def _found(accounts: p.Accounts, name: str) -> p.Account:
    for one in accounts.accounts:
        if one.policy.name == name:
            return one
    raise BrokerRefused(name, code="no_such_account")


def _shares(account: p.Account) -> p.Shares:
    return p.Shares(account.policy.name, account.policy.shares)
