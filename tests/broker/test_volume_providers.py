"""XFS and Lustre, which no kernel here has: their programs answer as they were recorded."""

import grp
import json
import os
import sys
from pathlib import Path

import pytest

from gateway.broker import volumes_areas, volumes_projects
from gateway.broker.commands import Commands
from gateway.broker.slots import Slots
from gateway.broker.volumes import VolumeStore
from gateway.broker.volumes_areas import AreaSettings, Figures, Tools, Trouble
from gateway.broker.volumes_projects import lustre_project, lustre_quota, xfs_report
from gateway.errors import BrokerRefused, BrokerSilent
from gateway.wire.volumes import MakeVolume, SetVolumeLimit

GB = 2**30
OURS = grp.getgrgid(os.getegid()).gr_name

# Both keep what was set in one file, and print it as the real ones do. `mood` makes them fail.
PROGRAM = """#!{python}
import json, os, sys
state = json.load(open({state!r}))
argv = sys.argv[1:]
mood, used, hard, projects = (state[key] for key in ("mood", "used", "hard", "projects"))
out, code = "", 0
if mood == "refuses" and ("limit" in " ".join(argv) or "setquota" in argv):
    sys.stderr.write("cannot set limits: Operation not permitted\\n")
    code = 1
elif argv[0] == "-x":
    words = argv[2].split()
    if words[0] == "report":
        for number in sorted({{"0", *used, *hard}}, key=int):
            row = used.get(number, 0), 0, hard.get(number, 0)
            out += "#%s        %10d %10d %10d     00 [--------]\\n" % (number, *row)
    elif mood != "lies":
        assert words[:2] == ["limit", "-p"] and words[2].startswith("bhard="), words
        hard[words[3]] = int(words[2][6:-1])
elif argv[0] == "project" and argv[1] == "-d":
    number = projects.get(str(os.stat(argv[2]).st_ino), 0)
    out = "%5d %s %s\\n" % (number, "P" if number else "-", argv[2])
elif argv[0] == "project":
    projects[str(os.stat(argv[4]).st_ino)] = int(argv[2])
elif argv[0] == "quota":
    number = argv[3]
    over = "*" if 0 < hard.get(number, 0) < used.get(number, 0) else ""
    row = (argv[4], used.get(number, 0), over, hard.get(number, 0))
    out = "%15s\\n  %d%s       0    %d       -       3       0       0       -\\n" % row
elif argv[0] == "setquota" and mood != "lies":
    hard[argv[2]] = int(argv[6])
json.dump(state, open({state!r}, "w"))
sys.stdout.write(out)
sys.exit(code)
"""


class Cluster:
    """An area of a provider, and what its programs keep."""

    def __init__(self, folder: Path, provider: str) -> None:
        self.state = folder / "state.json"
        self.set(mood="", used={}, hard={}, projects={})
        self.area = AreaSettings("home", folder / "area", provider, Path("/"))
        self.area.path.mkdir(mode=0o755)
        tools = Tools(Commands(timeout_seconds=20.0))
        alone = Slots(folder / "slots", count=1, patience_seconds=5.0)
        self.store = VolumeStore((self.area,), tools, alone, seconds=20.0, min_gid=0)

    def get(self):
        return json.loads(self.state.read_text())

    def set(self, **values):
        known = self.get() if self.state.exists() else {}
        self.state.write_text(json.dumps(known | values))

    def make(self, name: str, limit_bytes: int | None = GB):
        return self.store.make(MakeVolume("home", name, OURS, limit_bytes))

    def limit(self, name: str, limit_bytes: int | None, expected: int | None):
        return self.store.set_limit(SetVolumeLimit("home", name, expected, limit_bytes))


@pytest.fixture(params=["xfs", "lustre"])
def cluster(request, tmp_path, monkeypatch):
    made = Cluster(tmp_path, request.param)
    for name in ("xfs_quota", "lfs"):
        path = tmp_path / "bin" / name
        path.parent.mkdir(exist_ok=True)
        path.write_text(PROGRAM.format(python=sys.executable, state=str(made.state)))
        path.chmod(0o755)
    monkeypatch.setattr(volumes_areas, "_TOOLS_ARE_IN", str(tmp_path / "bin"))
    # What the kernel keeps of an XFS folder; this one's file systems do not know the call.
    numbers: dict[int, int] = {}

    def known(folder: Path) -> int:
        return numbers.get(folder.stat().st_ino, 0)

    def number(folder: Path, value: int) -> None:
        numbers[folder.stat().st_ino] = value

    monkeypatch.setattr(volumes_projects, "xfs_project", known)
    monkeypatch.setattr(volumes_projects, "_set_xfs_project", number)
    return made


def number_of(cluster: Cluster, name: str) -> str:
    folder = cluster.area.path / name
    if cluster.area.provider == "xfs":
        return str(volumes_projects.xfs_project(folder))
    return str(cluster.get()["projects"][str(folder.stat().st_ino)])


def test_a_limit_is_written_in_kib_and_read_back_in_bytes(cluster):
    made = cluster.make("nlp", 5 * GB)
    assert (made.limit_bytes, made.used_bytes, made.problem) == (5 * GB, 0, None)
    assert cluster.get()["hard"] == {number_of(cluster, "nlp"): 5 * 2**20}
    again = cluster.make("vision", None)
    assert again.limit_bytes is None
    assert int(number_of(cluster, "vision")) == int(number_of(cluster, "nlp")) + 1

    cluster.set(used={number_of(cluster, "nlp"): 6 * 2**20})  # KiB: over its limit
    [nlp, vision] = cluster.store.read().volumes
    assert (nlp.used_bytes, nlp.limit_bytes) == (6 * GB, 5 * GB)
    assert (vision.used_bytes, vision.limit_bytes) == (0, None)
    assert cluster.limit("nlp", 8 * GB, 5 * GB).limit_bytes == 8 * GB
    with pytest.raises(BrokerRefused) as told:
        cluster.limit("nlp", 9 * GB, 5 * GB)
    assert told.value.code == "volume_changed_meanwhile"
    assert cluster.limit("nlp", None, 8 * GB).limit_bytes is None


@pytest.fixture
def home(cluster):
    cluster.make("nlp")
    return cluster


def test_a_program_that_says_yes_and_does_nothing_is_found_out(home):
    home.set(mood="lies")
    with pytest.raises(BrokerSilent, match=f"has {GB}, not {2 * GB}"):
        home.limit("nlp", 2 * GB, GB)


def test_a_program_that_says_no_changes_nothing(home):
    home.set(mood="refuses")
    with pytest.raises(BrokerRefused, match="not permitted") as told:
        home.limit("nlp", 2 * GB, GB)
    assert told.value.code == "volume_tool_failed"


def test_a_folder_without_a_number_has_no_limit_and_gets_none(cluster):
    (cluster.area.path / "old").mkdir()
    cluster.set(used={"0": 8})
    [old] = cluster.store.read().volumes
    assert (old.used_bytes, old.problem) == (None, "volume_not_limited")
    with pytest.raises(BrokerRefused) as told:
        cluster.limit("old", GB, None)
    assert told.value.code == "volume_not_limited"
    assert cluster.get()["hard"] == {}


def test_without_the_program_the_area_says_so(home, tmp_path):
    for path in (tmp_path / "bin").iterdir():
        path.unlink()
    [area] = home.store.read().areas
    assert area.problem == "volume_tool_missing"


def test_quotas_that_are_off_are_told(tmp_path):
    with pytest.raises(Trouble) as told:
        xfs_report("")
    assert told.value.code == "volume_quota_off"


@pytest.mark.parametrize(
    "text", ["xfs_quota: cannot open /mnt\n", "#42 1024 0\n", "#-1 1 1 1 00 [-]"]
)
def test_what_is_no_report_of_xfs_is_refused(text):
    with pytest.raises(Trouble):
        xfs_report(text)


def test_a_report_of_xfs_as_it_is_printed():
    text = (
        "#0               12          0          0     00 [--------]\n"
        "#100000     1048576          0    2097152     00 [--------]\n\n"
        "#100001           0          0          0     00 [--none--]\n"
    )
    found = xfs_report(text)
    assert found[100_000] == Figures(GB, 2 * GB)
    assert found[100_001] == Figures(0, None)


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ("/mnt/lustre  1048576  0  2097152  -  3  0  0  -\n", Figures(GB, 2 * GB)),
        ("/mnt/lustre\n  2097152*  0  1048576  -  3  0  0  -\n", Figures(2 * GB, GB)),
        ("/mnt/lustre  0  0  0  -  0  0  0  -\n", Figures(0, None)),
        ("/mnt/lustre  [12]  0  1024  -  3  0  0  -\n", Figures(None, None, "volume_quota_stale")),
    ],
)
def test_a_quota_of_lustre_as_it_is_printed(text, found):
    assert lustre_quota(text, "/mnt/lustre") == found


@pytest.mark.parametrize("text", ["", "Permission denied.\n", "/mnt/lustre a 0 b - 3 0 0 -\n"])
def test_what_is_no_quota_of_lustre_is_refused(text):
    with pytest.raises(Trouble):
        lustre_quota(text, "/mnt/lustre")


def test_a_number_that_new_files_do_not_inherit_is_none():
    assert lustre_project("  1001 P /mnt/lustre/nlp\n") == 1001
    assert lustre_project("  1001 - /mnt/lustre/nlp\n") == 0
    with pytest.raises(Trouble):
        lustre_project("lfs project: cannot open\n")
