"""The quote beside the form: what it costs, who pays, what it may come to, what would be less."""

from collections.abc import Iterable
from dataclasses import dataclass
from urllib.parse import urlencode

from gateway.core.credits import MILLION, format_credits
from gateway.core.offer import Offer
from gateway.core.policy import Reading
from gateway.core.pots import PotKind
from gateway.core.pricing import CPU, Item, NoPrice
from gateway.core.quoting import Cheaper
from gateway.services import quote
from gateway.services.quote import NotYet, Paid, Quote
from gateway.store.queries import costs
from gateway.store.queries.costs import Credit
from gateway.web.access import viewer
from gateway.web.deps import deps
from gateway.web.messages import shown
from gateway.web.money import card_hours, money_text
from gateway.web.money_texts import POT_KINDS
from gateway.web.show import duration, limit_typed, minutes_words
from gateway.web.texts import format_datetime, gettext, ngettext

_MOST_CHEAPER = 4


@dataclass(frozen=True, slots=True)
class Line:
    what: str
    amount: int
    note: str = ""


@dataclass(frozen=True, slots=True)
class CheaperView:
    """A button: `sets` are the fields that it changes, as a form sends them."""

    word: str
    sets: str
    total: int
    saves: int
    note: str


@dataclass(frozen=True, slots=True)
class QuoteView:
    """`told` is a sentence in the place of the figures, where there are none. `no` says why the
    job cannot be paid."""

    told: str = ""
    group: str = ""
    items: tuple[Line, ...] = ()
    total: int = 0
    each: int = 0
    tasks: int = 1
    paid: tuple[Line, ...] = ()
    held: int = 0
    likely: int | None = None
    likely_note: str = ""
    free: int = 0
    after: int = 0
    no: str = ""
    cheaper: tuple[CheaperView, ...] = ()


def build(reading: Reading, offer: Offer, *, template: str) -> QuoteView | None:
    """None on a site that charges nothing: then there is no box."""
    found = ask(reading, offer, template=template)
    match found:
        case None:
            return None
        case NotYet():
            return QuoteView(
                told=gettext("The price stands here as soon as cards and time limit can be read.")
            )
        case NoPrice():
            return QuoteView(told=no_price(found))
        case Quote():
            return _view(found, reading, offer, template)


def ask(reading: Reading, offer: Offer, *, template: str) -> Quote | NoPrice | NotYet | None:
    """The quote itself: the page and the API share it."""
    have = deps()
    return quote.quote(
        reading,
        offer,
        template=template,
        viewer=viewer(),
        begin=have.read,
        now=have.clock(),
        zone=have.settings.timezone,
    )


def no_price(found: NoPrice) -> str:
    return gettext(
        "Nobody has set a price for %(resource)s yet, so such a job cannot be sent. Ask an "
        "administrator of the portal to set one, or choose other cards.",
        resource=found.resource,
    )


def credit(groups: Iterable[str]) -> dict[str, Credit] | None:
    """What each group may spend; None on a site that charges nothing."""
    have = deps()
    with have.read() as session:
        return costs.credit(session, list(groups), now=have.clock())


def with_credit(groups: list[tuple[str, str]]) -> list[tuple[str, str]]:
    """The labels of the form's groups, each with what it has left."""
    left = credit([name for name, _ in groups])
    if left is None:
        return groups
    return [
        (name, gettext("%(group)s – %(left)s left", group=label, left=money_text(left[name].money)))
        for name, label in groups
    ]


def item_words(item: Item, tasks: int = 1) -> str:
    """8 × a100 × 12 h × 3.50."""
    units = item.units // tasks
    what = ngettext("%(num)d CPU", "%(num)d CPUs", units)
    if item.resource != CPU:
        what = f"{units} × {item.resource}"
    words = [
        what,
        duration(item.seconds),
        gettext("%(price)s an hour", price=money_text(item.per_hour)),
    ]
    return " × ".join([*([str(tasks)] if tasks > 1 else []), *words])


def median_words(found: Quote, template: str) -> str:
    """Whose history the likely cost is taken from, and how good it is."""
    before = found.expected
    if before is None:
        return gettext(
            "No estimate of the likely cost yet: too few jobs of %(template)s have ended in this "
            "group.",
            template=template,
        )
    facts = {
        "runs": before.runs,
        "template": template,
        "time": duration(before.seconds),
        "longest": duration(before.longest_seconds),
    }
    if before.whose == "person":
        return gettext(
            "An estimate: the median of your last %(runs)s runs of %(template)s is %(time)s, the "
            "longest took %(longest)s.",
            **facts,
        )
    return gettext(
        "An estimate: the median of your group's last %(runs)s runs of %(template)s is %(time)s, "
        "the longest took %(longest)s. You have too few of your own.",
        **facts,
    )


def factor_words(millionths: int) -> str:
    """0.82, not 0.820000."""
    return format_credits(millionths).rstrip("0").removesuffix(".")


def pot_words(kind: PotKind, resource: str | None) -> str:
    name = str(POT_KINDS[kind])
    return f"{name} {resource}" if resource else name


def _view(found: Quote, reading: Reading, offer: Offer, template: str) -> QuoteView:
    tasks = found.shape.tasks
    return QuoteView(
        group=found.group,
        items=tuple(_item(item, tasks, found.shape.qos) for item in found.worst.items),
        total=found.worst.total,
        each=found.task.total,
        tasks=tasks,
        paid=tuple(_paid(one) for one in found.paid),
        held=found.held,
        likely=found.likely,
        likely_note=median_words(found, template),
        free=found.free,
        after=found.after,
        no=_no(found),
        cheaper=tuple(_cheaper(one) for one in _chosen(found.cheaper, reading, offer)),
    )


def _item(item: Item, tasks: int, qos: str) -> Line:
    note = ""
    if item.factor_millionths != MILLION:
        note = gettext(
            "× %(factor)s in QoS %(qos)s", factor=factor_words(item.factor_millionths), qos=qos
        )
    return Line(item_words(item, tasks), item.amount, note)


def _paid(one: Paid) -> Line:
    notes = []
    if one.kind is PotKind.PACKAGE:
        notes.append(
            gettext(
                "%(hours)s card-hours at %(price)s",
                hours=card_hours(one.unit_seconds),
                price=money_text(one.per_hour or 0),
            )
        )
    if one.expires is not None:
        notes.append(gettext("until %(day)s", day=format_datetime(one.expires, "yyyy-MM-dd")))
    return Line(pot_words(one.kind, one.resource), one.amount, ", ".join(notes))


def _no(found: Quote) -> str:
    """Why it cannot be paid, and what would help."""
    if found.missing:
        return gettext(
            "Not enough: %(missing)s missing. A shorter time limit, fewer cards, or something "
            "cheaper below would help; or another of your groups, or a top-up by whoever leads "
            "%(group)s.",
            missing=money_text(found.missing),
            group=found.group,
        )
    if found.over_cap:
        return gettext(
            "Above your own limit of this month by %(over)s: a leader of %(group)s can raise it. "
            "A shorter time limit or something cheaper below would help too.",
            over=money_text(found.over_cap),
            group=found.group,
        )
    return shown(found.stop).text if found.stop else ""


def _chosen(all_of: tuple[Cheaper, ...], reading: Reading, offer: Offer) -> list[Cheaper]:
    """The cheapest of each kind, then the next cheapest. Spot has a box of its own."""
    found = [one for one in all_of if not _preemptible(one, reading, offer)]
    first = {one.change: one for one in reversed(found)}
    rest = [one for one in found if one is not first[one.change]]
    chosen = [*first.values(), *rest][:_MOST_CHEAPER]
    return sorted(chosen, key=lambda one: one.total)


def _cheaper(one: Cheaper) -> CheaperView:
    sets, note = {one.change: one.value}, ""
    match one.change:
        case "gpu_type":
            word = gettext("%(type)s cards", type=one.value)
            note = gettext("for the same hours: other cards may be slower")
            sets = {"partition": one.partition, "gpu_type": one.value}
        case "qos":
            word = gettext("QoS %(qos)s", qos=one.value)
        case _:
            word = gettext("at most %(time)s", time=minutes_words(int(one.value)))
            note = gettext("twice the longest of the earlier runs")
            sets = {"time_limit": limit_typed(int(one.value))}
    return CheaperView(word, urlencode(sets), one.total, one.saves, note)


def _preemptible(one: Cheaper, reading: Reading, offer: Offer) -> bool:
    if one.change != "qos":
        return False
    group = offer.find_group(reading.group or "")
    partition = group.find_partition(one.partition) if group else None
    qos = partition.find_qos(one.value) if partition else None
    return bool(qos and qos.preemptible)
