"""`python -m contrib.demo up|down`: what `make demo` and `make demo-down` run."""

import os
import shlex
import sys
import time
import uuid
from pathlib import Path

from contrib.demo.api import Api, ApiError
from contrib.demo.portal import ADMINISTRATOR, Portal
from contrib.devcluster.errors import DevclusterError

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
    "values": {"script": "train.py", "arguments": "", "datasets": "waves"},
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
    found = portal.api(ADMINISTRATOR).get("/datasets")["datasets"]
    names = ", ".join(one["name"] for one in found)
    say(f"\nDatasets to choose in the form, under /datasets on every node: {names}")
    say("\nLook closer: export SLUICE_HOME=" + shlex.quote(str(home)))
    say("  .venv/bin/sluice doctor; .venv/bin/sluice cluster exec -- squeue")
    say("End it all with `make demo-down`.")
    return 0 if state == "COMPLETED" else 1


def down(home: Path) -> int:
    """End everything, and say what stays."""
    Portal(home, say=say).stop()
    if not home.is_dir():
        say(f"Nothing was started in {home}. Was SLUICE_HOME another one then?")
    else:
        say(f"Ended. The portal's database and logs stay in {home}")
    return 0


def follow(api: Api) -> str:
    """Submit, print the output as it comes, return the state that the job ended in."""
    submission = api.post("/submissions", JOB, key=str(uuid.uuid4()))
    job_id = submission.get("job_id")
    while job_id is None:
        if submission["state"] == "refused":
            raise RuntimeError(f"The cluster refused the job: {submission['message']}")
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
    home = Path(os.environ.get("SLUICE_HOME") or ".sluice").absolute()
    match sys.argv[1:]:
        case ["up"]:
            act = up
        case ["down"]:
            act = down
        case _:
            say("usage: python -m contrib.demo up|down")
            return 2
    try:
        return act(home)
    except (ApiError, DevclusterError, OSError, RuntimeError) as error:
        print(f"demo: {error}", file=sys.stderr)
        return 1
    except KeyboardInterrupt:
        print("\nInterrupted; `make demo-down` ends what is running.", file=sys.stderr)
        return 130


if __name__ == "__main__":
    sys.exit(main())
