"""The node's side of datasets: manifests, verification, copies on node-local disk."""

import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from gateway.core import datasets as rules
from sluice_train.data.make import make
from sluice_train.data.manifest import BadData, Entry, dump, load, parse
from sluice_train.data.stage import locked, make_room, place_of, staged
from sluice_train.data.verify import verify

KIT = Path(__file__).parents[2] / "contrib/sluice_train"


@pytest.fixture
def data(tmp_path: Path) -> Path:
    folder = tmp_path / "data"
    (folder / "a").mkdir(parents=True)
    (folder / "a" / "one.txt").write_text("one\n")
    (folder / "two words.txt").write_text("two\n" * 1000)
    (folder / "数据.txt").write_text("three\n")
    return folder


def published(data: Path) -> str:
    """`<sha256>:<path>` of a manifest beside the data."""
    text = make(data, data.with_name("part"))
    path = data.with_name("data.manifest")
    path.write_text(text)
    return f"{rules.totals(text).sha256}:{path}"


def run(*words: str, **environment: str) -> "subprocess.Popen[str]":
    return subprocess.Popen(
        [sys.executable, "-m", "sluice_train.data", *words],
        env={**os.environ, "PYTHONPATH": str(KIT), **environment},
        text=True,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
    )


def test_a_manifest_is_what_the_portal_reads(data: Path) -> None:
    text = make(data, data.with_name("part"))
    found = rules.totals(text)
    assert (found.files, found.bytes) == (3, 4 + 4000 + 6)
    assert [entry.path for entry in parse(text)] == ["a/one.txt", "two words.txt", "数据.txt"]


def test_the_command_writes_it_beside_the_folder(data: Path) -> None:
    process = run("manifest", str(data))
    out, _ = process.communicate(timeout=30)
    assert process.returncode == 0
    text = data.with_name("data.manifest").read_text()
    assert out.startswith(rules.totals(text).sha256)
    assert not data.with_name("data.manifest.part").exists()


def test_it_goes_on_where_it_was_killed_and_reads_what_changed_again(data: Path) -> None:
    part, whole = data.with_name("part"), make(data, data.with_name("other"))
    lines = data.with_name("other").read_text().splitlines(keepends=True)
    forged = lines[0].replace(lines[0][:64], "f" * 64)  # only a resumed run would believe it
    part.write_text(forged + lines[1][:40])
    assert "f" * 64 in make(data, part)

    os.utime(data / "a" / "one.txt", ns=(1, 1))
    assert make(data, part) == whole


@pytest.mark.parametrize("trick", ["out", "folder", "fifo", "newline", "bytes"])
def test_what_a_dataset_cannot_hold_is_refused(data: Path, trick: str) -> None:
    match trick:
        case "out":
            (data / "link").symlink_to("/etc/passwd")
        case "folder":
            (data / "link").symlink_to(data / "a")
        case "fifo":
            os.mkfifo(data / "pipe")
        case "newline":
            (data / "a\nb").write_text("x")
        case "bytes":
            Path(os.fsdecode(os.fsencode(data) + b"/\xff")).write_text("x")
    with pytest.raises(BadData):
        make(data, data.with_name("part"))


@pytest.mark.parametrize(
    "text",
    [
        "",
        "x\n",
        f"{'0' * 64} 1 ../etc\n",
        f"{'0' * 64} 1 /etc\n",
        f"{'0' * 64} 1 a\n{'0' * 64} 1 a\n",
        f"{'0' * 64} 01 a\n",
        f"{'0' * 64} 1 a//b\n",
    ],
)
def test_both_sides_refuse_a_text_that_is_no_manifest(text: str) -> None:
    with pytest.raises(BadData):
        parse(text)
    with pytest.raises(rules.BadManifest):
        rules.totals(text)


def test_verification_finds_a_flipped_byte_a_missing_and_an_extra_file(data: Path) -> None:
    sha256, _, path = published(data).partition(":")
    raw = bytearray((data / "two words.txt").read_bytes())
    raw[17] ^= 1
    (data / "two words.txt").write_bytes(bytes(raw))
    (data / "a" / "one.txt").unlink()
    (data / "new").write_text("new")

    process = run(
        "verify",
        str(data),
        "--manifest",
        path,
        "--sha256",
        sha256,
        "--result",
        str(data.with_name("result.json")),
    )
    process.communicate(timeout=30)
    assert process.returncode == 0
    report = rules.read_report(json.loads(data.with_name("result.json").read_text()))
    assert report.changed == ("two words.txt",)
    assert report.missing == ("a/one.txt",)
    assert report.extra == ("new",)
    assert report.health == "damaged"
    assert report.mbps is not None


def test_another_manifest_than_the_published_one_is_a_failed_verification(data: Path) -> None:
    _, _, path = published(data).partition(":")
    with pytest.raises(BadData, match="not the one that was published"):
        load(Path(path), "0" * 64)
    process = run(
        "verify",
        str(data),
        "--manifest",
        path,
        "--sha256",
        "0" * 64,
        "--result",
        str(data.with_name("result.json")),
    )
    process.communicate(timeout=30)
    assert process.returncode == 0
    found = json.loads(data.with_name("result.json").read_text())
    assert rules.read_report(found).health == "failed"


def test_good_data_is_good(data: Path) -> None:
    sha256, _, path = published(data).partition(":")
    found = verify(data, load(Path(path), sha256))
    assert found["counts"] == {"changed": 0, "missing": 0, "extra": 0}
    assert found["bytes_read"] == 4010


def test_a_copy_is_made_once_and_made_anew_when_it_lost_something(
    data: Path, tmp_path: Path
) -> None:
    manifest, local = published(data), {"SLUICE_LOCAL": str(tmp_path / "local")}
    assert "copied" in staged(data, manifest, local)
    copy = place_of(local) / manifest.partition(":")[0]
    assert (copy / "a" / "one.txt").read_text() == "one\n"
    assert (copy.stat().st_uid, place_of(local).stat().st_mode & 0o777) == (os.getuid(), 0o700)
    assert staged(data, manifest, local) == "there already"

    (copy / "a" / "one.txt").unlink()
    assert "copied" in staged(data, manifest, local)
    assert (copy / "a" / "one.txt").read_text() == "one\n"


def test_a_file_that_is_not_what_the_manifest_says_is_never_copied(
    data: Path, tmp_path: Path
) -> None:
    manifest, local = published(data), {"SLUICE_LOCAL": str(tmp_path / "local")}
    (data / "a" / "one.txt").write_text("ONE\n")
    with pytest.raises(BadData, match="not what the manifest says"):
        staged(data, manifest, local)
    assert not (place_of(local) / manifest.partition(":")[0]).exists()


def test_where_there_is_no_room_the_job_reads_the_shared_folder(data: Path, tmp_path: Path) -> None:
    process = run(
        "stage",
        str(data),
        published(data),
        SLUICE_LOCAL=str(tmp_path / "local"),
        SLUICE_LOCAL_GB="0.000001",
    )
    _, said = process.communicate(timeout=30)
    assert process.returncode == 0
    assert "read from the shared folder: there is no room" in said


def test_the_longest_unused_copy_goes_first_and_one_in_use_stays(tmp_path: Path) -> None:
    local = {"SLUICE_LOCAL": str(tmp_path), "SLUICE_LOCAL_GB": "0.000004"}
    place = place_of(local)
    for age, name in enumerate(("used", "new", "old")):
        (place / name).mkdir()
        (place / name / "file").write_bytes(b"x" * 1000)
        (place / f"{name}.lock").touch()
        os.utime(place / f"{name}.lock", (1000 - age, 1000 - age))
    with locked(place / "used.lock"):
        make_room(place, 2000, local)
        left = {one.name for one in place.iterdir() if one.is_dir()}
        assert left == {"used", "new"}
        with pytest.raises(BadData, match="no room"):
            make_room(place, 4000, local)
        assert (place / "used").is_dir()


def test_two_jobs_at_once_make_one_copy(data: Path, tmp_path: Path) -> None:
    manifest = published(data)
    two = [run("stage", str(data), manifest, SLUICE_LOCAL=str(tmp_path / "l")) for _ in range(2)]
    said = sorted(process.communicate(timeout=30)[1].split(": ", 1)[1][:6] for process in two)
    assert said == ["copied", "there "]


def test_killed_in_the_middle_the_next_job_goes_on(tmp_path: Path) -> None:
    data = tmp_path / "data"
    data.mkdir()
    for number in range(40):
        (data / f"{number:02}").write_bytes(os.urandom(1 << 20))
    manifest, local = published(data), str(tmp_path / "local")
    process = run("stage", str(data), manifest, SLUICE_LOCAL=local)
    part = place_of({"SLUICE_LOCAL": local}) / f"{manifest.partition(':')[0]}.part"
    until = time.monotonic() + 20
    while not (part.is_dir() and len(list(part.iterdir())) > 3) and time.monotonic() < until:
        time.sleep(0.001)
    process.send_signal(signal.SIGKILL)
    process.communicate()
    said = staged(data, manifest, {"SLUICE_LOCAL": local})
    assert "of 40 files" in said
    copy = part.with_suffix("")
    assert verify(copy, load(Path(manifest.partition(":")[2]), manifest[:64]))["counts"] == {
        "changed": 0,
        "missing": 0,
        "extra": 0,
    }


def test_somebody_elses_folder_is_not_used(tmp_path: Path) -> None:
    (tmp_path / "elsewhere").mkdir()
    (tmp_path / f"sluice-{os.getuid()}").symlink_to(tmp_path / "elsewhere")
    with pytest.raises(BadData, match="own folder"):
        place_of({"SLUICE_LOCAL": str(tmp_path)})


def test_entries_are_in_the_order_of_their_bytes() -> None:
    text = dump([Entry("1" * 64, 1, "é"), Entry("2" * 64, 2, "z"), Entry("3" * 64, 3, "a/b")])
    assert [line.split(" ")[2] for line in text.splitlines()] == ["a/b", "z", "é"]
