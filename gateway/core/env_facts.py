"""What is known of an environment: versions, the cards its builds are for, the oldest driver; and
what follows from that for a template and a card. Where nothing is known nothing is said.
"""

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum

MOST_NAMES = 40
# Packages by their import's name, and `cuda` and `python` themselves.
COMMON = ("python", "cuda", "torch", "transformers", "deepspeed", "flash_attn", "colossalai")
_NAME = re.compile(r"[a-z][a-z0-9_]{0,39}")
_VERSION = re.compile(r"[0-9][0-9A-Za-z.+!_-]{0,39}")
_ARCH = re.compile(r"(sm|compute)_([1-9][0-9]?)([0-9])([af]?)")
_DRIVER = re.compile(r"[0-9]{2,4}(?:\.[0-9]{1,4}){0,3}")
_WORD = re.compile(r"[a-z0-9][a-z0-9._-]{0,39}")
_NEED = re.compile(r"([a-z][a-z0-9_]{0,39})((?:(?:>=|<=|==|!=|>|<)[0-9][0-9.]{0,19},?)*)")
_BOUND = re.compile(r"(>=|<=|==|!=|>|<)([0-9][0-9.]*)")
_KEYS = frozenset({"versions", "archs", "min_driver", "kit"})


@dataclass(frozen=True, slots=True)
class Facts:
    """`versions` by package; `archs` of each build, as nvcc writes them (sm_80, compute_90);
    `min_driver` NVIDIA's driver; `kit` the programs that it brings, such as `jupyter`."""

    versions: Mapping[str, str] = field(default_factory=dict)
    archs: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    min_driver: str = ""
    kit: tuple[str, ...] = ()

    def __bool__(self) -> bool:
        return bool(self.versions or self.archs or self.min_driver or self.kit)

    def over(self, below: "Facts") -> "Facts":
        """These, and where they say nothing those `below`."""
        return Facts(
            {**below.versions, **self.versions},
            {**below.archs, **self.archs},
            self.min_driver or below.min_driver,
            tuple(dict.fromkeys((*below.kit, *self.kit))),
        )


NO_FACTS = Facts()


@dataclass(frozen=True, slots=True)
class Need:
    """What a template asks of an environment: `torch>=2.2`, or a name alone."""

    name: str
    bounds: tuple[tuple[str, str], ...] = ()

    def __str__(self) -> str:
        return self.name + ",".join(f"{sign}{version}" for sign, version in self.bounds)


class Lack(StrEnum):
    """Why a pair does not go together."""

    PACKAGE = "package"
    VERSION = "version"
    ARCH = "arch"
    DRIVER = "driver"


@dataclass(frozen=True, slots=True)
class Clash:
    """`name` is the package; `has` what the environment (or the driver) is, `wants` what it
    should be: a need, the card's architecture, the oldest driver."""

    lack: Lack
    name: str
    has: str
    wants: str


def fact_faults(value: object) -> list[str]:
    """What is wrong with facts as TOML or JSON hold them; none: `read_facts` takes them."""
    if not isinstance(value, dict):
        return ["facts must be a table"]
    faults = [f"facts: unknown key {key!r}" for key in sorted(map(str, value.keys() - _KEYS))]
    versions, archs = value.get("versions", {}), value.get("archs", {})
    if not _table_of(versions) or not all(_is(_VERSION, one) for one in versions.values()):
        faults.append("facts: versions must be names with version numbers")
    if not _table_of(archs) or not all(_all(_ARCH, one) for one in archs.values()):
        faults.append("facts: archs must be names with lists such as sm_80, compute_90")
    if value.get("min_driver", "") != "" and not _is(_DRIVER, value["min_driver"]):
        faults.append("facts: min_driver must be a version such as 550.54")
    if not _all(_WORD, value.get("kit", [])):
        faults.append("facts: kit must be a list of program names")
    return faults


def read_facts(value: Mapping[str, object]) -> Facts:
    """Facts that `fact_faults` has found nothing wrong with."""
    versions, archs, kit = (
        value.get("versions", {}),
        value.get("archs", {}),
        value.get("kit", []),
    )
    assert isinstance(versions, dict)
    assert isinstance(archs, dict)
    assert isinstance(kit, list)
    return Facts(
        {str(name): str(version) for name, version in versions.items()},
        {str(name): tuple(str(arch) for arch in found) for name, found in archs.items()},
        str(value.get("min_driver", "")),
        tuple(str(word) for word in kit),
    )


def dump_facts(facts: Facts) -> dict[str, object]:
    """As `read_facts` takes them; what is not known is left out."""
    whole: dict[str, object] = {
        "versions": dict(facts.versions),
        "archs": {name: list(archs) for name, archs in facts.archs.items()},
        "min_driver": facts.min_driver,
        "kit": list(facts.kit),
    }
    return {key: value for key, value in whole.items() if value}


def read_need(text: str) -> Need | None:
    """`torch>=2.2,<3`; None when it is no such thing."""
    found = _NEED.fullmatch(text)
    if found is None or found[2].endswith(","):
        return None
    return Need(found[1], tuple((sign, version) for sign, version in _BOUND.findall(found[2])))


def lacking(facts: Facts, needs: tuple[Need, ...]) -> list[Clash]:
    """What of the needs is not met; nothing where no version is known."""
    if not facts.versions:
        return []
    clashes = []
    for need in needs:
        version = facts.versions.get(need.name, "")
        if not version and need.name not in facts.kit:
            clashes.append(Clash(Lack.PACKAGE, need.name, "", str(need)))
        elif version and not all(_holds(version, *bound) for bound in need.bounds):
            clashes.append(Clash(Lack.VERSION, need.name, version, str(need)))
    return clashes


def card_clashes(facts: Facts, capability: str, driver: str = "") -> list[Clash]:
    """Builds that have no code for a card of this compute capability (`8.9`), and a driver that
    is too old; an empty text is not known."""
    clashes = [
        Clash(Lack.ARCH, name, ", ".join(archs), f"sm_{capability.replace('.', '')}")
        for name, archs in sorted(facts.archs.items())
        if capability and archs and not any(runs_on(arch, capability) for arch in archs)
    ]
    if facts.min_driver and driver and numbers(driver) < numbers(facts.min_driver):
        clashes.append(Clash(Lack.DRIVER, "driver", driver, facts.min_driver))
    return clashes


def runs_on(arch: str, capability: str) -> bool:
    """Whether code built for `arch` runs on a card of this compute capability.

    CUDA C++ Programming Guide, "Binary Compatibility": a binary for X.y runs on X.z with z >= y
    and on no other major number. "PTX Compatibility": PTX for X.y can be compiled for any card
    from X.y on. Code for an architecture's own features (sm_90a) runs on that one alone; for a
    family's (sm_100f), on its major number from that minor on.
    """
    found = _ARCH.fullmatch(arch)
    if found is None:
        return False
    major, _, minor = capability.partition(".")
    built, card = (int(found[2]), int(found[3])), (int(major), int(minor or 0))
    if found[4] == "a":
        return card == built
    if found[1] == "compute" and not found[4]:
        return card >= built
    return card[0] == built[0] and card >= built


def numbers(version: str) -> tuple[int, ...]:
    """2.13.0+cu126 → (2, 13): trailing zeros and what stands behind the numbers do not count. A
    site's own build of 2.2.0a0 is taken for 2.2, as its makers say of it."""
    head = re.match(r"\d+(?:\.\d+)*", version)
    parts = [int(part) for part in head[0].split(".")] if head else []
    while len(parts) > 1 and parts[-1] == 0:
        parts.pop()
    return tuple(parts)


def _holds(version: str, sign: str, bound: str) -> bool:
    has, wants = numbers(version), numbers(bound)
    match sign:
        case ">=":
            return has >= wants
        case "<=":
            return has <= wants
        case ">":
            return has > wants
        case "<":
            return has < wants
        case "!=":
            return has != wants
        case _:
            return has == wants


def _table_of(value: object) -> bool:
    return (
        isinstance(value, dict)
        and len(value) <= MOST_NAMES
        and all(_is(_NAME, name) for name in value)
    )


def _is(pattern: re.Pattern[str], value: object) -> bool:
    return isinstance(value, str) and pattern.fullmatch(value) is not None


def _all(pattern: re.Pattern[str], value: object) -> bool:
    return (
        isinstance(value, list)
        and len(value) <= MOST_NAMES
        and all(_is(pattern, word) for word in value)
    )
