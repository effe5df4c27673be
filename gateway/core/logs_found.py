"""Folders of TensorBoard and MLflow, told by the names of what stands in them, and MLflow's plain
files. All of it is people's own: what does not fit is passed over, and nothing here raises."""

import math
import re
from collections.abc import Iterable

from gateway.core.results import is_name

TENSORBOARD = re.compile(r"(.*\.)?tfevents\.\d+.*", re.ASCII)
MLFLOW_FOLDER, MLFLOW_DATABASE = "mlruns", "mlflow.db"
# Where such folders begin; in a working folder, which may be a whole home, only these are entered.
LIKELY = re.compile(
    r"(runs?|logs?|tb.*|tensorboard.*|lightning_logs|tf_?events|events|results?|outputs?|exp.*"
    r"|version_\d+|.*[._-](tb|logs?|runs?))",
    re.IGNORECASE | re.ASCII,
)
# Of a run folder: ours, and never such.
NEVER = frozenset({"checkpoints", "ranks", "stacks", "telemetry", "universal", "incomplete"})
_NAME = re.compile(r"[A-Za-z0-9._ +=@,:%-]{1,128}", re.ASCII)
_EXPERIMENT = re.compile(r"[0-9]{1,20}", re.ASCII)
_RUN = re.compile(r"[0-9a-f]{32}", re.ASCII)
# What a field of a form takes as a folder.
_TYPED = re.compile(r"/[A-Za-z0-9._+=@,:%/-]{0,4000}", re.ASCII)
_LONGEST_LINE = 200


def is_plain(name: str) -> bool:
    """A name that may become a part of a path."""
    return _NAME.fullmatch(name) is not None and name not in {".", ".."}


def is_typed(path: str) -> bool:
    """A folder that can be written into a form."""
    return _TYPED.fullmatch(path) is not None and "/../" not in f"{path}/"


def is_experiment(name: str) -> bool:
    return _EXPERIMENT.fullmatch(name) is not None


def is_run(name: str) -> bool:
    return _RUN.fullmatch(name) is not None


def is_metric(name: str) -> bool:
    return is_name(name) and "/" not in name and name not in {".", ".."}


def has_events(names: Iterable[str]) -> bool:
    return any(TENSORBOARD.fullmatch(name) for name in names)


def last_line(text: str) -> tuple[float, float, int | None] | None:
    """Seconds since 1970, value and step of the last whole line `time value step`; the time is in
    thousandths there. A last line without its end is still being written."""
    for line in reversed(text.split("\n")[:-1]):
        words = line.split()
        if len(line) > _LONGEST_LINE or len(words) not in (2, 3):
            continue
        try:
            at, value = int(words[0]) / 1000, float(words[1])
            step = int(words[2]) if len(words) > 2 else None
        except (ValueError, OverflowError):
            continue
        if math.isfinite(value) and 0 <= at < 2**33 and (step is None or abs(step) <= 2**53):
            return at, value, step
    return None
