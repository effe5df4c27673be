"""sacctmgr's words for the fields of core.qos: how each is read, sent and refused."""

from collections.abc import Sequence

from gateway.broker import sacctmgr
from gateway.broker.commands import Output
from gateway.core.qos import Change, Field, Kind, TresLimit, Value, tres
from gateway.core.qos_checks import NAME
from gateway.core.tres import parse_tres
from gateway.errors import BrokerRefused, GatewayError

_GONE = "-1"
# What sacctmgr prints when nothing was changed, and what it means.
_REFUSALS = (
    ("Preemption loop", "policy_preemption_loop"),
    ("bad qos", "no_such_qos"),
    ("bad default qos", "no_such_qos"),
    ("access to their default qos", "policy_default_not_listed"),
    ("no TRES known by type", "policy_unknown_tres"),
    ("privilege", "policy_not_permitted"),
    ("permission denied", "policy_not_permitted"),
    ("Bad Preempt Mode", "policy_unknown_word"),
    ("Unknown option", "policy_refused"),
    ("Invalid value", "policy_refused"),
    ("didn't give me anything to set", "policy_refused"),
)


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
            seconds = sacctmgr.seconds(text)
            return None if seconds is None else -(-seconds // 60)
        case Kind.SECONDS:
            return sacctmgr.seconds(text)
        case Kind.MILLIONTHS:
            return _millionths(text) if text else None
        case Kind.TRES:
            return tres(parse_tres(text))
        case Kind.NAMES | Kind.FLAGS | Kind.MODES:
            return tuple(sorted(name for name in text.split(",") if name))


def words(changes: Sequence[Change]) -> list[str]:
    """`Option=value` for each field; of a TRES field only the resources that differ."""
    return [f"{change.field.option}={_sent(change)}" for change in changes]


def refusal(done: Output, *, unmatched: str) -> GatewayError:
    """A clear no of sacctmgr, or BrokerSilent when it may have been done all the same.

    `unmatched` is the code for a name that exists, or does not.
    """
    gone = ((text, unmatched) for text in ("Nothing modified", "Nothing new added"))
    return sacctmgr.refusal(done, (*gone, *_REFUSALS))


def shares_file(cluster: str, rows: Sequence[tuple[str, str, int | None]]) -> str:
    """The file for `sacctmgr load` that sets shares of accounts, each with the one above it.

    BrokerRefused for a name that could be read as something else.
    """
    lines, above = [f"Cluster - '{cluster}'"], ""
    for parent, account, shares in sorted(rows, key=lambda row: row[:2]):
        for name in (parent, account):
            if not NAME.fullmatch(name):
                raise BrokerRefused(name, code="policy_bad_name")
        if parent != above:
            lines.append(f"Parent - '{parent}'")
            above = parent
        lines.append(f"Account - '{account}':Fairshare={'parent' if shares is None else shares}")
    return "\n".join(lines) + "\n"


def _sent(change: Change) -> str:
    field, after = change.field, change.after
    match field.kind:
        case Kind.TRES:
            return _differing(change.before, after)
        case Kind.NAMES | Kind.MODES:
            return _joined(after)
        case Kind.FLAGS:
            return _joined(after) or _GONE  # sacctmgr refuses an empty list of these
        case Kind.SHARES if after is None:
            return "parent"
        case Kind.TEXT:
            return str(after)
    if not isinstance(after, int):
        return _GONE if after is None else str(after)
    return _number(field, after)


def _number(field: Field, after: int) -> str:
    if field.kind is Kind.MILLIONTHS:
        return f"{after // 1_000_000}.{after % 1_000_000:06}"
    # A bare number would be minutes; GraceTime alone takes seconds, and no clock.
    if field.kind is Kind.SECONDS and field.key != "grace_seconds":
        return f"{after // 3600}:{after // 60 % 60:02}:{after % 60:02}"
    return str(after)


def _differing(before: Value, after: Value) -> str:
    old, new = _limits(before), _limits(after)
    sent = {name: str(limit) for name, limit in new.items() if old.get(name) != limit}
    sent.update({name: _GONE for name in old if name not in new})
    return ",".join(f"{name}={limit}" for name, limit in sorted(sent.items()))


def _limits(found: Value) -> dict[str, int]:
    rows = found if isinstance(found, tuple) else ()
    return {row.tres: row.limit for row in rows if isinstance(row, TresLimit)}


def _joined(found: Value) -> str:
    return ",".join(str(name) for name in found) if isinstance(found, tuple) else ""


def _millionths(text: str) -> int:
    """1.000000 exactly, without a float in between."""
    whole, _, part = text.partition(".")
    return int(whole) * 1_000_000 + int(part[:6].ljust(6, "0"))
