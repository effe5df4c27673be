"""Every shipped template in many shapes and environments, rendered: for the tests of the text."""

from collections.abc import Iterator
from dataclasses import dataclass, replace

from gateway.core.arrays import array_text
from gateway.core.manifest import GpuRule, Text
from gateway.services.environments import NONE, Environment, EnvironmentKind
from gateway.services.templates import Catalogue, Template, render
from gateway.testing.template_samples import FOLDER, SPEC, values_for

TEMPLATES = {found.name: found for found in Catalogue.load((FOLDER,)).all()}
_NAMELESS = Text("", "")
ENVIRONMENTS = {
    "none": NONE,
    "conda": Environment(
        "conda", _NAMELESS, EnvironmentKind.CONDA, path="/opt/conda", conda_env="torch"
    ),
    "venv": Environment("venv", _NAMELESS, EnvironmentKind.VENV, path="/opt/envs/torch"),
    "module": Environment(
        "module", _NAMELESS, EnvironmentKind.MODULE, modules=("cuda/12.8", "pytorch/2.13")
    ),
    "apptainer": Environment(
        "apptainer",
        _NAMELESS,
        EnvironmentKind.APPTAINER,
        image="/opt/images/torch.sif",
        binds=("/scratch:/scratch",),
    ),
}


@dataclass(frozen=True, slots=True)
class Case:
    """`count` are processes of a node, or GPUs where a template lets one choose them."""

    template: str
    nodes: int
    count: int
    environment: str

    def __str__(self) -> str:
        return f"{self.template}-{self.nodes}x{self.count}-{self.environment}"


def cases() -> Iterator[Case]:
    for name, template in TEMPLATES.items():
        for nodes in (1, 2):
            for count in (1, 4, 8):
                if _allows(template, nodes, count):
                    yield from (Case(name, nodes, count, kind) for kind in ENVIRONMENTS)


def rendered(case: Case) -> str:
    template = TEMPLATES[case.template]
    resources, values = template.manifest.resources, values_for(template)
    processes = 1 if resources.gpus is GpuRule.CHOSEN else case.count
    rows = values[resources.array.rows] if resources.array else None
    array = array_text(len(rows), 1) if isinstance(rows, tuple) else None
    spec = replace(
        SPEC,
        nodes=case.nodes,
        gpus_per_node=resources.gpus_for(processes, case.count),
        cpus_per_task=resources.cpus_for(processes),
        requeue=template.manifest.sbatch.requeue,
        signal=template.manifest.sbatch.signal,
        array=array,
        output="/home/member/runs/%x-%A_%a.out" if array else SPEC.output,
    )
    return render(
        template,
        spec=spec,
        values=values,
        environment=ENVIRONMENTS[case.environment],
        nproc_per_node=processes,
    )


def _allows(template: Template, nodes: int, count: int) -> bool:
    own = template.manifest.resources
    per_node = own.gpus_per_node if own.gpus is GpuRule.CHOSEN else own.nproc_per_node
    return own.nodes.min <= nodes <= own.nodes.max and per_node.min <= count <= per_node.max
