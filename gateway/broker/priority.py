"""Who stands before whom: fair shares, factors of priority, reservations; read-only.

pyslurm ends the process where it reads reservations: scontrol's JSON is read instead.
"""

import json
import math
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any

from gateway.broker.commands import Commands
from gateway.broker.sacctmgr import names
from gateway.core.hostlist import expand
from gateway.errors import BrokerUnreachable
from gateway.wire import policy as p

_ROOT = "root"
_SHARES = "Account,User,Partition,RawShares,NormShares,RawUsage,EffectvUsage,FairShare,LevelFS"
# No name of a user, an account or a QoS holds it.
_BETWEEN = "\x1f"
_FACTORS = _BETWEEN.join(f"%{letter}" for letter in "iuornYSABFJPQNT")
_WEIGHTS = _BETWEEN.join(f"%{letter}" for letter in "ABFJPQT")
_OTHER_PLUGIN = "supported priority plugin"  # priority/basic: nobody has factors


@dataclass(frozen=True, slots=True)
class Priority:
    """What sshare, sprio and scontrol say. BrokerUnreachable for what cannot be read."""

    commands: Commands

    def fair_shares(self) -> p.FairShares:
        """Of every account but root and of each user in it. None without priority/multifactor."""
        argv = ["sshare", "--all", "--parsable2", "--noheader", f"--format={_SHARES}"]
        rows = self._rows(argv, "|", columns=_SHARES.count(",") + 1)
        try:
            return p.FairShares(tuple(_fair_share(row) for row in rows if row[0] != _ROOT))
        except ValueError as error:
            raise BrokerUnreachable(f"a column of sshare: {error}") from error

    def priorities(self) -> p.Priorities:
        """Of each job that waits for resources, once for each of its partitions; held jobs and
        those that are not eligible yet have none."""
        argv = ["sprio", "--noheader", f"--format={_FACTORS}"]
        rows = self._rows(argv, _BETWEEN, columns=_FACTORS.count("%"))
        try:
            return p.Priorities(self._weights(), tuple(_factors(row) for row in rows))
        except ValueError as error:
            raise BrokerUnreachable(f"a column of sprio: {error}") from error

    def reservations(self) -> p.Reservations:
        """Those that are, and those to come."""
        text = self._run(["scontrol", "--json", "show", "reservations"])
        try:
            found = json.loads(text)["reservations"]
            return p.Reservations(tuple(_reservation(one) for one in found))
        except (KeyError, TypeError, ValueError) as error:
            raise BrokerUnreachable(f"scontrol printed other JSON: {error!r}") from error

    def _weights(self) -> p.PriorityWeights:
        argv = ["sprio", "--weights", "--noheader", f"--format={_WEIGHTS}"]
        rows = self._rows(argv, _BETWEEN, columns=_WEIGHTS.count("%"))
        return _weights(rows[0]) if rows else p.PriorityWeights(0, 0, 0, 0, 0, 0, "")

    def _rows(self, argv: Sequence[str], between: str, *, columns: int) -> list[list[str]]:
        text = self._run(argv)
        rows = [[word.strip() for word in line.split(between)] for line in text.split("\n") if line]
        for row in rows:
            if len(row) != columns:
                raise BrokerUnreachable(f"{argv[0]} printed a line of {len(row)} columns")
        return rows

    def _run(self, argv: Sequence[str]) -> str:
        done = self.commands.run(argv)
        if done.status == 0:
            return done.stdout.decode("utf-8", "replace")
        if _OTHER_PLUGIN in done.stderr:
            return ""
        raise BrokerUnreachable(f"{argv[0]}: {done.stderr.strip()[:500]}")


def _fair_share(row: Sequence[str]) -> p.FairShare:
    account, user, partition, raw, norm, usage, effective, factor, level = row
    return p.FairShare(
        account=account,
        user=user or None,
        partition=partition or None,
        raw_shares=int(raw) if raw.isdecimal() else None,  # the other word is "parent"
        norm_shares=_fraction(norm) or 0.0,
        raw_usage=int(usage),
        effective_usage=_fraction(effective) or 0.0,
        fair_share=_fraction(factor),
        level=_fraction(level),
    )


def _fraction(text: str) -> float | None:
    """None for what is not printed, and for the infinite, which JSON cannot say."""
    number = float(text or "nan")
    return number if math.isfinite(number) else None


def _factors(row: Sequence[str]) -> p.PriorityFactors:
    job_id, user, account, partition, qos, *points, tres = row
    numbers = [int(point) for point in points]
    return p.PriorityFactors(
        job_id=int(job_id),
        user=user,
        account=account,
        partition=partition,
        qos=qos,
        priority=numbers[0],
        site=numbers[1],
        age=numbers[2],
        association=numbers[3],
        fair_share=numbers[4],
        job_size=numbers[5],
        of_partition=numbers[6],
        of_qos=numbers[7],
        nice=numbers[8],
        tres=_tres(tres),
    )


def _weights(row: Sequence[str]) -> p.PriorityWeights:
    age, association, fair_share, job_size, partition, qos = (int(word) for word in row[:6])
    return p.PriorityWeights(
        age, association, fair_share, job_size, partition, qos, tres=_tres(row[6])
    )


def _tres(text: str) -> str:
    return "" if text == "(null)" else text


def _reservation(found: dict[str, Any]) -> p.Reservation:
    nodes = expand(found["node_list"])
    if found["node_list"] and not nodes:
        raise ValueError("a list of nodes that cannot be read")
    return p.Reservation(
        name=str(found["name"]),
        start=datetime.fromtimestamp(found["start_time"]["number"], UTC),
        end=datetime.fromtimestamp(found["end_time"]["number"], UTC),
        nodes=tuple(nodes),
        partition=found["partition"] or None,
        flags=tuple(str(flag) for flag in found["flags"]),
        users=names(found["users"]),
        accounts=names(found["accounts"]),
    )
