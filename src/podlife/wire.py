"""HTTP messages that know no web framework.

The embedded API server answers a `Request` with a `Response`; the client's transports carry the same two
over a socket or hand them straight to a handler in the same process. Both sides are plain data, so that
the whole system also runs with no socket at all.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Awaitable, Callable, Mapping, Sequence
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass, field
from typing import Protocol
from urllib.parse import parse_qsl

from podlife.errors import ApiError

Body = bytes | Sequence[bytes] | AsyncIterator[bytes]
"""Whole, in pieces that are joined on the wire (a list), or a stream (a watch, a log)."""


# Limit of one WebSocket message, which is held in memory. kubectl sends 32 KB, other clients all of their input.
WEBSOCKET_MESSAGE_BYTES = 4 << 20
# No parameter is repeated more than a few times.
_MOST_PARAMETERS = 1_000

Headers = Mapping[str, str] | Sequence[tuple[str, str]]
"""Response headers as pairs, because names may repeat."""


class Query:
    """The query of a request: keys may repeat; the first value counts, as upstream."""

    __slots__ = ("_parsed", "raw")

    def __init__(self, raw: str = "") -> None:
        self.raw = raw
        # Read on demand: an unauthenticated client is refused without it.
        self._parsed: dict[str, list[str]] | None = None if raw else {}

    @property
    def _values(self) -> dict[str, list[str]]:
        if self._parsed is None:
            self._parsed = {}
            for key, value in _pairs(self.raw):
                self._parsed.setdefault(key, []).append(value)
        return self._parsed

    def get(self, key: str, default: str = "") -> str:
        """The first value; raises ApiError (400) when there are too many to look at, as all the others do."""
        values = self._values.get(key)
        return values[0] if values else default

    def all(self, key: str) -> list[str]:
        return self._values.get(key, [])

    def __contains__(self, key: object) -> bool:
        return key in self._values


def _pairs(raw: str) -> list[tuple[str, str]]:
    try:
        return parse_qsl(raw, keep_blank_values=True, max_num_fields=_MOST_PARAMETERS)
    except ValueError:
        message = f"the query has more than {_MOST_PARAMETERS} parameters"
        raise ApiError(message, code=400, reason="BadRequest") from None


@dataclass(frozen=True, slots=True)
class Peer:
    """Who the TLS handshake proved the client to be: the subject of its certificate."""

    common_name: str
    organizations: tuple[str, ...] = ()


@dataclass(slots=True)
class Request:
    """One HTTP request. `path` is percent-decoded; header names are matched without regard to case."""

    method: str
    path: str
    query: Query = field(default_factory=Query)
    headers: Mapping[str, str] = field(default_factory=dict)
    body: bytes = b""
    peer: Peer | None = None
    # The address that the connection came from; empty within one process.
    source_ip: str = ""
    # For waits without a deadline: inside this context the current task is cancelled if the client disconnects.
    while_connected: Callable[[], AbstractContextManager[None]] = nullcontext


class Channel(Protocol):
    """An upgraded connection, seen from either side: messages of a WebSocket, or plain bytes, both ways."""

    protocol: str

    async def receive(self) -> bytes | None:
        """The next message, or None when the other side has closed."""
        ...

    async def send(self, message: bytes | str) -> None: ...

    async def close(self) -> None: ...


@dataclass(slots=True)
class Upgrade:
    """Instead of a body: switch to a WebSocket that speaks one of `protocols`, and relay over it.

    Without `protocols` the response has the headers of the upgrade, and plain bytes are relayed after it.
    """

    protocols: tuple[str, ...] | None
    relay: Callable[[Channel], Awaitable[None]]


@dataclass(slots=True)
class Response:
    """One HTTP answer. A streamed body is closed with `aclose()` when the client has gone."""

    status: int = 200
    body: Body = b""
    content_type: str = "application/json"
    headers: Headers = ()
    upgrade: Upgrade | None = None


Handler = Callable[[Request], Awaitable[Response]]
