"""What callers may ask of the broker. The socket client and FakeBroker both keep it."""

from collections.abc import Mapping
from datetime import datetime
from typing import Protocol

from gateway.wire import messages as m
from gateway.wire import policy as p
from gateway.wire import volumes as vol


class Broker(Protocol):
    """Each call raises BrokerRefused (a no), BrokerUnreachable (nothing happened) or
    BrokerSilent (unknown). Only a positive statement ends a job: no call returns an
    empty answer in place of an error."""

    def submit(self, request: m.SubmitRequest) -> m.AcceptedJob:
        """Submit as the person. A token that the queue knows already is answered with its job."""
        ...

    def find(self, token: str, *, user: str, since: datetime) -> m.AcceptedJob | None: ...

    def cancel(self, job_id: int, *, user: str) -> None: ...

    def cancel_array(self, array_job_id: int, *, user: str) -> None:
        """Every task of an array, those that run and those that wait. To `cancel` its id means
        the tasks that never started."""
        ...

    def hold(self, job_id: int, *, user: str) -> None: ...

    def release(self, job_id: int, *, user: str) -> None: ...

    def requeue(self, job_id: int, *, user: str) -> None: ...

    def set_time_limit(self, job_id: int, *, user: str, minutes: int) -> None: ...

    def extend(self, job_id: int, *, user: str, minutes: int) -> None:
        """Raise the limit of a running job of the portal's, by rights that its owner has not in
        Slurm: whether it may is the caller's to judge. At most the partition's maximum."""
        ...

    def queue(self) -> m.Queue: ...

    def nodes(self) -> tuple[m.Node, ...]: ...

    def partitions(self) -> tuple[m.Partition, ...]: ...

    def associations(self) -> tuple[m.Association, ...]: ...

    def qos(self) -> tuple[m.Qos, ...]: ...

    def estimate(self, request: m.SubmitRequest) -> m.Estimate: ...

    def accounting(self, *, since: datetime, until: datetime) -> m.Accounting: ...

    def read_file(self, path: str, *, user: str, offset: int, max_bytes: int) -> m.FileChunk: ...

    def check_folder(self, path: str, *, user: str) -> m.FolderState: ...

    def list_folder(self, path: str, *, user: str, most: int = m.MOST_ENTRIES) -> m.FolderList:
        """What stands in a folder, links not followed; refused as `read_file`, and with
        folder_not_a_folder."""
        ...

    def make_folder(self, path: str, files: Mapping[str, str], *, user: str) -> str:
        """A new folder with these files, whole or not at all; its real path. Refused as
        `broker.lay` says; BrokerSilent: it may be there."""
        ...

    def group_limits(self) -> tuple[m.GroupLimits, ...]: ...

    def set_group_limits(self, request: m.SetGroupLimits) -> m.GroupLimits:
        """What Slurm has after the write: compare it. Of several associations of a user, the
        first that differs from what was asked, if one does."""
        ...

    def hold_admin(self, job_id: int, *, user: str) -> None:
        """Hold a waiting job so that its owner `user` cannot release it. Refused with
        held_by_owner or held_by_admin when it is held already: that hold is not ours to lift."""
        ...

    def release_admin(self, job_id: int, *, user: str) -> None:
        """Lift such a hold; not_held_by_admin when there is none, also when its owner holds it."""
        ...

    def accounting_facts(self) -> m.AccountingFacts: ...

    def set_qos(self, request: p.SetQos) -> m.Qos:
        """Make a QoS, or change the fields that differ, in one write; what Slurm has afterwards."""
        ...

    def accounts(self) -> tuple[p.Account, ...]: ...

    def set_group_policy(self, request: p.SetGroupPolicy) -> p.Account: ...

    def set_shares(self, request: p.SetShares) -> tuple[p.Shares, ...]:
        """One write for each account that differs; compare what comes back."""
        ...

    def fair_shares(self) -> tuple[p.FairShare, ...]: ...

    def priorities(self) -> p.Priorities: ...

    def reservations(self) -> tuple[p.Reservation, ...]: ...

    def add_member(self, account: str, user: str) -> p.Membership:
        """Associations like those that the account's people have, on every partition."""
        ...

    def remove_member(self, account: str, user: str) -> p.Membership:
        """Refused with member_has_jobs while one is there, with member_default_account while the
        account is the person's default and they have others."""
        ...

    def set_member(self, request: p.SetMember) -> p.Membership: ...

    def volumes(self) -> vol.Volumes:
        """Every area with its volumes. What could not be read says so and has no figures."""
        ...

    def make_volume(self, request: vol.MakeVolume) -> vol.Volume:
        """There whole, with its limit and its group's rights, or not at all; as read back.
        Refused with volume_exists when something of the name is there."""
        ...

    def set_volume_limit(self, request: vol.SetVolumeLimit) -> vol.Volume:
        """What the file system has after the write: compare it. Below what is used, if that is
        meant, it refuses writes and deletes nothing. Refused with volume_changed_meanwhile,
        volume_below_use."""
        ...
