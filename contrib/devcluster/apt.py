"""Debian's archive as this machine already reaches it; no address is written down in here."""

from pathlib import Path

from contrib.devcluster.errors import DevclusterError

SOURCES = Path("/etc/apt")


def mirror(release: str, folder: Path = SOURCES) -> str:
    """The address from which this machine takes the main part of its own release."""
    for uri, suites, components in _entries(folder):
        if release in suites and "main" in components:
            return uri
    raise DevclusterError(
        f"No apt source of this machine offers {release} main: looked in "
        f"{folder}/sources.list and {folder}/sources.list.d (needed to fetch Slurm)."
    )


def _entries(folder: Path) -> list[tuple[str, list[str], list[str]]]:
    entries = []
    parts = folder / "sources.list.d"
    for path in [folder / "sources.list", *sorted(parts.glob("*.list"))]:
        if path.is_file():
            entries += [e for line in path.read_text().splitlines() if (e := _one_line(line))]
    for path in sorted(parts.glob("*.sources")):
        for stanza in path.read_text().split("\n\n"):
            entries += _deb822(stanza)
    return entries


def _one_line(line: str) -> tuple[str, list[str], list[str]] | None:
    """`deb [options] URI SUITE COMPONENT...`; None for anything else."""
    text = line.partition("#")[0].strip()
    kind, _, rest = text.partition(" ")
    rest = rest.strip()
    if kind != "deb":
        return None
    if rest.startswith("["):
        rest = rest.partition("]")[2].strip()
    words = rest.split()
    if len(words) < 3:
        return None
    return words[0], [words[1]], words[2:]


def _deb822(stanza: str) -> list[tuple[str, list[str], list[str]]]:
    fields: dict[str, str] = {}
    name = ""
    for line in stanza.splitlines():
        if line.startswith("#") or not line.strip():
            continue
        if line[0].isspace():
            fields[name] += " " + line.strip()
            continue
        key, _, value = line.partition(":")
        name = key.strip().lower()
        fields[name] = value.strip()
    if "deb" not in fields.get("types", "").split() or fields.get("enabled", "yes") == "no":
        return []
    suites, components = fields.get("suites", "").split(), fields.get("components", "").split()
    return [(uri, suites, components) for uri in fields.get("uris", "").split()]
