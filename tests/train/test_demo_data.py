"""The demo's datasets come out byte by byte the same, so that what was published stays true."""

import hashlib
import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[2]))  # for contrib, which no wheel holds

from contrib.demo import data, made_data

# Of the manifests: of each file its SHA-256, bytes and path.
PUBLISHED = {
    "sensors": "d1c4d74aeff062e37ee1341e52dd69bafbe6f958b9b04f620bd5f61c2f633050",
    "sentences": "6d804582ae2f02c385b4008f36bb9f754bff3b2b00f220e4dc34a76dca215375",
    "waves": "d2f588232ce594f8c23d0bf0cfdca7d52c99a12e44be0efb8fed8381edba4cc7",
}


def manifest(name: str) -> str:
    found = sorted(made_data.MADE[name](), key=lambda file: file[0].encode())
    return "".join(f"{hashlib.sha256(raw).hexdigest()} {len(raw)} {path}\n" for path, raw in found)


def test_each_time_the_same_bytes() -> None:
    hashes = {name: hashlib.sha256(manifest(name).encode()).hexdigest() for name in made_data.MADE}
    assert hashes == PUBLISHED


def test_each_that_is_made_is_shown() -> None:
    assert {one.name for one in data.SHOWN} == set(made_data.MADE)


def test_a_killed_making_goes_on_and_what_is_whole_stays(tmp_path: Path) -> None:
    (tmp_path / "waves" / "v1.part").mkdir(parents=True)
    (tmp_path / "waves" / "v1.part" / "classes.csv").write_text("torn")
    made_data.make(tmp_path)
    lines = (tmp_path / "waves/v1/classes.csv").read_text().splitlines()
    assert len(lines) == 1 + made_data.PICTURES
    assert not list(tmp_path.glob("*/*.part"))

    (tmp_path / "waves/v1/classes.csv").write_text("kept")
    made_data.make(tmp_path)
    assert (tmp_path / "waves/v1/classes.csv").read_text() == "kept"


def test_a_day_has_faults_to_find_and_classes_differ() -> None:
    day = dict(made_data.sensors())["sensor-00.csv"].decode().splitlines()[1:]
    faults = [float(line.split(",")[1]) for line in day if line.endswith(",1")]
    others = [float(line.split(",")[1]) for line in day if line.endswith(",0")]
    assert len(day) == made_data.MINUTES
    assert faults
    assert sum(faults) / len(faults) > sum(others) / len(others) + 5
    first = [raw for path, raw in made_data.waves() if path.endswith(".ppm")][: made_data.CLASSES]
    assert len(set(first)) == made_data.CLASSES
