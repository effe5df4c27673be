"""Running the machine's programs: with their output kept for the message when they fail."""

import subprocess
import time
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

from contrib.devcluster.errors import DevclusterError

Say = Callable[[str], None]
TRIES = 3
PAUSE_SECONDS = 5.0
SHOWN_LINES = 15


def run(
    argv: Sequence[str | Path],
    *,
    purpose: str,
    env: Mapping[str, str] | None = None,
    stdin: str | None = None,
) -> str:
    """Standard output of a command that must succeed; its last lines in the error."""
    words = [str(word) for word in argv]
    try:
        done = subprocess.run(
            words, input=stdin, env=env, capture_output=True, text=True, check=False
        )
    except FileNotFoundError as missing:
        raise DevclusterError(f"{words[0]} is not installed (needed for {purpose})") from missing
    if done.returncode != 0:
        raise DevclusterError(failure(words, purpose, done.stdout + done.stderr))
    return done.stdout


def run_logged(
    argv: Sequence[str | Path], *, purpose: str, log: Path, env: Mapping[str, str] | None = None
) -> None:
    """Run a long command with all its output in a file; its last lines in the error."""
    words = [str(word) for word in argv]
    with log.open("w") as output:
        done = subprocess.run(
            words,
            stdin=subprocess.DEVNULL,
            stdout=output,
            stderr=subprocess.STDOUT,
            env=env,
            check=False,
        )
    if done.returncode != 0:
        raise DevclusterError(failure(words, purpose, log.read_text(errors="replace")))


def with_retries(step: Callable[[], None], *, what: str, say: Say) -> None:
    """Downloads fail for reasons that pass: try three times, with growing pauses."""
    for attempt in range(1, TRIES + 1):
        try:
            step()
        except DevclusterError as failed:
            if attempt == TRIES:
                raise DevclusterError(f"{what} failed {TRIES} times. {failed}") from failed
            say(f"{what} failed, trying again ({attempt + 1} of {TRIES})")
            time.sleep(PAUSE_SECONDS * attempt)
        else:
            return


def failure(words: Sequence[str], purpose: str, output: str) -> str:
    """What failed, what it was for, and the end of what it said."""
    lines = [line for line in output.splitlines() if line.strip()][-SHOWN_LINES:]
    shown = "\n".join(f"  {line}" for line in lines) or "  (it printed nothing)"
    return f"{words[0]} failed (needed for {purpose}):\n{shown}"
