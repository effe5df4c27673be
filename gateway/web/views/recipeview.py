"""Recipes as pages show them: cards, receipts, what has moved, reruns."""

from dataclasses import dataclass
from typing import TYPE_CHECKING

from flask import request
from werkzeug.datastructures import MultiDict

from gateway.core.credits import MILLION
from gateway.core.recipes import Receipt
from gateway.core.search_words import asked
from gateway.errors import NotFound
from gateway.services import recipe_clone, recipe_code, recipe_publish, recipe_reruns
from gateway.services.recipe_clone import Clone, Moved
from gateway.services.recipe_code import Captured
from gateway.services.recipe_publish import Candidate
from gateway.store import recipe_reruns as reruns
from gateway.store import recipes as store
from gateway.store.recipe_reruns import Tally
from gateway.store.recipes import Filters, RecipeRow
from gateway.web import offering
from gateway.web.access import viewer
from gateway.web.deps import deps
from gateway.web.ids import LARGEST_ID
from gateway.web.money import money_text
from gateway.web.recipe_texts import FIGURES, MOVED
from gateway.web.show import seconds_text, size_text
from gateway.web.texts import gettext

if TYPE_CHECKING:
    from sqlalchemy.orm import Session

    from gateway.core.ask import Ask


@dataclass(frozen=True, slots=True)
class Line:
    """A recipe in a list. `rating` is in words."""

    row: RecipeRow
    tally: Tally
    cards: str
    step: str
    hours: str
    rating: str


def candidate(job_id: int) -> Candidate:
    """What a job of the viewer's own would be as a recipe."""
    have = deps()
    return recipe_publish.candidate(
        job_id, viewer=viewer(), begin=have.read, cards=have.cards, now=have.clock()
    )


def captured(job_id: int) -> Captured:
    """The code of such a job as it lies in its working folder now."""
    found = candidate(job_id)
    return recipe_code.capture(
        found.folder, viewer=viewer(), broker=deps().broker, since=found.began
    )


def found(args: MultiDict[str, str]) -> Filters:
    """The filters of an address; what cannot be read is no filter."""
    gpus, cost = args.get("gpus", type=int), args.get("cost", type=float)
    return Filters(
        asked=asked(args.get("q", "")[:200]),
        template=_filter(args, "template"),
        model=_filter(args, "model"),
        gpus=gpus if gpus is not None and 0 <= gpus <= LARGEST_ID else None,
        gpu_type=_filter(args, "gpu_type"),
        cost=int(cost * MILLION) if cost is not None and 0 <= cost < 1e9 else None,
        dataset=_filter(args, "dataset"),
        tag=_filter(args, "tag").lstrip("#"),
        mine=viewer().person_id if args.get("mine") else None,
        order=args.get("order", "new"),
    )


def _filter(args: MultiDict[str, str], name: str) -> str:
    """PostgreSQL does not take NUL, not even to look for it."""
    return args.get(name, "")[:120].replace("\0", "")


def matching(text: str) -> int:
    """How many recipes hold these words, for who looks for a job by its name."""
    words = asked(text[:200])
    if not words:
        return 0
    with deps().read() as session:
        return store.count(session, viewer(), Filters(asked=words))


def lines(session: "Session", rows: list[RecipeRow]) -> list[Line]:
    known = reruns.tallies(session, [row.id for row in rows])
    return [line(row, known.get(row.id, Tally())) for row in rows]


def line(row: RecipeRow, tally: Tally) -> Line:
    found = row.recipe.receipt
    return Line(
        row, tally, cards(found), step(found), seconds_text(found.run_seconds), rating(tally)
    )


def cards(one: Receipt) -> str:
    if not one.gpus:
        return gettext("no cards")
    return f"{one.gpus} × {one.gpu_type or 'GPU'}"


def step(one: Receipt) -> str:
    return seconds_text(one.step_seconds) if one.step_seconds is not None else "–"


def rating(tally: Tally) -> str:
    """Reruns in the place of stars."""
    if not tally.compared:
        return gettext("not run again yet") if not tally.waiting else gettext("being run again")
    near = {"all": tally.compared, "some": tally.within_1}
    if tally.within_1 in {tally.compared, tally.within_5}:
        return gettext("%(some)s of %(all)s reruns within 1 %%", **near)
    near["some"] = tally.within_5
    return gettext("%(some)s of %(all)s reruns within 5 %%", **near)


def facts(one: Receipt) -> list[tuple[str, str]]:
    """The receipt, in rows of a name and a figure with its unit."""
    rows = [
        (gettext("Cards"), cards(one)),
        (gettext("Run time"), seconds_text(one.run_seconds)),
        (gettext("Card-hours"), f"{one.card_seconds / 3600:,.2f}"),
        (gettext("Queue wait"), _seconds(one.wait_seconds)),
        (gettext("Time of a step"), step(one)),
        (gettext("Tokens a second"), _number(one.tokens_per_second)),
        (gettext("MFU"), "–" if one.mfu is None else f"{one.mfu:.1%}"),
        (
            gettext("Most memory of a card"),
            "–" if one.peak_bytes is None else size_text(one.peak_bytes),
        ),
        (gettext("Cost"), "–" if one.cost is None else money_text(one.cost)),
    ]
    return rows + [(name, f"{value:.6g}") for name, value in one.metrics.items()]


def _seconds(value: float | None) -> str:
    return "–" if value is None else seconds_text(value)


def _number(value: float | None) -> str:
    return "–" if value is None else f"{value:,.0f}"


def figure_name(name: str) -> str:
    return str(FIGURES.get(name, name))


def moved_text(one: Moved) -> str:
    facts = dict(one.facts)
    if one.code == "recipe_price_changed":
        facts = {name: money_text(int(value)) for name, value in facts.items()}
    return str(MOVED[one.code] % facts)


def one(session: "Session", recipe_id: int) -> RecipeRow:
    """NotFound also for what this person may not see."""
    row = store.get(session, recipe_id, viewer()) if recipe_id <= LARGEST_ID else None
    if row is None:
        raise NotFound(f"no recipe {recipe_id}")
    return row


def cloned(row: RecipeRow) -> Clone:
    have = deps()
    site = recipe_clone.Site(
        viewer(), have.read, have.catalogue, offering.environments(), have.clock()
    )
    return recipe_clone.clone(row, site=site)


def chosen() -> RecipeRow | None:
    """The recipe that the form was filled from; gone when it may not be seen (any more)."""
    typed = request.values.get("recipe", "")
    if not typed.isascii() or not typed.isdecimal() or len(typed) > 9:
        return None
    with deps().read() as session:
        return store.get(session, int(typed), viewer())


def note(submission_id: int, ask: "Ask") -> None:
    """The form that was sent came from a recipe: its match counts once the job is over."""
    row = chosen()
    if row is None:
        return
    have = deps()
    recipe_reruns.note(
        submission_id,
        row.id,
        row.recipe,
        ask,
        is_check=bool(request.values.get("check")),
        begin=have.begin,
        now=have.clock(),
    )
