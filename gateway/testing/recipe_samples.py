"""A recipe for tests, whole and plausible, and a few for a look by hand."""

from dataclasses import replace
from datetime import datetime, timedelta
from typing import Any

from gateway.core import recipes as core
from gateway.core.recipe_code import digest
from gateway.core.recipes import Visibility
from gateway.store import people, recipe_code, recipes
from gateway.store.recipes import NewRecipe
from gateway.store.uow import Begin

CODE = {
    "train.py": "import sluice_train\n\n\nfor step in sluice_train.steps(1000):\n    ...\n",
    "conf/base.yaml": "lr: 3.0e-4\nbatch: 64\n",
}
# Title, model, tags, template, cards, run time in seconds, cost in units, tokens a second.
_SAMPLES = (
    (
        "GPT-2 from scratch on OpenWebText",
        "GPT-2 124M",
        "gpt pretrain",
        "ddp",
        8,
        41_000,
        187,
        0.9e6,
    ),
    ("LLaMA 7B 指令微调", "LLaMA 7B", "llama 微调", "deepspeed-zero3", 16, 9_400, 96, 41_000.0),
    ("ViT-B/16 on ImageNet, 300 epochs", "ViT-B/16", "vision", "fsdp", 8, 88_000, 402, None),
    ("Whisper small, 方言语音识别", "Whisper small", "speech", "hf-fsdp", 4, 15_600, 38, None),
)


def recipe(**values: Any) -> core.Recipe:
    facts: dict[str, Any] = {
        "format": core.FORMAT,
        "title": "Tiny GPT",
        "summary": "A small model on little data.",
        "model": "GPT-2",
        "tags": ("gpt",),
        "name": "tiny",
        "template": core.TemplateUsed("ddp", "a" * 64),
        "shape": core.Shape("a100", "normal", "a100", 1, 2, 2, "60"),
        "values": {"script": "train.py", "arguments": "--seed 7"},
        "environment": core.EnvironmentUsed("none", "none"),
        "datasets": (),
        "code": None,
        "seeds": {"seed": "7"},
        "receipt": core.Receipt(
            "cluster", 1.7e9, "a100", 2, 3600, step_seconds=0.5, cost=10**6, metrics={"loss": 2.0}
        ),
    }
    return core.Recipe(**(facts | values))


def fill_recipes(begin: Begin, *, now: datetime, login: str = "nlp-lead") -> None:
    """Of one person: two with code, one of the group's, the others everybody's."""
    with begin() as session:
        person = people.by_login(session, login)
        assert person is not None
        name = recipe_code.keep(session, CODE, now=now)
        assert name == digest(CODE)
        for number, (title, model, tags, template, gpus, seconds, cost, tokens) in enumerate(
            _SAMPLES
        ):
            made = recipe(title=title, model=model, tags=tuple(tags.split()))
            receipt = replace(
                made.receipt, gpus=gpus, run_seconds=seconds, cost=cost * 10**6,
                tokens_per_second=tokens, step_seconds=0.2 + number / 7, mfu=0.42 - number / 30,
                peak_bytes=(50 + number) * 10**9, wait_seconds=1900 * (number + 1),
            )  # fmt: skip
            commit, noted = core.Code("c0ffee12" * 5, clean=True), core.TemplateUsed(template)
            code = core.Code(captured=name) if number % 2 else commit
            made = replace(made, template=noted, receipt=receipt, code=code)
            seen = Visibility.GROUP if number == 2 else Visibility.SITE
            new = NewRecipe(person.id, seen, "nlp" if number == 2 else None, made)
            recipes.add(session, new, now=now - timedelta(days=3 * number))
