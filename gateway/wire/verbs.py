"""The closed list of verbs: name, request, reply. Both ends read this table, nothing else."""

from dataclasses import dataclass
from typing import Generic, TypeVar

from gateway.wire import folders as f
from gateway.wire import messages as m
from gateway.wire import policy as p
from gateway.wire import volumes as vol

Req = TypeVar("Req")
Rep = TypeVar("Rep")


@dataclass(frozen=True, slots=True)
class Verb(Generic[Req, Rep]):
    """`acts` verbs change something and are logged before they are carried out."""

    name: str
    request: type[Req]
    reply: type[Rep]
    acts: bool = False


SUBMIT = Verb("submit", m.SubmitRequest, m.AcceptedJob, acts=True)
FIND = Verb("find", m.FindRequest, m.Found)
CANCEL = Verb("cancel", m.JobRequest, m.Done, acts=True)
CANCEL_ARRAY = Verb("cancel-array", m.JobRequest, m.Done, acts=True)
HOLD = Verb("hold", m.JobRequest, m.Done, acts=True)
RELEASE = Verb("release", m.JobRequest, m.Done, acts=True)
REQUEUE = Verb("requeue", m.JobRequest, m.Done, acts=True)
SET_TIME_LIMIT = Verb("set-time-limit", m.TimeLimitRequest, m.Done, acts=True)
EXTEND = Verb("extend", m.TimeLimitRequest, m.Done, acts=True)
QUEUE = Verb("queue", m.Nothing, m.Queue)
NODES = Verb("nodes", m.Nothing, m.Nodes)
PARTITIONS = Verb("partitions", m.Nothing, m.Partitions)
ASSOCIATIONS = Verb("associations", m.Nothing, m.Associations)
QOS = Verb("qos", m.Nothing, p.QosList)
ESTIMATE = Verb("estimate", m.SubmitRequest, m.Estimate)
ACCOUNTING = Verb("accounting", m.AccountingRequest, m.Accounting)
READ_FILE = Verb("read-file", m.ReadFileRequest, m.FileChunk)
CHECK_FOLDER = Verb("check-folder", m.CheckFolderRequest, m.FolderState)
LIST_FOLDER = Verb("list-folder", m.ListFolderRequest, m.FolderList)
MAKE_FOLDER = Verb("make-folder", f.MakeFolder, f.MadeFolder, acts=True)
GROUP_LIMITS = Verb("group-limits", m.Nothing, m.GroupLimitsList)
SET_GROUP_LIMITS = Verb("set-group-limits", m.SetGroupLimits, m.GroupLimits, acts=True)
HOLD_ADMIN = Verb("hold-admin", m.JobRequest, m.Done, acts=True)
RELEASE_ADMIN = Verb("release-admin", m.JobRequest, m.Done, acts=True)
ACCOUNTING_FACTS = Verb("accounting-facts", m.Nothing, m.AccountingFacts)
SET_QOS = Verb("set-qos", p.SetQos, m.Qos, acts=True)
ACCOUNTS = Verb("accounts", m.Nothing, p.Accounts)
SET_GROUP_POLICY = Verb("set-group-policy", p.SetGroupPolicy, p.Account, acts=True)
SET_SHARES = Verb("set-shares", p.SetShares, p.SharesNow, acts=True)
FAIR_SHARES = Verb("fair-shares", m.Nothing, p.FairShares)
PRIORITIES = Verb("priorities", m.Nothing, p.Priorities)
RESERVATIONS = Verb("reservations", m.Nothing, p.Reservations)
ADD_MEMBER = Verb("add-member", p.MemberRequest, p.Membership, acts=True)
REMOVE_MEMBER = Verb("remove-member", p.MemberRequest, p.Membership, acts=True)
SET_MEMBER = Verb("set-member", p.SetMember, p.Membership, acts=True)
VOLUMES = Verb("volumes", m.Nothing, vol.Volumes)
MAKE_VOLUME = Verb("make-volume", vol.MakeVolume, vol.Volume, acts=True)
SET_VOLUME_LIMIT = Verb("set-volume-limit", vol.SetVolumeLimit, vol.Volume, acts=True)

VERBS: dict[str, Verb[object, object]] = {
    verb.name: verb  # type: ignore[misc]
    for verb in (
        SUBMIT,
        FIND,
        CANCEL,
        CANCEL_ARRAY,
        HOLD,
        RELEASE,
        REQUEUE,
        SET_TIME_LIMIT,
        EXTEND,
        QUEUE,
        NODES,
        PARTITIONS,
        ASSOCIATIONS,
        QOS,
        ESTIMATE,
        ACCOUNTING,
        READ_FILE,
        CHECK_FOLDER,
        LIST_FOLDER,
        MAKE_FOLDER,
        GROUP_LIMITS,
        SET_GROUP_LIMITS,
        HOLD_ADMIN,
        RELEASE_ADMIN,
        ACCOUNTING_FACTS,
        SET_QOS,
        ACCOUNTS,
        SET_GROUP_POLICY,
        SET_SHARES,
        FAIR_SHARES,
        PRIORITIES,
        RESERVATIONS,
        ADD_MEMBER,
        REMOVE_MEMBER,
        SET_MEMBER,
        VOLUMES,
        MAKE_VOLUME,
        SET_VOLUME_LIMIT,
    )
}
