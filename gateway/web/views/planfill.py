"""A plan in the submit form: its values filled in, and beside the form whether it still fits."""

from dataclasses import dataclass, replace

from werkzeug.datastructures import MultiDict

from gateway.core.ask import Ask as Typed
from gateway.core.manifest import FieldKind, Manifest
from gateway.core.offer import Offer
from gateway.core.planner import filling
from gateway.core.planner.cards import find
from gateway.core.planner.plan import Ask, plan, room
from gateway.core.policy import Reading
from gateway.errors import Refused
from gateway.services import offer as offers
from gateway.web.access import viewer
from gateway.web.deps import deps
from gateway.web.forms import VALUE
from gateway.web.texts import gettext
from gateway.web.views import planform, planview


@dataclass(frozen=True, slots=True)
class FitView:
    """`figure` is empty where it cannot be told, `text` says why or of what it is."""

    word: str
    mark: str
    figure: str
    text: str
    url: str


def filled(query: str) -> tuple[MultiDict[str, str], list[str]] | None:
    """The form's fields, and what the plan and the form do not have in common; None for what is
    no plan."""
    if not query:
        return None
    offer = offers.offer(viewer(), begin=deps().read)
    form = planform.carried(query, cards=deps().cards, offer=offer)
    if form is None:
        return None
    try:
        found = plan(planform.ask(form), cards=deps().cards)
    except Refused:
        return None
    names = [one.name for one in deps().catalogue.all()]
    fill = filling.fill(found, offer, names)
    fields = MultiDict({**fill.fields, "plan": planform.query(form)})
    # Its other fields come with the template's defaults, as for a template chosen anew.
    template = deps().catalogue.get(fill.fields.get("template", ""))
    if template is not None:
        for name, value in fill.values.items():
            if _takes(template.manifest, name, value):
                fields[f"{VALUE}{name}"] = value
    return fields, [planview.notice_words(one) for one in fill.notices]


def fit(query: str, typed: Typed, reading: Reading, offer: Offer) -> FitView | None:
    """The plan's model on the cards that the form has now; None where no plan was carried."""
    form = planform.carried(query, cards=deps().cards, offer=offer)
    if form is None:
        return None
    page = planform.address(form)
    strategy = filling.strategy_of(typed.template, typed.values, planned=form.strategy.data or "")
    if strategy is None:
        return _untold(gettext("The planner does not know how this template trains."), page)
    try:
        wanted = _with_form(planform.ask(form), reading, strategy, kind=_kind(reading, offer))
        card, needed, found = room(wanted, cards=deps().cards)
    except Refused:
        return _untold(gettext("The plan and these numbers do not go together."), page)
    word, mark = planview.fit_words(found)
    figure = planview.room_words(needed.total, card.memory)
    text = gettext(
        "%(strategy)s on %(gpus)s × %(card)s, an estimate for a card",
        strategy=strategy,
        gpus=f"{wanted.gpus:g}",
        card=card.name,
    )
    return FitView(word, mark, figure, text, page)


def _with_form(ask: Ask, reading: Reading, strategy: str, *, kind: str | None) -> Ask:
    """Cards, their number and the strategy are the form's, as far as it can be read."""
    cards = deps().cards
    changed = replace(ask, strategy=strategy)
    if reading.gpus and reading.gpus_per_node:
        changed = replace(changed, gpus=reading.gpus, gpus_per_node=reading.gpus_per_node)
    if kind:
        card = filling.card_called(kind, cards, planned=find(ask.gpu, cards))
        changed = replace(changed, gpu=card.name)
    batch = reading.values.get("micro_batch")
    return replace(changed, micro_batch=batch) if isinstance(batch, int) else changed


def _kind(reading: Reading, offer: Offer) -> str | None:
    """The type of cards that the form asks for, or the only one of its partition."""
    group = offer.find_group(reading.group or "")
    partition = group.find_partition(reading.partition or "") if group else None
    kinds = [kind.name for kind in partition.gpus] if partition else []
    return reading.gpu_type or (kinds[0] if len(kinds) == 1 else None)


def _untold(text: str, page: str) -> FitView:
    return FitView("", "", "", text, page)


def _takes(manifest: Manifest, name: str, value: str) -> bool:
    """A template's field of this name may have other choices."""
    for own in manifest.fields:
        if own.name == name:
            known = {choice.value for choice in own.choices}
            return own.kind is not FieldKind.CHOICE or value in known
    return False
