"""Run the tests that need a database on a PostgreSQL of their own, thrown away afterwards.

    python tests/store/on_postgresql.py [pytest arguments; by default tests/store tests/services]

Takes Debian's postgresql where it is installed. With a server that runs already, set
SLUICE_TEST_DATABASE_URL and call pytest.
"""

import os
import pwd
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path


@contextmanager
def server() -> Iterator[str]:
    """The address of a fresh server that listens on a socket in a folder of its own."""
    programs = max(Path("/usr/lib/postgresql").glob("*/bin"), default=None)
    if programs is None:
        raise SystemExit("PostgreSQL is not installed: apt install postgresql")
    folder = Path(tempfile.mkdtemp(prefix="sluice-pg-"))
    folder.chmod(0o755)
    as_owner = _as_owner(folder)
    logs, data = folder / "log", folder / "data"
    run = [*as_owner, str(programs / "pg_ctl"), "-D", str(data), "-w", "-l", str(logs)]
    try:
        subprocess.run(
            [*as_owner, str(programs / "initdb"), "-D", str(data), "-A", "trust", "-U", "sluice"],
            check=True, stdout=subprocess.DEVNULL, cwd="/",
        )  # fmt: skip
        options = f"-k {folder} -c listen_addresses= -c fsync=off -c max_connections=200"
        subprocess.run(
            [*run, "-o", options, "start"], check=True, stdout=subprocess.DEVNULL, cwd="/"
        )
        yield f"postgresql+psycopg://sluice@/postgres?host={folder}"
    finally:
        subprocess.run([*run, "-m", "immediate", "stop"], check=False, cwd="/")
        shutil.rmtree(folder)


def _as_owner(folder: Path) -> list[str]:
    """PostgreSQL refuses to run as root."""
    if os.geteuid() != 0:
        return []
    account = pwd.getpwnam("postgres")
    os.chown(folder, account.pw_uid, account.pw_gid)
    return ["setpriv", "--reuid=postgres", "--regid=postgres", "--init-groups"]


def main() -> int:
    wanted = sys.argv[1:] or ["tests/store", "tests/services"]
    with server() as address:
        environment = os.environ | {"SLUICE_TEST_DATABASE_URL": address}
        return subprocess.run(
            [sys.executable, "-m", "pytest", *wanted], env=environment, check=False
        ).returncode


if __name__ == "__main__":
    raise SystemExit(main())
