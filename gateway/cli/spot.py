"""`sluice spot`: this site's own record of preemptions, and whether spot is worth it."""

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import click

from gateway.cli.common import database, has_database, now, said, sentence, settings
from gateway.cli.output import JSON, SHARE, local, plain, put, table
from gateway.cli.spot_facts import of_advice, of_record
from gateway.core.credits import MILLION, parse_credits
from gateway.core.spot import Origin, Outlook, Prices
from gateway.core.spot_record import LEAST_EVENTS, Record, minutes_to, survival
from gateway.errors import Refused
from gateway.services import spot as spots
from gateway.services.spot import Advised, Asked, SiteRecord

_PERCENT = 100 * MILLION


@click.group()
def spot() -> None:
    """QoS whose jobs may be preempted: how often they are here, and what they come to."""


@spot.command("record")
@click.option("--gpu", "gpu_type", help="Of this type of GPU alone.")
@click.option("--qos", help="Of this QoS alone.")
@JSON
@said
def record(*, gpu_type: str | None, qos: str | None, as_json: bool) -> None:
    """How often, at which hour and after how long runs were preempted in the last 90 days.

    Summed up now, from the runs in the database; nothing is asked of Slurm. What fewer than five
    people are behind is left out.
    """
    zone = settings().timezone
    with database(read_only=True) as begin, begin() as session:
        site = spots.record(session, now=now(), zone=zone, fresh=True)
    wanted = tuple(
        one
        for one in site.records
        if (gpu_type is None or one.gpu_type == gpu_type)
        and (qos is None or one.qos == qos.casefold())
    )
    site = SiteRecord(wanted, site.hidden, site.made_at)
    put(of_record(site, str(zone)), [] if as_json else _record_lines(site), as_json=as_json)


@spot.command("advise")
@click.option("--hours", type=float, required=True, help="Of work, without interruptions.")
@click.option("--gpu", "gpu_type", default="", help="The type of GPU, as the price list has it.")
@click.option("--cards", type=float, default=1, show_default=True, help="In all.")
@click.option("--interval", "interval_minutes", type=float, help="Minutes. Else the best one.")
@click.option(
    "--save", "save_minutes", type=float, default=1.0, show_default=True, help="A checkpoint's."
)
@click.option(
    "--restart", "restart_minutes", type=float, default=5.0, show_default=True, help="Minutes lost."
)
@click.option(
    "--wait",
    "wait_minutes",
    type=float,
    help="Minutes from preempted to running again. Else this site's own mean, else 15.",
)
@click.option(
    "--between",
    "between_hours",
    type=float,
    help="Hours between preemptions. Else this site's own record, else 6, an assumption.",
)
@click.option("--qos", help="Which one; else the one with the most runs.")
@click.option("--price", help="Of a card-hour, instead of the price list's.")
@click.option("--spot-off", type=SHARE, help="Percent off --price in spot.")
@click.option("--free-when-preempted", is_flag=True, help="With --price: such runs are given back.")
@JSON
@said
def advise(
    *,
    price: str | None,
    spot_off: int | None,
    free_when_preempted: bool,
    as_json: bool,
    **asked: Any,
) -> None:
    """Expected finish and cost in spot and in normal: estimates, by this site's own record."""
    with _in_words():
        typed = _typed(price, spot_off, gives_back=free_when_preempted)
        found = _advised(Asked(**asked), typed)
    put(of_advice(found), [] if as_json else _advice_lines(found), as_json=as_json)


def _advised(asked: Asked, typed: Prices | None) -> Advised:
    at, zone = now(), settings().timezone
    if not has_database(settings()):
        return spots.advise(None, asked, site=SiteRecord(()), now=at, typed=typed)
    with database(read_only=True) as begin, begin() as session:
        site = spots.record(session, now=at, zone=zone, fresh=True)
        return spots.advise(session, asked, site=site, now=at, typed=typed)


def _typed(price: str | None, off: int | None, *, gives_back: bool) -> Prices | None:
    if price is None:
        if off is not None or gives_back:
            raise click.UsageError("--spot-off and --free-when-preempted are of --price.")
        return None
    if off is not None and not 0 <= off < _PERCENT:
        raise Refused("plan_discount", field="spot_off")
    return Prices(parse_credits(price), MILLION - (off or 0) // 100, MILLION, gives_back)


@contextmanager
def _in_words() -> Iterator[None]:
    """A refusal with its option's name, as it was typed."""
    try:
        yield
    except Refused as error:
        name = (error.field or "").removesuffix("_minutes").removesuffix("_hours").replace("_", "-")
        bare = Refused(error.code)
        bare.facts = error.facts
        raise click.ClickException(f"--{name}: {sentence(bare)}") from error


def _record_lines(site: SiteRecord) -> list[str]:
    if not site.records:
        return [
            "There is no record yet: no run of a QoS that may be preempted is known, or too few "
            "people ran any."
        ]
    head = ("QoS", "GPU", ">runs", ">job hours", ">preempted", ">every h", ">95 %", ">median h")
    lines = table(head, [_row(one) for one in site.records])
    if site.hidden:
        lines.append(f"{site.hidden} types are left out: too few people used them.")
    zone = settings().timezone
    first = site.records[0]
    return [*lines, f"Runs that began {local(first.since, zone)} to {local(first.until, zone)}."]


def _row(one: Record) -> tuple[str, ...]:
    rate, median = one.rate, minutes_to(survival(one.lengths), 0.5)
    every, band = f"fewer than {LEAST_EVENTS} known", ""
    if rate and rate.between_hours:
        every = f"{rate.between_hours:.1f}"
        band = f"{1 / rate.high:.1f}-{1 / rate.low:.1f}"
    hours = f"{one.whole.seconds / 3600:,.1f}"
    known = "-" if median is None else f"{median / 60:.1f}"
    kind = one.gpu_type or "all"
    return (one.qos, kind, f"{one.runs:,}", hours, f"{one.whole.events:,}", every, band, known)


def _advice_lines(found: Advised) -> list[str]:
    advice = found.advice
    lines = table(
        ("", ">mean h", ">p50 h", ">p90 h", ">on nodes h", ">preempted", ">made again h"),
        [
            _outlook(found.qos or "spot", advice.spot),
            _outlook("at the best interval", advice.at_best),
            _outlook(found.normal or "normal", advice.normal),
        ],
    )
    lines += [_between(found)]
    interval, best = advice.work.interval / 60, advice.best / 60
    lines += [f"A checkpoint every {interval:.0f} min; the best interval is {best:.0f} min."]
    if advice.costs is None:
        return [*lines, "No price: name --gpu as the price list has it, or --price."]
    costs = advice.costs
    currency = settings().currency
    if costs.by_rule is not None:
        rule = " (preempted runs are given back)" if costs.gives_back else ""
        lines += [f"Spot: {plain(costs.by_rule)} {currency}, an estimate{rule}."]
    return [*lines, f"Normal: {plain(costs.normal)} {currency}."]


def _outlook(name: str, found: Outlook | None) -> tuple[str, ...]:
    if found is None:
        return name, "practically never done", "", "", "", "", ""
    hours = (found.mean, found.p50, found.p90, found.on_nodes)
    return (
        name,
        *(f"{seconds / 3600:.1f}" for seconds in hours),
        f"{found.preemptions:.1f}",
        f"{found.lost / 3600:.1f}",
    )


def _between(found: Advised) -> str:
    mean = found.advice.between
    every = f"Preempted every {mean.seconds / 3600:.1f} h on nodes"
    match mean.origin:
        case Origin.ASKED:
            return f"{every}, as you said."
        case Origin.ASSUMED:
            return f"{every}: an assumption, too few preemptions are on record here."
        case Origin.SITE:
            return f"{every}, by {mean.events:,} preemptions of {mean.runs:,} runs here."
