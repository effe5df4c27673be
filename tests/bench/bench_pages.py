"""Server time of the pages on a large site's store, one web worker, over real HTTP."""
# The quote is that of a person whose group has some 200,000 ended jobs of the template.

import os
import shutil
import statistics
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from make_store import make_store
from web_client import WebClient, hidden

from contrib.demo.portal import free_port

Line = dict[str, object]
PATHS = {
    "job_list_mine": ("researcher", "/jobs"),
    "job_list_group": ("researcher", "/jobs?who=groups"),
    "job_list_all": ("administrator", "/jobs?who=all"),
    "job_list_failed": ("administrator", "/jobs?who=all&state=failed"),
    "job_list_name": ("administrator", "/jobs?who=all&name=train"),
    "job_list_rare": ("administrator", "/jobs?who=all&state=NODE_FAIL&partition=old"),
    "job_list_active": ("administrator", "/jobs?who=all&state=active"),
    "job_page": ("administrator", "/jobs/777777"),
    "job_state": ("administrator", "/jobs/777777/state"),
    "cluster_page": ("administrator", "/cluster"),
}
ASK = {
    "template": "ddp",
    "shown_template": "ddp",
    "group": "g00",
    "partition": "a100",
    "qos": "normal",
    "nodes": "1",
    "nproc_per_node": "4",
    "name": "bench",
    "working_directory": "~",
    "environment": "none",
    "v-script": "train.py",
}


def pages(folder: Path, *, repeat: int = 40) -> Iterator[Line]:
    """p95 of each page in milliseconds; the clock runs at the client, on loopback."""
    home = folder / "home"
    home.mkdir()
    make_store(home / "sluice.db", active=100_000, ended=1_000_000)
    environment = {**os.environ, "SLUICE_HOME": str(home), "SLUICE_WEB_WORKERS": "1"}
    _sluice(environment, "user", "passwd", "user000", "--password-stdin")
    add = ("user", "add", "operator", "--unix-user", "operator", "--name", "operator")
    _sluice(environment, *add, "--role", "administrator", "--password-stdin")
    with _web(environment) as address:
        clients = {
            role: _client(address, login)
            for role, login in (("researcher", "user000"), ("administrator", "operator"))
        }
        for name, (role, path) in PATHS.items():
            times = [_timed(clients[role], path) for _ in range(repeat)]
            yield _line(name, times, goal=60)
        yield from _quote(clients["researcher"], repeat=repeat)


def _line(name: str, times: list[float], *, goal: int) -> Line:
    return {
        "bench": f"pages/{name}",
        "median_ms": round(statistics.median(times), 1),
        "p95_ms": round(statistics.quantiles(times, n=20)[-1], 1),
        "goal_p95_ms": goal,
    }


def _quote(client: WebClient, *, repeat: int) -> Iterator[Line]:
    """The live answer while somebody types: form, quote and script."""
    fields = hidden(client.get("/submit").text) | ASK
    times = []
    for minutes in range(600, 600 + repeat):
        answer = client.post("/submit/preview", fields | {"time_limit": str(minutes)})
        if "runs of ddp" not in answer.text:
            raise RuntimeError(f"no quote with a history: {answer.status}")
        times.append(answer.seconds * 1000)
    yield _line("quote", times, goal=30)


def _timed(client: WebClient, path: str) -> float:
    answer = client.get(path)
    if answer.status != 200:
        raise RuntimeError(f"{path}: {answer.status}")
    return answer.seconds * 1000


def _client(address: str, login: str) -> WebClient:
    client = WebClient(address)
    client.sign_in(login, "a long enough bench password")
    return client


def _sluice(environment: dict[str, str], *words: str) -> None:
    sluice = Path(sys.executable).parent / "sluice"
    given = {"input": "a long enough bench password", "text": True, "env": environment}
    subprocess.run([sluice, *words], check=True, capture_output=True, **given)


@contextmanager
def _web(environment: dict[str, str]) -> Iterator[str]:
    address = f"127.0.0.1:{free_port(0)}"
    sluice = shutil.which("sluice", path=str(Path(sys.executable).parent))
    web = subprocess.Popen(
        [str(sluice), "web"],
        env={**environment, "SLUICE_LISTEN": address},
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
    )
    try:
        for _ in range(100):
            try:
                WebClient(f"http://{address}").get("/sign-in")
                break
            except OSError:
                time.sleep(0.2)
        yield f"http://{address}"
    finally:
        web.terminate()
        web.wait(20)
