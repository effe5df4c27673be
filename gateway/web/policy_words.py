"""Values of policy in words: "8 GPUs", "2 days", "1.5×", "no limit", "nothing allowed"."""

from collections.abc import Mapping

from gateway.core.credits import MILLION
from gateway.core.qos import Field, Kind, TresLimit, Value
from gateway.core.tres import GPU
from gateway.web.policy_texts import FIELD_TEXTS, FLAG_TEXTS, JOBS, MODE_TEXTS, TRES_WORDS
from gateway.web.show import minutes_words, plain
from gateway.web.texts import Lazy, gettext, ngettext
from gateway.web.texts import lazy_gettext as _l

MIB_PER_GIB = 1024
_MINUTE = 60
_HOURS_OF = {
    GPU: _l("GPU-hours"),
    "cpu": _l("CPU-hours"),
    "node": _l("node-hours"),
    "mem": _l("memory × hours"),
}
_MINUTES_OF = {
    GPU: _l("GPU-minutes"),
    "cpu": _l("CPU-minutes"),
    "node": _l("node-minutes"),
    "mem": _l("memory × minutes"),
}
_TIMES_HOURS, _TIMES_MINUTES = _l("%(what)s × hours"), _l("%(what)s × minutes")
# Of these 0 is no ban: no least size, no least priority.
_ZERO_IS_PLAIN = frozenset({"min_tres_per_job", "min_priority"})


def words(field: Field, value: Value) -> str:
    """The whole value on one line."""
    return "; ".join(lines(field, value))


def lines(field: Field, value: Value) -> list[str]:
    """One entry for each resource, name, rule or mode; one entry for anything else."""
    if isinstance(value, tuple):
        found = [_entry(field, one) for one in value]
        return found or [_nothing(field)]
    if isinstance(value, int):
        return [_number(field, value)]
    return [plain(value) if value else _nothing(field)]


def bans(field: Field, value: Value) -> bool:
    """Whether the value allows nothing at all, of something."""
    if field.key in _ZERO_IS_PLAIN:
        return False
    if field.kind is Kind.TRES and isinstance(value, tuple):
        return any(isinstance(row, TresLimit) and row.limit == 0 for row in value)
    return field.kind in {Kind.COUNT, Kind.MINUTES} and value == 0


def is_product(field: Field) -> bool:
    """A resource times minutes."""
    return field.kind is Kind.TRES and "_minutes" in field.key


def resource_word(tres: str, field: Field) -> str:
    """What is counted, and in which unit it is typed: GPUs, memory (GiB), GPU-minutes."""
    if not is_product(field):
        return gettext("memory (GiB)") if tres == "mem" else resource_name(tres)
    if tres == "mem":
        return gettext("memory (GiB-minutes)")
    return _product(tres, _MINUTES_OF, _TIMES_MINUTES)


def amount(tres: str, limit: int, field: Field) -> str:
    """So much of a resource: 8 GPUs, 64 GiB memory, 1,000 GPU-hours."""
    if limit == 0 and field.key not in _ZERO_IS_PLAIN:
        return gettext("%(what)s: nothing allowed", what=resource_name(tres))
    if not is_product(field):
        return counted(tres, limit)
    whole = limit % _MINUTE == 0
    number = limit // _MINUTE if whole else limit
    if tres == "mem":
        unit = _HOURS_OF[tres] if whole else _MINUTES_OF[tres]
        return f"{size(number)} {unit}"
    units = (_HOURS_OF, _TIMES_HOURS) if whole else (_MINUTES_OF, _TIMES_MINUTES)
    return f"{number:,} {_product(tres, *units)}"


def decimal(millionths: int) -> str:
    """Exact, with no zero at its end: 1500000 is "1.5"."""
    whole, part = divmod(millionths, MILLION)
    return f"{whole}.{part:06d}".rstrip("0").rstrip(".") if part else str(whole)


def size(mib: int) -> str:
    """Memory, exact: in GiB where that is whole."""
    if mib % MIB_PER_GIB:
        return gettext("%(number)s MiB", number=f"{mib:,}")
    return gettext("%(number)s GiB", number=f"{mib // MIB_PER_GIB:,}")


def seconds_words(seconds: int) -> str:
    """To the second, in full words."""
    minutes, rest = divmod(seconds, 60)
    parts = [minutes_words(minutes)] if minutes else []
    if rest:
        parts.append(ngettext("%(num)d second", "%(num)d seconds", rest))
    return " ".join(parts) or gettext("none")


def _entry(field: Field, one: str | TresLimit) -> str:
    if isinstance(one, TresLimit):
        return amount(one.tres, one.limit, field)
    texts = {Kind.FLAGS: FLAG_TEXTS, Kind.MODES: MODE_TEXTS}.get(field.kind, {})
    return str(texts[one][0]) if one in texts else plain(one)


def _number(field: Field, value: int) -> str:
    if bans(field, value):
        return gettext("nothing allowed")
    if field.kind is Kind.MINUTES:
        return minutes_words(value)
    if field.kind is Kind.SECONDS:
        return seconds_words(value)
    if field.kind is Kind.MILLIONTHS:
        return f"{decimal(value)}×"
    if field.kind is Kind.SHARES:
        return ngettext("%(number)s share", "%(number)s shares", value, number=f"{value:,}")
    if FIELD_TEXTS[field.key].unit is JOBS:
        return ngettext("%(number)s job", "%(number)s jobs", value, number=f"{value:,}")
    return f"{value:,}"


def _nothing(field: Field) -> str:
    """What an empty value says."""
    if field.key == "qos":  # Slurm takes an empty list for that of the account above
        return gettext("those of the group above")
    if field.key in {"limit_factor_millionths", "usage_threshold_millionths", "min_priority"}:
        return gettext("not set")
    match field.kind:
        case Kind.COUNT | Kind.MINUTES | Kind.TRES:
            return gettext("no limit")
        case Kind.NAME:
            return gettext("Slurm's own")
        case Kind.SHARES:
            return gettext("with those of the group above")
        case _:
            return gettext("none")


def _typed_gpu(tres: str) -> tuple[str, str]:
    """GPUs and their type, of GPUs of one; else the resource alone."""
    kind = tres.removeprefix(f"{GPU}:")
    return (tres, "") if kind == tres else (GPU, plain(kind))


def _product(tres: str, units: Mapping[str, Lazy], other: Lazy) -> str:
    base, kind = _typed_gpu(tres)
    if base in units:
        return _with_kind(str(units[base]), kind)
    return other % {"what": resource_name(tres)}


def _with_kind(word: str, kind: str) -> str:
    return f"{word} {kind}" if kind else word


def resource_name(tres: str) -> str:
    """GPUs, a100 GPUs, memory, CPUs; a resource of the site's own keeps Slurm's name."""
    base, kind = _typed_gpu(tres)
    if kind:
        return gettext("%(type)s GPUs", type=kind)
    if base == GPU:
        return gettext("GPUs")
    return str(TRES_WORDS.get(tres, plain(tres)))


def counted(tres: str, limit: int) -> str:
    base, kind = _typed_gpu(tres)
    number = f"{limit:,}"
    if kind:
        return ngettext(
            "%(number)s %(type)s GPU", "%(number)s %(type)s GPUs", limit, number=number, type=kind
        )
    if base == GPU:
        return ngettext("%(number)s GPU", "%(number)s GPUs", limit, number=number)
    if tres == "cpu":
        return ngettext("%(number)s CPU", "%(number)s CPUs", limit, number=number)
    if tres == "node":
        return ngettext("%(number)s node", "%(number)s nodes", limit, number=number)
    if tres == "mem":
        return gettext("%(size)s memory", size=size(limit))
    return f"{number} {resource_name(tres)}"
