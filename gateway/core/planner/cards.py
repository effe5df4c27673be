"""The cards: what each computes and holds, read from a table that a site may add to."""

import re
from collections.abc import Mapping
from dataclasses import dataclass, fields
from difflib import get_close_matches
from typing import Any

from gateway.core.planner.strategies import Precision
from gateway.errors import BadConfiguration, Refused


@dataclass(frozen=True, slots=True)
class Card:
    """Peaks are dense TFLOP/s, never those "with sparsity". `mfu` is what such cards are
    measured at; `measured_mfu` is this site's own. `resources`: names of it in price lists."""

    name: str
    tflops_16bit: float
    memory_gb: float
    mfu_low: float
    mfu_high: float
    source: str
    bf16: bool = True
    tflops_fp32: float | None = None
    bandwidth_tbs: float | None = None
    link: str = ""
    measured_mfu: float | None = None
    resources: tuple[str, ...] = ()
    capability: str = ""  # NVIDIA's compute capability, 8.9; empty: none, or not known
    is_uncertain: bool = False

    @property
    def memory(self) -> float:
        return self.memory_gb * 1e9

    def peak(self, precision: Precision) -> float:
        """FLOP/s. Refused: plan_no_fp32 where the table does not know it."""
        if precision is not Precision.FP32:
            return self.tflops_16bit * 1e12
        if self.tflops_fp32 is None:
            raise Refused("plan_no_fp32", field="precision", card=self.name)
        return self.tflops_fp32 * 1e12


Cards = Mapping[str, Card]

_CAPABILITY = re.compile(r"[1-9][0-9]?\.[0-9]|")

_POSITIVE = ("tflops_16bit", "memory_gb", "tflops_fp32", "bandwidth_tbs")
_SHARES = ("mfu_low", "mfu_high", "measured_mfu")
_KINDS: Mapping[str, type | tuple[type, ...]] = {
    **dict.fromkeys((*_POSITIVE, *_SHARES), (int, float)),
    **dict.fromkeys(("source", "link", "capability"), str),
    **dict.fromkeys(("bf16", "is_uncertain"), bool),
    "resources": list,
}


def read_cards(table: Mapping[str, object], *, base: Cards | None = None) -> dict[str, Card]:
    """The cards of a parsed file over those of `base`: a known name may give some fields only.

    BadConfiguration lists every problem.
    """
    found = dict(base or {})
    problems = [f"unknown table {name!r}" for name in table if name != "cards"]
    rows = table.get("cards", {})
    for name, row in rows.items() if isinstance(rows, Mapping) else ():
        wrong = _wrong(row)
        given = dict(row) if not wrong else {}
        if "resources" in given:
            given["resources"] = tuple(str(one) for one in given["resources"])
        whole = _old(found.get(name)) | given | {"name": name}
        lacking = [] if wrong else [f"{one} is missing" for one in _NEEDED if one not in whole]
        problems += [f"cards.{name}: {one}" for one in (*wrong, *lacking)]
        if not wrong and not lacking:
            found[name] = Card(**whole)
    if not isinstance(rows, Mapping):
        problems.append("cards is no table")
    if problems:
        raise BadConfiguration("; ".join(problems))
    return found


def find(name: str, cards: Cards) -> Card:
    """Refused, with the nearest names: plan_card."""
    wanted = name.strip().casefold().replace("_", "-").replace(" ", "-")
    if wanted in cards:
        return cards[wanted]
    near = [one for one in sorted(cards) if wanted and wanted in one]
    near = near or get_close_matches(wanted, list(cards), n=3, cutoff=0.4) or sorted(cards)
    raise Refused("plan_card", field="gpu", name=name, near=", ".join(near[:6]))


def capability_of(resource: str, cards: Cards) -> str:
    """The compute capability of the cards that a cluster calls `resource`; empty where the table
    does not say, or says several."""
    wanted = resource.casefold()
    found = {
        one.capability
        for one in cards.values()
        if wanted == one.name or wanted in (name.casefold() for name in one.resources)
    }
    return found.pop() if len(found) == 1 else ""


def precision_for(card: Card, wanted: str) -> Precision:
    """`auto` is bf16 where the card has it. Refused: plan_no_bf16, plan_precision."""
    if wanted == "auto":
        return Precision.BF16 if card.bf16 else Precision.FP16
    if wanted not in {one.value for one in Precision}:
        known = ", ".join(("auto", *(one.value for one in Precision)))
        raise Refused("plan_precision", field="precision", name=wanted, known=known)
    if wanted == Precision.BF16 and not card.bf16:
        raise Refused("plan_no_bf16", field="precision", card=card.name)
    return Precision(wanted)


_NEEDED = ("tflops_16bit", "memory_gb", "mfu_low", "mfu_high", "source")


def _old(card: Card | None) -> dict[str, Any]:
    return {one.name: getattr(card, one.name) for one in fields(card)} if card else {}


def _wrong(row: Any) -> list[str]:
    if not isinstance(row, Mapping):
        return ["is no table"]
    found = [text for key, value in row.items() if (text := _wrong_field(key, value))]
    if not found and row.get("mfu_low", 0) > row.get("mfu_high", 1):
        found.append("mfu_low is above mfu_high")
    return found


def _wrong_field(key: str, value: Any) -> str | None:
    kind = _KINDS.get(key)
    if kind is None:
        return f"unknown field {key!r}"
    if not isinstance(value, kind) or (isinstance(value, bool) and kind is not bool):
        return f"{key} is not of the right kind"
    if key in _POSITIVE and not 0 < float(str(value)) < 1e6:
        return f"{key} must be above 0 and below a million"
    if key in _SHARES and not 0 < float(str(value)) <= 1:
        return f"{key} must be above 0 and at most 1"
    if key == "capability" and not _CAPABILITY.fullmatch(str(value)):
        return f"{key} must be two numbers such as 8.9"
    return None
