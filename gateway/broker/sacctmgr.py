"""Associations from `sacctmgr --parsable2`; a line with another number of columns is an error,
never left out."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from gateway.broker.commands import Commands, Output
from gateway.core.durations import Special, parse_slurm_duration
from gateway.core.qos import tres
from gateway.core.tres import GPU, parse_tres
from gateway.errors import BrokerRefused, BrokerSilent, BrokerUnreachable, GatewayError
from gateway.wire import messages as m

_ASSOC = (
    "User,Account,Partition,QOS,DefaultQOS,MaxJobs,MaxSubmit,MaxWall,MaxTRES,GrpTRES,"
    "MaxTRESPerNode,MaxTRESMins,ParentName"
)


@dataclass(frozen=True, slots=True)
class Sacctmgr:
    commands: Commands
    cluster: str

    def associations(self) -> m.Associations:
        """Those of people, with what the account lends them; accounts themselves left out."""
        rows = self._rows(
            ["show", "associations", f"cluster={self.cluster}", f"format={_ASSOC}"],
            columns=_ASSOC.count(",") + 1,
        )
        defaults = self._default_accounts()
        coordinators = self._coordinators()
        grants = {row[1]: parse_tres(row[9]).get(GPU) for row in rows if not row[0]}
        return m.Associations(
            tuple(
                _association(
                    row,
                    group_gpus=grants.get(row[1]),
                    is_default=defaults.get(row[0]) == row[1],
                    is_coordinator=row[0] in coordinators.get(row[1], ()),
                )
                for row in rows
                if row[0]
            )
        )

    def _default_accounts(self) -> dict[str, str]:
        words = ["show", "users", f"cluster={self.cluster}", "format=User,DefaultAccount"]
        return {row[0]: row[1] for row in self._rows(words, columns=2)}

    def _coordinators(self) -> dict[str, frozenset[str]]:
        words = ["show", "accounts", "withcoordinator", "format=Account,Coordinators"]
        rows = self._rows(words, columns=2)
        return {row[0]: frozenset(row[1].split(",")) for row in rows}

    def _rows(self, words: Sequence[str], *, columns: int) -> list[list[str]]:
        return show(self.commands, words, columns=columns)


def show(commands: Commands, words: Sequence[str], *, columns: int) -> list[list[str]]:
    """The lines of a `sacctmgr show`, or BrokerUnreachable; never fewer than it printed."""
    argv = ["sacctmgr", "--noheader", "--parsable2", "--readonly", *words]
    done = commands.run(argv)
    if done.status != 0:
        raise BrokerUnreachable(f"sacctmgr: {done.stderr.strip()[:500]}")
    text = done.stdout.decode("utf-8", "replace")
    rows = [line.split("|", columns - 1) for line in text.split("\n") if line]
    for row in rows:
        if len(row) != columns:
            raise BrokerUnreachable(f"sacctmgr printed a line of {len(row)} columns")
    return rows


def refusal(done: Output, codes: Iterable[tuple[str, str]]) -> GatewayError:
    """BrokerRefused with the code of the first text that sacctmgr printed; otherwise BrokerSilent,
    since it may have been done all the same."""
    printed = f"{done.stdout.decode('utf-8', 'replace')} {done.stderr}"
    said = " ".join(printed.split())[:500]
    for text, code in codes:
        if text in said:
            return BrokerRefused(said, code=code)
    return BrokerSilent(f"sacctmgr: {said}")


def names(text: str) -> tuple[str, ...]:
    """A list as Slurm's programs print it: by comma, empty for none."""
    return tuple(name for name in text.split(",") if name)


def seconds(text: str) -> int | None:
    """A duration as Slurm's programs print it; None for a word in its place."""
    duration = parse_slurm_duration(text)
    return None if isinstance(duration, Special) else int(duration)


def _association(
    row: Sequence[str], *, group_gpus: int | None, is_default: bool, is_coordinator: bool
) -> m.Association:
    return m.Association(
        user=row[0],
        account=row[1],
        partition=row[2] or None,
        qos=names(row[3]),
        default_qos=row[4] or None,
        is_default_account=is_default,
        is_coordinator=is_coordinator,
        max_jobs=_number(row[5]),
        max_submit_jobs=_number(row[6]),
        max_wall_minutes=_minutes(row[7]),
        max_gpus_per_job=parse_tres(row[8]).get(GPU),
        group_max_gpus=group_gpus,
        max_tres_per_job=tres(parse_tres(row[8])),
        max_tres_per_node=tres(parse_tres(row[10])),
        max_tres_minutes_per_job=tres(parse_tres(row[11])),
        grp_tres=tres(parse_tres(row[9])),
    )


def _number(text: str) -> int | None:
    return int(text) if text else None


def _minutes(text: str) -> int | None:
    found = seconds(text)
    return None if found is None else -(-found // 60)
