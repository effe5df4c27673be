"""A plan and a rendered script, in this process: what a page or a command does after its start."""

import statistics
import time
from collections.abc import Callable, Iterator
from dataclasses import replace
from datetime import UTC, datetime
from functools import partial
from pathlib import Path

from gateway.config import NODE_KIT, assets
from gateway.core.planner.plan import Ask
from gateway.services.draft import draft
from gateway.services.environments import load_environments
from gateway.services.offer import offer
from gateway.services.plan import load_cards, plan_training
from gateway.services.preview import fresh_ask
from gateway.services.templates import Catalogue, render
from gateway.store.schema import upgrade
from gateway.store.uow import make_begin, make_engine
from gateway.testing import builders as b
from gateway.testing.fakebroker import FakeBroker
from gateway.testing.portal import Portal

Line = dict[str, object]


def plans(folder: Path, *, repeat: int = 100) -> Iterator[Line]:
    """`sluice plan` after its start: cards read, the store asked, everything reckoned."""
    engine = make_engine(f"sqlite:///{folder / 'plan.db'}")
    upgrade(engine)
    begin, now = make_begin(engine, read_only=True), datetime.now(UTC)
    ask = Ask(params=10e9, tokens=12e9, gpu="a100-80g", gpus=16, strategy="zero3")

    def one() -> None:
        plan_training(ask, cards=load_cards(), begin=begin, now=now)

    yield _line("plan", one, repeat=repeat, goal=50)
    engine.dispose()


def scripts(folder: Path, *, repeat: int = 200) -> Iterator[Line]:
    """The script of a job of each training template, the templates being loaded."""
    engine = make_engine(f"sqlite:///{folder / 'render.db'}")
    upgrade(engine)
    begin = make_begin(engine)
    portal = Portal(begin, FakeBroker(), b.viewer("nlp-1", groups=("nlp",)))
    portal.poll_policy()
    offered = offer(portal.viewer, begin=begin)
    catalogue = Catalogue.load((assets() / "sbatch_templates",), kit=NODE_KIT)
    for name in ("ddp", "fsdp", "deepspeed-zero3", "hf-fsdp", "colossalai"):
        template = catalogue.get(name)
        if template is None:
            raise RuntimeError(f"no template {name}")
        ask = replace(fresh_ask(template.manifest, offered), name="bench")
        made = draft(
            ask,
            viewer=portal.viewer,
            offer=offered,
            catalogue=catalogue,
            environments=load_environments(folder / "none.toml"),
        )
        if made.request is None:
            raise RuntimeError(f"no script: {made.problems}")
        one = partial(
            render,
            template,
            spec=made.request,
            values=made.reading.values,
            environment=made.environment,
            nproc_per_node=made.reading.nproc_per_node,
        )
        yield _line(f"render_{name}", one, repeat=repeat, goal=2)
    engine.dispose()


def _line(name: str, act: Callable[[], object], *, repeat: int, goal: float) -> Line:
    """Milliseconds; the first turn, which loads what is loaded once, does not count."""
    act()
    times = []
    for _ in range(repeat):
        began = time.perf_counter()
        act()
        times.append((time.perf_counter() - began) * 1000)
    return {
        "bench": f"planner/{name}",
        "median_ms": round(statistics.median(times), 2),
        "p95_ms": round(statistics.quantiles(times, n=20)[-1], 2),
        "goal_median_ms": goal,
    }
