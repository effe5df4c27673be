"""A recipe for tests, whole and plausible."""

from typing import Any

from gateway.core import recipes as core


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
