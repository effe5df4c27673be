"""`make dev`: the web pages with a pretended Slurm and sample jobs; nothing here is real.

State lies in $SLUICE_HOME/dev and is made anew at each start. Jobs start, write and end by
themselves. Sign in as nlp-1, nlp-lead, nlp-2, vision-1 or admin with the printed password.
"""

import os
import random
import shutil
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterable
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

from sqlalchemy import update
from werkzeug.serving import run_simple

from gateway.config import default_home, load_settings
from gateway.core.access import Role
from gateway.core.credits import MILLION
from gateway.core.qos import tres
from gateway.core.tres import GPU
from gateway.services import (
    credit,
    forecast_keep,
    forecast_train,
    forecaster,
    hold,
    ingest,
    keep_history,
    policy_apply,
    policy_drift,
    poll,
    settle,
    spot,
    training,
)
from gateway.store import models as t
from gateway.store.schema import upgrade
from gateway.store.uow import Begin, make_begin, make_engine
from gateway.testing import builders as b
from gateway.testing.contribution_samples import fill_contribution
from gateway.testing.dataset_samples import fill_datasets
from gateway.testing.environment_samples import fill_environments
from gateway.testing.fakebroker import FakeBroker
from gateway.testing.fakejobs import FakeJob, output_path
from gateway.testing.forecast_samples import fill_forecasts
from gateway.testing.money_samples import fill_money
from gateway.testing.recipe_samples import fill_recipes
from gateway.testing.result_samples import fill_results
from gateway.testing.snapshot_samples import fill_snapshots
from gateway.testing.spot_samples import fill_spot
from gateway.testing.training_samples import RUN, Trainer, fill_training
from gateway.testing.volume_samples import fill_volumes
from gateway.testing.wait_samples import fill_waits
from gateway.web.app import create_app
from gateway.wire import messages as m

CLUSTER = "dev"
POLL_SECONDS = 2.0
FORECAST_POLLS = 30  # from one look at the forecasts of waiting jobs to the next


def main(port: int, *, reload: bool) -> None:
    """Serve the sample site; with `reload` a second process does, and this one watches files."""
    watches = reload and os.environ.get("WERKZEUG_RUN_MAIN") != "true"
    app = _nothing if watches else _build(port)
    templates = [str(path) for path in Path("templates").rglob("*.html")]
    run_simple("127.0.0.1", port, app, threaded=True, use_reloader=reload, extra_files=templates)


def _nothing(*_: Any) -> Any:
    raise AssertionError("the watching process serves nothing")


def _build(port: int) -> Callable[..., Any]:
    home = default_home(os.environ) / "dev"
    shutil.rmtree(home, ignore_errors=True)
    home.mkdir(parents=True)
    environ = {**os.environ, "SLUICE_HOME": str(home), "SLUICE_CLUSTER_NAME": CLUSTER}
    settings = load_settings(environ)
    engine = make_engine(settings.database_url)
    upgrade(engine)
    begin = make_begin(engine)
    broker = SampleCluster(now=datetime.now(UTC) - timedelta(hours=30))
    broker.script_output = _greeting
    _limits(broker)
    _people(begin, broker)
    _live_jobs(broker)
    broker.now = datetime.now(UTC)
    world = World(broker, begin, home / "history")
    world.step()
    _past(begin)
    credit.top_up("nlp", 30_000 * MILLION, begin=begin, now=broker.now - timedelta(days=60))
    fill_money(begin, now=broker.now)
    fill_contribution(begin, broker, now=broker.now)
    fill_spot(begin, now=broker.now, cluster=CLUSTER)
    fill_environments(begin, now=broker.now)
    fill_snapshots(begin, broker, now=broker.now)
    fill_recipes(begin, now=broker.now)
    fill_volumes(begin, broker, now=broker.now, zone=settings.timezone)
    fill_forecasts(begin, now=broker.now, cluster="before")
    fill_waits(begin, now=broker.now, cluster=CLUSTER)
    spot.refresh(begin=begin, read=begin, now=broker.now, zone=settings.timezone)
    world.trainer = _training(begin, broker)
    ended: dict[str, Any] = {"state": "COMPLETED", "end_time": broker.now, "cluster": CLUSTER}
    fill_datasets(begin, broker, 1, now=broker.now)
    fill_results(begin, broker.files, now=broker.now, **ended)
    keep_history.keep(world.history, begin=begin, read=begin, now=broker.now)
    world.training = forecast_train.start(world.history, now=broker.now)
    world.forecast()
    threading.Thread(target=world.run, daemon=True).start()
    app = create_app(settings, begin=begin, broker=broker)
    print(f"http://127.0.0.1:{port}  password: {b.PASSWORD}", flush=True)
    return world.guarded(app.wsgi_app)


def _limits(broker: FakeBroker) -> None:
    """Policy as sites have it: limits for all, for groups, for people, for jobs."""
    policy = broker.policy
    policy.qos["normal"] = replace(
        policy.qos["normal"], description="what most people use", grp_submit_jobs=2000,
        max_tres_per_account=tres({GPU: 32}), max_tres_per_user=tres({GPU: 16, "mem": 1_048_576}),
        max_submit_per_user=200, max_wall_minutes=3 * 1440, grp_jobs=400,
    )  # fmt: skip
    policy.qos["urgent"] = replace(
        policy.qos["urgent"], description="deadlines", flags=("DenyOnLimit",),
        grp_tres=tres({GPU: 16}),
        max_wall_minutes=1440, grp_tres_minutes=tres({GPU: 600_000}), max_jobs_per_user=0,
    )  # fmt: skip
    policy.qos["spot"] = replace(
        policy.qos["spot"], description="cheap, and pushed off", grace_seconds=120
    )


class SampleCluster(FakeBroker):
    """With a node that is being drained and one that is down, as every cluster has."""

    def nodes(self) -> tuple[m.Node, ...]:
        marks = {
            "a100-3": ("MIXED+DRAIN", "bad fan, replaced on Friday"),
            "debug-1": ("DOWN*", "Not responding"),
        }
        return tuple(
            replace(one, state=marks[one.name][0], reason=marks[one.name][1])
            if one.name in marks
            else one
            for one in super().nodes()
        )


class World:
    """The pretended cluster's time, and a lock: FakeBroker belongs to one thread at a time."""

    def __init__(self, broker: FakeBroker, begin: Begin, history: Path) -> None:
        self.broker, self.begin, self.history = broker, begin, history
        self.lock = threading.Lock()
        self.line = 0
        self.trainer: Trainer | None = None
        self.training: subprocess.Popen[bytes] | None = None  # of the model of forecasts

    def run(self) -> None:
        while True:
            time.sleep(POLL_SECONDS)
            with self.lock:
                self.step()
                if self.line % FORECAST_POLLS == 0:
                    self.forecast()

    def forecast(self) -> None:
        """When the jobs that wait will start. Pages of the form read the queue that it leaves."""
        now = datetime.now(UTC)
        answers = forecaster.answers_now(self.history, now=now, keep=True)
        forecast_keep.renew(forecaster=answers, begin=self.begin, read=self.begin, now=now)

    def step(self) -> None:
        """Time passes, running jobs write a line, and the shared poll looks."""
        gone = (datetime.now(UTC) - self.broker.now).total_seconds()
        if gone > 0:
            self.broker.advance(gone)
        self.line += 1
        for job in self.broker.jobs.values():
            if job.state == "RUNNING":
                text = f"step {self.line:5d}  loss {2.5 / (1 + self.line / 40):.4f}\n"
                self.broker.files.append(output_path(job), job.request.user, text)
        now = datetime.now(UTC)
        poll.poll_cluster(begin=self.begin, broker=self.broker, now=now)
        poll.poll_policy(begin=self.begin, broker=self.broker, now=now)
        policy_drift.look(begin=self.begin, read=self.begin, now=now)
        policy_apply.apply_due(begin=self.begin, broker=self.broker, now=now)
        poll.poll_queue(begin=self.begin, broker=self.broker, cluster=CLUSTER, now=now)
        ingest.ingest(begin=self.begin, broker=self.broker, cluster=CLUSTER, now=now)
        settle.settle(begin=self.begin, now=now)
        hold.release_due(begin=self.begin, now=now)
        keep_history.keep(self.history, begin=self.begin, read=self.begin, now=now)
        if self.trainer is not None:
            self.trainer.one(now, timedelta(seconds=POLL_SECONDS))
        training.follow(begin=self.begin, read=self.begin, broker=self.broker, now=now)

    def guarded(self, app: Callable[..., Iterable[bytes]]) -> Callable[..., Any]:
        def call(environ: Any, start: Any) -> Any:
            with self.lock:
                return list(app(environ, start))

        return call


def _greeting(job: FakeJob) -> str:
    return f"Job {job.job_id} on {','.join(job.nodes)}\nenvironment ready\n"


def _training(begin: Begin, broker: FakeBroker) -> Trainer:
    """The oldest running job is the second one of a training run, and tells how it goes."""
    with begin() as session:
        job = session.query(t.Job).filter(t.Job.name == "gpt-small-ddp").one()
        person = session.query(t.Person.id).filter(t.Person.login == "nlp-1").scalar()
    b.add_submission(
        begin, person, cluster=CLUSTER, token=job.token, run=RUN, state="accepted", job_id=job.id,
        next_attempt_at=None, created_at=job.submit_time,
        ask={"template": "ddp", "name": job.name, "values": {"max_restarts": "3"}},
    )  # fmt: skip
    now = broker.now
    made = fill_training(
        begin, broker.files, now=now, user="nlp-1", second=job.id, started=job.start_time,
        cluster=CLUSTER,
    )  # fmt: skip
    return Trainer(made.folder, ("a100-1", "a100-2"), step=made.step)


def _people(begin: Begin, broker: FakeBroker) -> None:
    for person in broker.site.people:
        b.add_person(begin, person.name, display_name=person.name)
    b.add_person(begin, "admin", display_name="Admin", role=Role.ADMINISTRATOR.value)
    b.add_person(begin, "newcomer", display_name="Newcomer")


def _live_jobs(broker: FakeBroker) -> None:
    """Some run, some wait for each other, one is held."""
    wanted = [
        ("nlp-1", "nlp", "a100", "gpt-small-ddp", 2, 8, 2880),
        (
            "nlp-1",
            "nlp",
            "a100",
            "tokenizer-ablation-with-a-rather-long-name-that-says-it-all",
            1,
            4,
            1900,
        ),
        ("nlp-2", "vision", "a100", "vit-finetune", 1, 8, 4320),
        ("vision-1", "vision", "rtx4090", "detr", 2, 8, 7200),
        ("nlp-1", "nlp", "rtx4090", "eval-sweep", 1, 4, 600),
        ("biolab-1", "biolab", "a100", "fold", 2, 8, 3000),
        ("nlp-lead", "nlp", "a100", "gpt-medium", 4, 8, 9000),
    ]
    for number, (user, group, partition, name, nodes, gpus, minutes) in enumerate(wanted):
        broker.submit(_request(number, user, group, partition, name, nodes, gpus, minutes))
        broker.advance(1800)
    broker.hold(5, user="nlp-1")
    broker.advance(60)


def _request(  # noqa: PLR0917  # a row of the table above
    number: int,
    user: str,
    group: str,
    partition: str,
    name: str,
    nodes: int,
    gpus: int,
    minutes: int,
) -> m.SubmitRequest:
    folder = f"/home/{user}"
    return m.SubmitRequest(
        token=f"{number:032x}",
        user=user,
        name=name,
        account=group,
        partition=partition,
        qos="normal",
        nodes=nodes,
        gpus_per_node=gpus,
        cpus_per_task=16,
        time_limit_minutes=minutes,
        working_directory=folder,
        output=f"{folder}/{name}-%j.out",
        script="#!/bin/bash\nsrun python train.py\n",
    )


def _past(begin: Begin) -> None:
    """Ended jobs of three weeks, in every state; one that was preempted and ran again."""
    chance = random.Random(7)  # noqa: S311  # the same sample each time
    states = ["COMPLETED"] * 6 + ["FAILED", "TIMEOUT", "CANCELLED", "OUT_OF_MEMORY", "NODE_FAIL"]
    now = datetime.now(UTC)
    for number in range(140):
        submit = now - timedelta(minutes=600 + number * 211)
        start = submit + timedelta(minutes=chance.randint(1, 180))
        end = start + timedelta(minutes=chance.randint(2, 400))
        state = states[number % len(states)]
        user, group = chance.choice([("nlp-1", "nlp"), ("nlp-2", "nlp"), ("vision-1", "vision")])
        job = b.add_job(
            begin, cluster=CLUSTER, slurm_id=10_000 + 140 - number, state=state, user=user,
            group=group, name=chance.choice(["bert-base", "lr-sweep", "resnet50", "eval"]),
            submit_time=submit, start_time=start, end_time=end, time_limit_minutes=480,
            gpus=chance.choice([1, 2, 4, 8, 16]), node_list="a100-2", seen_at=now,
            exit_code=1 if state == "FAILED" else 0, exit_signal=9 if "MEMORY" in state else 0,
            reason={"TIMEOUT": "TimeLimit", "FAILED": "NonZeroExitCode"}.get(state),
        )  # fmt: skip
        seconds = int((end - start).total_seconds())
        b.add_run(begin, job, state=state, start_time=start, end_time=end, elapsed_seconds=seconds)
    _requeued(begin, now)
    _submissions(begin, now)


def _requeued(begin: Begin, now: datetime) -> None:
    first, second = now - timedelta(hours=9), now - timedelta(hours=6)
    job = b.add_job(
        begin, cluster=CLUSTER, slurm_id=9_001, state="COMPLETED", user="nlp-1", name="spot-run",
        qos="spot", submit_time=first, last_submit_time=second, restarts=1,
        eligible_time=second + timedelta(minutes=2), start_time=now - timedelta(hours=5),
        end_time=now - timedelta(hours=3), exit_code=0, exit_signal=0, node_list="a100-[1-2]",
    )  # fmt: skip
    b.add_run(
        begin, job, state="PREEMPTED", submit_time=first, eligible_time=first,
        start_time=first + timedelta(minutes=30), end_time=second, elapsed_seconds=9_000,
    )  # fmt: skip
    b.add_run(
        begin, job, state="COMPLETED", submit_time=second, restarts=1,
        eligible_time=second + timedelta(minutes=2), start_time=now - timedelta(hours=5),
        end_time=now - timedelta(hours=3), elapsed_seconds=7_200,
    )  # fmt: skip


def _submissions(begin: Begin, now: datetime) -> None:
    """One that waits for Slurm, one that Slurm refused. No worker delivers them here."""
    with begin() as session:
        person = session.query(t.Person.id).filter(t.Person.login == "nlp-1").scalar()
        session.execute(update(t.Submission).values(cluster=CLUSTER))
    later = now + timedelta(minutes=2)
    b.add_submission(begin, person, created_at=now, next_attempt_at=later, attempts=1,
                     error_code="slurm_unreachable")  # fmt: skip
    b.add_submission(begin, person, created_at=now - timedelta(hours=2), state="refused",
                     error_code="association_submit_limit", next_attempt_at=None)  # fmt: skip


if __name__ == "__main__":
    numbers = [argument for argument in sys.argv[1:] if argument.isdigit()]
    main(int(numbers[0]) if numbers else 8000, reload="--no-reload" not in sys.argv)
