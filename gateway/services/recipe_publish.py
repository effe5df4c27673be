"""A run that worked becomes a recipe."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from typing import TYPE_CHECKING, Any

from gateway.core import recipes as core
from gateway.core.access import Viewer, job_rights
from gateway.core.ask import Ask
from gateway.core.planner.cards import Cards
from gateway.core.recipes import Recipe, Visibility
from gateway.core.states import JobState, parse_state
from gateway.core.training.checkpoints import checkpoints
from gateway.errors import NotFound, Refused
from gateway.services import recipe_receipt
from gateway.store import datasets, recipe_code, recipe_hiding, recipe_reruns, recipes
from gateway.store.queries import job as jobs
from gateway.store.queries import training as reads
from gateway.store.queries.job import JobDetail, SubmissionDetail
from gateway.store.recipes import NewRecipe, RecipeRow
from gateway.store.uow import Begin
from gateway.wire import codec

if TYPE_CHECKING:
    from sqlalchemy.orm import Session

# Values that say where one person keeps things: others have places of their own.
PRIVATE = frozenset({"environment_path", "run_name", "checkpoint_dir", "upload_to", "upload_mbps"})


@dataclass(frozen=True, slots=True)
class Typed:
    """What its author says of it. `metrics` None: all that the job reported."""

    title: str
    summary: str = ""
    model: str = ""
    tags: str = ""
    visibility: str = Visibility.SITE.value
    group: str = ""
    checkpoints: str = ""
    metrics: Sequence[str] | None = None


@dataclass(frozen=True, slots=True)
class Candidate:
    """What a job would be as a recipe, before its author has said anything; the folders of
    checkpoints that the run told of, the newest first; and where its code lies."""

    recipe: Recipe
    group: str
    parent_id: int | None
    saved: tuple[str, ...]
    folder: str
    began: datetime | None


def candidate(
    job_id: int, *, viewer: Viewer, begin: Begin, cards: Cards, now: datetime
) -> Candidate:
    """Of one's own job of the portal that ended well. NotFound for others', Refused
    `recipe_not_ended_well` or `recipe_smoke`."""
    with begin() as session:
        return _candidate(session, job_id, viewer=viewer, cards=cards, now=now)


def publish(
    job_id: int,
    typed: Typed,
    *,
    viewer: Viewer,
    begin: Begin,
    cards: Cards,
    now: datetime,
    files: Mapping[str, str] | None = None,
) -> int:
    """The recipe's id; the same for what was published already. `files`: code that goes with it.
    Refused with the field."""
    with begin() as session:
        found = _candidate(session, job_id, viewer=viewer, cards=cards, now=now)
        if files:
            found = _with_code(session, found, files, now)
        visibility, group = sharing(viewer, typed.visibility, typed.group)
        new = NewRecipe(
            person_id=viewer.person_id,
            visibility=visibility,
            group=group,
            recipe=_said(found.recipe, typed),
            parent_id=found.parent_id,
            job_id=job_id,
        )
        return keep(session, new, now=now)


def keep(session: "Session", new: NewRecipe, *, now: datetime) -> int:
    """Kept, or found again where it is there already, and shared as is said now. Refused
    `recipe_hidden`: an administrator took it from the Library."""
    recipe_id, is_new = recipes.add(session, new, now=now)
    if not is_new:
        hiding = recipe_hiding.hidden(session, recipe_id)
        if hiding is not None:
            raise Refused("recipe_hidden", why=hiding.why)
        recipes.bring_back(session, recipe_id, new.recipe)
        recipes.share(session, recipe_id, new.visibility, new.group)
    return recipe_id


def sharing(viewer: Viewer, visibility: str, group: str) -> tuple[Visibility, str | None]:
    """With whom. Refused `recipe_visibility`, or `not_your_group`."""
    try:
        chosen = Visibility(visibility)
    except ValueError:
        raise Refused("recipe_visibility", field="visibility") from None
    if chosen is not Visibility.GROUP:
        return chosen, None
    if group not in viewer.groups:
        raise Refused("not_your_group", field="group", group=group)
    return chosen, group


def share(recipe_id: int, *, visibility: str, group: str, viewer: Viewer, begin: Begin) -> None:
    """The owner's act."""
    chosen, named = sharing(viewer, visibility, group)
    with begin() as session:
        own(session, recipe_id, viewer)
        recipes.share(session, recipe_id, chosen, named)


def retract(recipe_id: int, *, viewer: Viewer, begin: Begin, now: datetime) -> None:
    """The owner takes it back: nobody finds it any more."""
    with begin() as session:
        own(session, recipe_id, viewer)
        recipes.retract(session, recipe_id, now=now)


def own(session: "Session", recipe_id: int, viewer: Viewer) -> RecipeRow:
    """NotFound for another's."""
    row = recipes.get(session, recipe_id, viewer)
    if row is None or row.person_id != viewer.person_id or row.retracted_at is not None:
        raise NotFound(f"no recipe {recipe_id}")
    return row


def _candidate(
    session: "Session", job_id: int, *, viewer: Viewer, cards: Cards, now: datetime
) -> Candidate:
    detail = jobs.job(session, job_id)
    submission = detail.submission if detail else None
    if detail is None or submission is None or submission.row.person_id != viewer.person_id:
        raise NotFound(f"no job {job_id}")
    if not job_rights(viewer, user=detail.row.user, group=detail.row.group).read_files:
        raise NotFound(f"no job {job_id}")
    if detail.row.purpose is not None:
        raise Refused("recipe_smoke")
    if detail.row.active or parse_state(detail.row.state)[0] is not JobState.COMPLETED:
        raise Refused("recipe_not_ended_well", state=detail.row.state)
    origin = recipe_reruns.of_submission(session, submission.row.id)
    events = reads.events(session, [job_id])[job_id]
    saved = [one.path for one in checkpoints(events) if one.local and one.path]
    return Candidate(
        recipe=_recipe(session, detail, submission, cards, now),
        group=detail.row.group,
        parent_id=origin[0] if origin else None,
        saved=tuple(reversed(saved)),
        folder=detail.working_directory,
        began=detail.row.start_time,
    )


def _recipe(
    session: "Session",
    detail: JobDetail,
    submission: SubmissionDetail,
    cards: Cards,
    now: datetime,
) -> Recipe:
    ask = codec.parse(Ask, dict(submission.ask))
    template, environment = recipes.parts(session, submission.row.id) or (
        "",
        core.EnvironmentUsed(ask.environment or "none", ""),
    )
    values = {name: value for name, value in ask.values.items() if name not in PRIVATE}
    used = datasets.used_by(session, submission.row.id)
    job = detail.row
    return Recipe(
        format=core.FORMAT,
        title=ask.name,
        summary="",
        model="",
        tags=(),
        name=ask.name,
        template=core.TemplateUsed(ask.template, template),
        shape=core.Shape(
            partition=job.partition,
            qos=job.qos or ask.qos,
            gpu_type=ask.gpu_type,
            nodes=job.nodes,
            nproc_per_node=_whole(ask.nproc_per_node),
            gpus=job.gpus,
            time_limit=ask.time_limit,
        ),
        values=values,
        environment=environment,
        datasets=tuple(
            core.DatasetUsed(entry.name, version.version, version.manifest or "")
            for entry, version in used
        ),
        code=_code(session, detail),
        seeds=core.seeds_of(values),
        receipt=recipe_receipt.measure(session, detail, cards=cards, now=now),
    )


def _code(session: "Session", detail: JobDetail) -> core.Code | None:
    """What `prepare` told last; a text that is no commit is none."""
    events = reads.events(session, [detail.row.id])[detail.row.id]
    for event in reversed(events):
        facts = event.facts
        if event.kind == "code" and isinstance(facts.get("commit"), str):
            try:
                return core.Code(
                    commit=facts["commit"],
                    clean=facts.get("clean"),
                    remote=facts.get("remote", ""),
                    folder=detail.working_directory,
                )
            except ValueError:
                return None
    return None


def _with_code(
    session: "Session", found: Candidate, files: Mapping[str, str], now: datetime
) -> Candidate:
    name = recipe_code.keep(session, files, now=now)
    code = found.recipe.code or core.Code(captured=name, folder=found.folder)
    return replace(found, recipe=replace(found.recipe, code=replace(code, captured=name)))


def _said(recipe: Recipe, typed: Typed) -> Recipe:
    """With its author's words. Refused, with the field that cannot be."""
    receipt = recipe.receipt
    if typed.metrics is not None:
        chosen = {name: v for name, v in receipt.metrics.items() if name in typed.metrics}
        receipt = replace(receipt, metrics=chosen)
    try:
        tags = core.tags_of(typed.tags)
    except ValueError:
        raise Refused("recipe_tags", field="tags", most=core.MOST_TAGS) from None
    words: dict[str, Any] = {
        "title": " ".join(typed.title.split()),
        "summary": typed.summary.replace("\r\n", "\n").strip(),
        "model": " ".join(typed.model.split()),
        "checkpoints": typed.checkpoints.strip().rstrip("/"),
    }
    for field, value in words.items():
        try:
            recipe = replace(recipe, **{field: value})
        except ValueError:
            raise Refused(f"recipe_{field}", field=field) from None
    return replace(recipe, tags=tags, receipt=receipt)


def _whole(text: str) -> int:
    return int(text) if text.strip().isascii() and text.strip().isdecimal() else 1
