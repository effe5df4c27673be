"""What must not come near sacctmgr: names that are none, and values that Slurm cannot keep."""

import re
import string
from dataclasses import dataclass, replace
from typing import Any, TypeVar

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
P = TypeVar("P", Qos, GroupPolicy)
_SMALL = str.maketrans(string.ascii_uppercase, string.ascii_lowercase)
# Sets of which Slurm takes one word at most; `cluster` it takes beside others, and drops.
_EITHER_MODE = (
    {"cluster", "requeue", "cancel", "suspend"},
    {"cluster", "gang", "within"},
)
_TEXT = re.compile(r"[^\x00-\x1f\x7f\ud800-\udfff\"'\\`|]{0,200}")
# Slurm keeps 32 bits, and the last values mean something else; 0xffffffff of priority as well.
MOST_COUNT = 2**31 - 1
MOST_TRES = 2**40
MOST_SHARES = 2**31 - 2  # one more is Slurm's `parent`
# sacctmgr adds 59 seconds to round up before it has minutes.
MOST_MINUTES = (2**31 - 1 - 59) // 60
MOST_MEBIBYTES = 2**30  # past P sacctmgr has no letter and prints "?"
MOST_MILLIONTHS = 1_000_000 * 1_000_000


@dataclass(frozen=True, slots=True)
class PolicyProblem:
    """A field that cannot be sent, by its key (`name` for the name itself), and why."""

    key: str
    code: str


def problems(wanted: Policy, before: Policy | None = None) -> tuple[PolicyProblem, ...]:
    """Everything that is wrong with a QoS or a group's policy, whatever else exists.

    What is as it was `before` is not sent, and so may be what Slurm alone would take.
    """
    found = [] if NAME.fullmatch(wanted.name) else [PolicyProblem("name", "policy_bad_name")]
    if isinstance(wanted, GroupPolicy) and wanted.name == "root":
        found.append(PolicyProblem("name", "root_account_refused"))
    for field in _differing(wanted, before):
        code = _wrong(field, value(wanted, field)) or _clash(field, wanted)
        if code:
            found.append(PolicyProblem(field.key, code))
    return tuple(found)


def as_kept(wanted: P, before: P | None = None) -> P:
    """What Slurm would give back: lists sorted, each entry once, descriptions in small letters.

    What is as it was `before` stays so.
    """
    values: dict[str, Any] = {
        field.key: _kept(field, value(wanted, field)) for field in _differing(wanted, before)
    }
    return replace(wanted, **values)


def _differing(wanted: Policy, before: Policy | None) -> list[Field]:
    return [
        field
        for field in fields_of(wanted)
        if before is None or value(before, field) != value(wanted, field)
    ]


def _kept(field: Field, found: Value) -> Value:
    match field.kind:
        case Kind.TEXT:
            # Letters of other alphabets keep their case.
            return str(found).strip(" ").translate(_SMALL)
        case Kind.TRES | Kind.NAMES | Kind.FLAGS | Kind.MODES:
            entries: Any = found if isinstance(found, tuple) else ()
            return tuple(sorted(set(entries)))
        case _:
            return found


def _clash(field: Field, wanted: Policy) -> str | None:
    """A value that is fine by itself, and not with the rest."""
    if isinstance(wanted, GroupPolicy):
        default = wanted.default_qos
        is_out = default is not None and wanted.qos and default not in wanted.qos
        return (
            "policy_default_not_listed" if field.key in ("qos", "default_qos") and is_out else None
        )
    match field.key:
        case "preempts":
            return "policy_preempts_itself" if wanted.name in wanted.preempts else None
        case "limit_factor_millionths":  # Slurm says yes to 0 and leaves it as it was
            return "policy_bad_number" if wanted.limit_factor_millionths == 0 else None
        case "preempt_mode":
            modes = set(wanted.preempt_mode)
            clash = any(len(either & modes) > 1 for either in _EITHER_MODE)
            return "policy_two_modes" if clash else None
    return None


def _wrong(field: Field, found: Value) -> str | None:
    match field.kind:
        case Kind.TEXT:
            return None if _TEXT.fullmatch(str(found)) else "policy_bad_text"
        case Kind.COUNT | Kind.NUMBER | Kind.SECONDS:
            return _range(found, MOST_COUNT)
        case Kind.SHARES:
            return _range(found, MOST_SHARES)
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
        if row.tres == "mem" and not _printable(row.limit):
            return "policy_bad_memory"
        names.append(row.tres)
    return "policy_twice" if len(set(names)) != len(names) else None


def _printable(mebibytes: int) -> bool:
    """Whether sacctmgr prints this memory without loss.

    It shortens while a half stays exact, but counts 512.5 G as half a T: half a GiB above a
    multiple of 512 GiB (from 1 TiB on) is rounded to two digits.
    """
    gibibytes, rest = divmod(mebibytes, 1024)
    rounded = rest == 512 and gibibytes >= 1024 and gibibytes % 512 == 0
    return mebibytes <= MOST_MEBIBYTES and not rounded
