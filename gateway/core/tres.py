"""Slurm's trackable resources: texts such as `cpu=64,mem=64G,gres/gpu:a100=8`.

The untyped GPU entry is the total when present, otherwise the typed ones are summed; types
only split the price (both are the same cards).
"""

from collections.abc import Mapping

GPU = "gres/gpu"
# Slurm numbers its own resources alike on every cluster; those above 1000 are the site's.
STATIC_IDS: Mapping[int, str] = {
    1: "cpu",
    2: "mem",
    3: "energy",
    4: "node",
    5: "billing",
    6: "fs/disk",
    7: "vmem",
    8: "pages",
}
_UNITS = {"K": 1, "M": 2, "G": 3, "T": 4, "P": 5, "?": 6}  # Slurm has no letter for exa
_IN_MEGABYTES = frozenset({"mem", "vmem"})


def parse_tres(text: str, ids: Mapping[int, str] = STATIC_IDS) -> dict[str, int]:
    """Counts by name; memory in MiB. An unknown numeric id or a bad pair raises ValueError.

    A cluster's own ids must be in `ids`: a number that nobody can name may be a GPU, and
    leaving it out would make it free.
    """
    counts: dict[str, int] = {}
    for pair in text.split(","):
        if not pair:
            continue
        name, equals, value = pair.strip().rpartition("=")
        if not equals or not name:
            raise ValueError(f"no name=count pair: {pair!r}")
        if name.isdigit():
            if int(name) not in ids:
                raise ValueError(f"unknown resource id {name}")
            name = ids[int(name)]
        counts[name] = _count(name, value)
    return counts


def gpu_count(tres: Mapping[str, int]) -> tuple[int, dict[str, int]]:
    """GPUs in all, and by type as far as Slurm named types."""
    prefix = f"{GPU}:"
    by_type = {
        name[len(prefix) :]: count for name, count in tres.items() if name.startswith(prefix)
    }
    return tres.get(GPU, sum(by_type.values())), by_type


def single_gpu_type(tres: Mapping[str, int]) -> str | None:
    """The type when there is just one and it covers every card."""
    total, by_type = gpu_count(tres)
    named = [kind for kind, count in by_type.items() if count]
    if len(named) == 1 and by_type[named[0]] == total:
        return named[0]
    return None


def _count(name: str, value: str) -> int:
    unit = value[-1:].upper()
    number = value[:-1] if unit in _UNITS else value
    whole, _, part = number.partition(".")
    if not whole.isascii() or not whole.lstrip("-").isdigit() or (part and not part.isdigit()):
        raise ValueError(f"no count: {name}={value}")
    scale = 1024 ** _UNITS[unit] if unit in _UNITS else 1
    if unit in _UNITS and name in _IN_MEGABYTES:
        # Slurm prints memory in MiB, or with a unit when it is told to shorten.
        return _times(whole, part, scale) // 1024**2
    return _times(whole, part, scale)


def _times(whole: str, part: str, scale: int) -> int:
    digits = int(whole + part)
    return digits * scale // int(10 ** len(part))
