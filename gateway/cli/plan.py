"""`sluice plan`: what a training run needs, takes and costs, before it is sent."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import click

from gateway.cli.common import database, has_database, now, said, sentence, settings
from gateway.cli.output import JSON, SHARE, put
from gateway.cli.plan_facts import facts
from gateway.cli.plan_lines import lines
from gateway.core.credits import Credits, parse_credits
from gateway.core.planner.money import Rate
from gateway.core.planner.plan import Ask, Plan
from gateway.core.planner.setup import Recompute
from gateway.core.planner.strategies import NAMES
from gateway.core.planner.typed import count
from gateway.errors import Refused
from gateway.services.plan import load_cards, plan_training, typed_rates


class Count(click.ParamType[Any]):
    """`10e9`, `10B` or `3.2T`. What cannot be is refused by the planner, in words."""

    name = "NUMBER"

    def convert(self, value: Any, param: Any, ctx: Any) -> float:
        if isinstance(value, int | float):
            return float(value)
        try:
            return count("", str(value))
        except Refused:
            self.fail(f"{value!r} is no number such as 10e9, 10B or 3.2T.", param, ctx)


COUNT = Count()

_OPTIONS: tuple[tuple[str, dict[str, Any]], ...] = (
    ("--params", {"type": COUNT, "help": "Parameters, such as 10e9 or 10B."}),
    ("--layers", {"type": int, "help": "With --hidden, --heads and --vocab."}),
    ("--hidden", {"type": int, "help": "The hidden size."}),
    ("--heads", {"type": int, "help": "Heads of attention."}),
    ("--vocab", {"type": int, "help": "Words of the vocabulary."}),
    ("--tokens", {"type": COUNT, "required": True, "help": "To train on, in all."}),
    ("--sequence", {"type": int, "default": 2048, "help": "Tokens of a sequence."}),
    ("--micro-batch", {"type": int, "default": 1, "help": "Sequences on a card at once."}),
    ("--precision", {"default": "auto", "help": "auto, bf16, fp16 or fp32."}),
    ("--recompute", {"default": Recompute.SELECTIVE.value, "help": "none, selective or full."}),
    ("--strategy", {"required": True, "help": ", ".join(NAMES) + "."}),
    ("--gpu", {"required": True, "help": "The card, such as a100-80g; --cards lists them."}),
    ("--gpus", {"type": COUNT, "required": True, "help": "Cards in all."}),
    ("--gpus-per-node", {"type": int, "default": 8, "help": "Cards of a node."}),
    ("--host-gb", {"type": float, "help": "Memory of a node: say whether it is enough."}),
    ("--mfu", {"type": float, "help": "The share of the peak that is reached, such as 0.45."}),
    ("--keep", {"type": int, "default": 2, "help": "Checkpoints that are kept."}),
    ("--write-gbs", {"type": float, "default": 1.0, "help": "GB a second to the storage."}),
    ("--save-seconds", {"type": float, "help": "Where a save was measured."}),
    ("--interrupted-hours", {"type": float, "default": 24.0, "help": "Mean, of the job."}),
    (
        "--spot-interrupted-hours",
        {"type": float, "help": "The same on spot. Else this site's own record, else 6."},
    ),
    ("--restart-minutes", {"type": float, "default": 5.0, "help": "Lost at each interruption."}),
    ("--within-hours", {"type": float, "help": "Say what these hours would take."}),
)

# Shorter names.
_ALSO = {"--spot-interrupted-hours": ("--mtbf",)}


def _asking(command: Callable[..., None]) -> Callable[..., None]:
    for name, given in reversed(_OPTIONS):
        names = (name, *_ALSO.get(name, ()))
        command = click.option(*names, **given, show_default="default" in given)(command)
    return command


def _list_cards(ctx: click.Context, _param: click.Parameter, value: bool) -> None:
    if not value or ctx.resilient_parsing:
        return
    for card in load_cards(settings().home).values():
        click.echo(f"{card.name}\t{card.memory_gb:g} GB\t{card.tflops_16bit:g} TFLOP/s")
    ctx.exit()


@click.command()
@_asking
@click.option("--price", help="Of a card-hour, instead of the price list's.")
@click.option("--package-off", type=SHARE, help="Percent off --price for a package.")
@click.option("--spot-off", type=SHARE, help="Percent off --price where jobs are preempted.")
@click.option("--resource", help="What the card is called in the price list.")
@click.option("--budget", help="An amount: what it comes to a card-hour, and whether it is enough.")
@click.option(
    "--cards",
    is_flag=True,
    is_eager=True,
    expose_value=False,
    callback=_list_cards,
    help="List the cards that are known, and end.",
)
@click.option("--explain", is_flag=True, help="Show each number's formula and source.")
@JSON
@said
def plan(
    *,
    price: str | None,
    package_off: int | None,
    spot_off: int | None,
    resource: str | None,
    budget: str | None,
    explain: bool,
    as_json: bool,
    **asked: Any,
) -> None:
    """Plan a training: memory of a card by its parts, what fits, hours, cost, checkpoints.

    Nothing is asked of Slurm. Costs are by the price list of this site, where it has one.
    """
    with _in_words():
        _check_share(asked["mfu"])
        ask = Ask(**asked, budget=_amount("budget", budget))
        typed = _typed(price, package_off, spot_off)
        found = _plan(ask, resource=resource, typed=typed)
    currency = settings().currency
    shown = [] if as_json else lines(found, currency, explain=explain)
    put(facts(found, currency) if as_json else None, shown, as_json=as_json)


def _check_share(mfu: float | None) -> None:
    """A share of 2 and more is a percentage; from 1 on the planner refuses it anyway."""
    if mfu is not None and 2 <= mfu <= 100:
        raise Refused("plan_percent", field="mfu", percent=f"{mfu:g}", share=f"{mfu / 100:g}")


def _plan(ask: Ask, *, resource: str | None, typed: tuple[Rate, ...]) -> Plan:
    """By the price list where there is one: a plan needs no portal."""
    cards, at = load_cards(settings().home), now()
    if not has_database(settings()):
        return plan_training(ask, cards=cards, now=at, typed=typed)
    with database(read_only=True) as begin:
        return plan_training(ask, cards=cards, begin=begin, now=at, resource=resource, typed=typed)


def _typed(price: str | None, package: int | None, spot: int | None) -> tuple[Rate, ...]:
    amount = _amount("price", price)
    if amount is None:
        if package is not None or spot is not None:
            raise click.UsageError("--package-off and --spot-off are of --price.")
        return ()
    return typed_rates(amount, package_off=package, spot_off=spot)


def _amount(field: str, text: str | None) -> Credits | None:
    if text is None:
        return None
    try:
        return parse_credits(text)
    except Refused as error:
        raise Refused(error.code, field=field, **error.facts) from error


@contextmanager
def _in_words() -> Iterator[None]:
    """A refusal with its option's name, as it was typed."""
    try:
        yield
    except Refused as error:
        option = f"--{error.field.replace('_', '-')}: " if error.field else ""
        bare = Refused(error.code)
        bare.facts = error.facts
        raise click.ClickException(option + sentence(bare)) from error
