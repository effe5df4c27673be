"""What `sluice qos` prints of policy objects, differences, changes and versions."""

from collections.abc import Iterable, Mapping, Sequence
from datetime import tzinfo
from typing import Any

from gateway.cli.common import sentence
from gateway.cli.output import iso, local, table
from gateway.core.impact import Doubt, Effect, Impact
from gateway.core.policy_change import Item, ItemState
from gateway.core.policy_file import FileProblem, Plain, key_of, plain, value_text
from gateway.core.qos import Change, Field, Kind, Policy, Qos, Value, fields_of, gpu_limit, value
from gateway.errors import Refused
from gateway.store.queries.policy_changes import ChangeRow, VersionRow

_PROBLEMS = {
    "file_unreadable": "this is no TOML",
    "file_unknown_key": "there is no such key",
    "file_not_a_table": "this has to be a table, such as [qos.high]",
    "file_not_a_whole_number": "this has to be a whole number",
    "file_not_a_text": "this has to be a text in quotes",
    "file_not_a_list": 'this has to be a list, such as ["spot"]',
    "file_not_resources": 'this has to be resources, such as {"gres/gpu" = 8}',
    "file_not_a_time": 'this has to be a time in quotes, such as "2-00:00:00" or "12:00:00"',
    "file_not_whole_minutes": "Slurm keeps this in whole minutes",
    "file_not_a_factor": 'this has to be a decimal in quotes, such as "0.82", with at most six'
    " decimals",
}

_EFFECTS = {
    Effect.ENDED: "running, would be killed",
    Effect.MAY_END: "running, may be killed",
    Effect.ABOVE: "running above the limit, run on",
    Effect.WAITS: "waiting, would be held by the limit",
    Effect.WAITS_LATER: "waiting, held once those before them have started",
    Effect.LET_GO: "waiting, would not wait for this limit any more",
}
_DOUBTS = {
    Doubt.TRES: "how much of this resource each job has",
    Doubt.USAGE: "the usage that Slurm compares with",
    Doubt.UNJUDGED: "what it does to jobs",
}


def problem_line(file: str, problem: FileProblem) -> str:
    """`FILE: qos.high.priority: this has to be …`"""
    words = _PROBLEMS.get(problem.code) or sentence(Refused(problem.code))
    place = f"{file}: {problem.place}" if problem.place else file
    return f"{place}: {words}" + (f" ({problem.detail})" if problem.detail else "")


def item_facts(item: Item) -> dict[str, Any]:
    found: dict[str, Any] = {"object": item.object, "new": item.before is None}
    found |= {"retires": item.retires, "changes": [_change_facts(one) for one in item.changes]}
    return found


def item_lines(items: Iterable[Item]) -> list[str]:
    """Each object, and under it the fields that differ."""
    lines: list[str] = []
    for item in items:
        lines.append(f"{item.object} (new)" if item.before is None else item.object)
        if item.retires is not None:
            lines.append("  retires" if item.retires else "  is brought back")
        lines += [
            f"  {key_of(one.field)}: {_side(one.field, one.before)}"
            f" -> {_side(one.field, one.after)}"
            for one in item.changes
        ]
    return lines


def impact_lines(found: Impact) -> list[str]:
    """What it does to the jobs that are there; what hurts most comes first."""
    lines = [
        f"  {name}: {number} {_EFFECTS[effect]}"
        for one in found.fields
        for effect in _EFFECTS
        if (number := sum(each.job.tasks for each in one.of(effect)))
        for name in [f"{one.kind}:{one.name} {key_of(one.field)}"]
    ]
    lines += [
        f"  {one.kind}:{one.name} loses {', '.join(one.lost)}" for one in found.fields if one.lost
    ]
    lines += [
        f"  {one.by} can push off {one.of}: {one.running} running on {one.gpus} GPUs"
        for one in found.preemption
    ]
    lines += [
        f"  {one.kind}:{one.name} {key_of(one.field)}: not known, {_DOUBTS[one.doubt]}"
        for one in found.unknown
    ]
    return ["What it does to the jobs there now:", *(lines or ["  nothing"])]


def change_facts(change: ChangeRow) -> dict[str, Any]:
    line = change.line
    return {
        "change": change.id,
        "state": change.state.value,
        "source": line.source.value,
        "reason": line.reason,
        "starts_at": iso(line.starts_at),
        "ends_at": iso(line.ends_at),
        "items": [
            item_facts(row.item)
            | {"state": row.state.value, "code": row.code, "settled_at": iso(row.settled_at)}
            for row in change.items
        ],
    }


def change_lines(change: ChangeRow) -> list[str]:
    """How it stands, and what was not done, with the reason."""
    lines = [f"Change {change.id}: {change.state}."]
    for row in change.items:
        if row.state is ItemState.DONE:
            continue
        why = sentence(Refused(row.code)) if row.code else "not sent yet"
        lines.append(f"  {row.object}: {row.state}. {why}")
    return lines


def policy_facts(policy: Policy) -> dict[str, Plain]:
    """Every field, also those that are not set."""
    named: dict[str, Plain] = {"name": policy.name}
    return named | {
        key_of(field): plain(field, value(policy, field)) for field in fields_of(policy)
    }


def policy_lines(policy: Policy) -> list[str]:
    """What is set."""
    blank = type(policy)(name=policy.name)
    return [
        f"  {key_of(field)} = {value_text(field, value(policy, field))}"
        for field in fields_of(policy)
        if value(policy, field) != value(blank, field)
    ]


def list_lines(
    found: Sequence[Qos], groups: Mapping[str, int], words: Mapping[str, str]
) -> list[str]:
    """A line for each QoS: how many groups may use it, and a word where there is one."""
    head = ["qos", ">priority", ">usage factor", "preempts", ">max wall"]
    head += [">GPUs a job", ">a person", ">a group", ">groups", ""]
    rows = [
        [
            qos.name,
            str(qos.priority),
            str(policy_facts(qos)["usage_factor"]),
            ",".join(qos.preempts) or "-",
            str(policy_facts(qos)["max_wall"] or "-"),
            *(_count(gpu_limit(limits)) for limits in _gpu_limits(qos)),
            str(groups[qos.name]),
            words.get(qos.name, ""),
        ]
        for qos in found
    ]
    return table(head, rows)


def version_facts(version: VersionRow) -> dict[str, Any]:
    return {
        "object": version.object,
        "version": version.number,
        "at": iso(version.at),
        "source": version.source.value,
        "by": version.by,
        "change": version.change_id,
        "retired": version.retired,
        "policy": policy_facts(version.policy) if version.policy else None,
    }


def version_lines(versions: Sequence[VersionRow], zone: tzinfo) -> list[str]:
    """The newest first, each with what it changed."""
    rows = []
    for version in versions:
        item = Item(version.before, version.policy) if version.policy else None
        changed = [key_of(one.field) for one in item.changes] if item and item.before else []
        what = ", ".join(changed) if item else "not in Slurm any more"
        who, number = version.by or "-", str(version.number)
        change = str(version.change_id or "-")
        rows.append([number, local(version.at, zone), version.source.value, who, change, what])
    return table([">version", "at", "source", "by", ">change", "changed"], rows)


def _change_facts(one: Change) -> dict[str, Any]:
    before, after = plain(one.field, one.before), plain(one.field, one.after)
    return {"field": key_of(one.field), "before": before, "after": after}


def _side(field: Field, found: Value) -> str:
    """No resource is no limit, as `none` is of the others."""
    return "none" if field.kind is Kind.TRES and not found else value_text(field, found)


def _gpu_limits(qos: Qos) -> tuple[Any, ...]:
    return qos.max_tres_per_job, qos.max_tres_per_user, qos.max_tres_per_account


def _count(limit: int | None) -> str:
    return "-" if limit is None else str(limit)
