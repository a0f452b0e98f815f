"""Clients attached to a container's output.

A client reads from pipes that the supervisor writes to. While one has not taken what it was sent, the output is not
read, so that the container waits for it, as with other runtimes; a client that takes nothing for `_STALL_SECONDS` is
dropped, so that it cannot stop the container for ever.
"""

from __future__ import annotations

import contextlib
import os
import select
import time
from collections.abc import Mapping

from .requests import Request

_STALL_SECONDS = 10.0


class _Client:
    __slots__ = ("fds", "pending", "request", "since")

    def __init__(self, request: Request, fds: dict[str, int]) -> None:
        self.request = request
        self.fds = fds
        # What a pipe had no room for, by stream; not empty since `since`.
        self.pending: dict[str, bytes] = {}
        self.since = 0.0


class Attachments:
    """`sources` are the container's streams: they are polled while no client has anything pending."""

    def __init__(self, poll: select.poll) -> None:
        self._poll = poll
        self._clients: dict[int, _Client] = {}
        self._is_paused = False
        self.sources: Mapping[int, str] = {}

    def __contains__(self, fd: int) -> bool:
        return any(fd in client.fds.values() for client in self._clients.values())

    def add(self, request: Request, fds: dict[str, int]) -> None:
        self.remove(request.fd)
        client = self._clients[request.fd] = _Client(request, fds)
        for fd in fds.values():
            os.set_blocking(fd, False)
        for stream in set(fds) - set(self.sources.values()):
            self._end(client, stream)

    def write(self, stream: str, chunk: bytes) -> None:
        for client in list(self._clients.values()):
            if stream in client.fds:
                self._send(client, stream, client.pending.pop(stream, b"") + chunk)
        self._throttle()

    def flush(self, fd: int) -> None:
        """A pipe has room again, or its reader has gone."""
        for client in list(self._clients.values()):
            for stream in [stream for stream, target in client.fds.items() if target == fd]:
                self._poll.unregister(fd)
                self._send(client, stream, client.pending.pop(stream, b""))
        self._throttle()

    def end(self, stream: str) -> None:
        """The stream has ended; what is pending is still delivered."""
        for client in self._clients.values():
            if stream in client.fds and stream not in client.pending:
                self._end(client, stream)

    def remove(self, key: int) -> None:
        """The client has gone."""
        if (client := self._clients.pop(key, None)) is not None:
            for stream in list(client.fds):
                self._end(client, stream)
            self._throttle()

    def drop_stalled(self) -> None:
        now = time.monotonic()
        for key, client in list(self._clients.items()):
            if client.pending and now - client.since >= _STALL_SECONDS:
                client.request.reply({"error": f"the output was not read for {_STALL_SECONDS:g} s"})
                self.remove(key)

    def poll_timeout_milliseconds(self) -> int | None:
        since = [client.since for client in self._clients.values() if client.pending]
        if not since:
            return None
        return max(0, int((min(since) + _STALL_SECONDS - time.monotonic()) * 1000)) + 1

    def close(self) -> None:
        """Deliver what is pending, within the time a client has anyway."""
        while (timeout := self.poll_timeout_milliseconds()) is not None and timeout > 1:
            waiting = select.poll()
            for client in self._clients.values():
                for stream in client.pending:
                    waiting.register(client.fds[stream], select.POLLOUT)
            for fd, _ in waiting.poll(timeout):
                self.flush(fd)
        for key in list(self._clients):
            self.remove(key)

    def _send(self, client: _Client, stream: str, data: bytes) -> None:
        fd = client.fds[stream]
        try:
            written = os.write(fd, data) if data else 0
        except BlockingIOError:
            written = 0
        except OSError:
            self._end(client, stream)
            return
        if rest := data[written:]:
            if written or not client.pending:
                client.since = time.monotonic()
            client.pending[stream] = rest
            self._poll.register(fd, select.POLLOUT)
        elif stream not in self.sources.values():
            self._end(client, stream)

    def _end(self, client: _Client, stream: str) -> None:
        client.pending.pop(stream, None)
        fd = client.fds.pop(stream)
        with contextlib.suppress(KeyError):
            self._poll.unregister(fd)
        os.close(fd)

    def _throttle(self) -> None:
        is_behind = any(client.pending for client in self._clients.values())
        if is_behind == self._is_paused:
            return
        self._is_paused = is_behind
        for fd in self.sources:
            if is_behind:
                self._poll.unregister(fd)
            else:
                self._poll.register(fd, select.POLLIN)
