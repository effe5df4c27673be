"""The cards and their links from the text of nvidia-smi, for nodes without pynvml."""

from __future__ import annotations

import re
import subprocess

from sluice_train.node.cards import Card, Doubt, Machine

SECONDS = 5
QUERY = "--query-gpu=index,uuid,pci.bus_id,mig.mode.current"
LINK = re.compile(r"NV[1-9]\d*|PIX|PXB|PHB|NODE|SYS")
COLOURS = re.compile(r"\x1b\[[0-9;]*m")  # the heading is underlined even into a pipe


def machine() -> Machine:
    """What `nvidia-smi` tells of this node. Doubt: it is absent, fails, or says something odd."""
    return parse(_ask(QUERY, "--format=csv,noheader"), _ask("topo", "-m"))


def parse(listing: str, topology: str) -> Machine:
    """The machine of the two texts: the query's lines, and the table of `topo -m`."""
    rows = [[cell.strip() for cell in line.split(",")] for line in listing.splitlines() if line]
    if not rows or any(len(row) != 4 or not row[0].isdigit() for row in rows):
        raise Doubt("the list of nvidia-smi cannot be read")
    rows.sort(key=lambda row: row[2].lower())
    table = _table(topology)
    names = [f"GPU{int(row[0])}" for row in rows]
    if sorted(names) != sorted(table):
        raise Doubt("nvidia-smi lists other cards than its table of links has")
    cards = tuple(
        Card(row[1], row[2].lower(), _numa(table[name]), row[3] == "Enabled")
        for name, row in zip(names, rows)
    )
    links = {
        (first, second): _link(table, names[first], names[second])
        for second in range(len(names))
        for first in range(second)
    }
    return Machine(cards, links)


def _ask(*words: str) -> str:
    try:
        done = subprocess.run(  # noqa: S603 - our own words
            ["nvidia-smi", *words],  # noqa: S607 - where it lies differs from site to site
            stdin=subprocess.DEVNULL,
            capture_output=True,
            timeout=SECONDS,
            check=True,
            text=True,
            errors="replace",
        )
    except (OSError, subprocess.SubprocessError) as failed:
        raise Doubt(f"neither pynvml nor nvidia-smi tells the cards: {failed}") from failed
    return done.stdout


def _table(text: str) -> dict[str, dict[str, str]]:
    """Row and column to cell. The cards' columns come first; those of NICs and CPUs follow."""
    lines = [COLOURS.sub("", line).split("\t") for line in text.splitlines()]
    cells = [[cell.strip() for cell in line] for line in lines]
    heading = next((line for line in cells if "GPU0" in line[1:]), [])
    rows = [line for line in cells if line is not heading and re.fullmatch(r"GPU\d+", line[0])]
    return {row[0]: dict(zip(heading[1:], row[1:])) for row in rows}


def _link(table: dict[str, dict[str, str]], one: str, other: str) -> str:
    there, back = table[one].get(other, ""), table[other].get(one, "")
    if there != back or not LINK.fullmatch(there):
        raise Doubt(f"nvidia-smi joins {one} and {other} by {there!r} and {back!r}")
    return there


def _numa(row: dict[str, str]) -> int | None:
    told = row.get("NUMA Affinity", "")
    return int(told) if told.isdigit() else None
