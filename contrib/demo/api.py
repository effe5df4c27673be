"""A small client of the portal's JSON API, on the standard library alone."""

import http.client
import json
import urllib.parse
from typing import Any


class ApiError(Exception):
    """The portal answered with an error; the message is the portal's own sentence."""

    def __init__(self, status: int, body: dict[str, Any]) -> None:
        super().__init__(f"{status}: {body.get('message', body)}")
        self.status = status
        self.body = body


class Api:
    """`token` is a bearer token; without one only signing in works. Keeps its connection, so
    that each thread needs one of its own."""

    def __init__(self, address: str, token: str | None = None) -> None:
        self.address = address
        self._token = token
        where = urllib.parse.urlsplit(address)
        self._connection = http.client.HTTPConnection(where.hostname or "", where.port, timeout=60)

    def __del__(self) -> None:
        self._connection.close()

    def sign_in(self, login: str, password: str) -> "Api":
        answer = self.post("/sessions", {"login": login, "password": password})
        return Api(self.address, answer["token"])

    def get(self, path: str) -> dict[str, Any]:
        return self._call("GET", path, None, {})

    def post(self, path: str, body: dict[str, Any], *, key: str | None = None) -> dict[str, Any]:
        return self._call("POST", path, body, {"Idempotency-Key": key} if key else {})

    def _call(
        self, method: str, path: str, body: dict[str, Any] | None, headers: dict[str, str]
    ) -> dict[str, Any]:
        sent = {"Content-Type": "application/json", **headers}
        if self._token:
            sent["Authorization"] = f"Bearer {self._token}"
        text = None if body is None else json.dumps(body)
        try:
            self._connection.request(method, f"/api/v1{path}", text, sent)
            answer = self._connection.getresponse()
            raw = answer.read()
        except (OSError, http.client.HTTPException):
            self._connection.close()  # the next call opens another
            raise
        if answer.status >= 400:
            raise ApiError(answer.status, _body(raw))
        return dict(json.loads(raw)) if raw else {}


def _body(raw: bytes) -> dict[str, Any]:
    text = raw.decode(errors="replace")
    try:
        return dict(json.loads(text))
    except ValueError:
        return {"message": text[:300]}
