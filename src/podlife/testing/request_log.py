"""Requests that reached the API server, with time and client, except reads.

A client is identified by its User-Agent.
"""

from __future__ import annotations

import asyncio
import json
from collections import deque
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from podlife.wire import Handler, Request, Response

# The newest entries are kept.
_MOST_ENTRIES = 100_000
# Heartbeats and events, which an idle cluster writes too.
_BACKGROUND = ("/leases", "/events")


@dataclass(frozen=True, slots=True)
class LoggedRequest:
    """One request. `at` is the event loop's time, `who` the component (`n1`, `replicaset-controller`; `test` for the
    client of the test)."""

    at: float
    who: str
    method: str
    path: str
    status: int
    body: bytes = b""

    @property
    def is_success(self) -> bool:
        return self.status < 300

    @property
    def uid(self) -> str:
        """The UID precondition of a deletion."""
        found = (self.json().get("preconditions") or {}).get("uid")
        return found if isinstance(found, str) else ""

    def json(self) -> dict[str, Any]:
        try:
            body = json.loads(self.body or b"{}")
        except ValueError:
            return {}
        return body if isinstance(body, dict) else {}

    def __str__(self) -> str:
        return f"{self.at:10.3f}  {self.who:32} {self.method:6} {self.status} {self.path}"


class RequestLog:
    """`changed_at` is the time of the last change other than heartbeats and events."""

    def __init__(self) -> None:
        self.entries: deque[LoggedRequest] = deque(maxlen=_MOST_ENTRIES)
        self.changed_at = 0.0

    def over(self, handler: Handler) -> Handler:
        """The handler with logging of its requests."""

        async def noted(request: Request) -> Response:
            response = await handler(request)
            if request.method not in ("GET", "HEAD"):
                self._note(request, response.status)
            return response

        return noted

    def _note(self, request: Request, status: int) -> None:
        at, who = asyncio.get_running_loop().time(), request.headers.get("User-Agent", "")
        entry = LoggedRequest(at, who, request.method, request.path, status, request.body)
        self.entries.append(entry)
        if entry.is_success and not any(part in request.path for part in _BACKGROUND):
            self.changed_at = at

    def find(self, *, who: str = "", method: str = "", path: str = "") -> list[LoggedRequest]:
        """Requests of a component, with a method, and with this text in their path."""
        return [
            entry
            for entry in self.entries
            if who in ("", entry.who) and method in ("", entry.method) and path in entry.path
        ]

    def __iter__(self) -> Iterator[LoggedRequest]:
        return iter(self.entries)
