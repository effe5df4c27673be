"""What the broker refuses of a submit request before anything is sent to Slurm."""

import re
import signal
import unicodedata

from gateway.broker.tokens import TOKEN
from gateway.errors import BrokerRefused
from gateway.wire import messages as m

MAX_NAME_BYTES = 200
MAX_PATH_BYTES = 1000  # pyslurm reads an output path back into 1024 bytes
MAX_SCRIPT_BYTES = 4 * 2**20  # Slurm's own default, SchedulerParameters=max_script_size
_WORD = re.compile(r"[A-Za-z0-9_][A-Za-z0-9_.+-]{0,63}", re.ASCII)
_SIGNAL = re.compile(r"(?:(R?B?|BR):)?([A-Z0-9]+)(?:@(\d{1,5}))?", re.ASCII)
_LAST_SIGNAL, _LONGEST_NOTICE = 64, 2**16 - 1  # Slurm keeps the seconds in 16 bits
# All tasks from 0 on, and how many at once: what `core.arrays.array_text` makes.
_ARRAY = re.compile(r"0(?:-[1-9]\d{0,6})?(?:%[1-9]\d{0,6})?", re.ASCII)
_NODES = re.compile(r"[A-Za-z0-9][A-Za-z0-9_.-]*(?:,[A-Za-z0-9][A-Za-z0-9_.-]*)*", re.ASCII)
_LINE_BREAKS = "\u2028\u2029\u0085"


def check_submit(request: m.SubmitRequest) -> None:
    """BrokerRefused with a code a field; fine otherwise."""
    _require(TOKEN.fullmatch(request.token) is not None, "bad_token")
    _require(is_plain_text(request.name, MAX_NAME_BYTES), "bad_name")
    for word, code in (
        (request.account, "invalid_account"),
        (request.partition, "invalid_partition"),
        (request.qos, "invalid_qos"),
        (request.gpu_type or "gpu", "invalid_gres"),
    ):
        # Without a comma, too: Slurm reads a list of partitions as "any of these".
        _require(_WORD.fullmatch(word) is not None, code)
    for path in (request.working_directory, request.output):
        _require(is_plain_text(path, MAX_PATH_BYTES), "bad_path")
    _require(request.working_directory.startswith("/"), "bad_path")
    _require(request.array is None or _ARRAY.fullmatch(request.array) is not None, "invalid_array")
    _check_numbers(request)
    _check_script(request.script)
    if request.signal is not None:
        parse_signal(request.signal)


def is_plain_text(text: str, max_bytes: int) -> bool:
    """One line, without control characters, not empty and not too long."""
    if not text or any(unicodedata.category(c) in {"Cc", "Cs"} or c in _LINE_BREAKS for c in text):
        return False
    return len(text.encode()) <= max_bytes


def parse_signal(text: str) -> dict[str, int | bool]:
    """`B:USR1@120` as numbers; pyslurm would look names up without their SIG prefix."""
    found = _SIGNAL.fullmatch(text)
    if not found:
        raise BrokerRefused(text, code="bad_signal")
    flags, name, seconds = found.group(1) or "", found.group(2), found.group(3)
    try:
        number = int(name) if name.isdigit() else signal.Signals[f"SIG{name.removeprefix('SIG')}"]
    except KeyError as error:
        raise BrokerRefused(text, code="bad_signal") from error
    _require(1 <= number <= _LAST_SIGNAL and int(seconds or 60) <= _LONGEST_NOTICE, "bad_signal")
    return {
        "signal": int(number),
        "time": int(seconds or 60),
        "batch_only": "B" in flags,
        "allow_reservation_overlap": "R" in flags,
    }


def _check_numbers(request: m.SubmitRequest) -> None:
    _require(1 <= request.nodes <= 65000, "invalid_node_count")
    _require(0 <= request.gpus_per_node <= 1024, "invalid_gres")
    _require(1 <= request.cpus_per_task <= 65000, "invalid_cpu_count")
    _require(1 <= request.time_limit_minutes < 2**31, "invalid_time_limit")
    nodes = request.on_nodes
    _require(nodes is None or _NODES.fullmatch(nodes) is not None, "invalid_node_name")
    if request.after_ok is not None:
        _require(1 <= request.after_ok < 2**32, "invalid_dependency")
    if request.memory_mb_per_node is not None:
        _require(1 <= request.memory_mb_per_node < 2**40, "invalid_memory")


def _check_script(script: str) -> None:
    _require(script.startswith("#!"), "script_without_shebang")
    _require("\0" not in script, "script_with_nul")
    _require("\r" not in script, "script_with_carriage_return")
    try:
        size = len(script.encode())
    except UnicodeEncodeError as error:
        raise BrokerRefused("lone surrogate", code="script_not_text") from error
    _require(size <= MAX_SCRIPT_BYTES, "script_too_large")


def _require(fine: bool, code: str) -> None:
    if not fine:
        raise BrokerRefused(code, code=code)
