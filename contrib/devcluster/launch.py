"""Bringing an instance up: files, network, namespaces, then waiting for its first process."""

import json
import shutil
import subprocess
import time
from pathlib import Path

from contrib.devcluster import diagnosis, kit, network, processes, slurmconf, state
from contrib.devcluster.commands import Say
from contrib.devcluster.errors import DevclusterError
from contrib.devcluster.paths import CHECKOUT, GUEST
from contrib.devcluster.processes import Process
from contrib.devcluster.site import Site
from contrib.devcluster.state import Folders, Record

WAIT_SECONDS = 90.0
NAMESPACES = ("-m", "-p", "-n", "-u", "-i", "-f", "--kill-child", "--propagation", "private")


def launch(folders: Folders, site: Site, root: Path, cache: Path, say: Say) -> Record:
    """Start everything; returns when a job can run. The caller cleans up after a failure."""
    envs = cache / "envs"
    envs.mkdir(parents=True, exist_ok=True)
    libraries = kit.ensure(cache, root, say)
    link = network.reserve(folders.home, cache)
    write_files(folders, site, link)
    kit.copy_package(folders.cluster / "kit")
    record = _start(folders, root, (envs, libraries), link)
    state.write(folders.record, record)
    network.hand_over(link, record.init.pid)
    _wait(folders, record, say)
    return record


def write_files(folders: Folders, site: Site, link: network.Link) -> None:
    for folder in (folders.cluster / "mnt", folders.cluster / "home", folders.log, folders.run):
        folder.mkdir(parents=True, exist_ok=True)
    for folder in (folders.etc / "slurm", folders.etc / "nodes"):
        folder.mkdir(parents=True)
    # the folder holds the configuration only: the phase is written by root inside
    for name, text in slurmconf.files(site, link.network).items():
        (folders.etc / name).write_text(text)
    for script in ("init.py", "daemon.sh"):
        shutil.copyfile(GUEST / script, folders.etc / script)
    plan = {
        "uplink": link.inner,
        "host": link.network.host,
        "head": link.network.head,
        "passwd": slurmconf.passwd_lines(site),
        "group": slurmconf.group_lines(site),
        "nodes": [
            {"name": name, "address": link.network.node(at)}
            for at, name in enumerate(site.node_names())
        ],
    }
    (folders.etc / "plan.json").write_text(json.dumps(plan))


def _start(folders: Folders, root: Path, shared: tuple[Path, Path], link: network.Link) -> Record:
    words: list[str | Path] = ["unshare", *NAMESPACES, "sh", GUEST / "enter.sh"]
    words += [root, folders.cluster, CHECKOUT / "gateway", *shared]
    with (folders.log / "init.out").open("w") as output:
        unshare = subprocess.Popen(
            words,
            stdin=subprocess.DEVNULL,
            stdout=output,
            stderr=output,
            env={
                "PATH": "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin",
                "LC_ALL": "C.UTF-8",
            },
            start_new_session=True,
        )
    unshare.returncode = 0  # it outlives us on purpose: without this Popen would warn about it
    end = time.monotonic() + 10
    while time.monotonic() < end:
        child = processes.only_child(unshare.pid)
        if child is not None:
            return Record(
                Process.of(unshare.pid), Process.of(child), str(root), link.network.prefix
            )
        time.sleep(0.005)
    raise DevclusterError(diagnosis.explain("", folders.log))


def _wait(folders: Folders, record: Record, say: Say) -> None:
    end = time.monotonic() + WAIT_SECONDS
    told = ""
    while time.monotonic() < end:
        ended = not record.init.alive()
        phase = folders.phase.read_text().strip() if folders.phase.exists() else ""
        if phase == "ready":
            return
        if ended or phase.startswith("failed"):
            raise DevclusterError(diagnosis.explain(phase, folders.log))
        if phase and phase != told:
            say(f"Starting: {phase}")
            told = phase
        time.sleep(0.02)
    raise DevclusterError(diagnosis.explain(f"{told} took too long", folders.log))
