"""Which lines of which log explain a failed start."""

import re
from pathlib import Path

TELLING = re.compile(r"(?i)\b(error|fatal|denied|cannot|failed|no such|not found|unable)\b")
NOISE = re.compile(r"(?i)resource temporarily|RLIMIT|lockup")
SHOWN = 6


def explain(phase: str, log: Path) -> str:
    """What failed, then the last telling lines of each log, the failing daemon's first."""
    failing = phase.removeprefix("failed: ").split()[0] if phase else ""
    logs = sorted(
        (path for path in log.glob("*") if path.is_file()),
        key=lambda path: (not path.name.startswith(failing), path.name),
    )
    parts = [f"The cluster did not come up: {phase or 'its first process ended'}"]
    for path in logs:
        lines = _telling(path, all_lines=path.name.startswith(failing))
        if lines:
            parts.append("\n".join([f"{path.name}:", *(f"  {line}" for line in lines)]))
    return "\n".join(parts)


def _telling(path: Path, *, all_lines: bool) -> list[str]:
    lines = [line.strip() for line in path.read_text(errors="replace").splitlines()]
    lines = [line for line in lines if line and not NOISE.search(line)]
    telling = [line for line in lines if TELLING.search(line)]
    if not telling and all_lines:
        telling = lines
    return list(dict.fromkeys(telling))[-SHOWN:]  # the same line once: daemons repeat themselves
