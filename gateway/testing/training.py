"""Run folders for tests and for a look by hand: lines as the library and the node tools write
them (docs/engineering/training.md)."""

import json
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any

from gateway.store import models as t
from gateway.store.uow import Begin
from gateway.testing import builders as b
from gateway.testing.fakefiles import FakeFiles


@dataclass
class RunFolder:
    """Of one job. Each line is appended at once, as on a node."""

    files: FakeFiles
    user: str
    folder: str
    key: str
    restart: int = 0
    written: list[str] = field(default_factory=list)

    def event(self, at: datetime, kind: str, **facts: Any) -> None:
        self.line("events.jsonl", at, kind=kind, **facts)

    def metric(self, at: datetime, step: int, **facts: Any) -> None:
        self.line("metrics.jsonl", at, step=step, **facts)

    def look(self, at: datetime, node: str, *utils: float | None, mem: int = 40 * 2**30) -> None:
        """One look at a node whose cards were used so much."""
        cards = [
            {"i": i, "uuid": f"GPU-{i}", "util": util, "mem": mem, "mem_total": 80 * 2**30,
             "power": 300.0, "clock": 1400, "ecc": 0, "procs": 1}
            for i, util in enumerate(utils)
        ]  # fmt: skip
        self.line(f"telemetry/{node}.jsonl", at, procs=len(utils), expected=len(utils), cards=cards)

    def line(self, file: str, at: datetime, **facts: Any) -> None:
        stamp = {"at": at.timestamp(), "job": self.key, "restart": self.restart}
        self.raw(file, json.dumps(stamp | facts) + "\n")

    def raw(self, file: str, text: str) -> None:
        self.files.append(f"{self.folder}/{file}", self.user, text)


def add_portal_job(
    begin: Begin, user: str = "member", *, run: str | None = None, **job: Any
) -> int:
    """A job that came through the portal, running unless told otherwise; `run` is its run's name.
    Its owner gets an account if there is none."""
    with begin() as session:
        found = session.query(t.Person.id).filter(t.Person.unix_user == user).scalar()
        count = session.query(t.Submission.id).count()
    person = found if found is not None else b.add_person(begin, user)
    token = f"f{count + 1:031x}"
    facts = {"state": "RUNNING", "user": user, "token": token, "start_time": b.NOW,
             "node_list": "a100-1", "working_directory": f"/home/{user}"}  # fmt: skip
    job_id = b.add_job(begin, **(facts | job))
    name, account = str(job.get("name", "train")), str(job.get("group", "nlp"))
    b.add_submission(
        begin, person, token=token, form_key=token, state="accepted", job_id=job_id, run=run,
        next_attempt_at=None, request={"name": name, "account": account, "partition": "a100"},
    )  # fmt: skip
    return job_id


def run_folder(begin: Begin, files: FakeFiles, job_id: int, run: str | None = None) -> RunFolder:
    """The folder that the portal looks for: the rule written once more, by hand."""
    with begin() as session:
        job = session.get_one(t.Job, job_id)
    key = f"{job.array_job_id}_{job.array_task}" if job.array_job_id else str(job.slurm_id)
    name = run or f"{job.name}-{key}"
    if run and job.array_job_id:
        name = f"{run}_{job.array_task}"
    folder = f"{job.working_directory}/sluice-runs/{name}"
    for part in (folder, f"{folder}/telemetry"):
        files.add_folder(part, job.user)
    return RunFolder(files, job.user, folder, key)
