"""`sluice ledger statement`: a group's month, line by line, as a table, JSON or CSV."""

import csv
import sys
from dataclasses import asdict
from datetime import tzinfo
from typing import Any

import click

from gateway.cli.common import database, now, said, settings
from gateway.cli.output import (
    FORCE,
    JSON,
    MONTH,
    amounts,
    card_hours,
    iso,
    local,
    plain,
    put,
    require_group,
    table,
)
from gateway.core.months import month_bounds, month_of
from gateway.store.queries import spending
from gateway.store.queries import statement as reads
from gateway.store.queries.spending import MemberSpend
from gateway.store.queries.statement import EntryRow, Totals


@click.command()
@click.option("--group", required=True)
@click.option(
    "--month", type=MONTH, help="Such as 2026-11, in the site's zone. [default: this month]"
)
@click.option("--no-holds", is_flag=True, help="Leave out what was only held and given back.")
@click.option("--csv", "as_csv", is_flag=True, help="The lines for a spreadsheet.")
@FORCE
@JSON
@said
def statement(
    *, group: str, month: str | None, no_holds: bool, as_csv: bool, force: bool, as_json: bool
) -> None:
    """Print a month of a group: each line with what it was for, and the balance after it."""
    if as_csv and as_json:
        raise click.UsageError("Choose one of --csv and --json.")
    zone = settings().timezone
    month = month or month_of(now(), zone)
    since, until = month_bounds(month, zone)
    with database(read_only=True) as begin:
        require_group(begin, group, force=force)
        window: dict[str, Any] = {"since": since, "until": until}
        with begin() as session:
            rows = reads.entries(session, group, **window, holds=not no_holds, limit=None)
            sums = reads.totals(session, group, **window, holds=not no_holds)
            members = spending.by_member(session, group, **window)
    if as_csv:
        _write(rows)
        return
    facts = {"group": group, "month": month, "zone": str(zone), "currency": settings().currency}
    facts |= amounts(opening=sums.opening, closing=sums.closing)
    put(
        facts
        | {
            "entries": [_entry(row) for row in rows],
            "totals": [
                {"kind": one.kind, "entries": one.entries} | amounts(amount=one.amount)
                for one in sums.lines
            ],
            "members": [_member(one) for one in members],
        },
        _lines(group=group, month=month, rows=rows, sums=sums, members=members, zone=zone),
        as_json=as_json,
    )


def what_for(row: EntryRow) -> str:
    """In a few words: the job, the submission, the other group, or the reason of a grant."""
    if row.other_group is not None:
        return f"{'from' if row.amount > 0 else 'to'} {row.other_group}"
    if row.job_id is None and row.submission_id is None:
        reason = "" if row.pot_kind == "balance" else row.pot_reason
        return " ".join(part for part in (reason, row.note or "") if part)
    number = f"job {_job_number(row)}" if row.slurm_id else f"submission {row.submission_id}"
    words = f"{number} {row.job_name or ''}".strip()
    if row.refund_reason is not None:
        nodes = (row.refund_evidence or {}).get("nodes") or (row.refund_evidence or {}).get("note")
        words += f": {row.refund_reason}" + (f", {nodes}" if nodes else "")
    return words


def _job_number(row: EntryRow) -> str:
    if row.array_job_id is not None and row.array_task is not None:
        return f"{row.array_job_id}_{row.array_task}"
    return str(row.slurm_id)


def _entry(row: EntryRow) -> dict[str, Any]:
    facts = asdict(row)
    for name in ("at", "run_start", "run_end", "pot_expires"):
        facts[name] = iso(facts[name])
    del facts["amount"], facts["balance"]
    return facts | {"for": what_for(row)} | amounts(amount=row.amount, balance=row.balance)


def _member(one: MemberSpend) -> dict[str, Any]:
    facts = {"user": one.user, "runs": one.runs, "card_seconds": one.card_seconds}
    return facts | amounts(spent=one.spent, charged=one.charged, refunded=one.refunded)


def _lines(
    *,
    group: str,
    month: str,
    rows: list[EntryRow],
    sums: Totals,
    members: list[MemberSpend],
    zone: tzinfo,
) -> list[str]:
    cells = [["", "opening balance", "", "", "", "", plain(sums.opening)]]
    cells += [
        [
            local(row.at, zone),
            row.kind,
            what_for(row),
            row.user or row.by or "",
            local(row.run_start, zone),
            plain(row.amount),
            plain(row.balance),
        ]
        for row in rows
    ]
    cells.append(["", "closing balance", "", "", "", "", plain(sums.closing)])
    head = ["time", "kind", "for", "who", "run from", f">{settings().currency}", ">balance"]
    kinds = [[one.kind, str(one.entries), plain(one.amount)] for one in sums.lines]
    people = [
        [one.user, str(one.runs), card_hours(one.card_seconds), plain(one.spent)] for one in members
    ]
    return [
        f"{group}, {month}",
        *table(head, cells),
        "",
        *table(["kind", ">lines", ">sum"], kinds),
        "",
        *table(["member", ">runs", ">card-hours", ">spent"], people),
    ]


_COLUMNS = (
    "at",
    "kind",
    "amount",
    "balance",
    "for",
    "user",
    "slurm_id",
    "job_name",
    "run_start",
    "run_end",
    "card_seconds",
    "pot_kind",
    "pot_reason",
    "refund_reason",
    "note",
)


def _write(rows: list[EntryRow]) -> None:
    out = csv.DictWriter(sys.stdout, _COLUMNS, extrasaction="ignore", lineterminator="\n")
    out.writeheader()
    for row in rows:
        facts = _entry(row)
        out.writerow({name: _cell(name, facts[name]) for name in _COLUMNS})


def _cell(name: str, value: Any) -> Any:
    """A spreadsheet must not take other people's text for a formula."""
    if name in {"amount", "balance"} or not isinstance(value, str):
        return value
    return f"'{value}" if value[:1] in {"=", "+", "-", "@", "\t", "\r"} else value
