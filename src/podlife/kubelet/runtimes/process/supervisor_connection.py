"""Requests to a supervisor over its control socket.

The socket is opened through its directory's descriptor: its path may be longer than a socket address may be.
"""

from __future__ import annotations

import asyncio
import os
import socket
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import msgspec

_MESSAGE_BYTES = 64 * 1024


class SupervisorConnection:
    def __init__(self, link: socket.socket) -> None:
        self._link = link

    def send(self, order: dict[str, Any], fds: tuple[int, ...] = ()) -> None:
        socket.send_fds(self._link, [msgspec.json.encode(order)], fds)

    async def receive(self) -> dict[str, Any] | None:
        """The next answer; None when the supervisor has ended."""
        try:
            data = await asyncio.get_running_loop().sock_recv(self._link, _MESSAGE_BYTES)
        except ConnectionError:
            return None
        return msgspec.json.decode(data, type=dict[str, Any]) if data else None


@asynccontextmanager
async def connected(folder: Path) -> AsyncIterator[SupervisorConnection]:
    """Raises OSError while nobody listens: not yet, or no longer."""
    link = socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET)
    with link:
        link.setblocking(False)
        at = os.open(folder, os.O_PATH | os.O_DIRECTORY | os.O_CLOEXEC)
        try:
            link.connect(f"/proc/self/fd/{at}/control")
        finally:
            os.close(at)
        yield SupervisorConnection(link)
