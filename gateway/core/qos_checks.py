"""What must not come near sacctmgr: names that are none, and values that Slurm cannot keep."""

import re
from dataclasses import dataclass

from gateway.core.qos import (
    FLAGS,
    PREEMPT_MODES,
    Field,
    GroupPolicy,
    Kind,
    Policy,
    Qos,
    Value,
    fields_of,
    value,
)

# Slurm stores names in small letters. No comma, bracket or quote: sacctmgr reads each as several
# names, or changes it; no leading + or -, which mean "add" and "take away".
NAME = re.compile(r"[a-z0-9_][a-z0-9_.-]{0,59}", re.ASCII)
_TRES = re.compile(r"[a-z][a-z0-9_/]{0,30}(:[A-Za-z0-9_.-]{1,40})?", re.ASCII)
_TEXT = re.compile(r"[^\x00-\x1f\x7f\"'\\`|]{0,200}")
# Slurm keeps 32 bits, and the last values mean something else; 0xffffffff of priority as well.
MOST_COUNT = 2**31 - 1
MOST_TRES = 2**40
MOST_MINUTES = 2**31 // 60
MOST_MILLIONTHS = 1_000_000 * 1_000_000


@dataclass(frozen=True, slots=True)
class PolicyProblem:
    """A field that cannot be sent, by its key (`name` for the name itself), and why."""

    key: str
    code: str


def problems(wanted: Policy) -> tuple[PolicyProblem, ...]:
    """Everything that is wrong with a QoS or a group's policy, whatever else exists."""
    found = [] if NAME.fullmatch(wanted.name) else [PolicyProblem("name", "policy_bad_name")]
    if isinstance(wanted, GroupPolicy) and wanted.name == "root":
        found.append(PolicyProblem("name", "root_account_refused"))
    for field in fields_of(wanted):
        code = _wrong(field, value(wanted, field))
        if code:
            found.append(PolicyProblem(field.key, code))
    if isinstance(wanted, Qos) and wanted.name in wanted.preempts:
        found.append(PolicyProblem("preempts", "policy_preempts_itself"))
    return tuple(found)


def _wrong(field: Field, found: Value) -> str | None:
    match field.kind:
        case Kind.TEXT:
            return None if _TEXT.fullmatch(str(found)) else "policy_bad_text"
        case Kind.COUNT | Kind.NUMBER | Kind.SECONDS | Kind.SHARES:
            return _range(found, MOST_COUNT)
        case Kind.MINUTES:
            return _range(found, MOST_MINUTES)
        case Kind.MILLIONTHS:
            return _range(found, MOST_MILLIONTHS)
        case Kind.NAME:
            return None if found is None or NAME.fullmatch(str(found)) else "policy_bad_name"
        case Kind.NAMES:
            return _names(found, NAME)
        case Kind.FLAGS:
            return _known(found, FLAGS)
        case Kind.MODES:
            return _known(found, PREEMPT_MODES) or (None if found else "policy_unknown_word")
        case Kind.TRES:
            return _tres(found)


def _range(found: Value, most: int) -> str | None:
    if found is None or (isinstance(found, int) and 0 <= found <= most):
        return None
    return "policy_bad_number"


def _names(found: Value, pattern: re.Pattern[str]) -> str | None:
    names = [str(name) for name in found] if isinstance(found, tuple) else [""]
    return None if all(pattern.fullmatch(name) for name in names) else "policy_bad_name"


def _known(found: Value, words: tuple[str, ...]) -> str | None:
    names = found if isinstance(found, tuple) else ("",)
    return None if set(names) <= set(words) else "policy_unknown_word"


def _tres(found: Value) -> str | None:
    rows = found if isinstance(found, tuple) else ()
    names = []
    for row in rows:
        if isinstance(row, str) or not _TRES.fullmatch(row.tres):
            return "policy_bad_tres"
        if not 0 <= row.limit <= MOST_TRES:
            return "policy_bad_number"
        names.append(row.tres)
    return "policy_twice" if len(set(names)) != len(names) else None
