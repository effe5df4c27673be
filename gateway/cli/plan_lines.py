"""What `sluice plan` prints for people."""

from collections.abc import Iterator
from decimal import Decimal

from gateway.cli.output import plain, table
from gateway.cli.plan_facts import figures, rounded
from gateway.cli.plan_texts import CHANGES, FITS, SOURCES, SYMBOLS, told
from gateway.core.credits import MILLION
from gateway.core.planner.figures import GB, Figure
from gateway.core.planner.hours import Mfu
from gateway.core.planner.plan import Interrupted, Plan
from gateway.core.planner.verdict import Fit
from gateway.web.planner_words import hours_figure, short

_ORIGINS = {"asked": "as you said", "site": "measured here", "usual": "usual for such cards"}
_OFTEN = {"asked": "as you said", "assumed": "an assumption: --mtbf gives another"}


def lines(plan: Plan, currency: str, *, explain: bool) -> list[str]:
    blocks = [
        [_head(plan)],
        _memory(plan),
        list(_verdict(plan)),
        _fewest(plan),
        list(_time(plan)),
        _cost(plan, currency),
        list(_checkpoint(plan)),
        [f"Note: {told(one)}" for one in plan.notices],
        _explained(plan) if explain else ["--explain shows each formula and where it is from."],
    ]
    return "\n\n".join("\n".join(block) for block in blocks if block).split("\n")


def _head(plan: Plan) -> str:
    used = plan.setup
    return (
        f"{short(plan.model.params)} parameters, {short(plan.tokens)} tokens,"
        f" {used.strategy.name} on {used.gpus} × {plan.card.name} in {used.precision.value},"
        f" micro-batch {used.micro_batch} × {plan.model.sequence},"
        f" recomputation {used.recompute.value}"
    )


def _memory(plan: Plan) -> list[str]:
    rows = [[name, _gb(figure), _band(figure)] for name, figure in plan.memory.parts]
    rows.append(["total", _gb(plan.memory.total), _band(plan.memory.total)])
    rows.append([f"of {plan.card.name}", f"{plan.card.memory_gb:.1f}", ""])
    rows.append(["memory of a node", _gb(plan.memory.host), _band(plan.memory.host)])
    return table(["memory of a card, an estimate", ">GB", "from – to"], rows)


def _verdict(plan: Plan) -> Iterator[str]:
    yield FITS[plan.fit.value]
    if plan.fits_host is False:
        yield "It does not fit into the memory of a node."
    place = 0 if plan.fit is Fit.NO else 1
    for one in plan.changes:
        words = CHANGES[one.kind][place] % {"values": ", ".join(one.values)}
        yield f"It would fit {words}." if place == 0 else f"{words[0].upper()}{words[1:]}."
    if plan.fit is Fit.NO and not plan.changes:
        yield "No single change makes it fit."


def _fewest(plan: Plan) -> list[str]:
    rows = [
        [
            one.strategy + (" (rough)" if one.is_rough else ""),
            "none" if one.gpus is None else str(one.gpus),
            _gb(one.total),
            _gb(one.host),
        ]
        for one in plan.fewest
    ]
    return table(["strategy", ">fewest cards", ">GB a card then", ">GB a node"], rows)


def _time(plan: Plan) -> Iterator[str]:
    speed = plan.speed
    hours = speed.hours
    share = speed.mfu.figure.value * 100
    yield (
        f"{hours_figure(hours.value)} hours ({hours_figure(hours.low)} to"
        f" {hours_figure(hours.high)}), or {hours.value / 24:,.1f} days, at an MFU of {share:.3g} %"
        f" ({_ORIGINS[speed.mfu.origin]}{_of_jobs(speed.mfu)});"
        f" {short(speed.tokens_per_second)} tokens a second."
    )
    within = plan.within
    if within is not None:
        yield (
            f"In {hours_figure(within.hours)} hours: {within.gpus:,} cards, if more of them lost"
            f" nothing; these cards train on {short(within.tokens)} tokens, or would need an MFU of"
            f" {within.mfu * 100:.3g} %."
        )


def _of_jobs(found: Mfu) -> str:
    return f" on {found.jobs} jobs" if found.jobs else ""


def _cost(plan: Plan, currency: str) -> list[str]:
    if plan.cost is None:
        found = [f"No price of {plan.card.name} is known: no cost. --price gives one."]
        return [*found, *_budget(plan, currency)]
    rows = [
        [
            f"{one.rate.name} ({one.rate.kind})"
            if one.rate.name != one.rate.kind
            else one.rate.name,
            plain(one.rate.per_hour),
            plain(one.rate.factor_millionths),
            _cents(one.work),
            f"{one.waste * 100:.1f} %",
            hours_figure(one.hours),
            _cents(one.expected),
        ]
        for one in plan.cost.offers
    ]
    head = ["", ">a card-hour", ">factor", f">{currency}", ">waste", ">hours then", ">with waste"]
    found = table(head, rows)
    found.append(f"Cheapest with its waste: {plan.cost.cheapest.rate.name}.")
    for one in plan.cost.crossings:
        state = "which it does here" if one.is_passed else "which it does not here"
        found.append(
            f"{one.cheap} loses to {one.dear} once it wastes {float(one.waste) * 100:.1f} % more"
            f" of the useful hours, {state}."
        )
    found += [_often(one) for one in plan.cost.interrupted]
    return [*found, *_budget(plan, currency)]


def _cents(amount: int) -> str:
    """An estimate for people: --json has it to the last digit."""
    return f"{Decimal(amount) / MILLION:.2f}"


def _often(one: Interrupted) -> str:
    """How often jobs bought so are preempted, and who says so."""
    whose = _OFTEN.get(one.origin, f"this site's record of {one.events} preemptions")
    return f"{one.name}: preempted every {one.hours:.3g} h ({whose})."


def _budget(plan: Plan, currency: str) -> list[str]:
    found = plan.budget
    if found is None:
        return []
    verdict = ""
    if plan.cost is not None:
        verdict = f": enough for: {', '.join(found.kinds)}" if found.kinds else ": not enough"
    each = _cents(int(found.per_card_hour))
    return [f"{plain(found.amount)} {currency} comes to {each} a card-hour of the work{verdict}."]


def _checkpoint(plan: Plan) -> Iterator[str]:
    found = plan.checkpoint
    yield (
        f"A checkpoint is {_gb(found.size)} GB ({_band(found.size)}); with those kept,"
        f" {_gb(found.disk)} GB of disk. Saving takes {_seconds(found.save.value)}."
    )
    yield (
        f"Best interval: {_seconds(found.interval.value)} (Daly: {_seconds(found.interval_daly)}),"
        f" if something interrupts the job every {_seconds(found.given.between)}: then"
        f" {found.waste.value * 100:.1f} % is lost. Signal {found.signal_lead} s before the end."
    )


def _explained(plan: Plan) -> list[str]:
    rows = [
        [name, f"{rounded(figure.value):g}", figure.formula, _sources(figure)]
        for name, figure in figures(plan).items()
    ]
    return [*table(["number", ">value", "formula", "source"], rows), "", SYMBOLS]


def _sources(figure: Figure) -> str:
    return "; ".join(SOURCES[one] for one in figure.sources)


def _gb(figure: Figure) -> str:
    return f"{figure.value / GB:,.1f}"


def _band(figure: Figure) -> str:
    return "" if figure.low == figure.high else f"{figure.low / GB:,.1f} – {figure.high / GB:,.1f}"


def _seconds(value: float) -> str:
    for size, word in ((86_400, "days"), (3600, "h"), (60, "min")):
        if value >= 2 * size:
            return f"{value / size:.3g} {word}"
    return f"{value:.3g} s"
