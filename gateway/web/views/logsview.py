"""What TensorBoard and MLflow left beside a run, for its page."""

from dataclasses import dataclass
from datetime import datetime
from typing import Any

from flask import url_for

from gateway.core.access import Permission
from gateway.core.logs_found import is_typed
from gateway.errors import BrokerRefused, BrokerSilent, BrokerUnreachable
from gateway.services import job_logs
from gateway.services.job_logs import MlflowRun
from gateway.web.access import viewer
from gateway.web.deps import deps
from gateway.web.texts import gettext
from gateway.web.views.resultcharts import number

TENSORBOARD = "tensorboard"  # the application's template


@dataclass(frozen=True, slots=True)
class Folder:
    """`url` opens it in TensorBoard; empty: the site has no such application, or the name cannot
    be written into a form."""

    path: str
    url: str


@dataclass(frozen=True, slots=True)
class MlflowView:
    experiment: str
    id: str
    modified_at: datetime
    metrics: list[tuple[str, str, str]]  # name, value, step


@dataclass(frozen=True, slots=True)
class LogsView:
    tensorboard: list[Folder]
    mlflow: list[str]
    databases: list[str]
    runs: list[MlflowView]
    cut: bool
    trouble: str

    @property
    def nothing(self) -> bool:
        found = (self.tensorboard, self.mlflow, self.databases)
        return not self.trouble and not any(found)


def build(job_id: int) -> LogsView:
    """Refused not_owner_of_files for another's, NotFound for what the viewer does not see."""
    have = deps()
    try:
        found = job_logs.look(job_id, viewer=viewer(), begin=have.read, broker=have.broker)
    except (BrokerUnreachable, BrokerSilent, BrokerRefused):
        return LogsView([], [], [], [], False, gettext("Files cannot be read now. Try again."))
    opens = viewer().may(Permission.SUBMIT_JOB) and have.catalogue.get(TENSORBOARD) is not None
    return LogsView(
        tensorboard=[Folder(path, _url(path) if opens else "") for path in found.tensorboard],
        mlflow=list(found.mlflow),
        databases=list(found.databases),
        runs=[_run(one) for one in found.runs],
        cut=found.cut,
        trouble="",
    )


def _url(path: str) -> str:
    if not is_typed(path):
        return ""
    words: dict[str, Any] = {"app": TENSORBOARD, "v-folder": path}
    return url_for("apps.index", **words)


def _run(one: MlflowRun) -> MlflowView:
    metrics = [
        (metric.name, number(metric.value), "" if metric.step is None else str(metric.step))
        for metric in one.metrics
    ]
    return MlflowView(one.experiment, one.id, one.modified_at, metrics)
