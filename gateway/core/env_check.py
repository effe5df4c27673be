"""What a check of an environment wrote on the node, read strictly: the file is a person's."""

import re
from collections.abc import Mapping
from dataclasses import dataclass

from gateway.core.env_facts import Facts, fact_faults, read_facts

VERSION = 1
TEMPLATE = "check-environment"
MOST_STEPS = 60
LONGEST_NAME = 100
LONGEST_TEXT = 2000
_DRIVER = re.compile(r"[0-9]{2,4}(?:\.[0-9]{1,4}){0,3}")
_CAPABILITY = re.compile(r"[1-9][0-9]?\.[0-9]")
_BASE = re.compile(r"(?:[0-9a-f]{64})?")
_KEYS = frozenset({"version", "found", "driver", "capability", "base", "steps", "seconds"})


class BadCheck(ValueError):
    """No result of a check."""


@dataclass(frozen=True, slots=True)
class Step:
    """One try: `text` says why it failed."""

    name: str
    ok: bool
    seconds: float
    text: str


@dataclass(frozen=True, slots=True)
class Checked:
    """What was found and tried; `driver` and `capability` are empty without a card, `base`, the
    fingerprint that snapshots hold, where nobody can install above it."""

    found: Facts
    driver: str
    capability: str
    base: str
    steps: tuple[Step, ...]
    seconds: float

    @property
    def ok(self) -> bool:
        return bool(self.steps) and all(step.ok for step in self.steps)


def read_check(result: Mapping[str, object]) -> Checked:
    """Raises BadCheck for anything that the node's program does not write."""
    if set(result) != _KEYS or result["version"] != VERSION:
        raise BadCheck("other keys, or another version")
    found, steps = result["found"], result["steps"]
    if fact_faults(found) or not isinstance(found, dict):
        raise BadCheck("found")
    if not isinstance(steps, list) or len(steps) > MOST_STEPS:
        raise BadCheck("steps")
    driver, capability = _text(result["driver"], 40), _text(result["capability"], 10)
    if (driver and not _DRIVER.fullmatch(driver)) or (
        capability and not _CAPABILITY.fullmatch(capability)
    ):
        raise BadCheck("driver, capability")
    base = _text(result["base"], 64)
    if not _BASE.fullmatch(base):
        raise BadCheck("base")
    return Checked(
        read_facts(found),
        driver,
        capability,
        base,
        tuple(_step(step) for step in steps),
        _seconds(result["seconds"]),
    )


def read_steps(steps: object) -> tuple[Step, ...]:
    """Those of a row, as `dump_steps` made them."""
    return tuple(_step(step) for step in steps) if isinstance(steps, list) else ()


def dump_steps(steps: tuple[Step, ...]) -> list[dict[str, object]]:
    return [
        {"name": one.name, "ok": one.ok, "seconds": one.seconds, "text": one.text} for one in steps
    ]


def _step(value: object) -> Step:
    if not isinstance(value, dict) or set(value) != {"name", "ok", "seconds", "text"}:
        raise BadCheck("a step")
    if not isinstance(value["ok"], bool):
        raise BadCheck("a step")
    name, text = _text(value["name"], LONGEST_NAME), _text(value["text"], LONGEST_TEXT)
    return Step(name, value["ok"], _seconds(value["seconds"]), text)


def _text(value: object, longest: int) -> str:
    if not isinstance(value, str) or len(value) > longest or not value.isprintable():
        raise BadCheck("a text")
    return value


def _seconds(value: object) -> float:
    number = isinstance(value, int | float) and not isinstance(value, bool)
    if not number or not 0 <= float(str(value)) < 1e6:
        raise BadCheck("seconds")
    return float(str(value))
