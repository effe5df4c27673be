"""The broker as a WSGI application: POST /v1/<verb>, JSON in and out, nothing else."""

import json
import logging
import socket
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from gateway.broker.acts import Act, ActsLog
from gateway.broker.failures import NotAllowed
from gateway.broker.peer import Peer, peer_of
from gateway.broker.policy_words import words
from gateway.broker.slots import Slots
from gateway.core.qos import Qos, changes
from gateway.errors import BadMessage, BrokerSilent, GatewayError
from gateway.wire.codec import dump, parse
from gateway.wire.messages import AcceptedJob, Failure, SetGroupLimits
from gateway.wire.policy import SetGroupPolicy, SetQos, SetShares
from gateway.wire.verbs import (
    CHECK_FOLDER,
    LIST_FOLDER,
    MAKE_FOLDER,
    MAKE_VOLUME,
    READ_FILE,
    SET_VOLUME_LIMIT,
    VERBS,
    VOLUMES,
    Verb,
)
from gateway.wire.volumes import MakeVolume, SetVolumeLimit

StartResponse = Callable[[str, list[tuple[str, str]]], object]
_PREFIX = "/v1/"
# These never speak to Slurm: they go on while slurmctld is frozen, and Slurm while a file
# system is.
_WITHOUT_SLURM = frozenset(
    {
        VOLUMES.name,
        MAKE_VOLUME.name,
        SET_VOLUME_LIMIT.name,
        READ_FILE.name,
        CHECK_FOLDER.name,
        MAKE_FOLDER.name,
        LIST_FOLDER.name,
    }
)
_MOST_LOGGED = 4000
_log = logging.getLogger("gateway.broker")


@dataclass(frozen=True, slots=True)
class Application:
    handlers: Mapping[str, Callable[[Any], object]]
    acts: ActsLog
    slots: Slots
    file_slots: Slots
    allowed_uids: frozenset[int]
    max_body_bytes: int

    def __call__(self, environ: dict[str, Any], start: StartResponse) -> Iterable[bytes]:
        try:
            status, body = 200, self._answer(environ)
        except GatewayError as error:
            status, body = error.status, _failure(error)
        except Exception:
            # Whatever it was, it may have been after the act: never say that nothing happened.
            _log.exception("request failed")
            status, body = 500, Failure("internal", "the broker failed")
        raw = json.dumps(dump(body)).encode()
        headers = [("Content-Type", "application/json"), ("Content-Length", str(len(raw)))]
        start(f"{status} {'OK' if status == 200 else 'Failure'}", headers)
        return [raw]

    def _answer(self, environ: dict[str, Any]) -> object:
        # First of all: a stranger learns nothing, not even which verbs there are.
        peer = self._allowed_peer(environ["gunicorn.socket"])
        if environ["REQUEST_METHOD"] != "POST":
            raise NotAllowed("post_only", 405)
        verb = VERBS.get(environ["PATH_INFO"].removeprefix(_PREFIX))
        if verb is None or not environ["PATH_INFO"].startswith(_PREFIX):
            raise NotAllowed("unknown_verb", 404)
        request = _parse(verb, self._body(environ))
        slots = self.file_slots if verb.name in _WITHOUT_SLURM else self.slots
        with slots.taken():
            if verb.acts:
                return self._act(verb, request, peer)
            return self.handlers[verb.name](request)

    def _allowed_peer(self, connection: socket.socket) -> Peer:
        peer = peer_of(connection)
        if peer.uid not in self.allowed_uids:
            _log.warning("refused a caller with uid %d, pid %d", peer.uid, peer.pid)
            raise NotAllowed("caller_refused", 403)
        return peer

    def _body(self, environ: dict[str, Any]) -> bytes:
        length = environ.get("CONTENT_LENGTH") or ""
        if environ.get("HTTP_TRANSFER_ENCODING") or not length.isdigit():
            raise NotAllowed("length_required", 411)
        if int(length) > self.max_body_bytes:
            raise NotAllowed("too_large_body", 413)
        raw: bytes = environ["wsgi.input"].read(int(length))
        return raw

    def _act(self, verb: Verb[object, object], request: object, peer: Peer) -> object:
        act = _describe(verb, request, peer)
        self.acts.begin(act)
        try:
            reply = self.handlers[verb.name](request)
        except GatewayError as error:
            self.acts.end(act, outcome=error.code)
            raise
        except Exception as error:
            self.acts.end(act, outcome="internal")
            raise BrokerSilent(f"failed while acting: {error!r}") from error
        job_id = reply.job_id if isinstance(reply, AcceptedJob) else None
        self.acts.end(act, outcome="ok", job_id=job_id)
        return reply


def _parse(verb: Verb[object, object], raw: bytes) -> object:
    try:
        content = json.loads(raw)
    except (ValueError, RecursionError) as error:
        raise BadMessage("not JSON") from error
    return parse(verb.request, content)


def _describe(verb: Verb[object, object], request: object, peer: Peer) -> Act:
    return Act(
        verb=verb.name,
        caller_uid=peer.uid,
        caller_pid=peer.pid,
        user=str(getattr(request, "user", "") or ""),
        token=getattr(request, "token", None),
        name=_name(request),
        job_id=getattr(request, "job_id", None),
        account=getattr(request, "account", None),
        limits=_limits(request),
    )


def _name(request: object) -> str | None:
    if isinstance(request, SetQos | SetGroupPolicy):
        return request.wanted.name
    return getattr(request, "name", None)


def _limits(asked: object) -> str | None:
    """What shall be otherwise afterwards, in sacctmgr's words; unchecked, so cut."""
    match asked:
        case SetGroupLimits():
            jobs, minutes = asked.grp_submit_jobs, asked.grp_gpu_run_minutes
            return f"GrpSubmitJobs={jobs} GPU-run-minutes={minutes}"
        case SetQos() | SetGroupPolicy():
            before = asked.expected or Qos(name=asked.wanted.name)
            return " ".join(words(changes(before, asked.wanted)))[:_MOST_LOGGED]
        case SetShares():
            return " ".join(f"{one.account}={one.shares}" for one in asked.wanted)[:_MOST_LOGGED]
        case MakeVolume():
            return f"{asked.area}/{asked.name} limit={asked.limit_bytes}"[:_MOST_LOGGED]
        case SetVolumeLimit():
            change = f"limit={asked.expected_bytes}->{asked.limit_bytes}"
            return f"{asked.area}/{asked.name} {change}"[:_MOST_LOGGED]
    return None


def _failure(error: GatewayError) -> Failure:
    number = getattr(error, "slurm_errno", None)
    return Failure(code=error.code, message=str(error)[:2000], slurm_errno=number)
