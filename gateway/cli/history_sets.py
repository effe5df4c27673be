"""Histories of other sites or of earlier years: `sluice history import --format csv|swf`, and
`sluice history sets` and `forget`."""

import json
import sys
import tempfile
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from datetime import datetime
from pathlib import Path
from zoneinfo import ZoneInfo

import click

from gateway.cli.common import database, now, said, settings
from gateway.cli.output import local
from gateway.core.csv_mapping import BadMapping, CsvMapping, from_toml
from gateway.history import sets
from gateway.history.importing.keep import KEPT_TEXTS
from gateway.history.importing.load import Given, Glance
from gateway.services.import_set import SetReport, forget, hold, import_set, look, name_of
from gateway.wire import messages as m


@dataclass(frozen=True, slots=True)
class Options:
    """What was said beside the file and its format."""

    cluster: str | None
    zone: str | None
    delimiter: str | None
    name: str | None
    mapping: Path | None
    dry_run: bool
    as_json: bool


def import_columns(file: str, kind: str, options: Options) -> None:
    """Import a file as a set, or only look at it; the exit code says whether it was whole."""
    found = settings()
    given = Given(
        path=file,
        kind=kind,
        source=name_of(file, options.name),
        zone=zone_named(options.zone) if options.zone else found.timezone.key,
        now=now(),
        cluster=options.cluster,
        mapping=mapping_in(options.mapping),
        delimiter=options.delimiter,
    )
    if options.dry_run:
        with tempfile.TemporaryDirectory(prefix="sluice-") as folder:
            seen = look(given, Path(folder))
        click.echo(json.dumps(_seen_facts(seen), default=str) if options.as_json else _seen(seen))
        return
    report = import_set(
        given, imports=found.home / sets.FOLDER, keep=lambda rows: _keep(rows, given)
    )
    click.echo(json.dumps(_facts(report)) if options.as_json else _sentences(report))
    if not report.whole:
        sys.exit(1)


@click.command("sets")
@click.option("--json", "as_json", is_flag=True, help="For programs.")
@said
def list_sets(as_json: bool) -> None:
    """List the imported sets: histories of other sites or of earlier years."""
    found = settings()
    known = sets.listed(found.home / sets.FOLDER)
    if as_json:
        facts = [asdict(one) | {"added_at": one.added_at.isoformat()} for one in known]
        click.echo(json.dumps(facts))
        return
    if not known:
        click.echo("There are none: `sluice history import FILE --format csv` makes one.")
    for one in known:
        held = f", {one.held:,} held for review" if one.held else ""
        added = local(one.added_at, found.timezone)
        click.echo(f"{one.name}: {one.rows:,} rows of {one.format}{held}, imported {added}")


@click.command("forget")
@click.argument("name")
@click.option("--yes", is_flag=True, help="Do not ask.")
@said
def forget_set(name: str, yes: bool) -> None:
    """Take the imported set NAME out of all statistics and delete its files."""
    imports = settings().home / sets.FOLDER
    known = {one.name: one for one in sets.listed(imports)}
    if name not in known:
        raise click.ClickException(
            f"There is no set {name!r}. There are: {', '.join(known) or 'none'}."
        )
    if not yes:
        click.confirm(f"Forget {name} and its {known[name].rows:,} rows?", abort=True)
    forget(name, imports=imports)
    click.echo(f"{name} is forgotten.")


def zone_named(name: str) -> str:
    """The zone's name; a sentence where there is none such."""
    try:
        return ZoneInfo(name).key
    except (KeyError, ValueError, OSError) as error:
        raise click.ClickException(f"{name!r} is no time zone.") from error


def mapping_in(path: Path | None) -> CsvMapping | None:
    """What a mapping file says. Raises BadMapping."""
    if path is None:
        return None
    try:
        return from_toml(path.read_text("utf-8"))
    except (OSError, UnicodeDecodeError) as error:
        raise BadMapping(f"{path}: {error}") from error


def _keep(rows: Sequence[m.HeldRow], given: Given) -> int:
    """A home that has no database yet gets one: nothing that was held may be lost."""
    if not rows:
        return 0
    with database(make=True) as begin:
        return hold(rows, begin=begin, given=given)


def _facts(report: SetReport) -> dict[str, object]:
    loaded = report.loaded
    return {
        "set": report.name,
        "records": loaded.records,
        "stored": loaded.stored,
        "known": loaded.known,
        "repeated": loaded.repeated,
        "steps": loaded.steps,
        "held": loaded.held,
        "newly_held": report.newly_held,
        "reasons": dict(loaded.reasons.most_common()),
        "cut": loaded.cut,
        "ties": loaded.ties,
        "columns": dict(loaded.mapping.columns),
    }


def _sentences(report: SetReport) -> str:
    loaded = report.loaded
    lines = [
        f"{loaded.records:,} rows in the file: {loaded.stored:,} stored in the set {report.name}, "
        f"{loaded.known:,} known before, {loaded.repeated:,} repeated, {loaded.steps:,} steps left "
        f"out, {loaded.held:,} held for review.",
        f"Columns: {_taken(loaded.mapping)}.",
        "These jobs are for statistics alone: they charge nothing and stand in no list of jobs.",
    ]
    for reason, count in loaded.reasons.most_common():
        lines.append(f"  held: {reason}: {count:,}")
    if loaded.held:
        lines.append(
            f"Their text is kept ({report.newly_held:,} of them new, at most {KEPT_TEXTS:,} of a "
            "file); an operator sees it on the page Admin."
        )
    if loaded.cut:
        lines.append(f"The end is missing: {loaded.cut}. What is whole was imported.")
    if not loaded.ties:
        lines.append("The counts do not tie: rows were lost on the way. Tell the makers of Sluice.")
    return "\n".join(lines)


def _taken(mapping: CsvMapping) -> str:
    return ", ".join(f"{what} = {column}" for what, column in mapping.columns.items())


def _seen_facts(seen: Glance) -> dict[str, object]:
    return {
        "columns": dict(seen.mapping.columns),
        "units": dict(seen.mapping.units),
        "rows": seen.rows,
        "held": [{"raw": raw, "reason": reason} for raw, reason in seen.problems],
    }


def _seen(seen: Glance) -> str:
    """As a mapping file that a person can go on from, and the first rows."""
    lines = ["[columns]"]
    lines += [
        f"{what} = {json.dumps(column, ensure_ascii=False)}"
        for what, column in seen.mapping.columns.items()
    ]
    if seen.mapping.units:
        lines += ["[units]", *(f'{what} = "{unit}"' for what, unit in seen.mapping.units.items())]
    for number, row in enumerate(seen.rows, start=1):
        told = (f"{name}={_shown(value)}" for name, value in row.items() if value is not None)
        lines.append(f"# row {number}: {' '.join(told)}")
    lines += [f"# held: {reason}: {raw[:200]}" for raw, reason in seen.problems]
    return "\n".join(lines)


def _shown(value: object) -> str:
    return f"{value:%Y-%m-%dT%H:%M:%SZ}" if isinstance(value, datetime) else str(value)
