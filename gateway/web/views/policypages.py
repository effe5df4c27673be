"""What the views of policy share: the transaction's reads, and the answer to a refusal."""

from collections.abc import Iterable, Sequence
from hashlib import sha256
from typing import TYPE_CHECKING

from gateway.core.policy_change import Item, Of, Source
from gateway.core.qos import Kind, Policy, TresLimit, fields_of, value
from gateway.core.tres import GPU
from gateway.errors import NotFound
from gateway.services import policy_changes
from gateway.services.policy_present import Present
from gateway.store import snapshot
from gateway.web.access import viewer
from gateway.web.change_texts import KIND_TEXTS
from gateway.web.deps import deps
from gateway.web.money_forms import new_key
from gateway.web.policy_form import Offered

if TYPE_CHECKING:
    from sqlalchemy.orm import Session

LONGEST_KEY = 64
_ALWAYS = ("cpu", "mem", "node", "billing")  # Slurm tracks these whatever a site says


def of_kind(kind: str) -> Of:
    if kind not in list(Of):
        raise NotFound(f"kind {kind}")
    return Of(kind)


def known(there: Present, of: Of, name: str) -> Policy:
    found = there.policy(of, name)
    if found is None:
        raise NotFound(f"no {of} {name}")
    return found


def title(of: Of, name: str) -> str:
    return f"{KIND_TEXTS[of]} {name}"


def offered(session: "Session", there: Present) -> Offered:
    """Resources that the cluster's nodes have, and those that a limit speaks of already."""
    nodes = snapshot.nodes(session)
    types = {f"{GPU}:{node.gpu_type}" for node in nodes if node.gpu_type and node.gpus}
    gpus = {GPU} if any(node.gpus for node in nodes) else set()
    named = set(_named([*there.qos.values(), *there.groups.values()]))
    others = (types | gpus | named) - set(_ALWAYS)
    # GPUs are what people limit: they come first.
    resources = sorted(others, key=lambda one: (not one.startswith(GPU), one))
    names = [name for name in sorted(there.qos) if name not in there.retired]
    return Offered((*resources, *_ALWAYS), names)


def proposed(items: Iterable[Item], *, reason: str, source: Source, key: str) -> int:
    """The proposal's id. It waits for somebody to decide. Refused: see policy_changes.propose.

    A form sent again with something else in it, after the browser's way back, is another proposal.
    """
    have, who, items = deps(), viewer(), tuple(items)
    said = sha256(repr((items, reason)).encode()).hexdigest()[:16]
    return policy_changes.propose(
        items,
        viewer=who,
        reason=reason,
        source=source,
        second_approval=True,  # policy_decide says yes, when the button is pressed
        key=f"{own_key(key)}:{said}",
        begin=have.begin,
        now=have.clock(),
    )


def own_key(sent: str) -> str:
    """Nobody's key can stand for another person's act."""
    return f"{viewer().person_id}:{sent[:LONGEST_KEY] or new_key()}"


def _named(policies: Sequence[Policy]) -> Iterable[str]:
    for policy in policies:
        for field in fields_of(policy):
            rows = value(policy, field) if field.kind is Kind.TRES else ()
            if isinstance(rows, tuple):
                yield from (row.tres for row in rows if isinstance(row, TresLimit))
