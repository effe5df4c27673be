"""What `sluice volume` prints for people."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from gateway.cli.common import settings
from gateway.cli.output import local, plain, table
from gateway.core.volumes import format_size
from gateway.services.volume_pages import Picture, VolumePage
from gateway.store import volumes as store
from gateway.store.volume_work import RequestRow

if TYPE_CHECKING:
    from sqlalchemy.orm import Session


@dataclass(frozen=True, slots=True)
class Areas:
    value: dict[str, Any]
    lines: list[str]


def size(count: int | None) -> str:
    return "-" if count is None else format_size(count)


def volume_table(found: Sequence[Picture]) -> list[str]:
    head = (
        "group",
        "area/name",
        ">used",
        ">limit",
        ">%",
        ">30 days",
        "full",
        ">a month",
        "problem",
    )
    rows = [
        (
            one.row.group,
            f"{one.row.area}/{one.row.name}",
            size(one.row.used_bytes),
            size(one.row.limit_bytes),
            "-" if one.percent is None else str(one.percent),
            size(one.growth),
            full_words(one),
            "-" if one.a_month is None else plain(one.a_month),
            one.row.problem or (one.row.state.value if one.row.state != "there" else ""),
        )
        for one in found
    ]
    return table(head, rows) if rows else ["There are no volumes."]


def full_words(one: Picture) -> str:
    full = one.full
    if full is None:
        return "-"
    return f"{full.at} ({full.earliest} .. {full.latest or 'never'})"


def areas_value(session: "Session") -> Areas:
    """Areas, and folders in them that are no volumes."""
    areas, strange = store.areas(session), store.strangers(session)
    value = {
        "areas": [
            {
                "name": one.name,
                "path": one.path,
                "provider": one.provider,
                "limits": one.limits,
                "total_bytes": one.total_bytes,
                "free_bytes": one.free_bytes,
                "problem": one.problem,
                "read_at": one.read_at.isoformat(),
            }
            for one in areas
        ],
        "other_folders": [
            {"area": one.area, "name": one.name, "unix_group": one.owner}
            | {"used_bytes": one.used_bytes, "limit_bytes": one.limit_bytes}
            for one in strange
        ],
    }
    head = ("area", "path", "provider", ">free", ">of", "problem")
    rows = [
        (a.name, a.path, a.provider, size(a.free_bytes), size(a.total_bytes), a.problem or "")
        for a in areas
    ]
    lines = table(head, rows) if rows else ["The broker was not asked for areas yet: --look."]
    lines += [f"no volume: {one.area}/{one.name} ({one.owner})" for one in strange]
    return Areas(value, lines)


def shown_lines(page: VolumePage) -> list[str]:
    row, zone = page.picture.row, settings().timezone
    lines = [
        f"{row.area}/{row.name} of {row.group} (Unix group {row.owner}): {row.path}",
        f"{size(row.used_bytes)} of {size(row.limit_bytes)}, read {local(row.read_at, zone)}",
        f"30 days: {size(page.picture.growth)}; full: {full_words(page.picture)}",
    ]
    if row.problem:
        lines.append(f"problem: {row.problem}")
    if page.price is not None:
        lines.append(f"{plain(page.price)} a GB and month")
    for one in page.requests:
        lines += ["", *request_lines(one)]
    head = ("month", ">GB-days", f">{settings().currency}")
    charges = [(c.month, f"{c.gb_days / 1000:,.1f}", plain(c.amount)) for c in page.charges]
    return [*lines, "", *table(head, charges)] if charges else lines


def request_lines(one: RequestRow) -> list[str]:
    zone = settings().timezone
    asked = f"request {one.id} of {one.by or 'the command line'}, {local(one.at, zone)}"
    lines = [f"{asked}: {one.name} to {size(one.wanted_bytes)}: {one.state.value}"]
    if one.decided_at is not None:
        lines.append(f"  answered by {one.decider or 'the command line'}: {one.answer or '-'}")
    if one.done_at is not None and one.after_bytes is not None:
        lines.append(f"  {size(one.before_bytes)} -> {size(one.after_bytes)}, read back")
    if one.code:
        lines.append(f"  {one.code}")
    return lines
