"""The short form of an application: made into the whole form of a job, whose judgement, price and
fields it shows."""

from collections.abc import Mapping
from dataclasses import dataclass
from uuid import uuid4

from gateway.core.ask import Ask, FieldProblem
from gateway.core.manifest import GpuRule, Section
from gateway.core.offer import Offer
from gateway.services import apps
from gateway.services import offer as offers
from gateway.services.templates import Template
from gateway.store import apps as store
from gateway.web import appask, offering
from gateway.web.access import viewer
from gateway.web.deps import deps
from gateway.web.i18n import language
from gateway.web.messages import Shown
from gateway.web.show import minutes_words
from gateway.web.texts import gettext
from gateway.web.views import appview, choices, earlier, formpage, quotebox
from gateway.web.views.cluster import free_by_type

MOST_LAST = 3
_LOOKED_AT = 12  # of one's newest applications, for those that differ


@dataclass(frozen=True, slots=True)
class FormView:
    """What the page draws. `template` None: the site has no application."""

    key: str
    template: Template | None
    kinds: list[choices.TemplateCard]
    ask: Ask
    typed: Mapping[str, str]
    groups: list[tuple[str, str]]
    cards: list[tuple[str, str]]
    most_cards: int
    least_cards: int
    environments: list[tuple[str, str]]
    fields: list[formpage.FieldView]
    problems: dict[str, Shown]
    general: list[Shown]
    quote: quotebox.QuoteView | None
    per_hour: int | None
    time_words: str
    nothing_allowed: bool
    opens: bool


@dataclass(frozen=True, slots=True)
class Last:
    """Start the same again, in one click."""

    id: int
    key: str
    title: str
    words: str


def view(sent: Mapping[str, str], *, problems: tuple[FieldProblem, ...] | None = None) -> FormView:
    template = _template(sent.get("app", ""))
    offer = offers.offer(viewer(), begin=deps().read)
    if template is None:
        return _nothing(offer)
    typed = dict(sent) if "kind" in sent else {"environment": _likely_environment(template)}
    ask = appask.ask(template.manifest, typed, offer)
    return _view(ask, template, offer, sent, problems=problems)


def of_ask(ask: Ask, *, problems: tuple[FieldProblem, ...]) -> FormView:
    """An earlier one that cannot be sent again as it is."""
    template = _template(ask.template)
    offer = offers.offer(viewer(), begin=deps().read)
    if template is None:
        return _nothing(offer)
    return _view(ask, template, offer, {"app": ask.template}, problems=problems)


def _likely_environment(template: Template) -> str:
    """What this person took last for it, else the first that is known to bring its program: with
    none a notebook ends at once wherever the nodes have no such program."""
    have, offered = deps(), offering.environments()
    with have.read() as session:
        rows = store.own(session, viewer().person_id, [template.name], limit=1)
    last_one = earlier.load(rows[0].id).environment if rows else ""
    if any(one.name == last_one for one in offered):
        return last_one
    program = template.manifest.app.start[0] if template.manifest.app else ""
    names = {program, program.partition("-")[0]}  # jupyter-lab is a program of jupyter
    return next((one.name for one in offered if names & {*one.facts.kit}), "")


def last() -> list[Last]:
    """The newest of one's own that differ in what they ask for."""
    have, who = deps(), viewer()
    with have.read() as session:
        rows = store.own(session, who.person_id, apps.names(have.catalogue), limit=_LOOKED_AT)
    found: dict[str, Last] = {}
    for row in rows:
        ask = earlier.load(row.id)
        words = _words(ask, row)
        found.setdefault(
            f"{row.template} {words}",
            Last(row.id, str(uuid4()), appview.title(row.template), words),
        )
    return list(found.values())[:MOST_LAST]


def _view(
    ask: Ask,
    template: Template,
    offer: Offer,
    sent: Mapping[str, str],
    *,
    problems: tuple[FieldProblem, ...] | None,
) -> FormView:
    whole = formpage.view(formpage.from_ask(ask), problems=problems)
    at = {appask.PLACES.get(name, name): one for name, one in whole.problems.items()}
    fields = [one for one in whole.fields if one.section == Section.MAIN]
    shown = {"group", "environment", *appask.PLACES.values(), *(one.name for one in fields)}
    range_ = (
        template.manifest.resources.nproc_per_node
        if template.manifest.resources.gpus is GpuRule.PER_PROCESS
        else template.manifest.resources.gpus_per_node
    )
    minutes = _minutes(ask)
    return FormView(
        key=sent.get("form_key") or str(uuid4()),
        template=template,
        kinds=choices.templates(_templates()),
        ask=ask,
        typed=appask.short(ask, template.manifest),
        groups=quotebox.with_credit([(one.name, one.name) for one in offer.groups]),
        cards=_cards(offer, ask),
        most_cards=0 if template.manifest.resources.gpus is GpuRule.NONE else range_.max,
        least_cards=range_.min,
        environments=choices.environments(offering.environments())[:-1],
        fields=fields,
        problems=at,
        general=[one for name, one in at.items() if name not in shown],
        quote=whole.quote,
        per_hour=_per_hour(whole.quote, minutes),
        time_words=minutes_words(minutes) if minutes else "",
        nothing_allowed=not offer.groups,
        opens="open" in sent or "kind" not in sent,
    )


def _nothing(offer: Offer) -> FormView:
    ask = Ask("", "", "", "", "", "", "", "", "")
    return FormView(
        "", None, [], ask, {}, [], [], 0, 0, [], [], {}, [], None, None, "", not offer.groups, False
    )


def _templates() -> tuple[Template, ...]:
    return tuple(one for one in deps().catalogue.all() if one.manifest.app is not None)


def _template(name: str) -> Template | None:
    found = _templates()
    return next((one for one in found if one.name == name), found[0] if found else None)


def _cards(offer: Offer, ask: Ask) -> list[tuple[str, str]]:
    """Each type of card in each partition that is open, with how many are free now."""
    group = offer.find_group(ask.group)
    found = []
    for partition in group.partitions if group else ():
        free = free_by_type(partition.name) if partition.is_up else {}
        for kind in partition.gpus if partition.is_up else ():
            name = kind.name if kind.name == partition.name else f"{kind.name} ({partition.name})"
            label = gettext(
                "%(type)s – %(free)s free now", type=name, free=free.get(kind.name, (0, 0))[0]
            )
            found.append((f"{partition.name}|{kind.name}", label))
        if partition.is_up and not partition.gpus:
            found.append((f"{partition.name}|", gettext("%(name)s – no GPU", name=partition.name)))
    return found


def _minutes(ask: Ask) -> int:
    return int(ask.time_limit) if ask.time_limit.isascii() and ask.time_limit.isdigit() else 0


def _per_hour(quote: quotebox.QuoteView | None, minutes: int) -> int | None:
    if quote is None or quote.told or not minutes:
        return None
    return -(-quote.total * 60 // minutes)


def _words(ask: Ask, row: store.AppRow) -> str:
    """1 × a100, 8 hours, torch-2.13"""
    cards = gettext(
        "%(n)s × %(type)s", n=row.gpus, type=row.gpu_type or ask.gpu_type or ask.partition
    )
    words = [cards if row.gpus else gettext("no GPU"), minutes_words(row.asked_minutes)]
    where = language()
    titles = {one.name: one.title.get(where) for one in offering.environments()}
    if ask.environment not in {"", "none"}:
        words.append(titles.get(ask.environment, ask.environment))
    return ", ".join([*words, ask.group])
