"""JSON in and out of the API: strict in what it takes, plain in what it gives."""

import dataclasses
from collections.abc import Iterable, Mapping
from datetime import UTC, datetime
from typing import Any

from flask import Request

from gateway.core.ask import Ask
from gateway.errors import BadMessage
from gateway.services.templates import Template
from gateway.store.queries.job import SubmissionDetail
from gateway.web.messages import Shown, sentence
from gateway.web.show import submission_text

_ASK_TEXTS = tuple(one.name for one in dataclasses.fields(Ask) if one.name != "values")
_OPTIONAL = {"environment": "none", "gpu_type": ""}
# Values beside a template's own fields.
_BESIDES = {"gpus_per_node", "environment_path"}


class BadFields(BadMessage):
    """The body is an object, but not one that was described: `fields` says where and why."""

    def __init__(self, fields: Mapping[str, str]) -> None:
        super().__init__(f"{sorted(fields.items())}", code="bad_request")
        self.fields = fields


def body(request: Request) -> dict[str, Any]:
    """The JSON object of a request; raises BadMessage for anything else."""
    try:
        found = request.get_json(silent=True)
    except RecursionError:  # thousands of brackets
        found = None
    if not isinstance(found, dict):
        raise BadMessage("the body is no JSON object", code="bad_request")
    return found


def text(found: Mapping[str, Any], name: str) -> str:
    value = found.get(name)
    wrong = "not_a_text" if not isinstance(value, str) else _wrong(value)
    if wrong or not isinstance(value, str):
        raise BadFields({name: wrong})
    return value


def typed(value: object, name: str) -> str:
    """A value of a form as a person would have typed it; BadFields names the one that is none."""
    if (wrong := _wrong(value)) or not isinstance(value, str | int):
        raise BadFields({name: wrong or "not_a_value"})
    return _typed(value)


def ask(found: Mapping[str, Any]) -> Ask:
    """The form's fields under their own names, and `values` for those of the template.

    Numbers may come as numbers. A field that is not known is refused, since it would be
    left out in silence otherwise.
    """
    values = found.get("values", {})
    if not isinstance(values, dict):
        raise BadFields({"values": "not_an_object"})
    given = {name: found.get(name, _OPTIONAL.get(name, "")) for name in _ASK_TEXTS}
    named = given | {f"values.{name}": value for name, value in values.items()}
    faults = {name: _wrong(value) for name, value in named.items()}
    faults |= dict.fromkeys(found.keys() - {*_ASK_TEXTS, "values"}, "unknown_field")
    if any(faults.values()):
        raise BadFields({name: code for name, code in faults.items() if code})
    texts = {name: _typed(value) for name, value in given.items()}
    return Ask(values={name: _typed(value) for name, value in values.items()}, **texts)


def require_known(ask: Ask, template: Template | None) -> None:
    """The same for `values`. A form may hold what belongs to the template chosen before."""
    known = {one.name for one in template.manifest.fields} if template else ask.values.keys()
    unknown = ask.values.keys() - known - _BESIDES
    if unknown:
        raise BadFields({f"values.{name}": "unknown_field" for name in sorted(unknown)})


def dump(value: Any) -> Any:
    """Dataclasses, tuples and times as JSON has them; times are UTC."""
    if dataclasses.is_dataclass(value) and not isinstance(value, type):
        names = (one.name for one in dataclasses.fields(value))
        return {name: dump(getattr(value, name)) for name in names}
    if isinstance(value, datetime):
        return value.astimezone(UTC).strftime("%Y-%m-%dT%H:%M:%SZ")
    if isinstance(value, Mapping):
        return {str(key): dump(entry) for key, entry in value.items()}
    if isinstance(value, frozenset):
        return sorted(dump(entry) for entry in value)
    if isinstance(value, tuple | list):
        return [dump(entry) for entry in value]
    return value


def problems(found: Iterable[Shown]) -> dict[str, Any]:
    fields = {
        one.field: {"code": one.code, "message": one.text, "nearest": one.nearest} for one in found
    }
    return {"code": "invalid_ask", "message": sentence("invalid_ask"), "fields": fields}


def submission(found: SubmissionDetail) -> dict[str, Any]:
    row = found.row
    refused = row.error_code or "slurm_refused"
    return {
        "id": row.id,
        "state": row.state,
        "message": sentence(refused) if row.state == "refused" else submission_text(row.stage),
        "code": row.error_code,
        "job_id": row.job_id,
        "template": row.template,
        "name": row.name,
        "created_at": dump(row.created_at),
    }


def templates(found: Iterable[Template]) -> list[dict[str, Any]]:
    return [
        {
            "name": one.name,
            "title": dump(one.manifest.title),
            "resources": dump(one.manifest.resources),
            "fields": dump(one.manifest.fields),
        }
        for one in found
    ]


def _wrong(value: object) -> str:
    """What is wrong with a field's value, as a code; empty when nothing is."""
    if isinstance(value, int):
        return ""
    if not isinstance(value, str):
        return "not_a_value"
    # JSON can spell half a character (\\ud800), which no file and no database can hold.
    halves = any("\ud800" <= character <= "\udfff" for character in value)
    return "half_character" if halves else ""


def _typed(value: str | int) -> str:
    """As a person would have typed it."""
    if isinstance(value, bool):
        return "true" if value else ""
    return str(value)
