"""QoS and groups' policies: what there is, who uses it, and what Slurm has behind our back."""

from dataclasses import dataclass

from flask import Blueprint, flash, redirect, render_template, request, url_for
from flask.typing import ResponseReturnValue

from gateway.core.access import Permission
from gateway.core.policy_change import ChangeState, Of, Source
from gateway.core.qos import GroupPolicy, Policy, Qos
from gateway.errors import NotFound, Refused
from gateway.services import policy_drift
from gateway.services.policy_drift import Drift, How
from gateway.services.policy_present import Present, present
from gateway.store.queries import policy_changes as changes
from gateway.store.queries import policy_use as use
from gateway.store.queries.policy_changes import ChangeLine
from gateway.web.access import requires, viewer
from gateway.web.change_texts import SOURCE_TEXTS, STATE_TEXTS
from gateway.web.deps import deps
from gateway.web.messages import error_sentence
from gateway.web.money_forms import new_key
from gateway.web.policy_form import print_of
from gateway.web.texts import gettext
from gateway.web.views import changeview, policypages, policyuse, policyview
from gateway.web.views.policypages import of_kind, title

bp = Blueprint("policy", __name__, url_prefix="/admin")

MOST_PEOPLE = 200
MOST_GROUPS = 500
OPEN = (ChangeState.PROPOSED, ChangeState.APPROVED, ChangeState.APPLYING, ChangeState.UNKNOWN)


@dataclass(frozen=True, slots=True)
class DriftView:
    """`shown` tells whether Slurm still has what was looked at."""

    gone: bool
    appeared: bool
    since: object
    diff: list[changeview.DiffLine]
    can_restore: bool
    shown: str


@dataclass(frozen=True, slots=True)
class OpenChange:
    id: int
    word: str
    mark: str
    starts_at: object


@dataclass(frozen=True, slots=True)
class GroupName:
    name: str
    is_default: bool


@dataclass(frozen=True, slots=True)
class ObjectView:
    """`policy` None: Slurm has it no more."""

    kind: str
    name: str
    title: str
    policy: Policy | None
    description: str
    retired: bool
    drift: DriftView | None
    open_changes: list[OpenChange]
    settings: list[policyview.Setting]
    preempted_by: list[str]
    scopes: list[policyuse.ScopeView]
    groups: list[GroupName]
    people: list[policyview.Person]
    more_people: int


@dataclass(frozen=True, slots=True)
class GroupRow:
    policy: GroupPolicy
    shares: str
    limits: str
    drifted: bool


@bp.get("/qos")
@requires(Permission.SEE_POLICY)
def index() -> ResponseReturnValue:
    with deps().read() as session:
        there = present(session)
        drifts = [one for one in policy_drift.find(session) if one.of is Of.QOS]
        used = use.by_qos(session)
        waiting = changes.changes(session, states=OPEN, limit=20)
    lines = policyview.qos_lines(
        list(there.qos.values()),
        list(there.groups.values()),
        used,
        drifted={one.name for one in drifts},
        retired=there.retired,
    )
    return render_template(
        "pages/qos_list.html",
        rows=[one for one in lines if not one.retired],
        retired=[one for one in lines if one.retired],
        missing=[one.name for one in drifts if one.how is How.VANISHED],
        open_changes=waiting,
        polled_at=there.polled_at,
        manages=viewer().may(Permission.MANAGE_POLICY),
    )


@bp.get("/policy/groups")
@requires(Permission.SEE_POLICY)
def groups() -> ResponseReturnValue:
    asked = request.args.get("q", "").strip()
    with deps().read() as session:
        there = present(session)
        drifted = {one.name for one in policy_drift.find(session) if one.of is Of.GROUP}
    found = [one for name, one in sorted(there.groups.items()) if asked.lower() in name]
    rows = [
        GroupRow(
            policy=one,
            shares=gettext("as above") if one.shares is None else f"{one.shares:,}",
            limits=policyview.group_line(one),
            drifted=one.name in drifted,
        )
        for one in found[:MOST_GROUPS]
    ]
    more = max(0, len(found) - MOST_GROUPS)
    return render_template("pages/policy_groups.html", rows=rows, more=more, q=asked)


@bp.get("/qos/<name>", defaults={"kind": "qos"})
@bp.get("/policy/groups/<name>", defaults={"kind": "group"})
@requires(Permission.SEE_POLICY)
def show(kind: str, name: str) -> ResponseReturnValue:
    of = of_kind(kind)
    with deps().read() as session:
        there = present(session)
        drift = next((d for d in policy_drift.find(session) if (d.of, d.name) == (of, name)), None)
        rows = use.of_qos(session, name) if of is Of.QOS else use.of_group(session, name)
        waiting = changes.changes(session, states=OPEN, of=(of, name), limit=5)
        if there.policy(of, name) is None and drift is None:
            raise NotFound(f"no {of} {name}")
    page = _page(of, name, there, drift=drift, rows=rows, waiting=waiting)
    manages = viewer().may(Permission.MANAGE_POLICY)
    return render_template("pages/policy_object.html", page=page, manages=manages)


@bp.get("/qos/<name>/history", defaults={"kind": "qos"})
@bp.get("/policy/groups/<name>/history", defaults={"kind": "group"})
@requires(Permission.SEE_POLICY)
def history(kind: str, name: str) -> ResponseReturnValue:
    of = of_kind(kind)
    with deps().read() as session:
        found = changes.versions(session, of, name)
        if not found and present(session).policy(of, name) is None:
            raise NotFound(f"no {of} {name}")
    rows = [
        {
            "number": one.number,
            "at": one.at,
            "by": one.by or ("" if one.source is Source.FOUND else gettext("on the host")),
            "source": str(SOURCE_TEXTS[one.source]),
            "change_id": one.change_id,
            "gone": one.policy is None,
            "retired": one.retired,
            "diff": changeview.version_diff(one),
            "key": new_key(),
        }
        for one in found
    ]
    manages = viewer().may(Permission.MANAGE_POLICY)
    return render_template(
        "pages/policy_history.html",
        rows=rows,
        kind=kind,
        name=name,
        title=title(of, name),
        manages=manages,
    )


@bp.post("/qos/<name>/adopt", defaults={"kind": "qos"})
@bp.post("/policy/groups/<name>/adopt", defaults={"kind": "group"})
@requires(Permission.MANAGE_POLICY)
def adopt(kind: str, name: str) -> ResponseReturnValue:
    of, have = of_kind(kind), deps()
    try:
        if not _is_shown(of, name, request.form.get("shown", "")):
            raise Refused("policy_changed_meanwhile")
        policy_drift.adopt(of, name, viewer=viewer(), begin=have.begin, now=have.clock())
    except Refused as refusal:
        flash(error_sentence(refusal), "bad")
        return redirect(url_for("policy.show", kind=kind, name=name), code=303)
    flash(gettext("What Slurm has is the newest version of %(name)s now.", name=name), "good")
    return redirect(url_for("policy.history", kind=kind, name=name), code=303)


@bp.post("/qos/<name>/restore", defaults={"kind": "qos"})
@bp.post("/policy/groups/<name>/restore", defaults={"kind": "group"})
@requires(Permission.MANAGE_POLICY)
def restore(kind: str, name: str) -> ResponseReturnValue:
    """A QoS that appeared is retired, by the page that asks for new defaults."""
    of, have = of_kind(kind), deps()
    with have.read() as session:
        found = policy_drift.find(session)
    drift = next((one for one in found if (one.of, one.name) == (of, name)), None)
    if drift is not None and drift.how is How.APPEARED:
        return redirect(url_for("policy.retire", name=name), code=303)
    try:
        change_id = policy_drift.restore(
            of,
            name,
            viewer=viewer(),
            reason="",
            second_approval=True,
            key=policypages.own_key(""),
            begin=have.begin,
            now=have.clock(),
        )
    except Refused as refusal:
        flash(error_sentence(refusal), "bad")
        return redirect(url_for("policy.show", kind=kind, name=name), code=303)
    return redirect(url_for("policy.change", change_id=change_id), code=303)


def _is_shown(of: Of, name: str, shown: str) -> bool:
    with deps().read() as session:
        found = policy_drift.find(session)
    drift = next((one for one in found if (one.of, one.name) == (of, name)), None)
    return drift is None or shown == _print(drift)


def _print(drift: Drift) -> str:
    return print_of(drift.theirs) if drift.theirs is not None else "gone"


def _page(
    of: Of,
    name: str,
    there: Present,
    *,
    drift: Drift | None,
    rows: list[use.UseRow],
    waiting: tuple[ChangeLine, ...],
) -> ObjectView:
    policy, is_qos = there.policy(of, name), of is Of.QOS
    people = policyview.people(rows)
    return ObjectView(
        kind=of.value,
        name=name,
        title=title(of, name),
        policy=policy,
        description=policy.description if isinstance(policy, Qos) else "",
        retired=is_qos and name in there.retired,
        drift=_drift(drift) if drift else None,
        open_changes=[
            OpenChange(one.id, str(STATE_TEXTS[one.state][0]), STATE_TEXTS[one.state][2],
                       one.starts_at)
            for one in waiting
        ],
        settings=policyview.settings(policy) if policy else [],
        preempted_by=[one.name for one in there.qos.values() if is_qos and name in one.preempts],
        scopes=policyuse.scopes(policy, rows, is_qos=is_qos) if policy else [],
        groups=[GroupName(one.name, one.default_qos == name) for one in there.groups_with(name)]
        if is_qos
        else [],
        people=people[:MOST_PEOPLE],
        more_people=max(0, len(people) - MOST_PEOPLE),
    )  # fmt: skip


def _drift(drift: Drift) -> DriftView:
    return DriftView(
        gone=drift.how is How.VANISHED,
        appeared=drift.how is How.APPEARED,
        since=drift.since or deps().clock(),
        diff=changeview.diff(drift.changes, is_qos=drift.of is Of.QOS),
        can_restore=not (drift.of is Of.GROUP and drift.theirs is None),
        shown=_print(drift),
    )
