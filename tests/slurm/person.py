"""Somebody at a login node of the cluster, with nothing but Slurm's own commands."""

import re
import time
from collections.abc import Callable, Iterator
from dataclasses import replace
from typing import TYPE_CHECKING

import pytest

from gateway.config import NODE_KIT
from gateway.core.answers import clean_all
from gateway.core.states import parse_state
from gateway.services.environments import Environment
from gateway.services.templates import Catalogue, render
from gateway.testing.template_samples import FOLDER, SPEC
from gateway.wire.messages import SubmitRequest

if TYPE_CHECKING:
    from contrib.devcluster.instance import Instance

USER = "nlp-1"
HOME = f"/home/{USER}/plain-sbatch"
TORCH = "/opt/envs/torch-2.13"
ASKED = replace(
    SPEC,
    user=USER,
    working_directory=HOME,
    output=f"{HOME}/%x-%j.out",
    time_limit_minutes=15,
    cpus_per_task=4,
)


class Person:
    """Somebody at a login node, with nothing but Slurm's own commands."""

    def __init__(self, cluster: "Instance") -> None:
        self.cluster = cluster
        self.jobs: list[int] = []
        self.run("mkdir", "-p", HOME)

    def run(self, *words: str, stdin: str | None = None) -> str:
        done = self.cluster.run(list(words), user=USER, stdin=stdin)
        assert done.returncode == 0, done.stderr
        return done.stdout

    def write(self, name: str, text: str) -> None:
        self.run("sh", "-c", 'cat > "$1"', "sh", f"{HOME}/{name}", stdin=text)

    def submit(
        self,
        template: str,
        spec: SubmitRequest,
        *,
        environment: Environment | None = None,
        nproc_per_node: int | None = None,
        options: tuple[str, ...] = (),
        kit: str = NODE_KIT,
        on_stall: str = "nothing",
        on_preempt: str = "requeue",
        smoke: bool = False,
        **typed: str,
    ) -> int:
        """By plain sbatch with `options`. A field that is not named has its default."""
        found = Catalogue.load((FOLDER,), kit=kit).get(template)
        assert found is not None
        defaults = {field.name: field.default for field in found.manifest.fields}
        values, refused = clean_all(found.manifest, defaults | typed)
        assert refused == ()
        script = render(
            found,
            spec=spec,
            values=values,
            environment=environment,
            nproc_per_node=nproc_per_node,
            on_stall=on_stall,
            on_preempt=on_preempt,
            smoke=smoke,
        )
        self.write("job.sbatch", script)
        job = int(self.run("sbatch", "--parsable", *options, f"{HOME}/job.sbatch"))
        self.jobs.append(job)
        return job

    def show(self, job: int) -> dict[str, str]:
        line = self.run("scontrol", "show", "job", "-o", str(job))
        return dict(re.findall(r"(\S+?)=(\S*)", line))

    def show_element(self, array: int, task: int) -> dict[str, str]:
        line = self.run("scontrol", "show", "job", "-o", f"{array}_{task}")
        return dict(re.findall(r"(\S+?)=(\S*)", line))

    def output(self, job: int) -> str:
        return self.run("sh", "-c", f"cat {HOME}/*-{job}.out")

    def until(self, job: int, ready: Callable[[dict[str, str]], bool], seconds: float) -> None:
        """Ask until it is so: only Slurm knows when a job has ended."""
        end = time.monotonic() + seconds
        while not ready(self.show(job)):
            assert time.monotonic() < end, (self.show(job), self.output(job))
            time.sleep(0.1)

    def ended(self, job: int, seconds: float) -> dict[str, str]:
        self.until(job, lambda shown: parse_state(shown["JobState"])[0].is_ended, seconds)
        return self.show(job)


@pytest.fixture
def person(cluster: "Instance") -> Iterator[Person]:
    someone = Person(cluster)
    yield someone
    for job in someone.jobs:
        someone.run("scancel", str(job))
