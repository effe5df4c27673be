"""What the pages of environments show, in words."""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime

from flask import url_for

from gateway.core.access import Viewer
from gateway.core.env_check import Step, read_steps
from gateway.core.env_facts import COMMON, Facts, lacking
from gateway.core.environments import Environment
from gateway.services.environment_checks import Cell, Matrix, may_check
from gateway.services.environment_fit import fit
from gateway.services.environment_publish import Entry, publishes_for
from gateway.store.environments import CheckRow
from gateway.web.deps import Deps
from gateway.web.environment_forms import KIND_TEXTS
from gateway.web.i18n import language
from gateway.web.messages import sentence
from gateway.web.texts import gettext, ngettext
from gateway.web.views.environmentwarn import clash_line


@dataclass(frozen=True, slots=True)
class CellView:
    """`kind` is a colour and an icon: done, failed, waiting, unknown."""

    gpu_type: str
    kind: str
    word: str
    why: str
    at: datetime | None
    job_url: str
    steps: tuple[Step, ...]
    clashes: tuple[str, ...]
    seconds: float
    can_adopt: bool
    is_open: bool


@dataclass(frozen=True, slots=True)
class LineView:
    name: str
    title: str
    kind: str
    whose: str
    versions: str
    cells: tuple[CellView, ...]
    may_check: bool


@dataclass(frozen=True, slots=True)
class MatrixView:
    sum: str
    gpu_types: tuple[str, ...]
    lines: tuple[LineView, ...]
    may_publish: bool


@dataclass(frozen=True, slots=True)
class TemplateView:
    """A template that says what it needs; `lacks` is empty where all of it is there."""

    title: str
    needs: str
    lacks: tuple[str, ...]
    known: bool


@dataclass(frozen=True, slots=True)
class OneView:
    line: LineView
    entry: Entry
    facts: Facts
    setup: tuple[tuple[str, str], ...]
    templates: tuple[TemplateView, ...]
    history: tuple[tuple[CheckRow, str], ...]
    may_adopt: bool


def matrix(found: Matrix, who: Viewer) -> MatrixView:
    lines = tuple(_line(one.entry, one.cells, who) for one in found.lines)
    cells = [cell for line in lines for cell in line.cells]
    good = sum(cell.kind == "done" for cell in cells)
    told = ngettext("%(num)d environment", "%(num)d environments", len(lines))
    pairs = gettext(
        "%(good)s of %(all)s pairs of environment and card are known to work",
        good=good,
        all=len(cells),
    )
    names = tuple(_card(one) for one in found.gpu_types)
    return MatrixView(f"{told}; {pairs}", names, lines, bool(publishes_for(who)))


def one(
    entry: Entry,
    cells: Sequence[Cell],
    history: Sequence[CheckRow],
    *,
    viewer: Viewer,
    have: Deps,
) -> OneView:
    environment = entry.environment
    clashes = {cell.gpu_type: _clashes(environment, cell.gpu_type, have) for cell in cells}
    return OneView(
        line=_line(entry, cells, viewer, clashes),
        entry=entry,
        facts=environment.facts,
        setup=_setup(environment),
        templates=_templates(environment, have),
        history=tuple((row, _why(row)) for row in history),
        may_adopt=entry.may_change or (entry.row is None and publishes_for(viewer)[:1] == ("",)),
    )


def _line(
    entry: Entry,
    cells: Sequence[Cell],
    who: Viewer,
    clashes: dict[str, tuple[str, ...]] | None = None,
) -> LineView:
    one = entry.environment
    listed = [name for name in COMMON if name in one.facts.versions]
    whose = one.group or (gettext("site") if one.published else gettext("site's file"))
    return LineView(
        one.name,
        one.title.get(language()),
        str(KIND_TEXTS.get(one.kind, "")),
        whose,
        " · ".join(f"{name} {one.facts.versions[name]}" for name in listed),
        tuple(_cell(cell, (clashes or {}).get(cell.gpu_type, ())) for cell in cells),
        may_check(who, entry) and not entry.is_retired,
    )


def _cell(cell: Cell, clashes: tuple[str, ...]) -> CellView:
    kind, word, why = _verdict(cell)
    check, job = cell.check, cell.job
    has_job = job is not None and job.job_id is not None
    return CellView(
        gpu_type=cell.gpu_type,
        kind=kind,
        word=word,
        why=why,
        at=check.at if check else None,
        job_url=url_for("jobs.show", job_id=job.job_id) if has_job and job else "",
        steps=read_steps(check.steps) if check else (),
        clashes=clashes,
        seconds=check.seconds if check else 0.0,
        can_adopt=check is not None and bool(check.found),
        is_open=cell.open_job is not None,
    )


def _verdict(cell: Cell) -> tuple[str, str, str]:
    if cell.open_job is not None:
        return "waiting", gettext("under way"), ""
    if cell.not_sent is not None:
        return "failed", gettext("not sent"), sentence(cell.not_sent)
    if cell.check is None:
        return "unknown", gettext("never checked"), ""
    if not cell.check.ok:
        return "failed", gettext("failed"), _why(cell.check)
    if cell.changed:
        return "unknown", gettext("changed since"), gettext("It worked before it was changed.")
    return "done", gettext("works"), ""


def _why(row: CheckRow) -> str:
    """One sentence: the first step that failed says more than that one did."""
    if row.ok:
        return ""
    failed = [step for step in read_steps(row.steps) if not step.ok]
    if not failed:
        return sentence(row.code or "check_failed")
    last = failed[0].text.rsplit("  ", 1)[-1][-200:]
    return gettext("%(step)s: %(said)s", step=failed[0].name, said=last)


def _clashes(environment: Environment, gpu_type: str, have: Deps) -> tuple[str, ...]:
    found = fit(environment, (), gpu_type, cards=have.cards, begin=have.read)
    return tuple(clash_line(clash, environment.name, gpu_type) for clash in found.clashes)


def _setup(one: Environment) -> tuple[tuple[str, str], ...]:
    """What the job sets up, label and value."""
    rows = (
        (gettext("Kind"), str(KIND_TEXTS.get(one.kind, ""))),
        (gettext("Folder"), one.path),
        (gettext("Conda environment"), one.conda_env),
        (gettext("Modules"), " ".join(one.modules)),
        (gettext("Folder of modules"), one.module_path),
        (gettext("Image"), one.image),
        (gettext("Folders to bind"), " ".join(one.binds)),
    )
    return tuple(row for row in rows if row[1])


def _templates(environment: Environment, have: Deps) -> tuple[TemplateView, ...]:
    found = []
    for template in have.catalogue.all():
        needs = template.manifest.needs
        if needs:
            clashes = lacking(environment.facts, needs)
            found.append(
                TemplateView(
                    template.manifest.title.get(language()),
                    ", ".join(str(need) for need in needs),
                    tuple(clash_line(clash, environment.name, "") for clash in clashes),
                    bool(environment.facts.versions),
                )
            )
    return tuple(found)


def _card(gpu_type: str) -> str:
    return gpu_type or gettext("without a GPU")
