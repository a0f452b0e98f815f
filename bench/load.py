"""The load generator: one for all servers, so that only the server differs.

HTTP/1.1 over TLS with keep-alive, as little of it as it takes: on two cores every microsecond that the
generator spends is one the server does not have.
"""

from __future__ import annotations

import asyncio
import socket
import ssl
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from pathlib import Path
from time import perf_counter
from typing import cast


@dataclass(frozen=True, slots=True)
class Answer:
    status: int
    size: int


@dataclass(frozen=True, slots=True)
class Rate:
    """What a run of requests came to. `failed` counts answers that were not 2xx."""

    count: int
    seconds: float
    failed: int
    p50_ms: float
    p99_ms: float

    @property
    def per_second(self) -> float:
        return self.count / self.seconds


class _Connection(asyncio.Protocol):
    """One request at a time; the answer's body is measured, and kept only where somebody wants to read it."""

    def __init__(self) -> None:
        self._transport: asyncio.Transport | None = None
        self._waiter: asyncio.Future[Answer] | None = None
        self._head = b""
        self._status = 0
        self._size = 0
        self._left: int | None = None
        self._tail = b""
        self.kept: list[bytes] | None = None

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = cast(asyncio.Transport, transport)

    async def send(self, request: bytes) -> Answer:
        assert self._transport is not None
        self._waiter = asyncio.get_running_loop().create_future()
        self._head, self._status, self._size, self._tail = b"", 0, 0, b""
        self._transport.write(request)
        return await self._waiter

    def data_received(self, data: bytes) -> None:
        if not self._status:
            self._head += data
            end = self._head.find(b"\r\n\r\n")
            if end < 0:
                return
            head, data = self._head[:end].lower(), self._head[end + 4 :]
            self._status = int(head[9:12])
            _, found, rest = head.partition(b"content-length:")
            self._left = int(rest.partition(b"\r")[0]) if found else None
        self._size += len(data)
        if self.kept is not None:
            self.kept.append(data)
        if self._left is None:
            self._tail = (self._tail + data)[-5:]
            if self._tail == b"0\r\n\r\n":
                self._finish()
        elif self._size >= self._left:
            self._finish()

    def _finish(self) -> None:
        if self._waiter is not None and not self._waiter.done():
            self._waiter.set_result(Answer(self._status, self._size))

    def connection_lost(self, exc: Exception | None) -> None:
        if self._waiter is not None and not self._waiter.done():
            self._waiter.set_exception(exc or ConnectionResetError("the server closed the connection"))

    def close(self) -> None:
        if self._transport is not None:
            self._transport.abort()


class _Watcher(asyncio.Protocol):
    """Counts the events of one watch by the ends of their lines."""

    def __init__(self, request: bytes, on_events: Callable[[int], None]) -> None:
        self._request = request
        self._on_events = on_events
        self._last = b""
        self.started = asyncio.get_running_loop().create_future()
        self.transport: asyncio.Transport | None = None

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self.transport = cast(asyncio.Transport, transport)
        self.transport.write(self._request)

    def data_received(self, data: bytes) -> None:
        if not self.started.done():
            self.started.set_result(data[9:12])
        count = data.count(b"}\n") + (self._last == b"}" and data[:1] == b"\n")
        self._last = data[-1:]
        if count:
            self._on_events(count)


class Load:
    """Requests against one server."""

    def __init__(self, host: str, port: int, ca_file: Path, token: str, *, connections: int = 64) -> None:
        self._address = (host, port)
        self._tls = ssl.create_default_context(cafile=str(ca_file))
        self._tls.check_hostname = False
        self._token = token
        self._pool: list[_Connection] = []
        self._width = connections
        self._watchers: list[_Watcher] = []

    async def __aenter__(self) -> Load:
        loop = asyncio.get_running_loop()
        for _ in range(self._width):
            _, connection = await loop.create_connection(_Connection, *self._address, ssl=self._tls)
            self._pool.append(connection)
        return self

    async def __aexit__(self, *_: object) -> None:
        for connection in self._pool:
            connection.close()
        await self.end_watches()

    def request(self, method: str, path: str, body: bytes = b"", kind: str = "application/json") -> bytes:
        head = (
            f"{method} {path} HTTP/1.1\r\nHost: {self._address[0]}\r\nAuthorization: Bearer {self._token}\r\n"
            f"Accept: application/json\r\nUser-Agent: podlife-bench\r\n"
        )
        if body:
            head += f"Content-Type: {kind}\r\nContent-Length: {len(body)}\r\n"
        return head.encode() + b"\r\n" + body

    async def one(self, request: bytes) -> Answer:
        return await self._pool[0].send(request)

    async def read(self, request: bytes) -> Answer:
        """A large answer, read as fast as TLS allows: by a blocking socket into one buffer, in a thread."""
        return await asyncio.to_thread(self._read, request)

    def _read(self, request: bytes) -> Answer:
        buffer = memoryview(bytearray(1 << 20))
        with self._tls.wrap_socket(socket.create_connection(self._address, timeout=120)) as connection:
            connection.sendall(request)
            head = bytes(buffer[: connection.recv_into(buffer)])
            while b"\r\n\r\n" not in head:
                head += bytes(buffer[: connection.recv_into(buffer)])
            head, _, body = head.partition(b"\r\n\r\n")
            _, found, rest = head.lower().partition(b"content-length:")
            left = int(rest.partition(b"\r")[0]) if found else None
            size, tail = len(body), body[-5:]
            while size < left if left is not None else tail != b"0\r\n\r\n":
                count = connection.recv_into(buffer)
                if not count:
                    raise ConnectionResetError("the server closed the connection")
                size += count
                tail = (tail + bytes(buffer[max(0, count - 5) : count]))[-5:]
        return Answer(int(head[9:12]), size)

    async def text(self, request: bytes) -> bytes:
        """The body of a small answer (with its chunk headers, where it has some)."""
        connection = self._pool[0]
        kept: list[bytes] = []
        connection.kept = kept
        await connection.send(request)
        connection.kept = None
        return b"".join(kept)

    async def run(self, requests: Iterable[bytes]) -> Rate:
        """Send all of them, as many at a time as there are connections."""
        remaining = iter(requests)
        times: list[float] = []
        failed = 0

        async def work(connection: _Connection) -> None:
            nonlocal failed
            for request in remaining:
                began = perf_counter()
                answer = await connection.send(request)
                times.append(perf_counter() - began)
                failed += answer.status // 100 != 2

        began = perf_counter()
        async with asyncio.TaskGroup() as group:
            for connection in self._pool:
                group.create_task(work(connection))
        seconds = perf_counter() - began
        times.sort()
        return Rate(
            len(times), seconds, failed, times[len(times) // 2] * 1e3, times[int(len(times) * 0.99)] * 1e3
        )

    async def end_watches(self) -> None:
        for watcher in self._watchers:
            if watcher.transport is not None:
                watcher.transport.abort()
        self._watchers.clear()
        await asyncio.sleep(0)

    async def watch(self, path: str, count: int, on_events: Callable[[int], None]) -> None:
        """Open `count` watches and return when each has begun to answer."""
        loop = asyncio.get_running_loop()
        request = self.request("GET", path)
        for _ in range(count):
            _, watcher = await loop.create_connection(
                lambda: _Watcher(request, on_events), *self._address, ssl=self._tls
            )
            self._watchers.append(watcher)
        await asyncio.gather(*(asyncio.wait_for(watcher.started, 30) for watcher in self._watchers))
