"""Notebooks: from the click to a JupyterLab that can be used, and what nginx costs on the way."""

import http.client
import shutil
import sqlite3
import statistics
import time
from collections.abc import Callable, Iterator
from contextlib import closing
from pathlib import Path
from typing import Any

from playwright.sync_api import Page, sync_playwright

from contrib.demo.portal import Portal

Line = dict[str, object]
LOGIN = "nlp-1"
HOME = f"/home/{LOGIN}"
ROUNDS, BY_HAND, REQUESTS, DOWNLOADS = 10, 3, 300, 5
BYTES = 100 * 2**20
USABLE = ".jp-LauncherCard"
# What a person starts by hand: the same words as the template's, without a password.
OWN = (
    "cd; exec /opt/envs/jupyter/bin/jupyter-lab --no-browser --ServerApp.ip=0.0.0.0 "
    "--ServerApp.port={port} --ServerApp.allow_remote_access=True --IdentityProvider.token= "
    "--PasswordIdentityProvider.hashed_password= --ServerApp.root_dir=" + HOME
)


def apps(folder: Path) -> Iterator[Line]:
    """All figures, on a portal and a cluster of their own."""
    portal = Portal(folder, say=lambda _: None)
    try:
        portal.start(with_torch=False, with_jupyter=True, port=0)
        portal.give("nlp", 100_000)
        portal.cluster.run(
            ["sh", "-c", f"head -c {BYTES} /dev/urandom > {HOME}/big.bin"], user=LOGIN
        )
        with sync_playwright() as playwright:
            chromium = playwright.chromium.launch(
                executable_path=shutil.which("chromium"), args=["--no-sandbox", "--disable-gpu"]
            )
            page = _signed_in(portal, chromium)
            yield _click(portal, page, chromium)
            yield from _proxy(portal, page)
    finally:
        portal.stop()


def _click(portal: Portal, page: Page, chromium: Any) -> Line:
    """Each beside one by hand, on the same idle cluster."""
    ours, own = [], []
    for turn in range(ROUNDS):
        ours.append(_until_usable(portal, page))
        if turn < BY_HAND:
            own.append(_by_hand(portal, chromium, 20_000 + turn))
    median, by_hand = statistics.median(ours), statistics.median(own)
    return {
        "bench": "apps/click",
        "click_to_usable_s": round(median, 2),
        "slowest_s": round(max(ours), 2),
        "by_hand_s": round(by_hand, 2),
        "ours_s": round(median - by_hand, 2),
        "goal_s": 8,
        "goal_ours_s": 1.5,
    }


def _until_usable(portal: Portal, page: Page) -> float:
    page.goto("/notebooks")
    page.select_option("select[name=environment]", "jupyter")
    page.wait_for_timeout(800)  # the price of the new choice has come
    page.fill("input[name=cards]", "0")
    page.check("#app-form input[name=open]")
    began = time.monotonic()
    page.click("#app-form .bar-end button:not(.plain)")
    page.wait_for_selector(USABLE, timeout=60_000)
    seconds = time.monotonic() - began
    _stop(portal)
    return seconds


def _by_hand(portal: Portal, chromium: Any, port: int) -> float:
    """JupyterLab's own: the program from its start until its page can be used."""
    address = portal.cluster.run(["sh", "-c", "hostname -I"]).stdout.split()[0]
    context = chromium.new_context(base_url=f"http://{address}:{port}")
    page = context.new_page()
    began = time.monotonic()
    portal.cluster.run(
        [
            "sh",
            "-c",
            f"setsid sh -c '{OWN.format(port=port)}' >/dev/null 2>&1 & echo $! > /tmp/own",
        ],
        user=LOGIN,
    )
    until = time.monotonic() + 60
    while time.monotonic() < until:
        try:
            with closing(http.client.HTTPConnection(address, port, timeout=5)) as line:
                line.request("GET", "/api")
                line.getresponse().read()
            break
        except OSError:
            time.sleep(0.05)
    page.goto("/lab")
    page.wait_for_selector(USABLE, timeout=60_000)
    seconds = time.monotonic() - began
    context.close()
    portal.cluster.run(["pkill", "-u", LOGIN, "-f", f"ServerApp.port={port}"], user=LOGIN)
    return seconds


def _proxy(portal: Portal, page: Page) -> Iterator[Line]:
    """The same requests through nginx and straight to the door, by turns."""
    page.goto("/notebooks")
    page.click("#last button")
    page.wait_for_selector(USABLE, timeout=60_000)
    job, address, port, key = _door(portal)
    cookies = page.context.cookies()
    cookie = "; ".join(f"{one['name']}={one['value']}" for one in cookies)
    host, web_port = portal.address.removeprefix("http://").split(":")

    def through(path: str) -> int:
        return _ask(host, int(web_port), path, {"Cookie": cookie})

    def direct(path: str) -> int:
        return _ask(address, port, path, {"X-Sluice-Key": key, "Cookie": cookie})

    yield _latency(f"/apps/{job}/api", through, direct)
    yield _download(f"/apps/{job}/files/big.bin", through, direct)
    _stop(portal)


def _latency(path: str, through: Callable[[str], int], direct: Callable[[str], int]) -> Line:
    pairs = [(_seconds(through, path), _seconds(direct, path)) for _ in range(REQUESTS)]
    ours, own = ([one[side] * 1000 for one in pairs] for side in (0, 1))
    at_95 = statistics.quantiles(ours, n=20)[18] - statistics.quantiles(own, n=20)[18]
    return {
        "bench": "apps/latency",
        "added_ms_median": round(statistics.median(ours) - statistics.median(own), 2),
        "added_ms_p95": round(at_95, 2),
        "direct_ms_median": round(statistics.median(own), 2),
        "goal_p95_ms": 5,
    }


def _download(path: str, through: Callable[[str], int], direct: Callable[[str], int]) -> Line:
    ours, own = [], []
    for _ in range(DOWNLOADS):
        ours.append(_seconds(through, path, size=BYTES))
        own.append(_seconds(direct, path, size=BYTES))
    fast, plain = statistics.median(ours), statistics.median(own)
    return {
        "bench": "apps/download",
        "through_mb_s": round(BYTES / 1e6 / fast),
        "direct_mb_s": round(BYTES / 1e6 / plain),
        "ratio": round(plain / fast, 2),
        "goal_ratio": 0.8,
    }


def _seconds(ask: Callable[[str], int], path: str, *, size: int = 0) -> float:
    began = time.perf_counter()
    got = ask(path)
    seconds = time.perf_counter() - began
    if size and got != size:
        raise RuntimeError(f"{path}: {got} bytes")
    return seconds


def _ask(host: str, port: int, path: str, headers: dict[str, str]) -> int:
    with closing(http.client.HTTPConnection(host, port, timeout=60)) as line:
        # JupyterLab gives files only to its own pages.
        referer = {"Referer": f"http://{host}:{port}/"}
        line.request("GET", path, headers=headers | referer)
        answer = line.getresponse()
        size = 0
        while chunk := answer.read(2**20):
            size += len(chunk)
        if answer.status != 200:
            raise RuntimeError(f"{path}: {answer.status}")
        return size


def _door(portal: Portal) -> tuple[int, str, int, str]:
    with closing(sqlite3.connect(portal.home / "sluice.db")) as database:
        found: tuple[int, str, int, str] = database.execute(
            "select job.slurm_id, app.address, app.port, app.key from app join submission on "
            "submission.id = app.submission_id join job on job.id = submission.job_id "
            "order by app.ready_at desc limit 1"
        ).fetchone()
    return found


def _stop(portal: Portal) -> None:
    portal.cluster.run(["scancel", "-u", LOGIN])
    until = time.monotonic() + 60
    while portal.cluster.run(["squeue", "-h", "-u", LOGIN]).stdout.strip():
        if time.monotonic() > until:
            raise RuntimeError("the job does not end")
        time.sleep(0.2)


def _signed_in(portal: Portal, chromium: Any) -> Page:
    context = chromium.new_context(base_url=portal.address)
    page: Page = context.new_page()
    password = next(one.password for one in portal.logins() if one.login == LOGIN)
    page.goto("/sign-in")
    page.fill("input[name=login]", LOGIN)
    page.fill("input[name=password]", password)
    page.click("main button[type=submit]")
    page.wait_for_url(lambda url: "/sign-in" not in url)
    return page
