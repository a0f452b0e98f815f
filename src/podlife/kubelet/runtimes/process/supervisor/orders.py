"""Orders: what the launcher is asked to start, and the socket at which a supervisor takes the others. There a message
is a JSON object, with descriptors where it needs them."""

from __future__ import annotations

import _socket
import contextlib
import json
import os
import socket
from typing import Any

_MESSAGE_BYTES = 256 * 1024


class StartOrder:
    """Fields between NULs, read without building much; none can hold a NUL, since paths cannot."""

    __slots__ = (
        "folder",
        "lock",
        "log_max_bytes",
        "log_max_files",
        "log_path",
        "shutdown_grace_seconds",
        "stop_signal",
        "tty",
    )

    def __init__(self, data: bytes) -> None:
        folder, lock, log_path, max_bytes, max_files, tty, stop_signal, grace = os.fsdecode(data).split("\0")
        self.folder = folder
        self.lock = lock
        self.log_path = log_path
        self.log_max_bytes = int(max_bytes)
        self.log_max_files = int(max_files)
        self.tty = tty == "1"
        self.stop_signal = int(stop_signal)
        self.shutdown_grace_seconds = float(grace)


class Order:
    """What was asked, over a connection that may be gone by the time of the answer."""

    def __init__(self, connection: socket.socket, content: dict[str, Any], fds: list[int]) -> None:
        self._connection = connection
        self.fd = connection.fileno()
        self.content = content
        self.fds = fds

    @property
    def verb(self) -> str:
        return str(self.content.get("verb"))

    def answer(self, content: dict[str, Any]) -> None:
        # Refused where whoever asked has gone.
        with contextlib.suppress(OSError):
            self._connection.send(json.dumps(content).encode(), socket.MSG_NOSIGNAL)


class Orders:
    def __init__(self, path: str) -> None:
        # The plain socket of the kernel's numbers: Python's own touches a quarter of a megabyte before it listens.
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

    def receive(self, fd: int) -> Order | None:
        """The next order of a connection; None when it has ended, or sent what is none."""
        connection = self._connections[fd]
        fds: list[int] = []
        try:
            data, fds, _, _ = socket.recv_fds(connection, _MESSAGE_BYTES, 3)
            # Descriptors come inheritable (recv_fds takes no flags, though it seems to): not for other programs.
            for passed in fds:
                os.set_inheritable(passed, False)
            return Order(connection, json.loads(data), fds) if data else None
        except (OSError, ValueError):
            for passed in fds:
                os.close(passed)
            return None

    def close(self, fd: int) -> None:
        self._connections.pop(fd).close()
