"""The callers' end of the socket: the port over HTTP on a Unix socket, standard library only."""

import contextlib
import http.client
import json
import socket
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from typing import TypeVar

from gateway.errors import (
    BadMessage,
    BrokerRefused,
    BrokerSilent,
    BrokerUnreachable,
    GatewayError,
)
from gateway.wire import messages as m
from gateway.wire import policy as p
from gateway.wire import verbs as v
from gateway.wire import volumes as vol
from gateway.wire.codec import dump, parse
from gateway.wire.folders import MakeFolder
from gateway.wire.guard import inside_transaction

Req = TypeVar("Req")
Rep = TypeVar("Rep")
_MAX_REPLY_BYTES = 512 * 2**20


@dataclass(frozen=True, slots=True)
class SocketBroker:
    """Keeps the promises of `gateway.brokerclient.port.Broker`; one connection a call."""

    socket_path: Path
    timeout_seconds: float

    def submit(self, request: m.SubmitRequest) -> m.AcceptedJob:
        return self._call(v.SUBMIT, request)

    def find(self, token: str, *, user: str, since: datetime) -> m.AcceptedJob | None:
        return self._call(v.FIND, m.FindRequest(token, user, since)).job

    def cancel(self, job_id: int, *, user: str) -> None:
        self._call(v.CANCEL, m.JobRequest(job_id, user))

    def cancel_array(self, array_job_id: int, *, user: str) -> None:
        self._call(v.CANCEL_ARRAY, m.JobRequest(array_job_id, user))

    def hold(self, job_id: int, *, user: str) -> None:
        self._call(v.HOLD, m.JobRequest(job_id, user))

    def release(self, job_id: int, *, user: str) -> None:
        self._call(v.RELEASE, m.JobRequest(job_id, user))

    def requeue(self, job_id: int, *, user: str) -> None:
        self._call(v.REQUEUE, m.JobRequest(job_id, user))

    def set_time_limit(self, job_id: int, *, user: str, minutes: int) -> None:
        self._call(v.SET_TIME_LIMIT, m.TimeLimitRequest(job_id, user, minutes))

    def extend(self, job_id: int, *, user: str, minutes: int) -> None:
        self._call(v.EXTEND, m.TimeLimitRequest(job_id, user, minutes))

    def queue(self) -> m.Queue:
        return self._call(v.QUEUE, m.Nothing())

    def nodes(self) -> tuple[m.Node, ...]:
        return self._call(v.NODES, m.Nothing()).nodes

    def partitions(self) -> tuple[m.Partition, ...]:
        return self._call(v.PARTITIONS, m.Nothing()).partitions

    def associations(self) -> tuple[m.Association, ...]:
        return self._call(v.ASSOCIATIONS, m.Nothing()).associations

    def qos(self) -> tuple[m.Qos, ...]:
        return self._call(v.QOS, m.Nothing()).qos

    def estimate(self, request: m.SubmitRequest) -> m.Estimate:
        return self._call(v.ESTIMATE, request)

    def accounting(self, *, since: datetime, until: datetime) -> m.Accounting:
        return self._call(v.ACCOUNTING, m.AccountingRequest(since, until))

    def read_file(self, path: str, *, user: str, offset: int, max_bytes: int) -> m.FileChunk:
        return self._call(v.READ_FILE, m.ReadFileRequest(user, path, offset, max_bytes))

    def check_folder(self, path: str, *, user: str) -> m.FolderState:
        return self._call(v.CHECK_FOLDER, m.CheckFolderRequest(user, path))

    def list_folder(self, path: str, *, user: str, most: int = m.MOST_ENTRIES) -> m.FolderList:
        return self._call(v.LIST_FOLDER, m.ListFolderRequest(user, path, most))

    def make_folder(self, path: str, files: Mapping[str, str], *, user: str) -> str:
        return self._call(v.MAKE_FOLDER, MakeFolder(user, path, dict(files))).path

    def group_limits(self) -> tuple[m.GroupLimits, ...]:
        return self._call(v.GROUP_LIMITS, m.Nothing()).limits

    def set_group_limits(self, request: m.SetGroupLimits) -> m.GroupLimits:
        return self._call(v.SET_GROUP_LIMITS, request)

    def hold_admin(self, job_id: int, *, user: str) -> None:
        self._call(v.HOLD_ADMIN, m.JobRequest(job_id, user))

    def release_admin(self, job_id: int, *, user: str) -> None:
        self._call(v.RELEASE_ADMIN, m.JobRequest(job_id, user))

    def accounting_facts(self) -> m.AccountingFacts:
        return self._call(v.ACCOUNTING_FACTS, m.Nothing())

    def set_qos(self, request: p.SetQos) -> m.Qos:
        return self._call(v.SET_QOS, request)

    def accounts(self) -> tuple[p.Account, ...]:
        return self._call(v.ACCOUNTS, m.Nothing()).accounts

    def set_group_policy(self, request: p.SetGroupPolicy) -> p.Account:
        return self._call(v.SET_GROUP_POLICY, request)

    def set_shares(self, request: p.SetShares) -> tuple[p.Shares, ...]:
        return self._call(v.SET_SHARES, request).shares

    def fair_shares(self) -> tuple[p.FairShare, ...]:
        return self._call(v.FAIR_SHARES, m.Nothing()).entries

    def priorities(self) -> p.Priorities:
        return self._call(v.PRIORITIES, m.Nothing())

    def reservations(self) -> tuple[p.Reservation, ...]:
        return self._call(v.RESERVATIONS, m.Nothing()).reservations

    def add_member(self, account: str, user: str) -> p.Membership:
        return self._call(v.ADD_MEMBER, p.MemberRequest(account, user))

    def remove_member(self, account: str, user: str) -> p.Membership:
        return self._call(v.REMOVE_MEMBER, p.MemberRequest(account, user))

    def set_member(self, request: p.SetMember) -> p.Membership:
        return self._call(v.SET_MEMBER, request)

    def volumes(self) -> vol.Volumes:
        return self._call(v.VOLUMES, m.Nothing())

    def make_volume(self, request: vol.MakeVolume) -> vol.Volume:
        return self._call(v.MAKE_VOLUME, request)

    def set_volume_limit(self, request: vol.SetVolumeLimit) -> vol.Volume:
        return self._call(v.SET_VOLUME_LIMIT, request)

    def _call(self, verb: v.Verb[Req, Rep], request: Req) -> Rep:
        if inside_transaction.get():
            raise RuntimeError(f"{verb.name}: a call to the broker inside a transaction")
        status, raw = self._exchange(verb.name, json.dumps(dump(request)).encode())
        try:
            content = json.loads(raw)
            if status == 200:
                return parse(verb.reply, content)
            failure = parse(m.Failure, content)
        except (ValueError, BadMessage) as error:
            raise BrokerSilent(f"{verb.name}: an answer that cannot be read") from error
        raise _error(status, failure)

    def _exchange(self, name: str, body: bytes) -> tuple[int, bytes]:
        connection = _UnixConnection(self.socket_path, self.timeout_seconds)
        try:
            connection.connect()
        except OSError as error:
            raise BrokerUnreachable(f"{self.socket_path}: {error}") from error
        try:
            with contextlib.suppress(BrokenPipeError, ConnectionResetError):
                # A refusal may come before all was sent: it is there to be read all the same.
                connection.request("POST", f"/v1/{name}", body, _HEADERS)
            response = connection.getresponse()
            return response.status, response.read(_MAX_REPLY_BYTES)
        except (OSError, http.client.HTTPException) as error:
            # From the first byte sent on, the broker may have acted.
            raise BrokerSilent(f"{name}: {error!r}") from error
        finally:
            connection.close()


def _error(status: int, failure: m.Failure) -> GatewayError:
    if failure.code == BrokerUnreachable.code:
        return BrokerUnreachable(failure.message)
    if failure.code == BrokerSilent.code or status >= 500:
        return BrokerSilent(f"{failure.code}: {failure.message}")
    return BrokerRefused(failure.message, code=failure.code)


class _UnixConnection(http.client.HTTPConnection):
    def __init__(self, path: Path, timeout_seconds: float) -> None:
        super().__init__("localhost", timeout=timeout_seconds)
        self._path = path

    def connect(self) -> None:
        self.sock = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        self.sock.settimeout(self.timeout)
        try:
            self.sock.connect(str(self._path))
        except OSError:
            self.sock.close()
            raise


_HEADERS = {"Content-Type": "application/json", "Connection": "close"}
