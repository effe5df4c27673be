"""Which processes of this job run on this node, and which of them are ranks: from /proc."""

from __future__ import annotations

import os
from dataclasses import dataclass
from pathlib import Path

PROC = Path("/proc")
# What has begun a moment ago may still become ours: slurmstepd before it changes its user, a
# launcher's child before it executes the rank. Looked at so often, it is a stranger for good.
LOOKS = 3


@dataclass
class _Stranger:
    """A process that is not of the job. Another inode: the number was given to a new one."""

    inode: int
    looks: int


class JobProcesses:
    """The job's processes on this node but this one and its parent, as of the last `look`.

    Most of a node's processes are not the job's: those are remembered and not read again.
    """

    def __init__(self, job: str, node: str = "", proc: Path = PROC) -> None:
        """`node`: as Slurm names it; where several of its nodes are one machine, only this one."""
        self.pids: set[int] = set()
        self.ranks: dict[int, int] = {}
        self._job = b"\0SLURM_JOB_ID=" + job.encode() + b"\0"
        self._node = node.encode()
        self._proc = proc
        self._strangers: dict[int, _Stranger] = {}
        self._ourselves = {os.getpid(), os.getppid()}

    def look(self) -> None:
        """Read /proc again: `pids` are the job's processes, `ranks` give LOCAL_RANK by pid."""
        self.pids, self.ranks = set(), {}
        strangers = {}
        with os.scandir(self._proc) as entries:
            for entry in entries:
                if not entry.name.isdigit() or int(entry.name) in self._ourselves:
                    continue
                pid, inode = int(entry.name), entry.inode()
                known = self._strangers.get(pid)
                if known is None or known.inode != inode:
                    known = _Stranger(inode, 0)
                if known.looks < LOOKS and self._is_ours(pid):
                    continue
                strangers[pid] = _Stranger(inode, known.looks + 1)
        self._strangers = strangers

    def local_ranks(self) -> set[int]:
        """The LOCAL_RANKs that are alive. A rank's own children have its variable too."""
        return set(self.ranks.values())

    def rank_heads(self) -> list[tuple[int, int]]:
        """LOCAL_RANK and pid of the ranks themselves, without the children that they started."""
        heads = [
            (rank, pid)
            for pid, rank in self.ranks.items()
            if self.ranks.get(_parent(self._proc, pid)) != rank
        ]
        return sorted(heads)

    def _is_ours(self, pid: int) -> bool:
        try:
            environment = b"\0" + (self._proc / str(pid) / "environ").read_bytes()
        except OSError:  # another's, or gone
            return False
        if self._job not in environment:  # also a zombie's, which is empty
            return False
        if self._node and _value(environment, b"SLURMD_NODENAME") not in (b"", self._node):
            return False
        self.pids.add(pid)
        number = _value(environment, b"LOCAL_RANK")
        if number.isdigit():
            self.ranks[pid] = int(number)
        return True


def _value(environment: bytes, name: bytes) -> bytes:
    return environment.partition(b"\0" + name + b"=")[2].partition(b"\0")[0]


def _parent(proc: Path, pid: int) -> int:
    try:
        stat = (proc / str(pid) / "stat").read_text(errors="replace")
    except OSError:
        return 0
    # the name before it may hold blanks and brackets
    return int(stat.rpartition(")")[2].split()[1])
