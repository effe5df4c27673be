"""Templates are data: a folder with a manifest and a script. Catalogue them, render one.

A value of a person leaves the renderer as quoted words, whatever the template does with it. Where
those words stand is looked at when the template is loaded (see template_lint).
"""

from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path

from gateway.config import NODE_KIT
from gateway.core.answers import Value
from gateway.core.apps import node_options
from gateway.core.sbatch import directives, lead_seconds, normalise_script
from gateway.services.environments import Environment, setup_lines
from gateway.services.template_files import Problem, Template, read_shared, read_template
from gateway.services.template_language import Trusted
from gateway.wire.messages import SubmitRequest

__all__ = ["Catalogue", "Problem", "Template", "render"]


def render(
    template: Template,
    *,
    spec: SubmitRequest,
    values: Mapping[str, Value],
    environment: Environment | None,
    nproc_per_node: int | None = None,
    on_stall: str = "nothing",
    on_preempt: str = "requeue",
    smoke: bool = False,
    manifests: tuple[str, ...] = (),
) -> str:
    """The script as Slurm gets it and as plain sbatch runs it. `spec.script` is not read.

    `values` come from `clean`. Without `nproc_per_node` there is one process a GPU, at least one.
    `on_stall` is what the node tools do to a run that stalls: nothing, hold or requeue;
    `on_preempt` says whether a preempted run puts itself back (requeue) or waits for Slurm to do
    so (wait); `smoke` makes it a trial of one step; `manifests` has one of each dataset, or "".
    """
    app = template.manifest.app
    body = template.program.render(
        **values,
        nodes=spec.nodes,
        nproc_per_node=nproc_per_node or max(1, spec.gpus_per_node),
        gpus_per_node=spec.gpus_per_node,
        cpus_per_task=spec.cpus_per_task,
        setup=Trusted("\n".join(setup_lines(environment))),
        lead=lead_seconds(spec.signal),
        on_stall=on_stall,
        on_preempt=on_preempt,
        smoke=smoke,
        kit=template.kit,
        manifests=manifests,
        node_local=template.local,
        snapshot_area=template.area,
        base=environment.name if environment else "",
        app_options=node_options(app) if app else (),
        app_start=app.start if app else (),
    )
    shebang, _, rest = body.partition("\n")
    return normalise_script("\n".join([shebang, *directives(spec), rest])).text


class Catalogue:
    """All templates of the folders; a later folder's template hides an earlier one of its name."""

    def __init__(self, folders: tuple[Path, ...], kit: str, local: str, area: str) -> None:
        self._folders = folders
        self._kit = kit
        self._local = local
        self._area = area
        self._seen: tuple[tuple[str, int, int], ...] | None = None
        self._templates: dict[str, Template] = {}
        self._problems: tuple[Problem, ...] = ()

    @classmethod
    def load(
        cls, folders: tuple[Path, ...], *, kit: str = NODE_KIT, local: str = "", area: str = ""
    ) -> "Catalogue":
        """`kit` is the folder of the node tools on the nodes, `local` one on their own disks;
        empty: what TMPDIR says there; `area` is where snapshots are kept, empty: at home."""
        catalogue = cls(folders, kit, local, area)
        catalogue._refresh()
        return catalogue

    def get(self, name: str) -> Template | None:
        self._refresh()
        return self._templates.get(name)

    def all(self, *, internal: bool = False) -> tuple[Template, ...]:
        """As their manifests order them, then by name: a site's own come after the shipped ones.
        With `internal` those too that no form offers."""
        self._refresh()
        found = (one for one in self._templates.values() if internal or not one.manifest.internal)
        return tuple(sorted(found, key=_place))

    @property
    def problems(self) -> tuple[Problem, ...]:
        """What keeps a template out of the list."""
        self._refresh()
        return self._problems

    def _refresh(self) -> None:
        """Read again when a file has changed; looking costs one stat a file."""
        seen = _fingerprint(self._folders)
        if seen == self._seen:
            return
        templates: dict[str, Template] = {}
        shared = read_shared(self._folders)
        problems = list(shared.problems)
        for folder in _template_folders(self._folders):
            template, found = read_template(folder, shared)
            problems += found
            if template is not None:
                templates[template.name] = replace(
                    template, kit=self._kit, local=self._local, area=self._area
                )
        self._templates, self._problems, self._seen = templates, tuple(problems), seen


def _place(template: Template) -> tuple[bool, int, str]:
    order = template.manifest.order
    return order is None, order or 0, template.name


def _fingerprint(folders: tuple[Path, ...]) -> tuple[tuple[str, int, int], ...]:
    seen = []
    for folder in folders:
        for path in sorted(folder.glob("*/*")):
            try:
                stat = path.stat()
            except OSError:
                continue  # removed while we looked
            seen.append((str(path), stat.st_mtime_ns, stat.st_size))
    return tuple(seen)


def _template_folders(folders: tuple[Path, ...]) -> list[Path]:
    return [
        path
        for folder in folders
        for path in sorted(folder.glob("*"))
        if path.is_dir() and not path.name.startswith(("_", "."))
    ]
