"""The broker's promises, as tests that run on FakeBroker and on the real broker alike.

A subclass gives the fixture `site` (a `ContractSite`).
"""

import re
from datetime import timedelta

from gateway.testing.contract_folders import MakeFolderContract
from gateway.testing.contract_gate import GateContract
from gateway.testing.contract_jobs import (
    AccountingContract,
    ActContract,
    AfterContract,
    SubmitContract,
)
from gateway.testing.contract_members import MemberContract, PriorityContract
from gateway.testing.contract_policy import PolicyContract
from gateway.testing.contract_steps import (
    Cast,
    ContractSite,
    Steps,
    find_job,
    refused,
    request,
    state_of,
    wide,
)
from gateway.testing.contract_volumes import VolumeContract
from gateway.wire import messages as m

__all__ = [
    "BrokerContract",
    "Cast",
    "ContractSite",
    "Steps",
    "find_job",
    "refused",
    "request",
    "state_of",
    "wide",
]


class FileContract(Steps):
    """Files, as their owner."""

    def test_a_file_is_read_and_followed(self, site: ContractSite) -> None:
        user, path = site.cast.user, f"/home/{site.cast.user}/follow.txt"
        site.write(path, user, "one\n两\n")
        first = site.broker.read_file(path, user=user, offset=0, max_bytes=6)
        # The third line's character is cut after two of its three bytes: left for later.
        assert (first.text, first.next_offset, first.size) == ("one\n", 4, 8)
        rest = site.broker.read_file(path, user=user, offset=4, max_bytes=100)
        assert (rest.text, rest.next_offset) == ("两\n", 8)
        end = site.broker.read_file(path, user=user, offset=8, max_bytes=100)
        assert (end.text, end.next_offset) == ("", 8)
        tail = site.broker.read_file(path, user=user, offset=-1, max_bytes=100)
        assert (tail.text, tail.offset) == ("\n", 7)

    def test_what_is_not_the_persons_is_not_read(self, site: ContractSite) -> None:
        user, other = site.cast.user, site.cast.other
        site.write(f"/home/{other}/secret", other, "secret")
        site.link(f"/home/{user}/to-shadow", user, "/etc/shadow")
        site.link(f"/home/{user}/to-secret", user, f"/home/{other}/secret")
        for code, path in (
            ("file_outside", "/etc/shadow"),
            ("file_outside", f"/home/{user}/to-shadow"),
            ("file_not_permitted", f"/home/{other}/secret"),
            ("file_not_permitted", f"/home/{user}/to-secret"),
            ("file_missing", f"/home/{user}/nosuch"),
            ("file_missing", "relative"),
            ("file_not_regular", f"/home/{user}"),
        ):
            with refused(code):
                site.broker.read_file(path, user=user, offset=0, max_bytes=100)

    def test_a_fifo_does_not_hang_the_reader(self, site: ContractSite) -> None:
        path = f"/home/{site.cast.user}/fifo"
        site.fifo(path, site.cast.user)
        with refused("file_not_regular"):
            site.broker.read_file(path, user=site.cast.user, offset=0, max_bytes=100)

    def test_a_folder_is_judged_with_the_persons_rights(self, site: ContractSite) -> None:
        user = site.cast.user
        own = site.broker.check_folder(f"/home/{user}", user=user)
        assert site.broker.check_folder("~", user=user) == own
        assert (own.problem, own.writable) == (None, True)
        site.write(f"/home/{user}/plain", user, "")
        site.link(f"/home/{user}/to-etc", user, "/etc")
        for problem, path in (
            ("missing", f"/home/{user}/nosuch"),
            ("not_a_folder", f"/home/{user}/plain"),
            ("not_permitted", f"/home/{site.cast.other}"),
            ("outside", "/etc"),
            ("outside", f"/home/{user}/to-etc"),
        ):
            found = site.broker.check_folder(path, user=user)
            assert (found.problem, found.writable) == (problem, False), path


class FolderContract(Steps):
    """What stands in a folder, as the owner sees it."""

    def test_a_folder_is_listed_without_following_links(self, site: ContractSite) -> None:
        user = site.cast.user
        home = f"/home/{user}"
        site.write(f"{home}/一-list.txt", user, "two\n")
        site.link(f"{home}/list-link", user, "/etc")
        site.fifo(f"{home}/list-fifo", user)
        found = site.broker.list_folder(home, user=user)
        kinds = {one.name: (one.kind, one.size, one.exact) for one in found.entries}
        assert kinds["一-list.txt"] == (m.EntryKind.FILE, 4, True)
        assert kinds["list-link"] == (m.EntryKind.LINK, 0, True)
        assert kinds["list-fifo"] == (m.EntryKind.OTHER, 0, True)
        assert [one.name for one in found.entries] == sorted(kinds)
        assert not found.cut
        assert all(abs(site.now() - one.modified_at) < timedelta(1) for one in found.entries)

    def test_no_more_entries_than_were_asked_for(self, site: ContractSite) -> None:
        user = site.cast.user
        for n in range(3):
            site.write(f"/home/{user}/listed-{n}", user, "")
        found = site.broker.list_folder(f"/home/{user}", user=user, most=2)
        assert (len(found.entries), found.cut) == (2, True)

    def test_a_folder_that_is_not_the_persons_is_not_listed(self, site: ContractSite) -> None:
        user, other = site.cast.user, site.cast.other
        site.write(f"/home/{user}/no-folder", user, "")
        site.link(f"/home/{user}/list-etc", user, "/etc")
        site.link(f"/home/{user}/list-other", user, f"/home/{other}")
        for code, path in (
            ("file_outside", "/etc"),
            ("file_outside", f"/home/{user}/list-etc"),
            ("file_not_permitted", f"/home/{other}"),
            ("file_not_permitted", f"/home/{user}/list-other"),
            ("file_missing", f"/home/{user}/no-such-folder"),
            ("file_missing", "relative"),
            ("folder_not_a_folder", f"/home/{user}/no-folder"),
        ):
            with refused(code):
                site.broker.list_folder(path, user=user)


class SiteContract(Steps):
    """What the cluster is."""

    def test_nodes_count_gpus_free_and_used(self, site: ContractSite) -> None:
        job = self.running(site, nodes=1, gpus_per_node=2)
        nodes = [n for n in site.broker.nodes() if site.cast.partition in n.partitions]
        assert len(nodes) == site.cast.nodes
        assert {(n.gpus, n.gpu_type) for n in nodes} == {(8, "a100")}
        assert sum(n.gpus_used for n in nodes) == 2
        assert all(n.address for n in nodes)
        assert {re.split(r"[+*]", n.state)[0] for n in nodes} <= {"IDLE", "MIXED"}
        self.cancel(site, job)

    def test_partitions_tell_their_limits(self, site: ContractSite) -> None:
        found = {partition.name: partition for partition in site.broker.partitions()}
        assert found["a100"].is_default
        assert found["a100"].gpu_types == ("a100",)
        assert found["a100"].nodes == 4
        assert found["debug"].max_time_minutes == 30
        assert all(partition.state == "UP" for partition in found.values())

    def test_associations_tell_who_may_charge_what(self, site: ContractSite) -> None:
        found = site.broker.associations()
        mine = [a for a in found if a.user == site.cast.user]
        assert [a.account for a in mine] == ["nlp"]
        assert {"normal", "spot"} <= set(mine[0].qos)
        assert mine[0].is_default_account
        assert not mine[0].is_coordinator
        (leader,) = [a for a in found if a.user == "nlp-lead"]
        assert leader.is_coordinator
        (limited,) = [a for a in found if a.user == site.cast.other]
        assert limited.group_max_gpus == 16

    def test_qos_tell_their_priority_and_price_factor(self, site: ContractSite) -> None:
        found = {qos.name: qos for qos in site.broker.qos()}
        assert found["spot"].usage_factor_millionths == 820_000
        assert found["normal"].usage_factor_millionths == 1_000_000
        assert found["urgent"].priority > found["normal"].priority > found["spot"].priority
        assert "spot" in found["normal"].preempts
        assert found["urgent"].max_gpus_per_user == 8

    def test_an_estimate_says_when_or_why_not(self, site: ContractSite) -> None:
        # With the lines that a rendered script has: sbatch reads them beside the options.
        script = "#!/bin/sh\n#SBATCH --gpus-per-node=1\n#SBATCH --time=5\nexit 0\n"
        found = site.broker.estimate(request(site.cast, script=script))
        assert found.start_time is not None
        assert abs(found.start_time - site.now()) < timedelta(minutes=10)
        with refused("invalid_qos"):
            site.broker.estimate(request(site.cast, qos="nosuch"))
        with refused("invalid_account"):
            site.broker.estimate(request(site.cast, account=site.cast.other_account))
        before = len(site.broker.queue().jobs)
        site.broker.estimate(request(site.cast))
        assert len(site.broker.queue().jobs) == before


class BrokerContract(
    SubmitContract,
    AfterContract,
    ActContract,
    FileContract,
    FolderContract,
    MakeFolderContract,
    AccountingContract,
    SiteContract,
    GateContract,
    PolicyContract,
    MemberContract,
    PriorityContract,
    VolumeContract,
):
    """All of it."""
