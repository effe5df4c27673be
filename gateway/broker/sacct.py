"""Accounting from `sacct --duplicates --json`: one row a run, structured so that no name or
comment can drop, shift or forge a field. pyslurm's own query loses the runs of requeued jobs."""

import json
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from gateway.broker.commands import Commands
from gateway.errors import BrokerUnreachable
from gateway.wire import messages as m
from gateway.wire.sacct_rows import Uids, read_row, row_key

_BASE = ("sacct", "--duplicates", "--allusers", "--allocations")
# By time alone sacct leaves out what never became eligible: a job cancelled while it was held.
_SELECTIONS: tuple[tuple[str, ...], ...] = ((), ("--state=CANCELLED,DEADLINE",))
_TRIES = 2


@dataclass(frozen=True, slots=True)
class Sacct:
    commands: Commands

    def window(self, since: datetime, until: datetime, user: str | None = None) -> m.Accounting:
        """All runs between the bounds; BrokerUnreachable unless sacct gave a full answer."""
        bounds = [f"--starttime={_stamp(since)}", f"--endtime={_stamp(until)}"]
        if user is not None:
            bounds.append(f"--user={user}")
        answer = self._once(bounds)
        for _ in range(_TRIES - 1):
            if answer.counted == len(answer.runs) + len(answer.held):
                break
            # A job that came between the two queries is no alarm: look again.
            answer = self._once(bounds)
        return answer

    def _once(self, bounds: Sequence[str]) -> m.Accounting:
        uids, counted = self._ids(bounds)
        rows = self._rows(bounds)
        read = [read_row(row, uids) for row in rows]
        return m.Accounting(
            runs=tuple(item for item in read if isinstance(item, m.RunRecord)),
            held=tuple(item for item in read if isinstance(item, m.HeldRow)),
            counted=counted,
        )

    def _rows(self, bounds: Sequence[str]) -> list[Any]:
        seen: dict[str, Any] = {}
        for selection in _SELECTIONS:
            raw = self._run([*_BASE, "--json", *bounds, *selection])
            for row in _jobs(raw):
                seen.setdefault(row_key(row), row)
        return list(seen.values())

    def _ids(self, bounds: Sequence[str]) -> tuple[Uids, int]:
        """Numeric columns only: here a user's text has no place to stand."""
        lines: set[bytes] = set()
        words = ["--noheader", "--parsable2", "--format=JobIDRaw,DBIndex,UID,Submit,Restarts"]
        for selection in _SELECTIONS:
            raw = self._run([*_BASE, *words, *bounds, *selection])
            lines.update(line for line in raw.splitlines() if line)
        uids: dict[tuple[int, int], int] = {}
        for line in lines:
            job_id, _, uid, submit, _ = line.split(b"|")
            if uid.isdigit() and submit.isdigit():
                uids[int(job_id), int(submit)] = int(uid)
        return uids, len(lines)

    def _run(self, argv: Sequence[str]) -> bytes:
        done = self.commands.run(argv, environment={"SLURM_TIME_FORMAT": "%s"})
        if done.status != 0:
            raise BrokerUnreachable(f"sacct: {done.stderr.strip()[:500]}")
        return done.stdout


def _jobs(raw: bytes) -> list[Any]:
    try:
        # Bytes that are no UTF-8 survive as lone surrogates until a field is read.
        answer = json.loads(raw.decode("utf-8", "surrogateescape"), strict=False)
    except ValueError as error:
        raise BrokerUnreachable(f"sacct gave no JSON: {error}") from error
    jobs = answer.get("jobs") if isinstance(answer, dict) else None
    if not isinstance(jobs, list) or answer.get("errors"):
        raise BrokerUnreachable("sacct gave no list of jobs")
    return jobs


def _stamp(time: datetime) -> str:
    # The commands run with TZ=UTC.
    return time.strftime("%Y-%m-%dT%H:%M:%S")
