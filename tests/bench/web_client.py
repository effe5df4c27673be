"""A browser's requests without a browser: cookies, the CSRF field, forms. One connection kept."""

import html
import http.client
import re
import time
import urllib.parse
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Answer:
    status: int
    location: str
    text: str
    seconds: float


class WebClient:
    """Signed in as one person; keeps its cookie and its connection."""

    def __init__(self, address: str) -> None:
        parts = urllib.parse.urlsplit(address)
        self._connection = http.client.HTTPConnection(parts.hostname or "", parts.port, timeout=60)
        self._cookie = ""

    def sign_in(self, login: str, password: str) -> None:
        fields = hidden(self.get("/sign-in").text) | {"login": login, "password": password}
        answer = self.post("/sign-in", fields)
        if answer.status != 303:
            raise RuntimeError(f"{login} cannot sign in: {answer.status}")

    def get(self, path: str, headers: dict[str, str] | None = None) -> Answer:
        return self._ask("GET", path, None, headers or {})

    def post(self, path: str, fields: dict[str, str]) -> Answer:
        kind = {"Content-Type": "application/x-www-form-urlencoded"}
        return self._ask("POST", path, urllib.parse.urlencode(fields), kind)

    def _ask(self, method: str, path: str, body: str | None, headers: dict[str, str]) -> Answer:
        started = time.perf_counter()
        self._connection.request(method, path, body, {"Cookie": self._cookie, **headers})
        answer = self._connection.getresponse()
        text = answer.read().decode()
        seconds = time.perf_counter() - started
        if cookie := answer.getheader("Set-Cookie"):
            self._cookie = cookie.partition(";")[0]
        return Answer(answer.status, answer.getheader("Location") or "", text, seconds)


def hidden(page: str) -> dict[str, str]:
    """The hidden fields of a page's forms: the CSRF token and the form's key."""
    found: dict[str, str] = {}
    for tag in re.findall(r"<input[^>]*type=\"hidden\"[^>]*>", page):
        name = re.search(r'name="([^"]*)"', tag)
        value = re.search(r'value="([^"]*)"', tag)
        if name and value:
            found[name[1]] = html.unescape(value[1])
    return found
