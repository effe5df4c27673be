"""From a code and its facts to a sentence that helps, in the reader's language."""

from collections.abc import Mapping
from dataclasses import dataclass

from gateway.core.ask import FieldProblem
from gateway.errors import GatewayError, Refused
from gateway.web.app_texts import APP_ERRORS
from gateway.web.contribution_texts import CONTRIBUTION_ERRORS
from gateway.web.dataset_texts import DATASET_ERRORS
from gateway.web.environment_texts import ENVIRONMENT_ERRORS
from gateway.web.error_texts import ERROR_TEXTS, PROBLEM_TEXTS
from gateway.web.money import money_text
from gateway.web.money_texts import MONEY_ERRORS
from gateway.web.planner_texts import PLANNER_ERRORS
from gateway.web.policy_texts import POLICY_ERRORS
from gateway.web.policy_words import resource_name
from gateway.web.recipe_texts import RECIPE_ERRORS
from gateway.web.show import minutes_words
from gateway.web.slurm_texts import SLURM_TEXTS
from gateway.web.snapshot_texts import SNAPSHOT_ERRORS
from gateway.web.texts import Lazy
from gateway.web.texts import lazy_gettext as _l
from gateway.web.volume_texts import VOLUME_ERRORS

TEXTS: Mapping[str, Lazy] = {
    **SLURM_TEXTS,
    **ERROR_TEXTS,
    **MONEY_ERRORS,
    **PLANNER_ERRORS,
    **CONTRIBUTION_ERRORS,
    **DATASET_ERRORS,
    **SNAPSHOT_ERRORS,
    **RECIPE_ERRORS,
    **POLICY_ERRORS,
    **APP_ERRORS,
    **ENVIRONMENT_ERRORS,
    **PROBLEM_TEXTS,
    **VOLUME_ERRORS,
}


@dataclass(frozen=True, slots=True)
class Shown:
    """A problem as the form shows it. `nearest` is offered as a button."""

    field: str
    code: str
    text: str
    nearest: str | None


_AMOUNTS = frozenset({"need", "free", "owed"})
# What is said of a job in the place of the plain sentence, since more would help there.
_OF_JOB = {"not_enough_credit": "job_too_dear"}
_WHOSE = {"partition": _l("partition"), "qos": _l("QoS"), "group": _l("group")}


class _Facts(dict[str, str | int]):
    """A sentence with a gap is better than a page that fails."""

    def __missing__(self, key: str) -> str:
        return "?"


def sentence(code: str, facts: Mapping[str, str | int] | None = None) -> str:
    """The text for a code. One that is not known, as a newer broker may send, is told as a
    plain refusal, never bare."""
    text = TEXTS.get(code, TEXTS["slurm_refused"])
    return str(text) % _Facts(facts or {})


def error_sentence(error: GatewayError) -> str:
    """What a person reads of an error: never the exception's own text."""
    return sentence(error.code, _in_money(error.facts) if isinstance(error, Refused) else None)


def _in_money(facts: Mapping[str, str | int]) -> dict[str, str | int]:
    """Amounts come as millionths."""
    return {
        name: money_text(value) if name in _AMOUNTS and isinstance(value, int) else value
        for name, value in facts.items()
    }


def shown(problem: FieldProblem) -> Shown:
    """A problem as the form shows it: units and names of limits in words."""
    facts, code = _in_money(problem.facts), _OF_JOB.get(problem.code, problem.code)
    if code == "job_too_dear":
        need, free = int(problem.facts.get("need", 0)), int(problem.facts.get("free", 0))
        facts["missing"] = money_text(need - free)
    if problem.code == "time_limit_above_cap":
        facts["max"] = minutes_words(int(facts["max"]))
        facts["by"] = whose(str(facts["by"]))
    if "resource" in problem.facts:
        facts["resource"] = resource_name(str(problem.facts["resource"]))
    if problem.code == "time_above_job_minutes":
        facts |= {name: minutes_words(int(problem.facts[name])) for name in ("asked", "max")}
    return Shown(problem.field, problem.code, sentence(code, facts), problem.nearest)


def whose(limit_of: str) -> str:
    """Whose limit it is: core.offer says partition, qos or group."""
    return str(_WHOSE.get(limit_of, limit_of))
