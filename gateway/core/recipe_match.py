"""Does a run fit a recipe's receipt, and how do two recipes differ?"""

from collections.abc import Mapping
from dataclasses import dataclass, fields

from gateway.core.ask import Ask
from gateway.core.recipes import Receipt, Recipe

NEAR, FAR = 1, 5  # percent
BEYOND = 100  # the class of what deviates by more
_SPEED = ("step_seconds", "tokens_per_second")


@dataclass(frozen=True, slots=True)
class Compared:
    """A figure then and now; `percent` is its deviation from then, of the greater of both where
    then is 0; `within` its class: 1, 5 or 100."""

    name: str
    then: float
    now: float
    percent: float
    within: int


@dataclass(frozen=True, slots=True)
class Match:
    """Of each figure that both have. `within` is the worst class; None: there was none."""

    figures: tuple[Compared, ...]

    @property
    def within(self) -> int | None:
        return max((one.within for one in self.figures), default=None)


def match(then: Receipt, now: Receipt) -> Match:
    """Result metrics and speed. Speed is compared only on the same type and number of cards, in the
    time of a step where both told it, else in tokens a second."""
    found = [
        _compared(name, value, now.metrics[name])
        for name, value in sorted(then.metrics.items())
        if name in now.metrics
    ]
    if (then.gpu_type, then.gpus) == (now.gpu_type, now.gpus):
        for name in _SPEED:
            before, after = getattr(then, name), getattr(now, name)
            if before and after is not None:
                found.append(_compared(name, before, after))
                break
    return Match(tuple(found))


def _compared(name: str, then: float, now: float) -> Compared:
    base = abs(then) or abs(now)
    percent = 100 * abs(now - then) / base if base else 0.0
    within = NEAR if percent <= NEAR else FAR if percent <= FAR else BEYOND
    return Compared(name, then, now, percent, within)


def is_same_ask(asked: Ask, recipe: Recipe) -> bool:
    """Whether a form asks for what the recipe says, wherever it runs and whoever pays."""
    shape = recipe.shape
    same = (
        asked.template == recipe.template.name,
        asked.gpu_type == shape.gpu_type,
        asked.partition == shape.partition,
        _is_same_number(asked.nodes, shape.nodes),
        _is_same_number(asked.nproc_per_node, shape.nproc_per_node),
        (asked.environment or "none") == recipe.environment.name,
        _own(asked.values) == _own(recipe.values),
    )
    return all(same)


def _is_same_number(typed: str, number: int) -> bool:
    return not typed.strip() or typed.strip() == str(number)


def _own(values: Mapping[str, str]) -> dict[str, str]:
    """Without what says where a run keeps its files, and without what is empty."""
    left_out = {"run_name", "environment_path", "upload", "checkpoint_dir"}
    return {name: value.strip() for name, value in values.items() if value.strip()} | dict.fromkeys(
        left_out, ""
    )


@dataclass(frozen=True, slots=True)
class Difference:
    """`part` names a part of the document, `name` what in it; empty texts: one does not have it."""

    part: str
    name: str
    left: str
    right: str


def differences(left: Recipe, right: Recipe) -> list[Difference]:
    """What two recipes do not have in common, part by part; receipts are compared elsewhere."""
    found: list[Difference] = []
    for part in ("template", "shape", "environment"):
        one, other = getattr(left, part), getattr(right, part)
        for own in fields(one):
            if own.name != "facts":
                _add(found, part, own.name, getattr(one, own.name), getattr(other, own.name))
    _mapping(found, "values", left.values, right.values)
    _mapping(found, "seeds", left.seeds, right.seeds)
    _mapping(found, "versions", left.environment.facts, right.environment.facts)
    mine, theirs = (
        {one.name: f"{one.word} {one.manifest[:12]}".strip() for one in recipe.datasets}
        for recipe in (left, right)
    )
    _mapping(found, "datasets", mine, theirs)
    commits = [recipe.code.commit if recipe.code else "" for recipe in (left, right)]
    _add(found, "code", "commit", *commits)
    captured = [recipe.code.captured if recipe.code else "" for recipe in (left, right)]
    _add(found, "code", "captured", *captured)
    return found


def _mapping(
    found: list[Difference], part: str, left: Mapping[str, str], right: Mapping[str, str]
) -> None:
    for name in sorted({*left, *right}):
        _add(found, part, name, left.get(name, ""), right.get(name, ""))


def _add(found: list[Difference], part: str, name: str, left: object, right: object) -> None:
    if left != right:
        found.append(Difference(part, name, str(left), str(right)))
