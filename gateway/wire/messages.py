"""The broker's language: one request and one reply class a verb.

Units are in the names. Times are aware UTC datetimes (epoch seconds on the wire). Absent
means "Slurm did not say", never zero.
"""

from dataclasses import dataclass
from datetime import datetime
from enum import Enum

from gateway.core.qos import Qos as Qos  # noqa: PLC0414  # a message like the others here
from gateway.core.qos import Tres


@dataclass(frozen=True, slots=True)
class SubmitRequest:
    """A job as structured fields: the API reads no #SBATCH line, so each one must be here.

    `token` goes into the job's comment and finds the job again after a time-out.
    `gpus_per_node` 0 means a job without GPUs. `output` may hold sbatch patterns such as %j.
    """

    token: str
    user: str
    name: str
    account: str
    partition: str
    qos: str
    nodes: int
    gpus_per_node: int
    cpus_per_task: int
    time_limit_minutes: int
    working_directory: str
    output: str
    script: str
    gpu_type: str | None = None
    memory_mb_per_node: int | None = None
    requeue: bool = True
    append_output: bool = True
    signal: str | None = None  # as sbatch takes it: B:USR1@120
    after_ok: int | None = None  # the job that must have ended well before this one may start
    array: str | None = None  # as sbatch takes it: 0-9%2; each task has the job's whole size
    on_nodes: str | None = None  # these and no others: names with commas between them


@dataclass(frozen=True, slots=True)
class AcceptedJob:
    """What Slurm says it accepted, read back right after the submit. Of an array `job_id` is the
    array's, all else one task's; `array_tasks` None: no array, or not counted."""

    job_id: int
    submit_time: datetime
    name: str
    account: str
    partition: str
    qos: str
    nodes: int
    gpus: int
    time_limit_minutes: int | None
    output: str | None
    array_tasks: int | None = None


@dataclass(frozen=True, slots=True)
class FindRequest:
    """Look for a token in the queue, then in accounting from `since` on."""

    token: str
    user: str
    since: datetime


@dataclass(frozen=True, slots=True)
class Found:
    """`job` is None only when both the queue and accounting answered and denied it."""

    job: AcceptedJob | None


@dataclass(frozen=True, slots=True)
class JobRequest:
    """Act on a job (cancel, hold, release, requeue); refused unless `user` owns it."""

    job_id: int
    user: str


@dataclass(frozen=True, slots=True)
class TimeLimitRequest:
    job_id: int
    user: str
    time_limit_minutes: int


@dataclass(frozen=True, slots=True)
class Done:
    """Slurm said yes."""

    ok: bool = True


@dataclass(frozen=True, slots=True)
class Nothing:
    """The body of verbs that take no argument."""


@dataclass(frozen=True, slots=True)
class QueueJob:
    """One job as slurmctld knows it now. `array_task` is None for jobs outside arrays;
    a pending array is one record whose `array_tasks` counts it (None: Slurm cut the text)."""

    job_id: int
    user: str
    uid: int
    name: str
    account: str
    partition: str
    qos: str
    state: str
    reason: str | None
    submit_time: datetime
    eligible_time: datetime | None
    start_time: datetime | None  # None until it has started
    end_time: datetime | None
    estimated_start: datetime | None
    time_limit_minutes: int | None  # None: no limit
    nodes: int
    cpus: int
    gpus: int
    gpu_type: str | None
    node_list: str | None
    priority: int | None
    restarts: int
    exit_code: int | None
    exit_signal: int | None
    working_directory: str
    output: str | None
    comment: str | None
    array_job_id: int | None = None
    array_task: int | None = None
    array_tasks: int | None = None
    req_gpu_type: str | None = None  # what was asked for; None: any type would do
    planned_nodes: str | None = None  # a hostlist: where backfill means to start it; it may change


@dataclass(frozen=True, slots=True)
class Queue:
    jobs: tuple[QueueJob, ...]
    taken_at: datetime


@dataclass(frozen=True, slots=True)
class Node:
    name: str
    state: str  # Slurm's words, flags joined by +: IDLE, MIXED, ALLOCATED+DRAIN, DOWN
    reason: str | None
    partitions: tuple[str, ...]
    cpus: int
    cpus_used: int
    memory_mb: int
    gpu_type: str | None
    gpus: int
    gpus_used: int
    address: str | None = None  # as Slurm reaches it: an address or a name (NodeAddr)


@dataclass(frozen=True, slots=True)
class Partition:
    name: str
    state: str
    is_default: bool
    nodes: int
    max_time_minutes: int | None  # None: no limit
    default_time_minutes: int | None
    max_nodes: int | None
    allow_accounts: tuple[str, ...]  # empty: all
    deny_accounts: tuple[str, ...]
    allow_qos: tuple[str, ...]  # empty: all
    deny_qos: tuple[str, ...]
    gpu_types: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Association:
    """Who may charge which account where. `partition` None: every partition."""

    user: str
    account: str
    partition: str | None
    qos: tuple[str, ...]  # effective list, with what is inherited from the account
    default_qos: str | None
    is_default_account: bool
    is_coordinator: bool
    max_jobs: int | None
    max_submit_jobs: int | None
    max_wall_minutes: int | None
    max_gpus_per_job: int | None
    group_max_gpus: int | None  # GrpTRES of the account
    max_tres_per_job: Tres = ()  # these three with what the account lends
    max_tres_per_node: Tres = ()
    max_tres_minutes_per_job: Tres = ()
    grp_tres: Tres = ()  # this person's own here, beside the account's


@dataclass(frozen=True, slots=True)
class GroupLimits:
    """What one association limits for itself and all below it. None: no limit of its own.

    `user` None: the account's own. None of these is compared with usage that decays.
    """

    account: str
    user: str | None
    partition: str | None  # None: every partition
    grp_submit_jobs: int | None
    max_submit_jobs: int | None  # of each user; Slurm shows a user what the account lends
    grp_gpu_run_minutes: int | None  # gres/gpu in GrpTRESRunMins
    grp_run_minutes_text: str  # GrpTRESRunMins whole, as Slurm prints it


@dataclass(frozen=True, slots=True)
class GroupLimitsList:
    limits: tuple[GroupLimits, ...]


@dataclass(frozen=True, slots=True)
class SetGroupLimits:
    """Both limits as they shall be, None: none. `user` None: the account's own association;
    a user's means all of that user in that account, one for each partition."""

    account: str
    user: str | None
    grp_submit_jobs: int | None
    grp_gpu_run_minutes: int | None


@dataclass(frozen=True, slots=True)
class AccountingFacts:
    """What this cluster counts and enforces: without it, charges or the gate mean nothing."""

    tracked: tuple[str, ...]  # AccountingStorageTRES, with Slurm's own
    enforced: tuple[str, ...]  # AccountingStorageEnforce, in small letters
    priority_decay_half_life_seconds: int | None  # None: usage does not decay
    # QoS with a GrpSubmitJobs or a GPU GrpTRESRunMins of their own: Slurm takes it in place of
    # the group's, so their jobs pass the gate.
    overriding_qos: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Nodes:
    nodes: tuple[Node, ...]


@dataclass(frozen=True, slots=True)
class Partitions:
    partitions: tuple[Partition, ...]


@dataclass(frozen=True, slots=True)
class Associations:
    associations: tuple[Association, ...]


@dataclass(frozen=True, slots=True)
class Estimate:
    """`sbatch --test-only` as the person. `start_time` None: Slurm gave no time."""

    start_time: datetime | None
    message: str


@dataclass(frozen=True, slots=True)
class AccountingRequest:
    """All runs that were around between the bounds (sacct's meaning), of every user."""

    since: datetime
    until: datetime


@dataclass(frozen=True, slots=True)
class RunRecord:
    """One row of `sacct --duplicates`: one run, or a job that never started."""

    job_id: int
    user: str
    uid: int | None
    name: str
    account: str
    partition: str
    qos: str | None
    state: str
    submit_time: datetime
    eligible_time: datetime | None
    start_time: datetime | None
    end_time: datetime | None
    elapsed_seconds: int
    suspended_seconds: int
    time_limit_minutes: int | None
    nodes: int
    cpus: int
    alloc_tres: str  # name=count pairs by comma, empty when nothing was allocated
    req_tres: str
    node_list: str | None
    exit_code: int | None
    exit_signal: int | None
    restarts: int
    reason: str | None
    working_directory: str
    comment: str | None
    array_job_id: int | None = None
    array_task: int | None = None
    cancelled_by: str | None = None  # the account that ended it, where accounting says so
    array_tasks: int | None = None  # how many that have not started the row stands for


@dataclass(frozen=True, slots=True)
class HeldRow:
    """A row that could not be understood: kept whole, with the reason."""

    raw: str
    reason: str


@dataclass(frozen=True, slots=True)
class Accounting:
    """`counted` is the number of rows of a second query of ids only; a difference from
    `runs` plus `held` is an alarm."""

    runs: tuple[RunRecord, ...]
    held: tuple[HeldRow, ...]
    counted: int


@dataclass(frozen=True, slots=True)
class ReadFileRequest:
    """Read a regular file as `user`. A negative `offset` counts from the end."""

    user: str
    path: str
    offset: int
    max_bytes: int


@dataclass(frozen=True, slots=True)
class FileChunk:
    """`text` is UTF-8 with what is not replaced; `next_offset` is where to read on."""

    text: str
    offset: int
    next_offset: int
    size: int


@dataclass(frozen=True, slots=True)
class CheckFolderRequest:
    """Ask, as `user`, whether a folder exists and can be entered (and written)."""

    user: str
    path: str


@dataclass(frozen=True, slots=True)
class FolderState:
    """`problem` is None or one of: missing, not_a_folder, not_permitted, outside."""

    path: str  # with links resolved
    problem: str | None
    writable: bool
    readable: bool = True  # whether its files can be listed; said where there is no problem


MOST_ENTRIES = 1000


class EntryKind(Enum):
    """What stands in a folder; a link is one, whatever it leads to."""

    FILE = "file"
    FOLDER = "folder"
    LINK = "link"
    OTHER = "other"


@dataclass(frozen=True, slots=True)
class ListFolderRequest:
    """List a folder as `user`: at most `most` entries, and never more than MOST_ENTRIES."""

    user: str
    path: str
    most: int = MOST_ENTRIES


@dataclass(frozen=True, slots=True)
class FolderEntry:
    """`size` in bytes. `exact` False: the name holds bytes that are no UTF-8, which are replaced,
    so that it cannot be asked for by it."""

    name: str
    kind: EntryKind
    size: int
    modified_at: datetime
    exact: bool = True


@dataclass(frozen=True, slots=True)
class FolderList:
    """Entries by name. `cut`: there are more, and which of them are here is by chance."""

    path: str  # with links resolved
    entries: tuple[FolderEntry, ...]
    cut: bool = False


@dataclass(frozen=True, slots=True)
class Failure:
    """The body of every refusal."""

    code: str
    message: str
    slurm_errno: int | None = None
