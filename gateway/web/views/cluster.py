"""The cluster page: free cards, nodes, partitions, who waits."""

from dataclasses import dataclass
from datetime import datetime, timedelta

from flask import Blueprint, render_template, request
from flask.typing import ResponseReturnValue

from gateway.core.access import Permission
from gateway.core.maintenance import Ahead
from gateway.core.offer import Offer
from gateway.services import offer as offers
from gateway.services.ahead import ahead
from gateway.store.queries import cluster as reads
from gateway.store.queries.cluster import Cluster, NodeCard, TypeUse, WaitSum
from gateway.web.access import requires, viewer
from gateway.web.deps import deps
from gateway.web.show import minutes_words, reason_text
from gateway.web.texts import gettext, ngettext
from gateway.web.timeline import Share, shares
from gateway.web.views.freshness import Fresh, fresh
from gateway.wire.messages import Partition

bp = Blueprint("cluster", __name__)
MOST_CARDS = 16  # drawn one by one; a node with more gets its numbers only


@dataclass(frozen=True, slots=True)
class TypeView:
    use: TypeUse
    bar: list[Share]
    words: str


@dataclass(frozen=True, slots=True)
class NodeView:
    """`kind` is up, drain or down; `cards` says of each GPU whether it is used, free or down."""

    name: str
    gpu_type: str | None
    kind: str
    cards: tuple[str, ...]
    words: str
    reason: str | None


@dataclass(frozen=True, slots=True)
class PartitionView:
    facts: Partition
    who: str
    mine: bool


@dataclass(frozen=True, slots=True)
class WaitLine:
    word: str
    jobs: int
    gpus: int
    longest: timedelta | None


@dataclass(frozen=True, slots=True)
class AheadView:
    """A reservation that begins soon or goes on; `fits` says which jobs still end before it."""

    facts: Ahead
    what: str
    nodes: str
    fits: str


@dataclass(frozen=True, slots=True)
class ClusterView:
    fresh: Fresh
    gpus: list[TypeView]
    nodes: list[NodeView]
    partitions: list[PartitionView]
    waiting: list[tuple[str, list[WaitLine]]]
    ahead: list[AheadView]


@bp.get("/cluster")
@requires(Permission.USE_PORTAL)
def index() -> ResponseReturnValue:
    """The page, or its content alone for a live update."""
    now = deps().clock()
    with deps().read() as session:
        found = reads.cluster(session)
        coming = ahead(session, now)
    page = _view(found, coming, offers.offer(viewer(), begin=deps().read), now)
    name = "fragments/cluster.html" if request.headers.get("HX-Request") else "pages/cluster.html"
    return render_template(name, page=page)


def _view(found: Cluster, coming: tuple[Ahead, ...], offer: Offer, now: datetime) -> ClusterView:
    mine = {part.name for group in offer.groups for part in group.partitions}
    by_word = [
        (gettext("Partition"), found.waiting_by_partition),
        (gettext("Group"), found.waiting_by_group),
    ]
    waiting = [(title, [_line(one, now) for one in sums]) for title, sums in by_word if sums]
    if found.waiting_by_reason:
        waiting.append((gettext("Why"), _by_reason(found.waiting_by_reason, now)))
    return ClusterView(
        fresh=fresh(found.cluster_poll, now),
        gpus=[_type(one) for one in found.types],
        nodes=[_node(one) for one in found.nodes],
        partitions=[PartitionView(one, _who(one), one.name in mine) for one in found.partitions],
        waiting=waiting,
        ahead=[_ahead(one, len(found.nodes), now) for one in coming],
    )


def _ahead(one: Ahead, all_nodes: int, now: datetime) -> AheadView:
    nodes = ngettext("%(num)d node of %(all)s", "%(num)d nodes of %(all)s", len(one.nodes),
                     all=all_nodes)  # fmt: skip
    if one.start <= now:
        fits = gettext("goes on now")
    elif one.fits_minutes:
        fits = minutes_words(one.fits_minutes)
    else:
        fits = gettext("nothing any more")
    what = gettext("Maintenance") if one.is_maintenance else gettext("Reservation")
    return AheadView(one, what, nodes, fits)


def _type(use: TypeUse) -> TypeView:
    bar = shares(("used", use.used), ("free", use.free), ("down", use.down))
    words = gettext(
        "%(type)s: %(free)s free, %(used)s used, %(down)s not available",
        type=use.gpu_type,
        free=use.free,
        used=use.used,
        down=use.down,
    )
    return TypeView(use, bar, words)


def _node(card: NodeCard) -> NodeView:
    node = card.node
    cards = ("used",) * card.used + ("free",) * card.free + ("down",) * card.down
    kind = "up" if card.in_service else ("drain" if "DRAIN" in node.state.upper() else "down")
    if not node.gpus:
        words = gettext("%(used)s of %(all)s CPUs used", used=node.cpus_used, all=node.cpus)
    elif card.in_service:
        words = gettext("%(free)s of %(all)s free", free=card.free, all=node.gpus)
    elif card.used:
        words = gettext("%(state)s, %(used)s still used", state=node.state, used=card.used)
    else:
        words = node.state
    return NodeView(
        name=node.name,
        gpu_type=node.gpu_type,
        kind=kind,
        cards=cards if len(cards) <= MOST_CARDS else (),
        words=words,
        reason=node.reason,
    )


def _who(one: Partition) -> str:
    if one.allow_accounts:
        return ", ".join(one.allow_accounts)
    if one.deny_accounts:
        return gettext("all but %(groups)s", groups=", ".join(one.deny_accounts))
    return gettext("every group")


def _line(one: WaitSum, now: datetime, word: str | None = None) -> WaitLine:
    longest = now - one.oldest_eligible if one.oldest_eligible is not None else None
    return WaitLine(word or one.word or "–", one.jobs, one.gpus, longest)


def _by_reason(sums: tuple[WaitSum, ...], now: datetime) -> list[WaitLine]:
    """Several of Slurm's words share a sentence: their numbers are put together."""
    together: dict[str, WaitLine] = {}
    for one in sums:
        line = _line(one, now, reason_text(one.word))
        before = together.get(line.word)
        if before is not None:
            longest = max((x for x in (before.longest, line.longest) if x), default=None)
            line = WaitLine(line.word, before.jobs + line.jobs, before.gpus + line.gpus, longest)
        together[line.word] = line
    return sorted(together.values(), key=lambda line: -line.gpus)


def free_by_type(partition: str) -> dict[str, tuple[int, int]]:
    """Free and all cards of each type in a partition, as the last poll saw them."""
    with deps().read() as session:
        cards = reads.nodes(session)
    found: dict[str, tuple[int, int]] = {}
    for card in cards:
        if partition in card.node.partitions and card.node.gpus:
            free, total = found.get(card.node.gpu_type or "gpu", (0, 0))
            found[card.node.gpu_type or "gpu"] = (free + card.free, total + card.node.gpus)
    return found


def free_words(free: int, total: int) -> str:
    return ngettext("%(num)d of %(all)s free", "%(num)d of %(all)s free", free, all=total)
