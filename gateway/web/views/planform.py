"""The planner's form: what stands in the address, and the planner's question from it."""

from collections.abc import Callable, Mapping
from typing import Any
from urllib.parse import parse_qsl, urlencode

from flask import url_for
from werkzeug.datastructures import MultiDict
from wtforms import StringField

from gateway.core.offer import Offer
from gateway.core.planner.cards import Cards, find
from gateway.core.planner.filling import cards_here, place_for
from gateway.core.planner.plan import Ask
from gateway.core.planner.setup import Recompute
from gateway.core.planner.strategies import NAMES, Precision
from gateway.core.planner.typed import count, whole_count
from gateway.errors import Refused
from gateway.web.formbase import Choice, Posted, said
from gateway.web.texts import Lazy, gettext
from gateway.web.texts import lazy_gettext as _l

LONGEST = 2000  # characters of a plan that the submit form carries along
_USUAL_CARD, _USUAL_NODE = "a100-80g", 8
_EXAMPLE = {"params": "7B", "tokens": "10B", "strategy": "fsdp"}


class PlanForm(Posted):
    """Texts as typed: what a number may be the planner itself says, at its field."""

    params = StringField(said(_l("Parameters")), description=said(_l("such as 7B or 10e9")))
    layers = StringField(said(_l("Layers")))
    hidden = StringField(said(_l("Hidden size")))
    heads = StringField(said(_l("Heads of attention")))
    vocab = StringField(said(_l("Words of the vocabulary")))
    tokens = StringField(
        said(_l("Tokens in all")), description=said(_l("of the whole training, such as 12B"))
    )
    sequence = StringField(said(_l("Tokens of a sequence")))
    micro_batch = StringField(
        said(_l("Micro-batch of a card")), description=said(_l("sequences at once"))
    )
    precision = Choice(said(_l("Precision")))
    recompute = Choice(
        said(_l("Recomputation")), description=said(_l("of the forward pass, to save memory"))
    )
    strategy = Choice(said(_l("Strategy")))
    gpu = Choice(said(_l("Card")))
    gpus = StringField(said(_l("Cards in all")))
    gpus_per_node = StringField(said(_l("Cards of a node")))
    mfu = StringField(
        said(_l("MFU in percent")),
        description=said(_l("empty: measured here, else what is usual for such cards")),
    )
    interrupted_hours = StringField(
        said(_l("Hours between failures")), description=said(_l("empty: 24, an assumption"))
    )
    spot_interrupted_hours = StringField(
        said(_l("Hours between preemptions")),
        description=said(_l("empty: this site's own record, else 6, an assumption")),
    )
    restart_minutes = StringField(
        said(_l("Minutes that a restart costs")), description=said(_l("empty: 5"))
    )
    write_gbs = StringField(
        said(_l("GB a second to the storage")), description=said(_l("empty: 1"))
    )
    keep = StringField(said(_l("Checkpoints to keep")), description=said(_l("empty: 2")))
    host_gb = StringField(
        said(_l("Memory of a node in GB")), description=said(_l("empty: not compared"))
    )


FIELDS = tuple(name for name in vars(PlanForm) if not name.startswith("_"))
_READ: Mapping[str, Callable[[str, str], float]] = {
    **dict.fromkeys(("params", "tokens", "gpus", "mfu", "write_gbs", "host_gb"), count),
    **dict.fromkeys(("interrupted_hours", "spot_interrupted_hours", "restart_minutes"), count),
    **dict.fromkeys(("layers", "hidden", "heads", "vocab", "sequence"), whole_count),
    **dict.fromkeys(("micro_batch", "gpus_per_node", "keep"), whole_count),
}
_CHOSEN = frozenset({"strategy", "gpu", "precision", "recompute"})  # never empty on the page
_STRATEGIES: Mapping[str, Lazy] = {
    "single": _l("one card"),
    "ddp": _l("a whole copy on each card"),
    "zero1": _l("DeepSpeed: the optimizer is divided"),
    "zero2": _l("DeepSpeed: gradients too"),
    "zero2-offload": _l("the same, optimizer in the memory of nodes"),
    "zero3": _l("DeepSpeed: weights too"),
    "zero3-offload": _l("the same, optimizer in the memory of nodes"),
    "zero3-offload-all": _l("the same, and the weights there too"),
    "fsdp": _l("PyTorch: everything is divided"),
    "fsdp-hybrid": _l("PyTorch: divided within a node"),
    "colossal-gemini": _l("Colossal-AI, a rough estimate"),
}
_RECOMPUTES: Mapping[str, Lazy] = {
    "none": _l("nothing"),
    "selective": _l("the attention, as FlashAttention does"),
    "full": _l("every layer"),
}


def read(sent: MultiDict[str, str], *, cards: Cards, offer: Offer) -> PlanForm:
    """The form as the address has it, with what is missing at its usual value. Without any field
    it is an example, on cards that this person has."""
    here = cards_here(cards, offer)
    usual = here[0].name if here else _USUAL_CARD
    given = {name: sent[name].strip() for name in FIELDS if name in sent}
    given = {name: text for name, text in given.items() if text or name not in _CHOSEN}
    card = given.get("gpu", usual)
    data = _usual(card, cards, offer) | ({} if given else _EXAMPLE) | given
    form = PlanForm(formdata=None, data=data, meta={"csrf": False})
    form.strategy.choices = [(name, f"{name} – {_STRATEGIES[name]}") for name in NAMES]
    form.recompute.choices = [(one.value, str(_RECOMPUTES[one.value])) for one in Recompute]
    automatic = gettext("as the card can: bf16, else fp16")
    form.precision.choices = [("auto", automatic), *((one, one) for one in Precision)]
    form.gpu.choices = _card_choices(cards, {one.name for one in here})
    return form


def carried(query: str, *, cards: Cards, offer: Offer) -> PlanForm | None:
    """A plan as the submit form carries it along; None where there is none."""
    if not query or len(query) > LONGEST:
        return None
    return read(MultiDict(parse_qsl(query)), cards=cards, offer=offer)


def ask(form: PlanForm) -> Ask:
    """Refused, with the field."""
    given: dict[str, Any] = {}
    for name in FIELDS:
        text = str(form[name].data or "")
        if text:
            reads = _READ.get(name)
            given[name] = reads(name, text) if reads else text
    if given.get("mfu", 0) > 1:  # 0.58 is no percentage either
        given["mfu"] /= 100
    for needed in ("tokens", "gpus"):
        if needed not in given:
            raise Refused("plan_number", field=needed)
    return Ask(**given)


def query(form: PlanForm, **changes: str) -> str:
    """The form as an address holds it, with some fields changed; empty ones are left out."""
    now = {name: str(form[name].data or "") for name in FIELDS} | changes
    return urlencode({name: text for name, text in now.items() if text})


def address(form: PlanForm, **changes: str) -> str:
    """The plan's own page."""
    return f"{url_for('plan.index')}?{query(form, **changes)}"


def _usual(card: str, cards: Cards, offer: Offer) -> dict[str, str]:
    each = _of_a_node(card, cards, offer)
    return {
        "gpu": card,
        "gpus": str(each),
        "gpus_per_node": str(each),
        "strategy": "fsdp",
        "sequence": "2048",
        "micro_batch": "1",
        "precision": "auto",
        "recompute": Recompute.SELECTIVE.value,
    }


def _of_a_node(card: str, cards: Cards, offer: Offer) -> int:
    try:
        place = place_for(find(card, cards), offer)
    except Refused:
        return _USUAL_NODE
    return place.kind.per_node if place else _USUAL_NODE


def _card_choices(cards: Cards, here: set[str]) -> list[tuple[str, str]]:
    """Those of this site first."""
    found = sorted(cards.values(), key=lambda one: (one.name not in here, one.name))
    return [
        (
            one.name,
            gettext("%(card)s, %(gb)s GB – here", card=one.name, gb=f"{one.memory_gb:g}")
            if one.name in here
            else gettext("%(card)s, %(gb)s GB", card=one.name, gb=f"{one.memory_gb:g}"),
        )
        for one in found
    ]
