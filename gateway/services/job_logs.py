"""What TensorBoard and MLflow left beside a job's run, looked for as its owner and within bounds.

A look lists at most MOST_LISTS folders and reads the ends of at most MOST_READS small files; a
file system that is slow ends it.
"""

from collections.abc import Iterator
from dataclasses import dataclass, field
from datetime import datetime

from gateway.brokerclient.port import Broker
from gateway.core import logs_found, runfolder
from gateway.core.access import Viewer, job_rights
from gateway.errors import BrokerRefused, NotFound, Refused
from gateway.store import training as followed
from gateway.store.training import Place
from gateway.store.uow import Begin
from gateway.wire.messages import EntryKind, FolderEntry

MOST_LISTS, MOST_READS = 60, 64
MOST_FOLDERS, MOST_RUNS = 8, 5
_RUN_DEPTH, _WORK_DEPTH = 3, 2
_END_BYTES = 4096


@dataclass(frozen=True, slots=True)
class Metric:
    """The last value that MLflow's file of a metric tells; `at` in seconds since 1970."""

    name: str
    value: float
    step: int | None
    at: float


@dataclass(frozen=True, slots=True)
class MlflowRun:
    """`experiment` and `id` are MLflow's; `modified_at` is its folder's."""

    experiment: str
    id: str
    modified_at: datetime
    metrics: tuple[Metric, ...]


@dataclass(frozen=True, slots=True)
class Logs:
    """Folders with absolute paths. `cut`: there was more to look at than a look may."""

    tensorboard: tuple[str, ...]
    mlflow: tuple[str, ...]
    databases: tuple[str, ...]
    runs: tuple[MlflowRun, ...]
    cut: bool


def look(job_id: int, *, viewer: Viewer, begin: Begin, broker: Broker) -> Logs:
    """NotFound for a job that is not there or not the viewer's to see; Refused not_owner_of_files
    for one of another's; BrokerUnreachable and BrokerSilent."""
    with begin() as session:
        place = followed.place(session, job_id)
    if place is None or not job_rights(viewer, user=place.user, group=place.group).see:
        raise NotFound(f"job {job_id}")
    if not job_rights(viewer, user=place.user, group=place.group).read_files:
        raise Refused("not_owner_of_files")
    return _Look(broker, place.user).at(place)


@dataclass(slots=True)
class _Look:
    broker: Broker
    user: str
    lists: int = 0
    reads: int = 0
    cut: bool = False
    tensorboard: list[str] = field(default_factory=list)
    mlflow: list[str] = field(default_factory=list)
    databases: list[str] = field(default_factory=list)

    def at(self, place: Place) -> Logs:
        run = _run_folder(place)
        if run is not None:
            self._walk(run, _RUN_DEPTH, likely_only=False)
        self._walk(place.working_directory.rstrip("/") or "/", _WORK_DEPTH, likely_only=True)
        runs = sorted(self._runs(), key=lambda one: one[0].modified_at, reverse=True)
        self.cut = self.cut or len(runs) > MOST_RUNS
        told = [self._told(*one) for one in runs[:MOST_RUNS]]
        return Logs(
            tensorboard=tuple(self.tensorboard[:MOST_FOLDERS]),
            mlflow=tuple(self.mlflow[:MOST_FOLDERS]),
            databases=tuple(self.databases[:MOST_FOLDERS]),
            runs=tuple(told),
            cut=self.cut or len(self.tensorboard) > MOST_FOLDERS,
        )

    def _walk(self, top: str, depth: int, *, likely_only: bool) -> None:
        """The topmost folders first; below one of TensorBoard's nothing more is looked for."""
        level = [top]
        for _ in range(depth + 1):
            deeper: list[str] = []
            for folder in level:
                entries = self._list(folder)
                if logs_found.has_events(one.name for one in _files(entries)):
                    self.tensorboard.append(folder)
                    continue
                if any(one.name == logs_found.MLFLOW_DATABASE for one in _files(entries)):
                    self.databases.append(f"{folder}/{logs_found.MLFLOW_DATABASE}")
                for one in _folders(entries):
                    if one.name == logs_found.MLFLOW_FOLDER:
                        self.mlflow.append(f"{folder}/{one.name}")
                    elif _is_looked_into(one.name, likely_only=likely_only and folder == top):
                        deeper.append(f"{folder}/{one.name}")
            level = deeper

    def _runs(self) -> Iterator[tuple[FolderEntry, str, str]]:
        """Run, experiment and path of each."""
        for folder in self.mlflow[:MOST_FOLDERS]:
            for experiment in _folders(self._list(folder)):
                if logs_found.is_experiment(experiment.name):
                    path = f"{folder}/{experiment.name}"
                    for run in _folders(self._list(path)):
                        if logs_found.is_run(run.name):
                            yield run, experiment.name, f"{path}/{run.name}"

    def _told(self, run: FolderEntry, experiment: str, path: str) -> MlflowRun:
        files = [one for one in _files(self._list(f"{path}/metrics")) if one.size]
        metrics = []
        for one in files:
            if not logs_found.is_metric(one.name):
                continue
            found = logs_found.last_line(self._end(f"{path}/metrics/{one.name}"))
            if found is not None:
                at, value, step = found
                metrics.append(Metric(one.name, value, step, at))
        return MlflowRun(experiment, run.name, run.modified_at, tuple(metrics))

    def _list(self, folder: str) -> tuple[FolderEntry, ...]:
        """Nothing of what cannot be listed, or is one too many."""
        if self.lists >= MOST_LISTS:
            self.cut = True
            return ()
        self.lists += 1
        try:
            found = self.broker.list_folder(folder, user=self.user)
        except BrokerRefused as error:
            if error.code == "file_timeout":
                self.lists = MOST_LISTS
            return ()
        self.cut = self.cut or found.cut
        return found.entries

    def _end(self, path: str) -> str:
        if self.reads >= MOST_READS:
            self.cut = True
            return ""
        self.reads += 1
        try:
            chunk = self.broker.read_file(
                path, user=self.user, offset=-_END_BYTES, max_bytes=_END_BYTES
            )
        except BrokerRefused as error:
            if error.code == "file_timeout":
                self.reads = MOST_READS
            return ""
        # The first line may be cut where the piece begins.
        return chunk.text if chunk.offset == 0 else chunk.text.partition("\n")[2]


def _run_folder(place: Place) -> str | None:
    key = runfolder.job_key(place.slurm_id, place.array_job_id, place.array_task)
    run = runfolder.run_of(place.run, job_name=place.name, key=key, array_task=place.array_task)
    return None if run is None else runfolder.run_folder(place.working_directory, run)


def _is_looked_into(name: str, *, likely_only: bool) -> bool:
    if not logs_found.is_plain(name) or name in logs_found.NEVER or name == runfolder.FOLDER:
        return False
    return not likely_only or logs_found.LIKELY.fullmatch(name) is not None


def _files(entries: tuple[FolderEntry, ...]) -> list[FolderEntry]:
    return [one for one in entries if one.kind is EntryKind.FILE and one.exact]


def _folders(entries: tuple[FolderEntry, ...]) -> list[FolderEntry]:
    return [one for one in entries if one.kind is EntryKind.FOLDER and one.exact]
