"""A client that sends what no client should, byte for byte, and judges every answer.

What it holds the server to: an answer comes within the deadline, it is never a 500, every refusal is a Status
that says why, and every success is JSON (or what was asked for) that can be read.
"""

from __future__ import annotations

import socket
from dataclasses import dataclass
from http.client import HTTPException, HTTPResponse
from typing import Any

import msgspec

from tests.kit.server_process import ServerProcess

ANSWER_SECONDS = 90.0
# The errors of 500 and more that are right: a server that cannot know yet what it is asked for, and what upstream
# answers to an apply that does not fit the schema.
_EXPECTED = (
    "Timeout: Too large resource version",
    "failed to create typed patch object",
    "failed to convert new object",
    "failed to merge config",
)
# What only HTTP itself can refuse is answered in plain text, before anybody knows that this is Kubernetes.
_PLAIN_REFUSAL = b"400 Bad Request"


@dataclass(frozen=True)
class Answer:
    """What came back. `is_stream` says that a watch was cut off here, so `body` is only its beginning."""

    status: int
    content_type: str
    body: bytes
    is_stream: bool = False

    @property
    def json(self) -> Any:
        return msgspec.json.decode(self.body)


class Wire:
    """One connection at a time, opened again whenever the server has closed it. Counts what it sends."""

    def __init__(self, server: ServerProcess, token: str = "") -> None:
        self._server = server
        self._tls = server.tls()
        self._token = (token or server.token).encode()
        self._socket: socket.socket | None = None
        self.sent = 0

    def connect(self) -> socket.socket:
        plain = socket.create_connection(("127.0.0.1", self._server.port), timeout=ANSWER_SECONDS)
        return self._tls.wrap_socket(plain, server_hostname="127.0.0.1")

    def close(self) -> None:
        if self._socket is not None:
            self._socket.close()
            self._socket = None

    def request(self, method: str, target: str | bytes, body: bytes | None = None, **headers: str) -> Answer:
        """One whole request with the token; header names are given with underscores for dashes."""
        target = target.encode("ascii", "surrogateescape") if isinstance(target, str) else target
        head = [b"%b %b HTTP/1.1" % (method.encode(), target), b"Host: localhost"]
        head.append(b"Authorization: Bearer " + self._token)
        if body is not None:
            head.append(b"Content-Length: %d" % len(body))
            headers.setdefault("Content_Type", "application/json")
        head += [
            f"{name.replace('_', '-')}: {value}".encode("latin-1", "replace")
            for name, value in headers.items()
        ]
        return self.exchange(method, b"\r\n".join(head) + b"\r\n\r\n" + (body or b""))

    def first_event(self, target: str, accept: str) -> Any:
        """The first event of a watch, which must have one to show at once."""
        self.sent += 1
        head = f"GET {target} HTTP/1.1\r\nHost: x\r\nAccept: {accept}\r\nAuthorization: Bearer ".encode()
        with self.connect() as connection:
            connection.sendall(head + self._token + b"\r\n\r\n")
            response = HTTPResponse(connection)
            response.begin()
            assert response.status == 200, response.read()
            return msgspec.json.decode(response.readline())

    def exchange(self, method: str, data: bytes) -> Answer:
        """Send the bytes and read one answer; a connection that had been closed before is opened anew."""
        self.sent += 1
        is_reused = self._socket is not None
        try:
            return self._exchange(method, data)
        except (ConnectionError, HTTPException):
            self.close()
            if not is_reused:
                raise
        return self._exchange(method, data)

    def _exchange(self, method: str, data: bytes) -> Answer:
        if self._socket is None:
            self._socket = self.connect()
        self._socket.sendall(data)
        response = HTTPResponse(self._socket, method=method)
        response.begin()
        is_stream = bool(response.chunked)
        body = b"" if is_stream else response.read()
        if is_stream or response.will_close:
            self.close()
        return Answer(response.status, response.headers.get("Content-Type", ""), body, is_stream)


def judge(answer: Answer, method: str = "GET") -> Answer:
    """Holds an answer to what every answer must be, and gives it back."""
    if answer.status >= 500:
        assert answer.body, answer
        assert answer.json["message"].startswith(_EXPECTED), (answer.status, answer.body)
    if answer.is_stream or method == "HEAD":
        return answer
    if answer.status >= 400:
        # OpenAPI in a form that is not offered is refused without a word, as upstream does.
        if (answer.status, answer.body) in ((400, _PLAIN_REFUSAL), (406, b"")):
            return answer
        status = answer.json
        assert status["kind"] == "Status", status
        assert (status["status"], status["code"]) == ("Failure", answer.status)
        assert status["message"]
    elif answer.content_type.startswith("application/json") and answer.status != 304:
        assert answer.body, answer
        assert answer.json is not None
    return answer
