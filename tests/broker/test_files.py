"""Files as their owner. These fork a child that becomes someone else, hence root is needed."""

import os
import pwd
import threading
import time
from pathlib import Path

import pytest

from gateway.broker.accounts import Account
from gateway.broker.failures import SlurmRefused
from gateway.broker.files import Files, chunk
from gateway.broker.person import as_person, borrowed
from gateway.errors import BrokerRefused, BrokerSilent, BrokerUnreachable
from gateway.wire.messages import ListFolderRequest, ReadFileRequest

ROOT = os.geteuid() == 0
needs_root = pytest.mark.skipif(not ROOT, reason="becoming another account needs root")


@pytest.fixture
def person():
    """An unprivileged account when the tests run as root, else whoever runs them."""
    entry = pwd.getpwnam("nobody") if ROOT else pwd.getpwuid(os.getuid())
    return Account(entry.pw_name, entry.pw_uid, entry.pw_gid, (entry.pw_gid,), "/", "/bin/sh")


@pytest.fixture
def area(tmp_path, person):
    """A folder of the person that the person can reach."""
    for folder in (tmp_path, *tmp_path.parents):
        if folder.owner() == pwd.getpwuid(os.getuid()).pw_name and folder != folder.parent:
            folder.chmod(folder.stat().st_mode | 0o011)
    home = tmp_path / "home"
    home.mkdir()
    os.chown(home, person.uid, person.gid)
    return home


@pytest.fixture
def files(area):
    return Files([area], timeout_seconds=3)


def read(files, person, path, *, offset=0, max_bytes=100):
    return files.read(person, ReadFileRequest(person.name, str(path), offset, max_bytes))


def own(path, person, text="text\n"):
    path.write_text(text)
    os.chown(path, person.uid, person.gid)
    path.chmod(0o600)
    return path


def test_a_file_is_read_in_pieces(files, area, person):
    path = own(area / "log", person, "one\ntwo\n")
    first = read(files, person, path, max_bytes=4)
    assert (first.text, first.offset, first.next_offset, first.size) == ("one\n", 0, 4, 8)
    assert read(files, person, path, offset=-4).text == "two\n"
    assert read(files, person, path, offset=-400).text == "one\ntwo\n"
    assert read(files, person, path, offset=100).text == ""
    assert read(files, person, path, offset=2**63 - 1).size == 8
    assert read(files, person, path, offset=10**30).text == ""


@needs_root
def test_a_file_of_someone_else_is_not_permitted(files, area, person):
    (area / "secret").write_text("secret")
    (area / "secret").chmod(0o600)
    with pytest.raises(BrokerRefused) as caught:
        read(files, person, area / "secret")
    assert caught.value.code == "file_not_permitted"


def test_a_link_out_of_the_area_is_outside(files, area, person):
    (area / "out").symlink_to("/etc/hostname")
    (area / "in").symlink_to(own(area / "log", person))
    with pytest.raises(BrokerRefused) as caught:
        read(files, person, area / "out")
    assert caught.value.code == "file_outside"
    assert read(files, person, area / "in").text == "text\n"


def test_a_folder_that_only_begins_like_the_area_is_outside(files, area, person):
    beside = area.parent / "home2"
    beside.mkdir()
    os.chown(beside, person.uid, person.gid)
    with pytest.raises(BrokerRefused) as caught:
        read(files, person, own(beside / "log", person))
    assert caught.value.code == "file_outside"


@pytest.mark.parametrize("path", ["relative", "", "/no/such", "/nul\0byte", "/" + "x" * 5000])
def test_what_is_no_path_is_missing(files, person, path):
    with pytest.raises(BrokerRefused) as caught:
        read(files, person, path)
    assert caught.value.code == "file_missing"


def test_neither_fifo_nor_folder_nor_device_is_a_file(files, area, person):
    os.mkfifo(area / "fifo")
    os.chown(area / "fifo", person.uid, person.gid)
    for path in (area / "fifo", area, "/dev/null"):
        with pytest.raises(BrokerRefused) as caught:
            read(files, person, path)
        assert caught.value.code == "file_not_regular"


def test_a_file_that_cannot_be_read_in_time_is_refused(area, person, monkeypatch):
    slow = Files([area], timeout_seconds=0.2)
    monkeypatch.setattr("gateway.broker.files._open", lambda *_: time.sleep(30))
    began = time.monotonic()
    with pytest.raises(BrokerRefused) as caught:
        read(slow, person, own(area / "log", person))
    assert caught.value.code == "file_timeout"
    assert time.monotonic() - began < 5


def test_folders_are_judged(files, area, person):
    (area / "sub").mkdir()
    os.chown(area / "sub", person.uid, person.gid)
    own(area / "plain", person)
    (area / "to-etc").symlink_to("/etc")
    found = {
        name: files.folder(person, str(path)).problem
        for name, path in {
            "own": area / "sub",
            "plain": area / "plain",
            "none": area / "none",
            "etc": area / "to-etc",
        }.items()
    }
    assert found == {"own": None, "plain": "not_a_folder", "none": "missing", "etc": "outside"}
    assert files.folder(person, str(area / "sub")).writable
    assert files.folder(person, "relative").problem == "missing"


@needs_root
def test_a_folder_that_cannot_be_entered_or_written_is_told_apart(files, area, person):
    closed, readable = area / "closed", area / "readable"
    for folder, mode in ((closed, 0o700), (readable, 0o755)):
        folder.mkdir()
        folder.chmod(mode)
    assert files.folder(person, str(closed)).problem == "not_permitted"
    state = files.folder(person, str(readable))
    assert (state.problem, state.writable) == (None, False)


@pytest.mark.parametrize(
    ("raw", "start", "cut", "text", "offset", "after"),
    [
        ("两".encode()[:2], 0, False, "\ufffd", 0, 2),  # nothing else: do not wait for ever
        (b"a" + "两".encode()[:2], 0, False, "a", 0, 1),
        (b"a" + "😀".encode()[:3], 0, False, "a", 0, 1),
        ("😀".encode()[1:] + b"b", 9, True, "b", 12, 13),
        (b"\xff\xfe", 0, False, "\ufffd\ufffd", 0, 2),
        (b"", 5, False, "", 5, 5),
        ("é".encode(), 0, False, "é", 0, 2),
    ],
)
def test_only_whole_characters_are_given(raw, start, cut, text, offset, after):
    found = chunk(raw, start, 99, cut=cut)
    assert (found["text"], found["offset"], found["next_offset"]) == (text, offset, after)


@needs_root
def test_the_child_is_the_person_and_nobody_else(person):
    def who():
        return [os.getresuid(), os.getresgid(), os.getgroups()]

    uids, gids, groups = as_person(person, who, timeout_seconds=3)
    assert (uids, gids, groups) == ([person.uid] * 3, [person.gid] * 3, [person.gid])


@needs_root
def test_the_child_has_no_capability_and_no_way_back(person):
    def capabilities():
        text = Path("/proc/self/status").read_text()
        with pytest.raises(PermissionError):
            os.setuid(0)
        return [line for line in text.splitlines() if line.startswith(("CapEff", "CapPrm"))]

    assert {line.split()[1] for line in as_person(person, capabilities, timeout_seconds=3)} == {
        "0" * 16
    }


@pytest.mark.parametrize(
    "error",
    [
        BrokerRefused("no", code="file_outside"),
        BrokerUnreachable("away"),
        BrokerSilent("?"),
        SlurmRefused("no", code="invalid_qos", slurm_errno=2066),
    ],
)
def test_the_childs_errors_are_the_parents(person, error):
    def fail():
        raise error

    with pytest.raises(type(error)) as caught:
        as_person(person, fail, timeout_seconds=3)
    assert caught.value.code == error.code
    assert getattr(caught.value, "slurm_errno", None) == getattr(error, "slurm_errno", None)


@pytest.mark.parametrize("end", [lambda: os._exit(3), os.abort, lambda: 1 / 0])
def test_a_child_that_dies_leaves_it_unknown(person, end):
    with pytest.raises(BrokerSilent):
        as_person(person, end, timeout_seconds=3)


def test_a_child_that_hangs_is_ended(person):
    began = time.monotonic()
    with pytest.raises(BrokerSilent):
        as_person(person, lambda: time.sleep(60), timeout_seconds=0.2)
    assert time.monotonic() - began < 3
    assert threading.active_count() >= 1


@needs_root
def test_borrowed_ids_are_the_persons_and_are_given_back(files, area, person):
    before = (os.getresuid(), os.getresgid(), os.getgroups())
    (area / "closed").mkdir()
    (area / "closed").chmod(0o700)
    with borrowed(person):
        ids = (os.geteuid(), os.getegid(), os.getgroups())
        assert files.look(str(area))["writable"]
        assert files.look(str(area / "closed"))["problem"] == "not_permitted"
        with pytest.raises(PermissionError):
            Path("/etc/shadow").read_text()
    assert ids == (person.uid, person.gid, [person.gid])
    assert (os.getresuid(), os.getresgid(), os.getgroups()) == before


@needs_root
def test_borrowed_ids_are_given_back_after_an_error(person):
    with pytest.raises(BrokerRefused), borrowed(person):
        raise BrokerRefused("no")
    assert (os.geteuid(), os.getegid()) == (0, 0)


def listed(files, person, path, *, most=1000):
    return files.list(person, ListFolderRequest(person.name, str(path), most))


def test_a_folder_is_listed_with_kinds_and_sizes(files, area, person):
    own(area / "log", person, "text\n")
    (area / "sub").mkdir()
    (area / "gone").symlink_to("/no/such")
    os.mkfifo(area / "fifo")
    (area / "old").write_text("")
    os.utime(area / "old", (10**18, 10**12))
    Path(os.fsdecode(os.fsencode(area) + b"/\xff<b>")).write_text("")
    found = listed(files, person, area)
    assert {one.name: one.kind.value for one in found.entries} == {
        "log": "file",
        "sub": "folder",
        "gone": "link",
        "fifo": "other",
        "old": "file",
        "\ufffd<b>": "file",
    }
    assert [one.name for one in found.entries if not one.exact] == ["\ufffd<b>"]
    assert next(one.size for one in found.entries if one.name == "log") == 5
    assert next(one.modified_at.year for one in found.entries if one.name == "old") > 2100


def test_of_a_large_folder_so_many_are_listed(files, area, person):
    for n in range(1200):
        (area / f"{n:04}").touch()
    found = listed(files, person, area, most=10**9)
    assert (len(found.entries), found.cut) == (1000, True)
    assert len(listed(files, person, area, most=-5).entries) == 1


def test_neither_file_nor_fifo_nor_what_lies_outside_is_listed(files, area, person):
    os.mkfifo(area / "fifo")
    (area / "out").symlink_to("/etc")
    own(area / "log", person)
    for path, code in (
        (area / "fifo", "folder_not_a_folder"),
        (area / "log", "folder_not_a_folder"),
        (area / "out", "file_outside"),
        (area / "none", "file_missing"),
    ):
        with pytest.raises(BrokerRefused) as caught:
            listed(files, person, path)
        assert caught.value.code == code


@needs_root
def test_a_folder_of_someone_else_is_not_listed(files, area, person):
    (area / "secret").mkdir(mode=0o700)
    with pytest.raises(BrokerRefused) as caught:
        listed(files, person, area / "secret")
    assert caught.value.code == "file_not_permitted"
