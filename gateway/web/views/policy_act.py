"""Changes of policy: the list, one with what it does and what became of it, and the decision."""

from dataclasses import dataclass

from flask import flash, redirect, render_template, request, url_for
from flask.typing import ResponseReturnValue

from gateway.core.access import Permission
from gateway.core.policy_change import ChangeState, Item, Source
from gateway.errors import NotFound, Refused
from gateway.services import (
    policy_apply,
    policy_changes,
    policy_decide,
    policy_history,
    policy_impact,
)
from gateway.store.queries import policy_changes as rows
from gateway.store.queries.policy_changes import ChangeLine, ChangeRow
from gateway.web.access import requires, viewer
from gateway.web.change_texts import SOURCE_TEXTS, STATE_TEXTS, object_words
from gateway.web.deps import deps
from gateway.web.ids import LARGEST_ID
from gateway.web.messages import error_sentence
from gateway.web.money_forms import new_key
from gateway.web.policy_when import WhenForm
from gateway.web.texts import gettext
from gateway.web.views import changeview, whatif
from gateway.web.views.acted import acted
from gateway.web.views.policy import bp
from gateway.web.views.policypages import proposed

MOST = 50
MOST_ITEMS = 100
_DIGITS = len(str(LARGEST_ID))
_UNDOABLE = (ChangeState.APPLIED, ChangeState.PARTLY)
_FAILED = (ChangeState.PARTLY, ChangeState.REFUSED)


@dataclass(frozen=True, slots=True)
class Head:
    word: str
    meaning: str
    mark: str
    source: str


@dataclass(frozen=True, slots=True)
class Can:
    """What this person may do with the change as it is."""

    apply: bool
    approve: bool
    waits_for_another: bool
    schedule: bool
    withdraw: bool
    undo: bool
    see: bool

    @property
    def act(self) -> bool:
        return self.apply or self.approve or self.waits_for_another or self.withdraw


@bp.get("/changes")
@requires(Permission.SEE_POLICY)
def changes() -> ResponseReturnValue:
    chosen = request.args.get("state", "")
    states = (ChangeState(chosen),) if chosen in list(ChangeState) else ()
    before = _id_before(request.args.get("before", ""))
    with deps().read() as session:
        found = rows.changes(session, states=states, before_id=before, limit=MOST)
    lines = [
        {"line": one, "names": [object_words(name) for name in one.names], **_words(one)}
        for one in found
    ]
    return render_template(
        "pages/policy_changes.html",
        rows=lines,
        states=[(one.value, str(STATE_TEXTS[one][0])) for one in ChangeState],
        chosen=chosen if states else "",
        more=found[-1].id if len(found) == MOST else None,
    )


def _id_before(text: str) -> int | None:
    return int(text) if text.isascii() and text.isdigit() and len(text) < _DIGITS else None


@bp.get("/changes/<int:change_id>")
@requires(Permission.SEE_POLICY)
def change(change_id: int) -> ResponseReturnValue:
    return _page(change_id)


@bp.post("/changes/<int:change_id>/times")
@requires(Permission.MANAGE_POLICY)
def schedule(change_id: int) -> ResponseReturnValue:
    """From when and until when, while it is only proposed."""
    form, have = WhenForm(), deps()

    def act() -> str:
        policy_decide.schedule(
            change_id,
            starts_at=form.starts_at.at,
            ends_at=form.ends_at.at,
            begin=have.begin,
            now=have.clock(),
        )
        return gettext("The times are set.")

    def again(one: WhenForm) -> str:
        return _page(change_id, when=one)

    return acted(form, act, again=again, to="policy.change", change_id=change_id)


@bp.post("/changes/<int:change_id>/<action>")
@requires(Permission.MANAGE_POLICY)
def act(change_id: int, action: str) -> ResponseReturnValue:
    """apply, approve, withdraw, undo, seen."""
    have = deps()
    try:
        match action:
            case "apply" | "approve":
                return _decided(change_id)
            case "withdraw":
                policy_changes.withdraw(
                    change_id, viewer=viewer(), begin=have.begin, now=have.clock()
                )
            case "seen":
                policy_changes.seen(change_id, begin=have.begin, now=have.clock())
            case "undo":
                change_id = _undone(change_id)
            case _:
                raise NotFound(f"act {action}")
    except Refused as refusal:
        return _page(change_id, trouble=error_sentence(refusal)), 422
    return redirect(url_for("policy.change", change_id=change_id), code=303)


def _decided(change_id: int) -> ResponseReturnValue:
    """The yes; then Slurm is told at once what is due. Running jobs are killed only by a tick."""
    have, who = deps(), viewer()
    found = _known(change_id)
    impact = policy_impact.preview(_items(found), read=have.read, now=have.clock())
    if impact.ends_jobs and request.form.get("kills") != "yes":
        said = gettext("Say with the tick that running jobs may be killed.")
        return _page(change_id, kills_problem=said), 422
    second = have.settings.policy_second_approval
    policy_decide.decide(
        change_id, viewer=who, second_approval=second, begin=have.begin, now=have.clock()
    )
    state = policy_apply.apply(
        change_id, viewer=who, begin=have.begin, broker=have.broker, now=have.clock()
    )
    words = _words(_known(change_id).line)
    kind = {ChangeState.APPLIED: "good", ChangeState.APPROVED: "good"}.get(state, "bad")
    said = f"{words['word']}. {words['meaning']}"
    flash(f"{gettext('Change %(number)s', number=change_id)}: {said}", kind)
    return redirect(url_for("policy.change", change_id=change_id), code=303)


def _undone(change_id: int) -> int:
    reason = gettext("Undoes change %(number)s", number=change_id)
    items = policy_history.undo_change(change_id, begin=deps().read)
    return proposed(items, reason=reason, source=Source.UNDO, key=request.form.get("key", ""))


def _page(
    change_id: int, *, when: WhenForm | None = None, trouble: str = "", kills_problem: str = ""
) -> str:
    have, found = deps(), _known(change_id)
    line, items = found.line, _items(found)
    is_open = found.state in {ChangeState.PROPOSED, ChangeState.APPROVED}
    impact = policy_impact.preview(items, read=have.read, now=have.clock()) if is_open else None
    replayed = whatif.asked(items) if "days" in request.args else whatif.NOTHING
    return render_template(
        "pages/policy_change.html",
        change_id=change_id,
        line=line,
        head=Head(**_words(line)),
        items=[changeview.item(row) for row in found.items[:MOST_ITEMS]],
        more_items=max(0, len(found.items) - MOST_ITEMS),
        impact=changeview.impact(impact) if impact else None,
        what_if=replayed.view,
        what_if_trouble=replayed.trouble,
        days_typed=request.args.get("days", str(whatif.DAYS))[:4],
        when=when or WhenForm.of(line.starts_at, line.ends_at),
        can=_can(line),
        key=new_key(),
        trouble=trouble,
        kills_problem=kills_problem,
    )


def _known(change_id: int) -> ChangeRow:
    with deps().read() as session:
        found = rows.change(session, change_id)
    if found is None:
        raise NotFound(f"no change {change_id}")
    return found


def _items(found: ChangeRow) -> tuple[Item, ...]:
    return tuple(row.item for row in found.items)


def _words(line: ChangeLine) -> dict[str, str]:
    word, meaning, mark = STATE_TEXTS[line.state]
    if line.state is ChangeState.PROPOSED and not deps().settings.policy_second_approval:
        meaning_text = gettext("Nothing was sent to Slurm. Look at what it does, then apply it.")
    elif line.state is ChangeState.APPROVED and line.starts_at is not None:
        meaning_text = gettext("Nothing was sent to Slurm yet: that is done at its start.")
    else:
        meaning_text = str(meaning)
    source = str(SOURCE_TEXTS[line.source])
    return {"word": str(word), "meaning": meaning_text, "mark": mark, "source": source}


def _can(line: ChangeLine) -> Can:
    who, second = viewer(), deps().settings.policy_second_approval
    manages = who.may(Permission.MANAGE_POLICY)
    waits = manages and line.state is ChangeState.PROPOSED
    own = line.author_id == who.person_id
    return Can(
        apply=waits and not second,
        approve=waits and second and not own,
        waits_for_another=waits and second and own,
        schedule=waits,
        withdraw=waits or (manages and line.state is ChangeState.APPROVED),
        undo=manages and line.state in _UNDOABLE,
        see=manages and line.state in _FAILED,
    )
