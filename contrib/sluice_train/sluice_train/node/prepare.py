"""`prepare`: before the program starts, chooses the checkpoint that all nodes begin with.

Prints its path, or nothing where the run begins anew. What is refused is said in a sentence.
"""

from __future__ import annotations

import json
import os
import shutil
import sys
import time
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING

from sluice_train import checkpoint
from sluice_train.files import RunFolder, lines
from sluice_train.node import code, slurm
from sluice_train.node.halting import Failed, Halt
from sluice_train.node.places import Place, place_of
from sluice_train.node.upload import flush, newest_there, restore, step_of

if TYPE_CHECKING:
    from collections.abc import Mapping

    from sluice_train.checkpoint import Checkpoint

DONE = 10
DONE_ALREADY = "this run is done already"  # the portal knows it by these words
BAD_DATASET, PLACE_SILENT, FOLDER_TAKEN, BAD_SETTING = 65, 69, 73, 78
TRIES, RETRY_SECONDS = 3, 3.0
OWN_TRIES = 5
FRESH_SECONDS = 60
LAST_UPLOAD_SECONDS = 3600


class Refused(Exception):
    """The job must not start; the sentence is for its log, `code` what it ends with."""

    def __init__(self, code: int, sentence: str) -> None:
        super().__init__(sentence)
        self.code = code


def main(argv: list[str]) -> int:  # noqa: ARG001
    """0 and the checkpoint's path or nothing; 10 where the run is done; else what was refused."""
    given = os.environ
    try:
        run = RunFolder.of_environment(given)
        if run.done.exists():
            _upload_the_rest(run, given)
            _tell_done(run)
            return DONE
        chosen = _prepared(run, given)
    except Refused as refused:
        say(str(refused))
        return refused.code
    except ValueError as error:
        say(str(error))
        return BAD_SETTING
    except OSError as error:
        say(f"the run's folder cannot be used: {error}")
        return FOLDER_TAKEN
    print(chosen.path if chosen else "")
    return 0


def say(sentence: str) -> None:
    """Into the job's log."""
    print(f"sluice: {sentence}", file=sys.stderr)


def _prepared(run: RunFolder, given: Mapping[str, str]) -> Checkpoint | None:
    check_datasets(given.get("SLUICE_DATASETS", ""))
    own(run)
    # `stalled` too: else the stall of an earlier start would decide over this one's end.
    for stale in (run.stop, run.stopped, run.stalled, run.uploading, run.stacks / "wanted"):
        stale.unlink(missing_ok=True)
    run.checkpoints.mkdir(parents=True, exist_ok=True)
    for moved in checkpoint.move_incomplete(run.checkpoints):
        say(f"an incomplete checkpoint was moved aside: {moved}")
    chosen = _newest(run, given)
    _tell(run, chosen, given)
    return chosen


def check_datasets(folders: str) -> None:
    """Raise Refused for one that is not there, not readable, or writable: data must not change."""
    for folder in filter(None, folders.split(":")):
        if not Path(folder).is_dir():
            raise Refused(BAD_DATASET, f"the dataset folder {folder} is not there")
        if not _may(folder, os.R_OK | os.X_OK):
            raise Refused(BAD_DATASET, f"the dataset folder {folder} cannot be read")
        if _may(folder, os.W_OK):
            sentence = f"the dataset folder {folder} is writable for this job: it must not be"
            raise Refused(BAD_DATASET, sentence)


def _may(folder: str, mode: int) -> bool:
    return os.access(folder, mode, effective_ids=os.access in os.supports_effective_ids)


def own(run: RunFolder) -> None:
    """Take the run folder for this job, and a checkpoint folder of the person's own choice.
    Refused while another live job has one of them.

    Slurm's silence about that job ends nothing: then its telemetry, written every few seconds,
    tells whether it is alive. Two jobs in one folder would spoil each other's checkpoints, but a
    controller that is restarting must not fail every job that starts meanwhile.
    """
    _take(run.owner, run, f"the run folder {run.path}")
    if run.path not in run.checkpoints.parents:
        # Another run may have been given the same one.
        _take(run.checkpoints / run.owner.name, run, f"the checkpoint folder {run.checkpoints}")


def _take(owner: Path, run: RunFolder, folder: str) -> None:
    """Write into `owner` which job has the folder, and where that job's run folder is."""
    mine = f"{run.job}\n{run.path}"
    owner.parent.mkdir(parents=True, exist_ok=True)
    for attempt in range(OWN_TRIES):
        try:
            with owner.open("x") as stream:
                stream.write(mine)
            return
        except FileExistsError:
            holder = _holder(owner)
        job = holder.partition("\n")[0]
        if job == run.job:
            return
        if job:
            _check_gone(holder, folder)
        elif attempt + 2 < OWN_TRIES:
            time.sleep(1)  # another has made the file and not yet written its name
            continue
        _move_away(owner, holder, run.job)
    raise Refused(FOLDER_TAKEN, f"another job takes {folder} at the same time")


def _move_away(owner: Path, holder: str, job: str) -> None:
    """Of two jobs that take the folder at once only one moves the old name away."""
    aside = owner.with_name(f"{owner.name}.{job}")
    with suppress(FileNotFoundError):
        owner.rename(aside)
        if aside.read_text().strip() == holder:
            aside.unlink()
        else:
            aside.rename(owner)  # the other was quicker: it was its name already


def _holder(owner: Path) -> str:
    with suppress(OSError, UnicodeDecodeError):
        return owner.read_text().strip()
    return ""


def _check_gone(holder: str, folder: str) -> None:
    job, _, path = holder.partition("\n")
    state = slurm.queue_state(job)
    for _ in range(TRIES - 1):
        if state not in (None, "COMPLETING"):
            break
        _pause()
        state = slurm.queue_state(job)
    if state:
        sentence = f"job {job} has {folder} and is {state.lower()}"
        raise Refused(FOLDER_TAKEN, f"{sentence}: choose another, or cancel that job")
    if state is None and _is_written(Path(path)):
        raise Refused(FOLDER_TAKEN, f"job {job} has {folder} and still writes into it")
    if state is None:
        say(f"Slurm does not tell whether job {job} is gone; its run folder is silent: taken")


def _is_written(run: Path) -> bool:
    written = [path.stat().st_mtime for path in run.glob("telemetry/*.jsonl")]
    return time.time() - max(written, default=0) < FRESH_SECONDS


def _newest(run: RunFolder, given: Mapping[str, str]) -> Checkpoint | None:
    """The newest complete checkpoint, fetched from the second place where that one is newer."""
    local = checkpoint.newest(run.checkpoints)
    place = _place(run, given)
    if place is None:
        return local
    try:
        name = _asked(place)
        if name is None or (local and step_of(name) <= local.step):
            return local
        say(f"{name} is fetched from {given['SLUICE_UPLOAD']}")
        started = time.monotonic()
        restored = restore(place, name, run.checkpoints)
    except (Failed, OSError) as error:
        return _without_place(run, local, str(error))
    run.event(
        "restored",
        step=restored.step,
        place=given["SLUICE_UPLOAD"],
        seconds=round(time.monotonic() - started, 3),
        bytes=restored.bytes,
    )
    return restored


def _place(run: RunFolder, given: Mapping[str, str]) -> Place | None:
    text = given.get("SLUICE_UPLOAD", "")
    if not text:
        return None
    return place_of(text, given.get("SLUICE_RUN") or run.path.name, mbps=0, halt=Halt())


def _asked(place: Place) -> str | None:
    for _ in range(TRIES - 1):
        with suppress(Failed):
            return newest_there(place)
        _pause()
    return newest_there(place)


def _pause() -> None:
    time.sleep(float(os.environ.get("SLUICE_RETRY_SECONDS") or RETRY_SECONDS))


def _without_place(run: RunFolder, local: Checkpoint | None, error: str) -> Checkpoint | None:
    """Go on without the second place, unless that would begin again what is saved there."""
    if local is None and any(line.get("kind") == "uploaded" for line in lines(run.events)):
        sentence = "the checkpoints of this run are in the second place, which does not give them"
        raise Refused(PLACE_SILENT, f"{sentence}: {error}")
    say(f"nothing could be fetched from the second place: {error}")
    return local


def _tell(run: RunFolder, chosen: Checkpoint | None, given: Mapping[str, str]) -> None:
    run.event(
        "start",
        nodes=given.get("SLURM_JOB_NODELIST", ""),
        resume_step=chosen.step if chosen else None,
        resume_path=str(chosen.path) if chosen else None,
    )
    known = code.noted()
    if known is not None:
        run.event("code", **known)
    if chosen is None:
        say("the run begins anew: it has no complete checkpoint")
        return
    say(f"the run goes on from step {chosen.step}: {chosen.path}")
    free = shutil.disk_usage(run.checkpoints).free
    if free < chosen.bytes:
        free_gb, needed_gb = free / 1e9, chosen.bytes / 1e9
        say(f"the disk has {free_gb:.1f} GB free, and a checkpoint takes {needed_gb:.1f} GB")


def _upload_the_rest(run: RunFolder, given: Mapping[str, str]) -> None:
    """A run that is done is started again for this alone."""
    ends_at = slurm.job_now(run.job).ends_at if given.get("SLUICE_UPLOAD") else None
    left = LAST_UPLOAD_SECONDS if ends_at is None else ends_at - time.time() - FRESH_SECONDS
    flush(run, given, seconds_left=left)


def _tell_done(run: RunFolder) -> None:
    """Else the portal would take a job that did nothing for one whose script tells nothing."""
    with suppress(OSError):
        run.event("end", code=0, action="exit", reason=DONE_ALREADY, step=_done_step(run))


def _done_step(run: RunFolder) -> int | None:
    with suppress(OSError, ValueError):
        told = json.loads(run.done.read_text(encoding="utf-8"))
        step = told.get("step") if isinstance(told, dict) else None
        return step if isinstance(step, int) else None
    return None
