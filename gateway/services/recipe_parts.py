"""What a submission is made of, so that a recipe can say later whether any of it has moved."""

import hashlib
import json
import re
from pathlib import PurePosixPath
from typing import TYPE_CHECKING

from jinja2 import DictLoader

from gateway.core.recipes import EnvironmentUsed
from gateway.services.environments import NONE, Environment, EnvironmentKind
from gateway.services.template_files import MANIFEST, Template
from gateway.store import recipes, snapshots

if TYPE_CHECKING:
    from sqlalchemy.orm import Session

_INCLUDE = re.compile(r'{%-?\s*include\s+"([^"]+)"')
_DEFINED_BY = ("path", "conda_env", "modules", "module_path", "image", "binds")


def note(
    session: "Session", submission_id: int, template: Template, environment: Environment | None
) -> None:
    """In the transaction that keeps the submission."""
    recipes.note_parts(
        session,
        submission_id,
        template=template_fingerprint(template),
        environment=environment_used(session, environment or NONE),
    )


def template_fingerprint(template: Template) -> str:
    """SHA-256 of its manifest, its script with all that it includes, and the fields that come from
    shared sets. Empty while its folder cannot be read."""
    try:
        manifest = (template.folder / MANIFEST).read_bytes()
    except OSError:
        return ""
    digest = hashlib.sha256(manifest)
    for text in _sources(template):
        digest.update(b"\0" + text.encode())
    for one in template.manifest.fields:
        digest.update(f"\0{one.name} {one.kind} {one.default}".encode())
    return digest.hexdigest()


def _sources(template: Template) -> list[str]:
    environment = getattr(template.program, "environment", None)
    loader = environment.loader if environment is not None else None
    shared = loader.mapping if isinstance(loader, DictLoader) else {}
    found, waiting = {"": template.source}, _INCLUDE.findall(template.source)
    while waiting:
        name = waiting.pop()
        if name not in found and name in shared:
            found[name] = shared[name]
            waiting += _INCLUDE.findall(shared[name])
    return [found[name] for name in sorted(found)]


def environment_used(session: "Session", environment: Environment) -> EnvironmentUsed:
    """What its name means now. One of a person's own by its path keeps the path to itself."""
    is_snapshot = environment.kind is EnvironmentKind.SNAPSHOT
    base = snapshots.bases(session).get(environment.name)
    return EnvironmentUsed(
        name=environment.name,
        kind=environment.kind.value,
        definition=_definition(environment),
        lock=base.fingerprint if base else "",
        snapshot=PurePosixPath(environment.path).stem if is_snapshot else "",
        facts=dict(sorted(environment.facts.versions.items())),
    )


def _definition(environment: Environment) -> str:
    if environment.kind is EnvironmentKind.NONE:
        return ""
    values = [environment.kind.value, *(getattr(environment, name) for name in _DEFINED_BY)]
    return hashlib.sha256(json.dumps(values).encode()).hexdigest()
