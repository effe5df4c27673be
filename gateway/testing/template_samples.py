"""A request and values that fit the shipped templates, shared by their tests."""

from gateway.config import assets
from gateway.core.answers import Value, clean_all
from gateway.core.manifest import Manifest
from gateway.services.templates import Catalogue, Template
from gateway.wire.messages import SubmitRequest

FOLDER = assets() / "sbatch_templates"

SPEC = SubmitRequest(
    token="t0k3n",  # noqa: S106  # no secret
    user="member",
    name="demo",
    account="nlp",
    partition="a100",
    qos="normal",
    nodes=2,
    gpus_per_node=2,
    cpus_per_task=8,
    time_limit_minutes=90,
    working_directory="/home/member/runs",
    output="/home/member/runs/%x-%j.out",
    script="",
    gpu_type="a100",
    signal="B:USR1@120",
)

_TYPED = {
    "script": "train.py",
    "arguments": "--epochs 3 --note 'two words'",
    "command": "nvidia-smi -L",
    "table": 'lr,note\n0.1,"two words"\n0.01,\n',
    "environment": "none",
}


def values_for(template: Template) -> dict[str, Value]:
    values, refused = clean_all(template.manifest, dict(_TYPED))
    assert refused == ()
    return values


def shipped(name: str) -> Manifest:
    """The manifest of a template that comes with the portal."""
    found = Catalogue.load((FOLDER,)).get(name)
    assert found is not None, name
    return found.manifest
