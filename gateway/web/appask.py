"""The short form of applications: a few words, from which the whole form of a job is made."""

from collections.abc import Mapping
from dataclasses import replace
from decimal import Decimal, InvalidOperation

from gateway.core.ask import Ask
from gateway.core.manifest import GpuRule, Manifest
from gateway.core.offer import Offer
from gateway.services.preview import fresh_ask
from gateway.web.views.choices import with_defaults

KIND = "kind"  # a partition and a type of card in one choice, | between them
CARDS, HOURS = "cards", "hours"
# Where a problem of the whole form is said in the short one.
PLACES = {
    "partition": KIND,
    "gpu_type": KIND,
    "qos": KIND,
    "gpus_per_node": CARDS,
    "nproc_per_node": CARDS,
    "time_limit": HOURS,
}


def ask(manifest: Manifest, typed: Mapping[str, str], offer: Offer) -> Ask:
    """`typed`: group, kind, cards, hours, environment, and the template's own fields by `v-name`.
    What is not there is this person's default; what cannot work is said by the rules."""
    partition, _, gpu_type = typed.get(KIND, "").partition("|")
    fresh = fresh_ask(manifest, offer)
    own = {
        field.name: typed.get(f"v-{field.name}", fresh.values.get(field.name, ""))
        for field in manifest.fields
    }
    cards = typed.get(CARDS, "").strip()
    wanted = replace(
        fresh,
        group=typed.get("group", ""),
        partition=partition,
        gpu_type=gpu_type,
        qos="",
        time_limit=minutes_typed(typed.get(HOURS, "")) or fresh.time_limit,
        environment=typed.get("environment", "") or fresh.environment,
        values=fresh.values | own,
    )
    match manifest.resources.gpus:
        case GpuRule.CHOSEN if cards:
            wanted = replace(wanted, values=wanted.values | {"gpus_per_node": cards})
        case GpuRule.PER_PROCESS if cards:
            wanted = replace(wanted, nproc_per_node=cards)
    made = with_defaults(wanted, offer)
    if not partition:
        return replace(made, gpu_type=made.gpu_type or _first_type(made, offer))
    # What was chosen is judged as it is, never put right in silence: it has another price.
    return replace(made, group=wanted.group or made.group, partition=partition, gpu_type=gpu_type)


def _first_type(made: Ask, offer: Offer) -> str:
    group = offer.find_group(made.group)
    found = group.find_partition(made.partition) if group else None
    return found.gpus[0].name if found and found.gpus else ""


def short(found: Ask, manifest: Manifest) -> dict[str, str]:
    """The short form of a whole one, to fill it like last time."""
    cards = found.nproc_per_node
    if manifest.resources.gpus is GpuRule.CHOSEN:
        cards = found.values.get("gpus_per_node", "")
    own = {f"v-{name}": value for name, value in found.values.items()}
    return own | {
        "group": found.group,
        KIND: f"{found.partition}|{found.gpu_type}",
        CARDS: cards,
        HOURS: hours_typed(found.time_limit),
        "environment": found.environment,
    }


def minutes_typed(hours: str) -> str:
    """Hours as the form's time limit: `1.5` is 90 minutes. What is no number stays as it is, so
    that also 12:00:00 can be typed."""
    try:
        minutes = Decimal(hours.strip().replace(",", ".")) * 60
    except InvalidOperation:
        return hours.strip()
    if not 0 < minutes < 10**7:
        return hours.strip()
    return str(max(1, int(minutes.to_integral_value())))


def hours_typed(time_limit: str) -> str:
    """The other way round; what is no number of minutes stays as it is."""
    if not (time_limit.isascii() and time_limit.isdigit()):
        return time_limit
    return f"{Decimal(time_limit) / 60:.2f}".rstrip("0").rstrip(".")
