"""Publish, change and retire environments: the site's by administrators, a group's by its leaders.

A name is one environment, for ever: a retired one keeps its name and stays readable, for old jobs
and recipes speak of it.
"""

import hashlib
import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from typing import TYPE_CHECKING

from gateway.core.access import Permission, Viewer
from gateway.core.env_facts import NO_FACTS, Facts
from gateway.core.environments import (
    Environment,
    EnvironmentKind,
    faults,
    of_table,
    to_table,
)
from gateway.errors import NotFound, Refused
from gateway.store import environments as store
from gateway.store import snapshot
from gateway.store.uow import Begin

if TYPE_CHECKING:
    from sqlalchemy.orm import Session

FORMAT = "sluice-environment"
FORMAT_VERSION = 1


@dataclass(frozen=True, slots=True)
class Entry:
    """An environment as the pages show it, with its facts. `row` is None for the file's."""

    environment: Environment
    row: store.PublishedRow | None
    may_change: bool = False

    @property
    def is_retired(self) -> bool:
        return self.row is not None and self.row.retired_at is not None


def may_publish(viewer: Viewer, group: str) -> bool:
    """For the site (an empty group), or for this group."""
    return viewer.may(Permission.MANAGE_ENVIRONMENTS) or (group != "" and group in viewer.leads)


def publishes_for(viewer: Viewer) -> tuple[str, ...]:
    """For whom this person may publish; an empty word is the site."""
    site = ("",) if viewer.may(Permission.MANAGE_ENVIRONMENTS) else ()
    return (*site, *(group for group in viewer.leads))


def entries(viewer: Viewer, session: "Session", file: Sequence[Environment]) -> list[Entry]:
    """What this person may see: the file's, the site's, their groups'; all for administrators."""
    return [
        replace(one, may_change=one.row is not None and may_publish(viewer, one.environment.group))
        for one in every_entry(session, file)
        if _sees(viewer, one.environment.group)
    ]


def every_entry(session: "Session", file: Sequence[Environment]) -> list[Entry]:
    """All there are, retired ones too. A name that the file has is the file's."""
    facts = store.facts(session)
    named = {one.name for one in file}
    every: list[tuple[Environment, store.PublishedRow | None]] = [
        (one, None) for one in file if one.kind is not EnvironmentKind.NONE
    ]
    rows = (row for row in store.rows(session) if row.environment.name not in named)
    every += [(row.environment, row) for row in rows]
    return [
        Entry(replace(one, facts=one.facts.over(facts.get(one.name, NO_FACTS))), row)
        for one, row in every
    ]


def entry(name: str, viewer: Viewer, *, begin: Begin, file: Sequence[Environment]) -> Entry:
    """One of `entries`, retired ones too. NotFound."""
    with begin() as session:
        found = [one for one in entries(viewer, session, file) if one.environment.name == name]
    if not found:
        raise NotFound(f"no environment {name}")
    return found[0]


def publish(
    table: Mapping[str, object],
    *,
    group: str,
    viewer: Viewer,
    begin: Begin,
    file: Sequence[Environment],
    now: datetime,
) -> Environment:
    """A new one. Refused `environment_value` with the key and what is wrong with it,
    `environment_name_taken`, `environment_group`, `environment_not_yours`."""
    environment = replace(read(table), group=group, published=True)
    if not may_publish(viewer, group):
        raise Refused("environment_not_yours", field="group")
    if any(one.name == environment.name for one in file):
        raise Refused("environment_name_taken", field="name", name=environment.name)
    with begin() as session:
        known = {*viewer.groups, *(one.policy.name for one in snapshot.accounts(session))}
        if group and group not in known:
            raise Refused("environment_group", field="group")
        if not store.add(session, environment, person_id=viewer.person_id, now=now):
            raise Refused("environment_name_taken", field="name", name=environment.name)
        _keep_facts(session, environment, viewer, now)
    return environment


def change(
    table: Mapping[str, object], *, viewer: Viewer, begin: Begin, now: datetime
) -> Environment:
    """Another text under the same name and for the same group; a retired one is offered again.
    NotFound, Refused `environment_value`."""
    environment = read(table)
    with begin() as session:
        row = _own(session, environment.name, viewer)
        environment = replace(environment, group=row.environment.group, published=True)
        store.change(session, environment, person_id=viewer.person_id, now=now)
        _keep_facts(session, environment, viewer, now)
    return environment


def retire(name: str, *, viewer: Viewer, begin: Begin, now: datetime) -> None:
    """It is not offered any more. NotFound; harmless when it was retired before."""
    with begin() as session:
        _own(session, name, viewer)
        store.retire(session, name, person_id=viewer.person_id, now=now)


def adopt(
    name: str,
    gpu_type: str,
    *,
    viewer: Viewer,
    begin: Begin,
    file: Sequence[Environment],
    now: datetime,
) -> Facts:
    """What the newest check has found becomes what is known: its versions, the builds' archs and
    programs; the oldest driver stays. Where the file says something, that stays as well."""
    known = entry(name, viewer, begin=begin, file=file).environment
    if not may_publish(viewer, known.group):
        raise Refused("environment_not_yours")
    with begin() as session:
        check = store.newest_checks(session).get((name, gpu_type))
        if check is None or not check.found:
            raise Refused("environment_never_checked")
        found = check.facts
        archs = {**known.facts.archs, **found.archs}
        kept = {build: for_ for build, for_ in archs.items() if build in found.versions}
        facts = Facts(found.versions, kept, known.facts.min_driver, found.kit)
        store.set_facts(session, name, facts, person_id=viewer.person_id, now=now)
    return facts


def read(table: Mapping[str, object]) -> Environment:
    """The environment of a text from anywhere. Refused `environment_value`."""
    wrong = faults(table)
    if not wrong and table["kind"] == EnvironmentKind.NONE:
        wrong = ["kind: nothing to set up"]
    if wrong:
        key = wrong[0].split(" ")[0].rstrip(":")
        raise Refused("environment_value", field=key, text="; ".join(wrong)[:1000])
    return of_table(table)


def export(environment: Environment) -> dict[str, object]:
    """One file's content, as `imported` takes it."""
    return {
        "format": FORMAT,
        "version": FORMAT_VERSION,
        "environment": to_table(environment),
    }


def imported(document: object) -> dict[str, object]:
    """The table in an exported file, which is still to be read. Refused `environment_file`."""
    keys = {"format", "version", "environment"}
    if not isinstance(document, dict) or set(document) != keys:
        raise Refused("environment_file")
    if document["format"] != FORMAT or document["version"] != FORMAT_VERSION:
        raise Refused("environment_file")
    table = document["environment"]
    if not isinstance(table, dict):
        raise Refused("environment_file")
    return table


def fingerprint(environment: Environment) -> str:
    """Of what is set up; titles and facts do not count."""
    table = to_table(environment)
    for key in ("title", "facts"):
        table.pop(key, None)
    return hashlib.sha256(json.dumps(table, sort_keys=True).encode()).hexdigest()[:16]


def _own(session: "Session", name: str, viewer: Viewer) -> store.PublishedRow:
    found = store.rows(session, name)
    if not found or not _sees(viewer, found[0].environment.group):
        raise NotFound(f"no published environment {name}")
    if not may_publish(viewer, found[0].environment.group):
        raise Refused("environment_not_yours")
    return found[0]


def _sees(viewer: Viewer, group: str) -> bool:
    everything = viewer.may(Permission.MANAGE_ENVIRONMENTS)
    return everything or group == "" or group in viewer.groups or group in viewer.leads


def _keep_facts(
    session: "Session", environment: Environment, viewer: Viewer, now: datetime
) -> None:
    store.set_facts(
        session, environment.name, environment.facts, person_id=viewer.person_id, now=now
    )
