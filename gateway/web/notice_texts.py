"""What a group or the administrators are told, as sentences with their facts."""

from collections.abc import Mapping
from typing import Any

from gateway.core.notices import Kind
from gateway.web.change_texts import object_words
from gateway.web.messages import sentence
from gateway.web.money import money_text
from gateway.web.show import plain
from gateway.web.texts import Lazy
from gateway.web.texts import lazy_gettext as _l

BUDGET = "budget"
NOTICES: Mapping[str, Lazy] = {
    Kind.GATE_CLOSED: _l("No credit is left: Slurm accepts no new jobs of this group."),
    Kind.GATE_MEMBER: _l("%(user)s has reached their cap: Slurm accepts no new jobs of theirs."),
    Kind.GATE_HELD: _l("%(jobs)s jobs are held: they could cost %(need)s, and %(free)s is free."),
    Kind.GATE_STOP: _l("Job %(job)s of %(user)s ends in %(minutes)s minutes: no credit is left."),
    Kind.GATE_NOT_TAKEN: _l("Slurm did not take the limits of %(group)s %(user)s: %(why)s"),
    Kind.GATE_UNREAD: _l("Nobody knows which limits Slurm enforces: %(why)s"),
    Kind.GATE_DRIFT: _l(
        "Somebody changed the limits of %(group)s %(user)s in Slurm (%(found)s); they were set"
        " again (%(set)s)."
    ),
    Kind.GATE_LEAK: _l("Job %(job)s of %(group)s runs past its shut gate, by QoS %(qos)s."),
    Kind.GATE_NO_PRICE: _l("%(resource)s has no price, so nobody can say what its jobs cost."),
    Kind.LIMITS_NOT_ENFORCED: _l(
        "Slurm does not enforce limits: add limits to AccountingStorageEnforce, or no gate holds."
    ),
    Kind.GPUS_NOT_TRACKED: _l(
        "Slurm does not count GPUs: add gres/gpu to AccountingStorageTRES, or nothing is charged"
        " by itself."
    ),
    Kind.QOS_OVERRIDES: _l("QoS %(qos)s sets a limit that lets jobs pass a shut gate."),
    Kind.HOLD_LOST: _l(
        "Slurm lost job %(job)s of %(group)s before it ran, and %(amount)s is still held for it:"
        " sluice ledger release-hold %(hold)s gives it back."
    ),
    Kind.POLICY_DRIFT: _l("Behind the portal's back somebody changed %(object)s in Slurm."),
    Kind.POLICY_FAILED: _l("Change %(change)s of policy was not done, at %(object)s: %(why)s"),
    Kind.POLICY_NOT_BACK: _l(
        "Change %(about)s of policy is at its end, and did not go back, at %(object)s: %(why)s"
    ),
    Kind.VOLUME_FILLS: _l("The volume %(volume)s is %(percent)s %% full."),
    Kind.VOLUME_FULL: _l("The volume %(volume)s is full: nothing more can be written there."),
    Kind.VOLUME_DRIFT: _l("The volume %(volume)s of %(group)s: %(why)s"),
    BUDGET: _l("The budget %(budget)s has reached %(percent)s %%: %(spent)s of %(amount)s."),
}
_AMOUNTS = frozenset({"need", "free", "spent", "amount"})


class _Facts(dict[str, str]):
    """A sentence with a gap is better than a page that fails."""

    def __missing__(self, key: str) -> str:
        return "?"


def notice_text(kind: str, facts: Mapping[str, Any]) -> str:
    """One sentence. A kind that is not known, as a newer worker may write, is told by its name."""
    text = NOTICES.get(kind)
    if text is None:
        return plain(kind)
    shown = _Facts(
        {
            name: money_text(value) if name in _AMOUNTS and isinstance(value, int) else plain(value)
            for name, value in facts.items()
        }
    )
    if "object" in facts:
        shown["object"] = plain(object_words(str(facts["object"])))
    if "code" in facts:
        shown["why"] = sentence(str(facts["code"]))
    return (str(text) % shown).replace("  ", " ")
