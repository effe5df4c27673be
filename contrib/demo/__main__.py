"""`python -m contrib.demo up|down`: what `make demo` and `make demo-down` run."""

import os
import sys
import time
import uuid
from pathlib import Path

from contrib.demo.api import Api
from contrib.demo.portal import ADMINISTRATOR, Portal

ENDED = {"COMPLETED", "FAILED", "CANCELLED", "TIMEOUT", "NODE_FAIL", "OUT_OF_MEMORY"}
JOB = {
    "template": "ddp",
    "group": "nlp",
    "partition": "a100",
    "qos": "normal",
    "nodes": "2",
    "nproc_per_node": "2",
    "time_limit": "10",
    "name": "demo-ddp",
    "working_directory": "~/demo/ddp",
    "environment": "torch-2.13",
    "values": {"script": "train.py", "arguments": ""},
}


def say(text: str) -> None:
    print(text, flush=True)


def up(home: Path) -> int:
    """Start everything, submit the DDP job through the API, follow it to its end."""
    started = time.monotonic()
    portal = Portal(home, say=say)
    portal.start()
    say(f"The portal answers at {portal.address} ({time.monotonic() - started:.0f} s)")
    say("Submitting the template ddp as nlp-1: 2 nodes x 2 processes")
    state = follow(portal.api("nlp-1"))
    say(f"The job ended: {state}\n")
    say(f"Open {portal.address} and sign in as one of:")
    for entry in portal.logins():
        note = "  (administrator)" if entry.login == ADMINISTRATOR else ""
        say(f"  {entry.login:12} {entry.password}{note}")
    say("\nEnd it all with `make demo-down`.")
    return 0 if state == "COMPLETED" else 1


def follow(api: Api) -> str:
    """Submit, print the output as it comes, return the state that the job ended in."""
    submission = api.post("/submissions", JOB, key=str(uuid.uuid4()))
    job_id = submission.get("job_id")
    while job_id is None:
        time.sleep(0.5)
        submission = api.get(f"/submissions/{submission['id']}")
        job_id = submission.get("job_id")
    offset = 0
    while True:
        state = str(api.get(f"/jobs/{job_id}")["state"])
        chunk = api.get(f"/jobs/{job_id}/output?offset={offset}")
        sys.stdout.write(chunk["text"])
        sys.stdout.flush()
        offset = chunk["next_offset"]
        if state in ENDED and not chunk["text"]:
            return state
        time.sleep(0.5)


def main() -> int:
    home = Path(os.environ.get("SLUICE_HOME", ".sluice")).absolute()
    match sys.argv[1:]:
        case ["up"]:
            if os.geteuid() != 0:
                say("The demo starts a real Slurm in namespaces of its own: run `make demo` as")
                say("root, or `make dev` for the pages with a pretended Slurm.")
                return 2
            return up(home)
        case ["down"]:
            Portal(home, say=say).stop()
            return 0
    say("usage: python -m contrib.demo up|down")
    return 2


if __name__ == "__main__":
    sys.exit(main())
