"""A small client of the portal's JSON API, on the standard library alone."""

import json
import urllib.error
import urllib.request
from typing import Any


class ApiError(Exception):
    """The portal answered with an error; the message is the portal's own sentence."""

    def __init__(self, status: int, body: dict[str, Any]) -> None:
        super().__init__(f"{status}: {body.get('message', body)}")
        self.status = status
        self.body = body


class Api:
    """`token` is a bearer token; without one only signing in works."""

    def __init__(self, address: str, token: str | None = None) -> None:
        self.address = address
        self._token = token

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
        request = urllib.request.Request(  # noqa: S310  # the address is our own portal's
            f"{self.address}/api/v1{path}",
            data=None if body is None else json.dumps(body).encode(),
            headers={"Content-Type": "application/json", **headers},
            method=method,
        )
        if self._token:
            request.add_header("Authorization", f"Bearer {self._token}")
        try:
            with urllib.request.urlopen(request, timeout=60) as answer:  # noqa: S310
                return dict(json.load(answer))
        except urllib.error.HTTPError as error:
            raise ApiError(error.code, _body(error)) from error


def _body(error: urllib.error.HTTPError) -> dict[str, Any]:
    text = error.read().decode(errors="replace")
    try:
        return dict(json.loads(text))
    except ValueError:
        return {"message": text[:300]}
