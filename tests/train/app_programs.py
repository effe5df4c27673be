"""What stands behind the door in tests: small programs that listen at a Unix socket or a port."""

import json
import os
import socket
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

KIT = Path(__file__).resolve().parents[2] / "contrib" / "sluice_train"

# Answers with what it was asked, head and all, and closes after one answer as it is told to.
ECHO = """
import http.server, json, socketserver, sys
class Handler(http.server.BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    def do_GET(self):
        body = json.dumps({"path": self.path, "headers": dict(self.headers)}).encode()
        self.send_response(200)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)
    def address_string(self): return "-"
class Unix(socketserver.ThreadingMixIn, socketserver.UnixStreamServer): daemon_threads = True
class Tcp(socketserver.ThreadingMixIn, socketserver.TCPServer): daemon_threads = True
place = sys.argv[1]
server = Tcp(("127.0.0.1", int(place)), Handler) if place.isdigit() else Unix(place, Handler)
print("listening at", place, flush=True)
server.serve_forever()
"""


class Job:
    """A job of an application, without Slurm: `run` in a folder, with an scontrol of its own."""

    def __init__(self, tmp_path: Path, *, number: int = 7, **environment: str) -> None:
        self.number = number
        self.work = tmp_path / "work"
        self.work.mkdir(exist_ok=True)
        bin_folder = tmp_path / "bin"
        bin_folder.mkdir(exist_ok=True)
        scontrol = bin_folder / "scontrol"
        scontrol.write_text("#!/bin/sh\necho 'NodeName=here NodeAddr=127.0.0.1 Port=1'\n")
        scontrol.chmod(0o755)
        self.environment = {
            "PATH": f"{bin_folder}:{os.environ['PATH']}",
            "PYTHONPATH": str(KIT),
            "SLURM_JOB_ID": str(number),
            "SLURMD_NODENAME": "here",
            "HOME": str(tmp_path),
            **environment,
        }
        self.process: subprocess.Popen[str] | None = None

    @property
    def folder(self) -> Path:
        return self.work / ".sluice" / "apps" / str(self.number)

    @property
    def base(self) -> str:
        return f"/apps/{self.number}/"

    def start(self, *words: str, options: tuple[str, ...] = ("--listen=socket",)) -> "Job":
        run = [sys.executable, "-m", "sluice_train.app", "run", *options, "--", *words]
        self.process = subprocess.Popen(
            run,
            cwd=self.work,
            env=self.environment,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
        )
        return self

    def echo(self, *more: str, place: str = "{socket}", options: tuple[str, ...] = ()) -> "Job":
        return self.start(
            sys.executable, "-c", ECHO, place, *more, options=options or ("--listen=socket",)
        )

    def ready(self, seconds: float = 30) -> dict[str, object]:
        until((self.folder / "ready.json").exists, seconds, self.told)
        found: dict[str, object] = json.loads((self.folder / "ready.json").read_text())
        return found

    def state(self) -> dict[str, object]:
        found: dict[str, object] = json.loads((self.folder / "state.json").read_text())
        return found

    def ended(self, seconds: float = 30) -> tuple[int, str]:
        assert self.process is not None
        output, _ = self.process.communicate(timeout=seconds)
        return self.process.returncode, output

    def told(self) -> str:
        assert self.process is not None
        if self.process.poll() is None:
            return "it runs"
        return str(self.process.communicate()[0])

    def kill(self) -> None:
        if self.process is not None and self.process.poll() is None:
            self.process.terminate()
            self.process.communicate(timeout=30)

    def connect(self) -> socket.socket:
        door = self.ready()
        return socket.create_connection(("127.0.0.1", int(str(door["port"]))), timeout=20)

    def request(self, path: str, *lines: str, method: str = "GET", key: str | None = None) -> bytes:
        secret = str(self.ready()["key"]) if key is None else key
        head = [f"{method} {path} HTTP/1.1", "Host: portal", f"X-Sluice-Key: {secret}", *lines]
        return "\r\n".join([*head, "", ""]).encode()

    def ask(self, path: str, *lines: str, method: str = "GET", key: str | None = None) -> bytes:
        """The whole answer, until the connection is closed."""
        return self.send(self.request(path, *lines, method=method, key=key))

    def send(self, content: bytes) -> bytes:
        with self.connect() as found:
            found.sendall(content)
            return read_all(found)


def read_all(found: socket.socket) -> bytes:
    answer = b""
    while chunk := found.recv(65_536):
        answer += chunk
    return answer


def until(true: Callable[[], bool], seconds: float, told: Callable[[], object]) -> None:
    end = time.monotonic() + seconds
    while not true():
        assert time.monotonic() < end, told()
        time.sleep(0.02)
