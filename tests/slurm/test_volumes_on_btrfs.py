"""Volumes on a real Btrfs with quota groups, from the portal's request to the write that fails."""

import threading
import time
import uuid
from collections.abc import Callable, Iterator
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path

import pytest
from broker_fixture import BrokerProcess, ClusterSite, own_broker

from contrib.devcluster.instance import Instance
from gateway.brokerclient.client import SocketBroker
from gateway.core.volumes import Ask, State
from gateway.errors import BrokerRefused, BrokerSilent, GatewayError
from gateway.services import volume_entries as entries
from gateway.services import volume_read
from gateway.services import volume_requests as requests
from gateway.services.volume_entries import Wish
from gateway.store import volumes as store
from gateway.store.uow import Begin, make_begin
from gateway.testing import builders as b
from gateway.testing.contract_steps import request
from gateway.testing.database import database
from gateway.wire import volumes as vol

pytestmark = pytest.mark.slurm
MB = 2**20
Make = Callable[..., vol.Volume]


@pytest.fixture(autouse=True)
def has_btrfs(broker: SocketBroker) -> None:
    area = next(one for one in broker.volumes().areas if one.name == "volumes")
    if area.problem is not None:
        pytest.skip("no loop-mounted Btrfs here: it takes loop devices and the kernel's Btrfs")


@pytest.fixture
def make(broker: SocketBroker) -> Make:
    def made(limit: int | None = 50 * MB) -> vol.Volume:
        name = f"t{uuid.uuid4().hex[:12]}"
        return broker.make_volume(vol.MakeVolume("volumes", name, "nlp", limit))

    return made


@pytest.fixture
def begin(tmp_path: Path) -> Iterator[Begin]:
    with database(tmp_path) as engine:
        begin = make_begin(engine)
        b.add_associations(begin, b.association("nlp-1", "nlp"))
        yield begin


def write(cluster: Instance, path: str, megabytes: int, *, user: str = "nlp-1") -> tuple[int, str]:
    """What cannot be compressed or shared, synced: its exit code and what it said."""
    words = ["dd", "if=/dev/urandom", f"of={path}", "bs=1M", f"count={megabytes}"]
    done = cluster.run([*words, "conv=fsync", "status=none"], user=user)
    return done.returncode, done.stderr


def read(broker: SocketBroker, name: str) -> vol.Volume | None:
    return next((one for one in broker.volumes().volumes if one.name == name), None)


def now() -> datetime:
    return datetime.now(UTC)


def look(begin: Begin, broker: SocketBroker, at: datetime | None = None) -> None:
    report = volume_read.look(begin=begin, broker=broker, now=at or now(), zone=UTC)
    assert report.code is None


def test_members_write_together_and_strangers_do_not(
    cluster: Instance, broker: SocketBroker, make: Make
) -> None:
    made = make()
    assert write(cluster, f"{made.path}/one", 5) == (0, "")
    assert cluster.run(["mkdir", f"{made.path}/sub"], user="nlp-lead").returncode == 0
    # Another member writes into a folder and a file that the first one made, umask or not.
    assert write(cluster, f"{made.path}/sub/two", 1) == (0, "")
    assert (
        cluster.run(["truncate", "-s", "1", f"{made.path}/sub/two"], user="nlp-lead").returncode
        == 0
    )
    assert cluster.run(["stat", "-c", "%G", f"{made.path}/one"]).stdout.strip() == "nlp"
    # nlp-2 is of the group by its list of members, biolab-1 is not of it.
    assert cluster.run(["ls", made.path], user="nlp-2").returncode == 0
    assert cluster.run(["ls", made.path], user="biolab-1").returncode != 0
    back = read(broker, made.name)
    assert back is not None
    assert 5 * MB <= (back.used_bytes or 0) < 7 * MB


def test_the_quota_refuses_and_a_higher_one_lets_through(
    cluster: Instance, broker: SocketBroker, make: Make
) -> None:
    made = make(20 * MB)
    code, said = write(cluster, f"{made.path}/big", 40)
    assert code != 0
    assert "quota" in said.lower()
    full = read(broker, made.name)
    assert full is not None
    assert 15 * MB <= (full.used_bytes or 0) <= 20 * MB
    raised = broker.set_volume_limit(vol.SetVolumeLimit("volumes", made.name, 20 * MB, 80 * MB))
    assert raised.limit_bytes == 80 * MB
    assert write(cluster, f"{made.path}/big", 40) == (0, "")


def test_lowered_below_use_refuses_writes_and_deletes_nothing(
    cluster: Instance, broker: SocketBroker, make: Make
) -> None:
    made = make(50 * MB)
    assert write(cluster, f"{made.path}/kept", 30) == (0, "")
    wish = vol.SetVolumeLimit("volumes", made.name, 50 * MB, 10 * MB)
    with pytest.raises(BrokerRefused) as no:
        broker.set_volume_limit(wish)
    assert no.value.code == "volume_below_use"
    low = broker.set_volume_limit(replace(wish, below_use=True))
    assert low.limit_bytes == 10 * MB
    assert (low.used_bytes or 0) >= 30 * MB
    assert write(cluster, f"{made.path}/more", 5)[0] != 0
    size = cluster.run(["stat", "-c", "%s", f"{made.path}/kept"]).stdout.strip()
    assert int(size) == 30 * MB


def test_a_job_writes_in_it_under_the_same_path(
    cluster_site: ClusterSite, broker: SocketBroker, make: Make
) -> None:
    made = make()
    script = "#!/bin/sh\npwd > from-the-job\n"
    asked = request(
        cluster_site.cast,
        script=script,
        working_directory=made.path,
        output=f"{made.path}/job-%j.log",
    )
    broker.submit(asked)
    told = f"{made.path}/from-the-job"

    def done() -> bool:
        return cluster_site.cluster.run(["cat", told]).stdout == f"{made.path}\n"

    cluster_site.until(done, 30)
    chunk = broker.read_file(told, user="nlp-1", offset=0, max_bytes=100)
    assert chunk.text == f"{made.path}\n"


def test_what_is_removed_behind_the_portals_back_is_drift(
    cluster: Instance, broker: SocketBroker, begin: Begin
) -> None:
    look(begin, broker)
    name = f"d{uuid.uuid4().hex[:12]}"
    wish = Wish("volumes", name, "nlp", 50 * MB)
    made = entries.create(wish, viewer=None, begin=begin, broker=broker, now=now())
    assert (made.state, made.limit_bytes) == (State.THERE, 50 * MB)
    assert cluster.run(["btrfs", "qgroup", "limit", "60m", made.path]).returncode == 0
    look(begin, broker)
    with begin() as session:
        assert getattr(store.get(session, made.id), "problem", "") == "volume_limit_differs"
    assert cluster.run(["btrfs", "subvolume", "delete", made.path]).returncode == 0
    look(begin, broker)
    with begin() as session:
        gone = store.get(session, made.id)
    assert gone is not None
    assert (gone.problem, gone.used_bytes) == ("volume_gone", None)


def test_a_folder_in_its_place_has_no_figures(
    cluster: Instance, broker: SocketBroker, make: Make
) -> None:
    made = make()
    cluster.run(["btrfs", "subvolume", "delete", made.path])
    cluster.run(["mkdir", made.path])
    back = read(broker, made.name)
    assert back is not None
    assert (back.used_bytes, back.limit_bytes) == (None, None)
    assert back.problem == "volume_not_limited"
    cluster.run(["rmdir", made.path])
    cluster.run(["ln", "-s", "/home", made.path])
    assert read(broker, made.name) is None
    with pytest.raises(BrokerRefused) as no:
        broker.set_volume_limit(vol.SetVolumeLimit("volumes", made.name, 50 * MB, 60 * MB))
    assert no.value.code == "no_such_volume"
    cluster.run(["rm", made.path])


def test_an_area_that_is_not_mounted_is_gone_and_not_empty(cluster: Instance) -> None:
    text = (
        '[[area]]\nname = "volumes"\npath = "/volumes"\nprovider = "btrfs"\n'
        '[[area]]\nname = "unmounted"\npath = "/opt/nowhere"\nprovider = "btrfs"\n'
        '[[area]]\nname = "notools"\npath = "/volumes"\nprovider = "lustre"\n'
        '[[area]]\nname = "noquota"\npath = "/tmp"\nprovider = "btrfs"\n'
    )
    cluster.run(["mkdir", "-p", "/opt/nowhere", "/tmp/some"])
    cluster.run(["sh", "-c", "cat > /run/areas.toml"], stdin=text)
    with own_broker(cluster, SLUICE_BROKER_VOLUMES="/run/areas.toml") as process:
        told = process.client().volumes()
    problems = {area.name: area.problem for area in told.areas}
    # Tools that are absent are said where there is something to read.
    assert problems["volumes"] is None
    assert problems["unmounted"] == "volume_area_gone"
    assert problems["noquota"] in {"volume_tool_failed", "volume_quota_off"}
    assert problems["notools"] == "volume_tool_missing"
    silent = [area for area in told.areas if area.problem is not None]
    assert all((one.total_bytes, one.free_bytes) == (None, None) for one in silent)
    assert {one.area for one in told.volumes} <= {"volumes"}


def test_of_two_administrators_at_once_one_wins(broker: SocketBroker, make: Make) -> None:
    made = make(50 * MB)
    outcomes: list[str] = []

    def change(limit: int) -> None:
        wish = vol.SetVolumeLimit("volumes", made.name, 50 * MB, limit)
        try:
            outcomes.append(str(broker.set_volume_limit(wish).limit_bytes))
        except GatewayError as error:
            outcomes.append(error.code)

    threads = [threading.Thread(target=change, args=(n * MB,)) for n in (70, 90)]
    for one in threads:
        one.start()
    for one in threads:
        one.join()
    back = read(broker, made.name)
    assert back is not None
    assert sorted(outcomes) == sorted([str(back.limit_bytes), "volume_changed_meanwhile"])


def test_kill_9_between_write_and_read_back(cluster: Instance, begin: Begin) -> None:
    """A quota program that dawdles after its work stands for a slow file system."""
    slow = (
        '#!/bin/sh\n/usr/bin/btrfs "$@"; code=$?\n'
        'case "$1 $2" in "qgroup limit") [ -e /run/dawdle ] && sleep 30;; esac\nexit $code\n'
    )
    cluster.run(
        ["sh", "-c", "cat > /usr/local/bin/btrfs; chmod +x /usr/local/bin/btrfs"], stdin=slow
    )
    try:
        with own_broker(cluster) as process:
            _killed_while_it_dawdles(cluster, process, begin)
    finally:
        cluster.run(["rm", "-f", "/usr/local/bin/btrfs", "/run/dawdle"])


def _killed_while_it_dawdles(cluster: Instance, process: BrokerProcess, begin: Begin) -> None:
    broker = process.client()
    look(begin, broker)
    name = f"k{uuid.uuid4().hex[:12]}"
    wish = Wish("volumes", name, "nlp", 50 * MB)
    made = entries.create(wish, viewer=None, begin=begin, broker=broker, now=now())
    cluster.run(["touch", "/run/dawdle"])
    killer = threading.Timer(2.0, process.kill_workers)
    killer.start()
    asked_at = now()
    done = requests.set_limit(
        made.id, 70 * MB, viewer=None, begin=begin, broker=broker, now=asked_at
    )
    killer.join()
    assert (done.state, done.code) == (Ask.AGREED, BrokerSilent.code)
    cluster.run(["rm", "-f", "/run/dawdle"])
    end = time.monotonic() + 20
    while time.monotonic() < end:
        later = datetime.fromtimestamp(asked_at.timestamp() + 120, UTC)
        if requests.carry_on(begin=begin, broker=broker, now=later):
            break
        asked_at = later
        time.sleep(0.3)
    with begin() as session:
        row = store.get(session, made.id)
    assert row is not None
    assert (row.limit_bytes, row.wanted_bytes) == (70 * MB, 70 * MB)
    back = read(broker, name)
    assert back is not None
    assert back.limit_bytes == 70 * MB


def test_a_volume_whose_maker_was_killed_is_made_whole(
    cluster: Instance, broker: SocketBroker
) -> None:
    """What a killed call left under its other name is gone on with, and shown to nobody."""
    name = f"h{uuid.uuid4().hex[:12]}"
    cluster.run(["btrfs", "subvolume", "create", f"/volumes/.new-{name}"])
    assert read(broker, name) is None
    made = broker.make_volume(vol.MakeVolume("volumes", name, "nlp", 50 * MB))
    assert (made.owner, made.limit_bytes) == ("nlp", 50 * MB)
    assert cluster.run(["ls", "-A", "/volumes"]).stdout.count(f".new-{name}") == 0


def test_a_plain_folder_is_measured(cluster: Instance, broker: SocketBroker) -> None:
    name = f"f{uuid.uuid4().hex[:12]}"
    made = broker.make_volume(vol.MakeVolume("archive", name, "nlp", None))
    assert write(cluster, f"{made.path}/data", 5) == (0, "")
    back = read(broker, name)
    assert back is not None
    assert 5 * MB <= (back.used_bytes or 0) < 6 * MB
    assert (back.limit_bytes, back.problem) == (None, None)
    for limit in (MB, None):
        with pytest.raises(BrokerRefused) as no:
            broker.set_volume_limit(vol.SetVolumeLimit("archive", name, None, limit))
        assert no.value.code == "volume_no_limits"


def test_a_file_system_that_is_full_says_so(cluster: Instance, broker: SocketBroker) -> None:
    """The area of 4 GB is filled by root past its room for more."""
    cluster.run(["sh", "-c", "dd if=/dev/zero of=/volumes/FILL bs=4M status=none; sync"])
    try:
        area = next(one for one in broker.volumes().areas if one.name == "volumes")
        assert area.problem is None
        assert area.free_bytes is not None
        assert area.free_bytes < 64 * MB
    finally:
        cluster.run(["rm", "-f", "/volumes/FILL"])
