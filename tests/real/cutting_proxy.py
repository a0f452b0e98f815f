"""A TCP relay that can be told to cut every connection, as a network does."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Iterator


class CuttingProxy:
    """Relays bytes to a port on loopback; TLS passes through untouched."""

    def __init__(self, port: int) -> None:
        self._target = port
        self._server: asyncio.Server | None = None
        self._writers: set[asyncio.StreamWriter] = set()
        self._tasks: asyncio.TaskGroup | None = None
        self._is_closed = False
        self.connections = 0

    @property
    def port(self) -> int:
        assert self._server is not None
        port: int = self._server.sockets[0].getsockname()[1]
        return port

    async def __aenter__(self) -> CuttingProxy:
        self._server = await asyncio.start_server(self._relay, "127.0.0.1", 0)
        return self

    async def __aexit__(self, *_: object) -> None:
        assert self._server is not None
        self._server.close()
        self.cut()
        await self._server.wait_closed()

    def cut(self) -> None:
        """End every connection without a word."""
        for writer in list(self._writers):
            writer.transport.abort()

    @contextlib.contextmanager
    def closed(self) -> Iterator[None]:
        """Nothing gets through while the block lasts."""
        self._is_closed = True
        self.cut()
        try:
            yield
        finally:
            self._is_closed = False

    async def _relay(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self.connections += 1
        if self._is_closed:
            writer.transport.abort()
            return
        far_reader, far_writer = await asyncio.open_connection("127.0.0.1", self._target)
        self._writers |= {writer, far_writer}
        try:
            await asyncio.gather(_copy(reader, far_writer), _copy(far_reader, writer))
        finally:
            self._writers -= {writer, far_writer}


async def _copy(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    with contextlib.suppress(ConnectionError):
        while piece := await reader.read(65536):
            writer.write(piece)
            await writer.drain()
    writer.close()
