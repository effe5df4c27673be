"""Runs a cell of a notebook through the door, as a browser behind the portal does.

A person's own program inside the cluster, with the Python that has JupyterLab:
    app_cell.py READY_JSON BASE CODE [KERNEL]      prints {"kernel", "output"} as JSON
"""

import json
import sys
import urllib.request
import uuid
from pathlib import Path

import websocket


def main(ready: str, base: str, code: str, kernel: str = "") -> None:
    door = json.loads(Path(ready).read_text())
    place = f"{door['address']}:{door['port']}{base}"
    key = {"X-Sluice-Key": door["key"]}
    if not kernel:
        kernel = start(f"http://{place}", key)
    channel = f"ws://{place}api/kernels/{kernel}/channels"
    socket = websocket.create_connection(channel, header=key, timeout=60)
    print(json.dumps({"kernel": kernel, "output": run(socket, code)}))


def start(place: str, key: dict[str, str]) -> str:
    """A new kernel. JupyterLab wants its cookie's word again, whoever has opened the door."""
    page = urllib.request.urlopen(urllib.request.Request(f"{place}lab", headers=key))
    cookies = [value.partition(";")[0] for value in page.headers.get_all("Set-Cookie")]
    word = next(cookie.partition("=")[2] for cookie in cookies if cookie.startswith("_xsrf="))
    headers = {**key, "Cookie": "; ".join(cookies), "X-XSRFToken": word}
    asked = urllib.request.Request(f"{place}api/kernels", b"{}", headers)
    return str(json.load(urllib.request.urlopen(asked))["id"])


def run(socket: websocket.WebSocket, code: str) -> str:
    own = uuid.uuid4().hex
    header = {"msg_id": own, "msg_type": "execute_request", "username": "", "session": own}
    content = {"code": code, "silent": False}
    request = {"header": {**header, "version": "5.3"}, "parent_header": {}, "metadata": {}}
    socket.send(json.dumps({**request, "content": content, "channel": "shell", "buffers": []}))
    output = ""
    while True:
        told = json.loads(socket.recv())
        if told["parent_header"].get("msg_id") != own:
            continue
        if told["msg_type"] == "stream":
            output += told["content"]["text"]
        if told["msg_type"] == "status" and told["content"]["execution_state"] == "idle":
            return output


main(*sys.argv[1:])
