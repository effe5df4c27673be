"""How long a search over 10,000 recipes takes, as the page asks it while one types."""

import os
import random
import statistics
import time
from collections.abc import Iterator
from dataclasses import replace
from datetime import timedelta
from pathlib import Path

from gateway.core import recipes as core
from gateway.core.recipes import Visibility
from gateway.core.search_words import asked
from gateway.store import recipe_reruns, recipes
from gateway.store.recipes import Filters, NewRecipe
from gateway.store.uow import make_begin
from gateway.testing import builders as b
from gateway.testing.database import FLAG, database
from gateway.testing.recipe_samples import recipe
from tests.store.on_postgresql import server

RECIPES, SEARCHES, GOAL_MS = 10_000, 400, 50.0
LATIN = [
    "llama",
    "mistral",
    "bert",
    "gpt",
    "resnet",
    "whisper",
    "finetune",
    "lora",
    "adam",
    "cosine",
    "pretrain",
    "eval",
    "vision",
]
CHINESE = ("大模型训练", "图像分类", "语音识别", "微调实验", "数据清洗", "强化学习")


def search(folder: Path) -> Iterator[dict[str, object]]:
    """On SQLite, then on a PostgreSQL of its own where one is installed."""
    yield {"bench": "recipes/search", **_searches(folder)}
    if not any(Path("/usr/lib/postgresql").glob("*/bin")):
        return
    with server() as address:
        os.environ[FLAG] = address
        try:
            yield {"bench": "recipes/search_postgresql", **_searches(folder)}
        finally:
            del os.environ[FLAG]


def _searches(folder: Path) -> dict[str, object]:
    chance = random.Random(7)
    with database(folder) as engine:
        begin = make_begin(engine)
        people = [b.add_person(begin, f"p{number}") for number in range(20)]
        for start in range(0, RECIPES, 1000):
            with begin() as session:
                for number in range(start, start + 1000):
                    new = NewRecipe(
                        chance.choice(people), _visibility(chance), "nlp", _made(chance, number)
                    )
                    recipes.add(session, new, now=b.NOW + timedelta(seconds=number))
        viewer = b.viewer("p0", person_id=people[0])
        took, found = [], 0
        for wanted in [_wanted(chance) for _ in range(SEARCHES)]:
            began = time.perf_counter()
            with begin() as session:
                rows, _ = recipes.search(session, viewer, wanted)
                recipe_reruns.tallies(session, [row.id for row in rows])
            took.append((time.perf_counter() - began) * 1e3)
            found += len(rows)
    return {
        "recipes": RECIPES,
        "searches": SEARCHES,
        "found_a_search": round(found / SEARCHES, 1),
        "median_ms": round(statistics.median(took), 2),
        "p95_ms": round(statistics.quantiles(took, n=20)[-1], 2),
        "goal_p95_ms": GOAL_MS,
    }


def _made(chance: random.Random, number: int) -> core.Recipe:
    words = [*chance.sample(LATIN, 4), *chance.sample(CHINESE, 2)]
    one = recipe(title=f"{' '.join(words[:3])} {number}", summary=" ".join(words * 8))
    receipt = replace(one.receipt, gpus=2 ** chance.randrange(7), cost=chance.randrange(10**9))
    return replace(one, tags=tuple(words[:2]), model=words[0], receipt=receipt)


def _visibility(chance: random.Random) -> Visibility:
    return chance.choices(list(Visibility), [1, 3, 6])[0]


def _wanted(chance: random.Random) -> Filters:
    """A beginning of one or two words, a filter or none, an order: as people type."""
    words = [chance.choice([*LATIN, *CHINESE]) for _ in range(chance.choice([0, 1, 1, 2]))]
    text = " ".join(word[: chance.randint(1, len(word))] for word in words)
    return Filters(
        asked=asked(text),
        gpus=chance.choice([None, None, 8, 32]),
        cost=chance.choice([None, None, 10**8]),
        tag=chance.choice(["", "", "", chance.choice(LATIN)]),
        order=chance.choice(["new", "new", "cheap", "small"]),
    )
