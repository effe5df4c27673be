"""The parts of the development cluster that need neither root nor Slurm."""

import json
import os
from pathlib import Path

import pytest
from click.testing import CliRunner

from contrib.devcluster import apt, diagnosis, downloads, host, kit, pipview, slurmconf, trees
from contrib.devcluster import site as sites
from contrib.devcluster.errors import DevclusterError
from contrib.devcluster.paths import SITE_FILE
from gateway.cli import cluster as command

ONE_LINE = "deb [signed-by=/k.gpg] http://mirror.example/debian bookworm main contrib\n"
DEB822 = """\
Types: deb
URIs: http://other.example/extra
Suites: nodistro
Components: main

Types: deb deb-src
URIs: http://mirror.example/debian
# a comment
Suites: bookworm
  bookworm-updates
Components: main
"""


@pytest.mark.parametrize(("name", "text"), [("a.list", ONE_LINE), ("a.sources", DEB822)])
def test_the_mirror_is_the_machines_own(tmp_path: Path, name: str, text: str) -> None:
    folder = tmp_path / "sources.list.d"
    folder.mkdir()
    (folder / name).write_text(text)
    assert apt.mirror("bookworm", tmp_path) == "http://mirror.example/debian"
    with pytest.raises(DevclusterError, match="trixie"):
        apt.mirror("trixie", tmp_path)


def test_pip_settings_become_an_environment_and_binds(tmp_path: Path) -> None:
    index = tmp_path / "index" / "simple"
    index.mkdir(parents=True)
    config = tmp_path / "pip.conf"
    config.write_text(f"[global]\nextra-index-url = file://{index}\n[install]\npre = yes\n")
    view = pipview.of_machine({"PIP_CONFIG_FILE": str(config), "PIP_TIMEOUT": "7", "SECRET": "x"})
    assert view.env["PIP_EXTRA_INDEX_URL"] == f"file://{index}"
    assert view.env["PIP_PRE"] == "yes"
    assert view.env["PIP_TIMEOUT"] == "7"
    assert index.parent in view.binds
    assert "SECRET" not in view.env


def test_a_cuda_build_is_recognised_and_a_download_described(tmp_path: Path) -> None:
    wheel = tmp_path / "w.whl"
    wheel.write_bytes(b"x" * 2_000_000)

    def report(*names: str) -> str:
        info = {"url": wheel.as_uri()}
        return json.dumps(
            {
                "install": [
                    {"metadata": {"name": name, "version": "1"}, "download_info": info}
                    for name in names
                ]
            }
        )

    assert not downloads.planned(report("torch", "numpy")).for_cuda
    large = downloads.planned(report("torch", "nvidia_cublas"))
    assert large.for_cuda
    assert "2 packages, 4.0 MB" in large.described()


def test_a_failed_build_leaves_nothing_and_a_finished_one_is_kept(tmp_path: Path) -> None:
    def broken(partial: Path) -> None:
        partial.mkdir()
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        trees.ensure(tmp_path / "tree", broken, print)
    assert [path.name for path in tmp_path.iterdir()] == [".lock"]
    trees.ensure(tmp_path / "tree", Path.mkdir, print)
    trees.ensure(tmp_path / "tree", broken, print)


def test_every_person_is_one_account_with_further_groups() -> None:
    accounts = {account.name: account for account in sites.load(SITE_FILE).accounts()}
    assert accounts["nlp-2"].group == "nlp"
    assert accounts["nlp-2"].others == ("vision",)
    assert min(account.uid for account in accounts.values()) == sites.FIRST_UID
    assert len({account.uid for account in accounts.values()}) == len(accounts)


def test_a_name_that_could_be_configuration_is_refused(tmp_path: Path) -> None:
    wrong = tmp_path / "site.toml"
    wrong.write_text(SITE_FILE.read_text().replace('name = "biolab"', 'name = "bio lab"'))
    with pytest.raises(DevclusterError, match="bio lab"):
        sites.load(wrong)


def test_limits_on_gpus_wait_for_slurmctld() -> None:
    site = sites.load(SITE_FILE)
    assert "gres/" not in slurmconf.qos_script(site) + slurmconf.accounts_script(site)
    assert "modify account biolab set GrpTRES=gres/gpu=16" in slurmconf.limits_script(site)


def test_the_failing_daemons_lines_come_first(tmp_path: Path) -> None:
    (tmp_path / "a.log").write_text("error: something else\n")
    (tmp_path / "slurmctld.out").write_text("all is well\nfatal: no such key\n")
    told = diagnosis.explain("failed: slurmctld ended with 1", tmp_path)
    assert told.index("fatal: no such key") < told.index("something else")
    assert "all is well" not in told


def test_who_is_not_root_is_told_why(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("os.geteuid", lambda: 1000)
    for words in (["up"], ["down"], ["status"], ["exec", "true"]):
        result = CliRunner().invoke(command.cluster, words)
        assert result.exit_code == 1
        assert "needs root: it makes namespaces" in result.output


def test_an_unknown_system_is_told_what_is_missing(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(host, "os_release", lambda: {"PRETTY_NAME": "Plan 9"})
    with pytest.raises(DevclusterError, match=r"Debian 12 or 13 \(this is Plan 9\)"):
        host.require_supported()


def test_an_installed_package_says_where_the_cluster_is(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setattr(command, "CHECKOUT", tmp_path)
    result = CliRunner().invoke(command.cluster, ["status"])
    assert "belongs to the source checkout" in result.output


def test_the_kits_copy_can_be_read_by_everybody(tmp_path: Path) -> None:
    before = os.umask(0o077)
    try:
        kit.copy_package(tmp_path / "kit")
    finally:
        os.umask(before)
    package = tmp_path / "kit" / "sluice_train"
    assert (package / "node" / "__main__.py").stat().st_mode & 0o777 == 0o644
    assert (package / "node").stat().st_mode & 0o777 == 0o755
    assert not list(package.rglob("__pycache__"))
