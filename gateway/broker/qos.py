"""QoS with all their limits, read and written with sacctmgr by the table in core.qos.

A QoS belongs to slurmdbd, so to all of its clusters.
"""

from collections.abc import Sequence
from dataclasses import dataclass

from gateway.broker import policy_words
from gateway.broker.commands import Commands
from gateway.broker.sacctmgr import show
from gateway.broker.slots import Slots
from gateway.core.qos import FIELDS, Change, Qos, changes
from gateway.core.qos_checks import P, as_kept, problems
from gateway.errors import BrokerRefused, BrokerSilent, BrokerUnreachable, GatewayError
from gateway.wire import policy as p

# The free text stands last, so that a separator in it shifts nothing.
_READ = (*FIELDS[1:], FIELDS[0])
_FORMAT = ",".join(["Name", *(field.column for field in _READ)])


@dataclass(frozen=True, slots=True)
class QosPolicy:
    """`alone` has one slot: from the comparison to the write no other writer gets between."""

    commands: Commands
    alone: Slots

    def read(self) -> p.QosList:
        rows = show(self.commands, ["show", "qos", f"format={_FORMAT}"], columns=len(_READ) + 1)
        return p.QosList(tuple(_qos(row) for row in rows))

    def write(self, asked: p.SetQos) -> Qos:
        """Make it, or change what differs, in one call; what Slurm has afterwards.

        BrokerRefused before the call or by it; BrokerSilent from the call on for what is unknown.
        """
        wanted = checked(asked.wanted, asked.expected)
        with self.alone.taken():
            now = self._comparable(asked, wanted)
            todo = changes(now or Qos(name=wanted.name), wanted)
            if now is not None and not todo:
                return now
            self._send(wanted, todo, new=now is None)
            return self._read_back(wanted.name)

    def _comparable(self, asked: p.SetQos, wanted: Qos) -> Qos | None:
        if asked.expected is not None and asked.expected.name != wanted.name:
            raise BrokerRefused(wanted.name, code="policy_bad_name")
        known = {one.name: one for one in self.read().qos}
        now = known.get(wanted.name)
        if asked.expected is None and now is not None:
            raise BrokerRefused(wanted.name, code="qos_exists")
        if asked.expected is not None and now is None:
            raise BrokerRefused(wanted.name, code="no_such_qos")
        if now != asked.expected:
            raise BrokerRefused(wanted.name, code="policy_changed_meanwhile")
        if unknown := set(wanted.preempts) - known.keys():
            raise BrokerRefused(min(unknown), code="no_such_qos")
        return now

    def _send(self, wanted: Qos, todo: Sequence[Change], *, new: bool) -> None:
        words = policy_words.words(todo)
        if new:
            # Left out, Slurm would take the name for it.
            text = f"Description={wanted.description}"
            words = [text, *(word for word in words if not word.startswith("Description="))]
            argv = ["sacctmgr", "--immediate", "add", "qos", f"name={wanted.name}", *words]
        else:
            where = ["modify", "qos", "where", f"name={wanted.name}", "set"]
            argv = ["sacctmgr", "--immediate", *where, *words]
        done = self.commands.run(argv, acts=True)
        if done.status != 0:
            raise policy_words.refusal(done, unmatched="qos_exists" if new else "no_such_qos")

    def _read_back(self, name: str) -> Qos:
        try:
            found = next((one for one in self.read().qos if one.name == name), None)
        except GatewayError as error:
            raise BrokerSilent(f"QoS {name} was sent, then: {error}") from error
        if found is None:
            raise BrokerSilent(f"QoS {name} was sent and is not there")
        return found


def checked(asked: P, before: P | None) -> P:
    """As Slurm would keep it; BrokerRefused for what must not come near sacctmgr."""
    for problem in problems(asked, before):
        raise BrokerRefused(f"{problem.key}: {asked.name!r}", code=problem.code)
    return as_kept(asked, before)


def _qos(row: Sequence[str]) -> Qos:
    try:
        found = {
            field.key: policy_words.parse(field.kind, text)
            for field, text in zip(_READ, row[1:], strict=True)
        }
    except ValueError as error:
        raise BrokerUnreachable(f"sacctmgr printed of QoS {row[0]}: {error}") from error
    if found["grace_seconds"] is None:
        found["grace_seconds"] = 0
    if found["usage_factor_millionths"] is None:
        found["usage_factor_millionths"] = 1_000_000
    return Qos(name=row[0], **found)  # type: ignore[arg-type]
