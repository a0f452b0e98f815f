"""Start requests to the launcher, and the control socket on which a supervisor takes all other requests: JSON objects
with file descriptors attached."""

from __future__ import annotations

import _socket
import contextlib
import json
import os
import socket
from collections.abc import Sequence
from typing import Any

_MESSAGE_BYTES = 256 * 1024


class StartRequest:
    """NUL-separated fields, which parse with few allocations; no field can contain a NUL, since paths cannot."""

    __slots__ = (
        "folder",
        "lock",
        "log_max_bytes",
        "log_max_files",
        "log_path",
        "shutdown_grace_seconds",
        "stdin",
        "stop_signal",
        "tty",
    )

    def __init__(self, data: bytes) -> None:
        folder, lock, log_path, max_bytes, max_files, *rest = os.fsdecode(data).split("\0")
        tty, stdin, stop_signal, grace = rest
        self.folder = folder
        self.lock = lock
        self.log_path = log_path
        self.log_max_bytes = int(max_bytes)
        self.log_max_files = int(max_files)
        self.tty = tty == "1"
        self.stdin = stdin == "1"
        self.stop_signal = int(stop_signal)
        self.shutdown_grace_seconds = float(grace)


class Request:
    """A request on the control socket; the connection may be closed before the reply."""

    def __init__(self, connection: socket.socket, content: dict[str, Any], fds: list[int]) -> None:
        self._connection = connection
        self.fd = connection.fileno()
        self.content = content
        self.fds = fds

    @property
    def verb(self) -> str:
        return str(self.content.get("verb"))

    def reply(self, content: dict[str, Any], fds: Sequence[int] = ()) -> None:
        # The client may be gone.
        with contextlib.suppress(OSError):
            socket.send_fds(self._connection, [json.dumps(content).encode()], fds, socket.MSG_NOSIGNAL)


class ControlSocket:
    def __init__(self, path: str) -> None:
        # The low-level socket type: the `socket` class touches a quarter of a megabyte of memory before it listens.
        self._listener = _socket.socket(_socket.AF_UNIX, _socket.SOCK_SEQPACKET)
        self._listener.bind(path)
        self._listener.listen(64)
        self._connections: dict[int, socket.socket] = {}

    def fileno(self) -> int:
        return self._listener.fileno()

    def __contains__(self, fd: int) -> bool:
        return fd in self._connections

    def accept(self) -> int:
        fd, _ = self._listener._accept()  # type: ignore[attr-defined] # what socket.accept itself calls
        connection = socket.socket(fileno=fd)
        connection.setblocking(False)
        self._connections[connection.fileno()] = connection
        return connection.fileno()

    def receive(self, fd: int) -> Request | None:
        """The next request of a connection; None if it was closed or the message is invalid."""
        connection = self._connections[fd]
        fds: list[int] = []
        try:
            data, fds, _, _ = socket.recv_fds(connection, _MESSAGE_BYTES, 3)
            # recv_fds ignores its flags, so descriptors arrive inheritable; other programs must not get them.
            for passed in fds:
                os.set_inheritable(passed, False)
            return Request(connection, json.loads(data), fds) if data else None
        except (OSError, ValueError):
            for passed in fds:
                os.close(passed)
            return None

    def close(self, fd: int) -> None:
        self._connections.pop(fd).close()
