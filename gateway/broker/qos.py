"""QoS with all their limits, read and written with sacctmgr by the table in core.qos."""

from collections.abc import Sequence
from dataclasses import dataclass

from gateway.broker.commands import Commands
from gateway.broker.sacctmgr import show
from gateway.core.durations import Special, parse_slurm_duration
from gateway.core.qos import FIELDS, Kind, Qos, Value, tres
from gateway.core.tres import parse_tres
from gateway.wire import policy as p

# The free text stands last, so that a separator in it shifts nothing.
_READ = (*FIELDS[1:], FIELDS[0])
_FORMAT = ",".join(["Name", *(field.column for field in _READ)])


@dataclass(frozen=True, slots=True)
class QosPolicy:
    commands: Commands
    cluster: str

    def read(self) -> p.QosList:
        rows = show(self.commands, ["show", "qos", f"format={_FORMAT}"], columns=len(_READ) + 1)
        return p.QosList(tuple(_qos(row) for row in rows))


def _qos(row: Sequence[str]) -> Qos:
    found = {field.key: parse(field.kind, text) for field, text in zip(_READ, row[1:], strict=True)}
    if found["grace_seconds"] is None:
        found["grace_seconds"] = 0
    if found["usage_factor_millionths"] is None:
        found["usage_factor_millionths"] = 1_000_000
    return Qos(name=row[0], **found)  # type: ignore[arg-type]


def parse(kind: Kind, text: str) -> Value:
    """One column as sacctmgr prints it. ValueError when it is none of its kind."""
    match kind:
        case Kind.TEXT:
            return text
        case Kind.NAME:
            return text or None
        case Kind.COUNT:
            return int(text) if text else None
        case Kind.SHARES:
            return None if text == "parent" else int(text or "1")
        case Kind.NUMBER:
            return int(text or "0")
        case Kind.MINUTES:
            seconds = _seconds(text)
            return None if seconds is None else -(-seconds // 60)
        case Kind.SECONDS:
            return _seconds(text)
        case Kind.MILLIONTHS:
            return _millionths(text) if text else None
        case Kind.TRES:
            return tres(parse_tres(text))
        case Kind.NAMES | Kind.FLAGS | Kind.MODES:
            return tuple(sorted(name for name in text.split(",") if name))


def _millionths(text: str) -> int:
    """1.000000 exactly, without a float in between."""
    whole, _, part = text.partition(".")
    return int(whole) * 1_000_000 + int(part[:6].ljust(6, "0"))


def _seconds(text: str) -> int | None:
    duration = parse_slurm_duration(text)
    return None if isinstance(duration, Special) else int(duration)
