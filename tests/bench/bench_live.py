"""The figures of a whole portal on a real cluster, each beside its peer in the same run."""

import json
import re
import statistics
import subprocess
import threading
import time
import uuid
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from web_client import WebClient, hidden

from contrib.demo.api import Api
from contrib.demo.portal import Portal

Line = dict[str, object]
LOGIN = "nlp-1"
FIELDS = {
    "template": "command",
    "group": "nlp",
    "partition": "a100",
    "gpu_type": "",
    "qos": "normal",
    "nodes": "1",
    "nproc_per_node": "1",
    "gpus_per_node": "0",
    "time_limit": "5",
    "name": "bench",
    "working_directory": "/home/nlp-1",
    "environment": "none",
    "v-command": "true",
}
PAGES = 200


def submit_latency(portal: Portal, *, rounds: int = 30) -> Line:
    """POST of the form to the job id in the answer, against pyslurm's own submit."""
    web = _signed_in(portal)
    ours: list[float] = []
    peer: list[float] = []
    for _ in range(3):  # the two by turns, so that a slow minute hits both
        peer += _raw(portal, rounds // 3)
        for _ in range(rounds // 3):
            answer = _post_form(web)
            if not re.fullmatch(r"/jobs/\d+", answer.location):
                raise RuntimeError(f"no job: {answer.status} {answer.location}")
            ours.append(answer.seconds * 1000)
            time.sleep(0.05)
    _cancel_all(portal)
    ours_ms, peer_ms = statistics.median(ours), statistics.median(peer)
    return {
        "bench": "live/submit",
        "form_to_job_ms": round(ours_ms, 1),
        "raw_pyslurm_ms": round(peer_ms, 1),
        "difference_ms": round(ours_ms - peer_ms, 1),
        "goal_difference_ms": 15,
    }


def sustained(portal: Portal, *, clients: int = 8, each: int = 40) -> Line:
    """Submissions a second through the API by several clients, against a loop of sbatch."""
    apis = [portal.api(LOGIN) for _ in range(clients)]
    total = clients * each
    script = (
        "printf '#!/bin/bash\\ntrue\\n' > b.sh; for i in $(seq %d); do "
        "sbatch -A nlp -o /dev/null -t 5 b.sh; done"
    )
    peers, ours = [], []
    for _ in range(2):
        started = time.perf_counter()
        done = portal.cluster.run(["sh", "-c", script % (total // 2)], user=LOGIN)
        if done.stdout.count("Submitted") != total // 2:
            raise RuntimeError(done.stderr[-500:])
        peers.append(total // 2 / (time.perf_counter() - started))
        _cancel_all(portal)
        started = time.perf_counter()
        with ThreadPoolExecutor(clients) as pool:
            list(pool.map(lambda api: _submit_many(api, each // 2), apis))
        ours.append(total // 2 / (time.perf_counter() - started))
        _cancel_all(portal)
    return {
        "bench": "live/sustained",
        "api_per_second": round(statistics.median(ours), 1),
        "sbatch_per_second": round(statistics.median(peers), 1),
        "ratio": round(statistics.median(ours) / statistics.median(peers), 2),
        "goal_ratio": 0.5,
    }


def first_line(portal: Portal, *, rounds: int = 9) -> Line:
    """A press of Submit in Chromium to the first line on the page; sbatch to the file's."""
    ours = list(_first_lines_in_browser(portal, rounds))
    peer = [_first_line_of_sbatch(portal) for _ in range(rounds)]
    return {
        "bench": "live/first_line",
        "page_seconds": round(statistics.median(ours), 2),
        "worst_seconds": round(max(ours), 2),
        "sbatch_seconds": round(statistics.median(peer), 2),
        "goal_seconds": 1.5,
    }


def open_pages(portal: Portal, *, seconds: float = 60) -> Line:
    """RPCs a minute at slurmctld with no page open, and with 200 job pages that live."""
    job = _running_job(portal)
    _settle()
    idle = _rpcs(portal, seconds)
    stop = threading.Event()
    counts = [0] * 8
    threads = [
        threading.Thread(target=_many_pages, args=(portal, job, stop, counts, n)) for n in range(8)
    ]
    for thread in threads:
        thread.start()
    time.sleep(5)
    before = sum(counts)
    busy = _rpcs(portal, seconds)
    requests = sum(counts) - before
    stop.set()
    for thread in threads:
        thread.join()
    _cancel_all(portal)
    return {
        "bench": "live/open_pages",
        "rpcs_per_minute_0_pages": round(idle),
        "rpcs_per_minute_200_pages": round(busy),
        "page_requests_per_second": round(requests / seconds, 1),
        "goal": "the same",
    }


def memory(portal: Portal) -> Line:
    """Proportional set size of web, worker and broker, idle, their masters counted in."""
    _settle()
    ours = _descendants(portal.pid)
    sizes = {
        "web": _pss_mb("gateway.web.app", ours),
        "worker": _pss_mb("gateway.worker", ours),
        "broker": _pss_mb("gateway.broker", ours),
    }
    return {
        "bench": "live/memory",
        **{f"{name}_mb": round(size, 1) for name, size in sizes.items()},
        "together_mb": round(sum(sizes.values()), 1),
        "goal_mb": 350,
    }


def _signed_in(portal: Portal) -> WebClient:
    web = WebClient(portal.address)
    web.sign_in(LOGIN, next(one.password for one in portal.logins() if one.login == LOGIN))
    return web


def _post_form(web: WebClient):
    fields = hidden(web.get("/submit").text)
    keep = {"csrf_token": fields["csrf_token"], "form_key": str(uuid.uuid4())}
    return web.post("/submit", FIELDS | keep)


def _raw(portal: Portal, count: int) -> list[float]:
    who = portal.cluster.run(["sh", "-c", "id -u; id -g"], user=LOGIN).stdout.split()
    source = (Path(__file__).parent / "raw_pyslurm.py").read_text()
    words = ["/opt/sluice-broker/bin/python", "-c", source, str(count), *who, "/home/nlp-1"]
    done = portal.cluster.run(words)
    if done.returncode != 0:
        raise RuntimeError(done.stderr[-500:])
    return [float(one) for one in json.loads(done.stdout)]


def _submit_many(api: Api, count: int) -> None:
    values = {"command": "true", "gpus_per_node": "0"}
    body = {
        name: value
        for name, value in FIELDS.items()
        if name[2:] not in values and name not in values
    }
    for _ in range(count):
        made = api.post("/submissions", {**body, "values": values}, key=str(uuid.uuid4()))
        if made["state"] != "accepted":
            raise RuntimeError(str(made))


def _first_lines_in_browser(portal: Portal, rounds: int) -> Iterator[float]:
    from playwright.sync_api import sync_playwright  # only this figure needs it

    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(
            executable_path="/usr/bin/chromium", args=["--no-sandbox", "--disable-gpu"]
        )
        page = browser.new_page(base_url=portal.address)
        page.goto("/sign-in")
        page.fill("input[name=login]", LOGIN)
        login = next(one for one in portal.logins() if one.login == LOGIN)
        page.fill("input[name=password]", login.password)
        page.click("main button[type=submit]")
        page.wait_for_url(lambda url: "/sign-in" not in url)
        for number in range(rounds):
            yield _one_first_line(page, f"first-line-{number}")
        browser.close()


def _one_first_line(page, mark: str) -> float:
    page.goto("/submit")
    radio = page.locator("input[name=template][value=command]")
    if not radio.is_checked():
        with page.expect_response("**/submit/choices"):
            radio.check()
        page.wait_for_timeout(200)
    page.fill("[name='v-command']", f"echo {mark}")
    page.fill("[name=working_directory]", "/home/nlp-1")
    page.fill("[name=time_limit]", "5")
    page.fill("[name=name]", "first-line")
    page.wait_for_timeout(1000)  # the live preview is done, as when a person reads it
    started = time.perf_counter()
    page.click("#submit-form .bar-end button[type=submit]:not(.plain)")
    page.locator("[data-pane]", has_text=re.compile(r"\S")).first.wait_for()
    return time.perf_counter() - started


def _first_line_of_sbatch(portal: Portal) -> float:
    script = (
        "f=/home/nlp-1/peer-$$.out; printf '#!/bin/bash\\necho line\\n' > peer.sh; "
        "s=$(date +%s.%N); sbatch -A nlp -t 5 -o $f peer.sh >/dev/null; "
        "until [ -s $f ]; do sleep 0.005; done; e=$(date +%s.%N); rm $f; echo $s $e"
    )
    begin, end = portal.cluster.run(["sh", "-c", script], user=LOGIN).stdout.split()
    return float(end) - float(begin)


def _running_job(portal: Portal) -> str:
    web = _signed_in(portal)
    fields = hidden(web.get("/submit").text)
    keep = {"csrf_token": fields["csrf_token"], "form_key": str(uuid.uuid4())}
    return web.post("/submit", FIELDS | keep | {"v-command": "sleep 600"}).location


def _many_pages(portal: Portal, job: str, stop: threading.Event, counts: list[int], n: int) -> None:
    """As many pages as 200 / 8, each asking as the page's own scripts do: state every 2 s,
    output every 1.5 s. One connection and one person for them all."""
    web = _signed_in(portal)
    pages = PAGES // len(counts)
    turn = 0
    while not stop.is_set():
        started = time.monotonic()
        for page in range(pages):
            if (turn + page) % 4 != 0:
                web.get(f"{job}/output?offset=0", {"Accept": "application/json"})
                counts[n] += 1
            if (turn + page) % 4 in {0, 2, 3}:
                web.get(f"{job}/state", {"HX-Request": "true"})
                counts[n] += 1
        turn += 1
        stop.wait(max(0.0, 2.0 - (time.monotonic() - started)))


def _rpcs(portal: Portal, seconds: float) -> float:
    portal.cluster.run(["sdiag", "--reset"])
    time.sleep(seconds)
    text = portal.cluster.run(["sdiag"]).stdout
    block = text.partition("Remote Procedure Call statistics by user")[2]
    # The broker reads as root and acts as the people: everybody's calls are counted. Slurm's own
    # (slurmd's as root among them) are the same with and without pages.
    counts = re.findall(r"\(\s*\d+\)\s+count:(\d+)", block.partition("Pending RPC")[0])
    return sum(map(int, counts)) * 60 / seconds


def _settle() -> None:
    time.sleep(35)  # a poll asked for by a submit, and one round of accounting, are over


def _cancel_all(portal: Portal) -> None:
    portal.cluster.run(["scancel", "-u", LOGIN])
    for _ in range(120):
        if not portal.cluster.run(["squeue", "-h", "-u", LOGIN]).stdout.strip():
            return
        time.sleep(0.5)


def _descendants(pid: int) -> dict[str, str]:
    """Words of every process below this one: other portals may run on the machine."""
    words = ["ps", "-eo", "pid=,ppid=,args="]
    listed = subprocess.run(words, capture_output=True, text=True, check=True).stdout
    rows = [line.split(maxsplit=2) for line in listed.splitlines()]
    found: dict[str, str] = {}
    above = {str(pid)}
    while above:
        below = {row[0]: row[2] for row in rows if row[1] in above}
        found |= below
        above = set(below)
    return found


def _pss_mb(word: str, among: dict[str, str]) -> float:
    total = 0
    for pid, words in among.items():
        if word not in words or "nsenter" in words:
            continue
        text = Path(f"/proc/{pid}/smaps_rollup").read_text()
        total += int(re.search(r"^Pss:\s+(\d+)", text, re.M)[1])
    return total / 1024
