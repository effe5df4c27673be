"""A number that says how it was made, and numbers from people that are checked once."""

import math
from dataclasses import dataclass
from enum import StrEnum

from gateway.errors import Refused

GB = 1e9  # as the makers of cards count
_LEAST = 1e-4


class Source(StrEnum):
    """Where a formula or a constant is from; the words are made outside."""

    ASKED = "asked"
    ARITHMETIC = "arithmetic"
    ASSUMED = "assumed"
    CARD_FILE = "card_file"
    SITE = "site"
    PRICE_LIST = "price_list"
    ZERO = "zero"  # arXiv 1910.02054
    DEEPSPEED = "deepspeed"  # its memory estimator
    DEEPSPEED_BUCKET = "deepspeed_bucket"
    TORCH_AMP = "torch_amp"
    TORCH_DDP = "torch_ddp"
    TORCH_FSDP = "torch_fsdp"
    GEMINI = "gemini"
    KORTHIKANTI = "korthikanti"  # arXiv 2205.05198
    MEGATRON = "megatron"  # arXiv 2104.04473
    KAPLAN = "kaplan"  # arXiv 2001.08361
    FOUNDRY = "foundry"  # the benchmarks of llm-foundry
    YOUNG = "young"
    DALY = "daly"
    MEASURED = "measured"  # on small models, see docs/planner.md
    COMMON = "common"  # common experience, no single source


@dataclass(frozen=True, slots=True)
class Figure:
    """`low` and `high` are the honest band; both equal `value` where nothing is estimated."""

    value: float
    low: float
    high: float
    formula: str
    sources: tuple[Source, ...]


def exactly(value: float, formula: str, *sources: Source) -> Figure:
    return Figure(value, value, value, formula, sources)


@dataclass(frozen=True, slots=True)
class Notice:
    """Something that a reader must know of a number. `code` is a message key."""

    code: str
    facts: tuple[tuple[str, str | int], ...] = ()


def notice(code: str, **facts: str | int) -> Notice:
    return Notice(code, tuple(facts.items()))


def whole(field: str, value: float, *, most: float, least: int = 1) -> int:
    """A count from a person. Refused: plan_number, plan_range, plan_whole."""
    number = real(field, value, least=least, most=most)
    if number != int(number):
        raise Refused("plan_whole", field=field)
    return int(number)


def real(field: str, value: float, *, most: float, least: float = 0.0) -> float:
    """A finite number from `least` to `most`. Refused: plan_number, plan_range."""
    if not math.isfinite(value):
        raise Refused("plan_number", field=field)
    if not least <= value <= most:
        raise Refused("plan_range", field=field, least=f"{least:g}", most=f"{most:g}")
    return float(value)


def above_zero(field: str, value: float, *, most: float) -> float:
    """The same, for what divides: so small a number would make infinities of others."""
    if not math.isfinite(value):
        raise Refused("plan_number", field=field)
    if not _LEAST < value <= most:
        raise Refused("plan_above", field=field, least=f"{_LEAST:g}", most=f"{most:g}")
    return float(value)
