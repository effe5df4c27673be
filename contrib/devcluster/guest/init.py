"""Process 1 of an instance: starts Slurm in the right order, then buries the dead for ever.

Runs on the root file system's own Python with nothing but the standard library. What it has come
to is written to /run/devcluster/phase, which the machine reads: a name of a step, then "ready",
or "failed: ..." with the daemon that did not come up.
"""

import json
import os
import pwd
import shutil
import signal
import socket
import subprocess
import time
from collections.abc import Callable
from pathlib import Path
from typing import IO, Any, NoReturn

HERE = Path("/run/devcluster")
PHASE = HERE / "phase"
LOGS = Path("/var/log/slurm")
SLURM_FOLDERS = ("/run/slurm", "/var/lib/slurm", "/var/lib/slurm/slurmctld", str(LOGS))
BRIDGE = "br0"
MTU = "1400"
WAIT_SECONDS = 20.0
Plan = dict[str, Any]
MARIADB = [
    "mariadbd",
    "--user=mysql",
    "--skip-networking",
    "--innodb-snapshot-isolation=OFF",  # slurmdbd demands it
    "--innodb-lock-wait-timeout=900",
    # nothing outlives the instance, so nothing needs to reach a disk
    "--innodb-flush-log-at-trx-commit=0",
    "--innodb-flush-method=nosync",
    "--skip-log-bin",
    "--innodb-buffer-pool-size=64M",
    "--performance-schema=OFF",
]

# slurmdbd enters by its Unix account, so there is no password to keep
DATABASE = """
CREATE DATABASE slurm_acct_db;
CREATE USER slurm@localhost IDENTIFIED VIA unix_socket;
GRANT ALL ON slurm_acct_db.* TO slurm@localhost;
"""


class StartError(Exception):
    pass


def main() -> NoReturn:
    attend_signals()
    plan = json.loads((HERE / "plan.json").read_text())
    try:
        start(plan)
    except StartError as failed:
        note(f"failed: {failed}")
    except Exception as failed:  # whatever it is, the machine must hear of it
        note(f"failed: {failed!r}")
    bury_for_ever()


def attend_signals() -> None:
    """Daemons and jobs inherit what is ignored: SIGHUP, where nohup started the cluster."""
    for number in signal.valid_signals():
        if signal.getsignal(number) is signal.SIG_IGN:
            signal.signal(number, signal.SIG_DFL)


def start(plan: Plan) -> None:
    note("files")
    install_files(plan)
    note("munged and MariaDB")
    database = spawn(MARIADB, LOGS / "mariadbd.log")
    run(["munged", "--num-threads=4"], user="munge")
    note("network")
    network(plan)
    wait_for("mariadbd", lambda: Path("/run/mysqld/mysqld.sock").exists(), database)
    run(["mariadb", "-e", DATABASE])
    note("slurmdbd")
    slurmdbd = spawn(["slurmdbd", "-D"], LOGS / "slurmdbd.out", user="slurm")
    wait_for("slurmdbd", lambda: listens(6819), slurmdbd)
    note("accounts")
    sacctmgr(HERE / "qos")
    sacctmgr(HERE / "accounts")
    note("slurmctld")
    slurmctld = spawn(["slurmctld", "-D"], LOGS / "slurmctld.out")
    holders = {node["name"]: node["holder"] for node in plan["nodes"]}
    note("slurmd")
    for name, holder in holders.items():
        run(["nsenter", "-t", str(holder), "-u", "-n", "slurmd", "-N", name])
    note("idle nodes")
    wait_for("slurmctld", lambda: all_idle(len(holders)), slurmctld)
    note("limits")
    wait_for("slurmctld's registration with slurmdbd", registered, slurmctld)
    sacctmgr(HERE / "limits")
    note("ready")


def install_files(plan: Plan) -> None:
    socket.sethostname("head")
    for path in sorted((HERE / "slurm").iterdir()):
        shutil.copy(path, Path("/etc/slurm") / path.name)
    for name in ("hosts", "hostname"):
        shutil.copyfile(HERE / name, Path("/etc") / name)
    append("/etc/passwd", plan["passwd"])
    append("/etc/group", plan["group"])
    slurm, munge = pwd.getpwnam("slurm"), pwd.getpwnam("munge")
    for folder in SLURM_FOLDERS:
        Path(folder).mkdir(parents=True, exist_ok=True)
        os.chown(folder, slurm.pw_uid, slurm.pw_gid)
    secret = Path("/etc/slurm/slurmdbd.conf")
    secret.chmod(0o600)
    os.chown(secret, slurm.pw_uid, slurm.pw_gid)
    key = Path("/etc/munge/munge.key")
    key.unlink(missing_ok=True)
    key.touch(0o600)
    key.write_bytes(os.urandom(128))
    for folder in ("/run/munge", "/var/log/munge", "/var/lib/munge", "/etc/munge", str(key)):
        if not Path(folder).exists():
            Path(folder).mkdir(0o755)
        os.chown(folder, munge.pw_uid, munge.pw_gid)
    Path("/run/mysqld").mkdir(mode=0o750)
    shutil.chown("/run/mysqld", "mysql", "slurm")
    homes(plan)


def homes(plan: Plan) -> None:
    for line in plan["passwd"].splitlines():
        name, _, uid, gid, *_ = line.split(":")
        home = Path("/home") / name
        home.mkdir(mode=0o750, exist_ok=True)
        os.chown(home, int(uid), int(gid))


def network(plan: Plan) -> None:
    """The machine moved `uplink` in here; each node gets its own network behind a bridge."""
    uplink = plan["uplink"]
    wait_for("the network interface", lambda: uplink in dict(socket.if_nameindex()).values(), None)
    ip(
        f"link set lo up\nlink add {BRIDGE} type bridge\nlink set {BRIDGE} mtu {MTU}\n"
        f"link set {uplink} mtu {MTU} master {BRIDGE} up\n"
        f"addr add {plan['head']}/24 dev {BRIDGE}\nlink set {BRIDGE} up"
    )
    for at, node in enumerate(plan["nodes"]):
        node["holder"] = hold_namespaces(node["name"])
        ip(
            f"link add n{at} type veth peer name eth0 netns {node['holder']}\n"
            f"link set n{at} mtu {MTU} master {BRIDGE} up"
        )
        (HERE / "nodes" / node["name"]).write_text(str(node["holder"]))
        ip(
            f"link set lo up\nlink set eth0 mtu {MTU} up\naddr add {node['address']}/24 dev eth0\n"
            f"route add default via {plan['host']}",
            inside=node["holder"],
        )
    ip(f"route add default via {plan['host']}")


def hold_namespaces(name: str) -> int:
    """A process that does nothing but keep the node's host name and network."""
    words = ["unshare", "-u", "-n", "sh", "-c", 'hostname "$1" && exec sleep infinity', "sh", name]
    holder = spawn(words, LOGS / "nodes.out")
    comm = Path(f"/proc/{holder.pid}/comm")
    wait_for(f"node {name}", lambda: comm.read_text() == "sleep\n", holder)
    return holder.pid


def ip(commands: str, *, inside: int | None = None) -> None:
    words = ["ip", "-batch", "-"]
    if inside is not None:
        words = ["nsenter", "-t", str(inside), "-n", *words]
    done = subprocess.run(words, input=commands, capture_output=True, text=True, check=False)
    if done.returncode != 0:
        raise StartError(f"network: {done.stderr.strip()}")


def run(
    argv: list[str], *, user: str | None = None, stdin: int | IO[str] = subprocess.DEVNULL
) -> None:
    """Run a command to its end; daemons put themselves into the background."""
    log = LOGS / f"{Path(argv[0]).name}.out"
    with log.open("ab") as output:
        done = subprocess.run(
            argv, stdin=stdin, stdout=output, stderr=output, user=user, group=user, check=False
        )
    if done.returncode != 0:
        raise StartError(f"{' '.join(argv)} ended with {done.returncode}")


def spawn(argv: list[str], log: Path, *, user: str | None = None) -> subprocess.Popen[bytes]:
    with log.open("ab") as output:
        return subprocess.Popen(
            argv,
            stdin=subprocess.DEVNULL,
            stdout=output,
            stderr=output,
            user=user,
            group=user,
            start_new_session=True,
        )


def wait_for(what: str, ready: Callable[[], bool], process: subprocess.Popen[bytes] | None) -> None:
    end = time.monotonic() + WAIT_SECONDS
    while not ready():
        if process is not None and process.poll() is not None:
            raise StartError(f"{what} ended with {process.returncode}")
        if time.monotonic() > end:
            raise StartError(f"{what} was not ready within {WAIT_SECONDS:.0f} s")
        time.sleep(0.02)


def sacctmgr(script: Path) -> None:
    """It ends with 0 even where a line of its input was refused, so what it says is read too."""
    log = LOGS / "sacctmgr.out"
    before = log.stat().st_size if log.exists() else 0
    with script.open() as lines:
        run(["sacctmgr", "-i"], stdin=lines)
    with log.open() as said:
        said.seek(before)
        if "error:" in said.read():
            raise StartError(f"sacctmgr refused a line of {script.name}")


def registered() -> bool:
    asked = subprocess.run(
        ["sacctmgr", "-nP", "show", "cluster", "format=controlhost"],
        capture_output=True,
        text=True,
        check=False,
    )
    return bool(asked.stdout.strip())


def listens(port: int) -> bool:
    with socket.socket() as probe:
        probe.settimeout(0.5)
        return probe.connect_ex(("head", port)) == 0


def all_idle(count: int) -> bool:
    asked = subprocess.run(
        ["sinfo", "-h", "-N", "-o", "%N %T"], capture_output=True, text=True, check=False
    )
    lines = asked.stdout.splitlines()
    return len(lines) == count and all(line.endswith(" idle") for line in lines)


def append(path: str, text: str) -> None:
    with Path(path).open("a") as target:
        target.write(text)


def note(phase: str) -> None:
    fresh = PHASE.with_suffix(".new")
    fresh.write_text(f"{phase}\n")
    fresh.replace(PHASE)


def bury_for_ever() -> NoReturn:
    """Orphans become our children; a restarted daemon is one more of them."""
    signal.pthread_sigmask(signal.SIG_BLOCK, [signal.SIGCHLD])
    while True:
        try:
            os.waitpid(-1, 0)
        except ChildProcessError:
            signal.sigwait([signal.SIGCHLD])


if __name__ == "__main__":
    main()
