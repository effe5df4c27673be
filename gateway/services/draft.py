"""From what a person filled in to the request and the script. One path for the preview, the
estimate and the submit, so that what the page shows is what Slurm gets."""

from collections.abc import Sequence
from dataclasses import dataclass, replace

from gateway.core.access import Viewer
from gateway.core.answers import BadValue
from gateway.core.arrays import array_text
from gateway.core.ask import Ask, FieldProblem
from gateway.core.datasets import NOTHING_CHOSEN, Chosen, resolve
from gateway.core.manifest import FieldKind
from gateway.core.policy import Offer, Reading, judge
from gateway.core.sbatch import MAX_SCRIPT_BYTES, BadDirective
from gateway.errors import GatewayError
from gateway.services.environments import Environment, EnvironmentKind, own_venv
from gateway.services.templates import Catalogue, Template, render
from gateway.wire import messages as m

OWN_ENVIRONMENT = "own"
_NO_TOKEN = "0" * 32


class InvalidAsk(GatewayError):
    """Fields that cannot work; nothing was stored. `problems` go to the fields of the form."""

    code, status = "invalid_ask", 422

    def __init__(self, problems: tuple[FieldProblem, ...]) -> None:
        super().__init__(", ".join(f"{problem.field}: {problem.code}" for problem in problems))
        self.problems = problems


@dataclass(frozen=True, slots=True)
class Draft:
    """`request` and `script` are there when there is no problem; `reading` always."""

    problems: tuple[FieldProblem, ...]
    reading: Reading
    request: m.SubmitRequest | None = None
    template: Template | None = None
    environment: Environment | None = None
    smoke: bool = False
    on_stall: str = "nothing"
    on_preempt: str = "requeue"
    datasets: Chosen = NOTHING_CHOSEN

    @property
    def script(self) -> str | None:
        return self.request.script if self.request else None


def draft(
    ask: Ask,
    *,
    viewer: Viewer,
    offer: Offer,
    catalogue: Catalogue,
    environments: Sequence[Environment],
    smoke: bool = False,
) -> Draft:
    """Judge the form and, when it works, write the request with a token that is none yet. `smoke`
    makes the script a trial of a step."""
    template = catalogue.get(ask.template)
    if template is None:
        return Draft((FieldProblem("template", "unknown_template"),), Reading())
    judged = judge(ask, offer, template.manifest)
    environment, problem = _environment(ask, environments)
    chosen, unknown = _datasets(judged.reading, template, offer)
    problems = (*judged.problems, *filter(None, (problem, unknown)))
    if problems:
        return Draft(problems, judged.reading, template=template, environment=environment)
    if smoke and judged.reading.array:
        judged.reading.array, judged.reading.tasks = array_text(1, None), 1  # the first row will do
    request = _request(judged.reading, template, viewer)
    group = offer.find_group(request.account)
    rule = group.on_stall if group else "nothing"
    given_back = request.qos in offer.free_when_preempted
    made = Draft(
        (),
        judged.reading,
        request,
        template,
        environment,
        smoke,
        rule,
        "wait" if given_back else "requeue",
        chosen,
    )
    return in_folder(made, expand_home(request.working_directory, viewer.unix_user))


def in_folder(made: Draft, folder: str) -> Draft:
    """The same draft in this folder, its script rendered anew."""
    assert made.request is not None
    assert made.template is not None
    unbound = _unbound(made, folder)
    if unbound is not None:
        return replace(made, problems=(unbound,), request=None)
    number = "%j" if made.request.array is None else "%A_%a"
    output = f"{folder.rstrip('/')}/{made.request.name}-{number}.out"
    request = replace(made.request, working_directory=folder, output=output)
    try:
        script = render(
            made.template,
            spec=request,
            values=made.reading.values,
            environment=made.environment,
            nproc_per_node=made.reading.nproc_per_node,
            on_stall=made.on_stall,
            on_preempt=made.on_preempt,
            smoke=made.smoke,
            manifests=made.datasets.manifests,
        )
    except (BadDirective, BadValue) as bad:
        problem = FieldProblem(_form_field(bad.field), bad.code, dict(bad.facts))
        return replace(made, problems=(problem,), request=None)
    if len(script.encode()) > MAX_SCRIPT_BYTES:
        facts: dict[str, str | int] = {"bytes": MAX_SCRIPT_BYTES}
        return replace(
            made, problems=(FieldProblem("template", "script_too_long", facts),), request=None
        )
    return replace(made, request=replace(request, script=script))


def _unbound(made: Draft, folder: str) -> FieldProblem | None:
    """The folder whose path Apptainer would take for several: in the image it would be missing."""
    if made.environment is None or made.environment.kind is not EnvironmentKind.APPTAINER:
        return None
    kept = made.reading.values.get("checkpoint_dir")
    places = {"working_directory": folder, "checkpoint_dir": kept if isinstance(kept, str) else ""}
    for field, place in places.items():
        for character in ",:":
            if character in place:
                return FieldProblem(field, "folder_characters", {"character": character})
    return None


def expand_home(folder: str, unix_user: str) -> str:
    """`~` by the usual convention, for showing; at the submit the broker says where it is."""
    if folder == "~" or folder.startswith("~/"):
        return f"/home/{unix_user}{folder[1:]}"
    return folder


def _environment(
    ask: Ask, environments: Sequence[Environment]
) -> tuple[Environment | None, FieldProblem | None]:
    if ask.environment == OWN_ENVIRONMENT:
        try:
            return own_venv(ask.values.get("environment_path", "")), None
        except BadValue as bad:
            return None, FieldProblem("environment_path", bad.code, dict(bad.facts))
    for environment in environments:
        if environment.name == (ask.environment or "none"):
            return environment, None
    return None, FieldProblem("environment", "unknown_environment", nearest="none")


def _datasets(
    reading: Reading, template: Template, offer: Offer
) -> tuple[Chosen, FieldProblem | None]:
    """The folders in the place of the catalogue's names. A template has one such field."""
    for field in template.manifest.fields:
        words = reading.values.get(field.name)
        if field.kind is not FieldKind.DATASETS or not isinstance(words, tuple):
            continue
        try:
            chosen = resolve([word for word in words if isinstance(word, str)], offer.datasets)
        except BadValue as bad:
            return NOTHING_CHOSEN, FieldProblem(field.name, bad.code, dict(bad.facts))
        reading.values[field.name] = chosen.folders
        return chosen, None
    return NOTHING_CHOSEN, None


def _request(reading: Reading, template: Template, viewer: Viewer) -> m.SubmitRequest:
    options = template.manifest.sbatch
    return m.SubmitRequest(
        token=_NO_TOKEN,
        user=viewer.unix_user,
        name=_sure(reading.name),
        account=_sure(reading.group),
        partition=_sure(reading.partition),
        qos=_sure(reading.qos),
        nodes=_count(reading.nodes),
        gpus_per_node=_count(reading.gpus_per_node),
        cpus_per_task=_count(reading.cpus_per_task),
        time_limit_minutes=_count(reading.time_limit_minutes),
        working_directory=_sure(reading.working_directory),
        output="",
        script="",
        gpu_type=reading.gpu_type,
        memory_mb_per_node=template.manifest.resources.memory_mb,
        requeue=options.requeue,
        append_output=options.append_output,
        signal=options.signal,
        array=reading.array,
    )


def _sure(value: str | None) -> str:
    assert value is not None, "a form without problems has every value"
    return value


def _count(value: int | None) -> int:
    assert value is not None, "a form without problems has every value"
    return value


def _form_field(name: str | None) -> str:
    """Directives that come from a field of another name."""
    other = {
        "chdir": "working_directory",
        "output": "name",
        "job_name": "name",
        "account": "group",
        "time": "time_limit",
    }
    return other.get(name or "", name or "template")
