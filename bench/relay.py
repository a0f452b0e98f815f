"""A wire that can be looked at: plain HTTP on loopback on one side, the server's TLS on the other.

It passes bytes on as they come and notes when the first line of a request with the method asked for goes by.
"""

from __future__ import annotations

import asyncio
import contextlib
import ssl
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from pathlib import Path
from time import perf_counter


@asynccontextmanager
async def relay(
    server: tuple[str, int], ca_file: Path, method: str, on_request: Callable[[float], None]
) -> AsyncIterator[int]:
    """Gives the port to connect to."""
    tls = ssl.create_default_context(cafile=str(ca_file))
    tls.check_hostname = False
    mark = f"{method} /".encode()
    tasks: set[asyncio.Task[None]] = set()

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        far_reader, far_writer = await asyncio.open_connection(*server, ssl=tls)

        async def pass_on(source: asyncio.StreamReader, target: asyncio.StreamWriter, watch: bool) -> None:
            while data := await source.read(1 << 18):
                if watch and data.startswith(mark):
                    on_request(perf_counter())
                target.write(data)
                await target.drain()

        try:
            with contextlib.suppress(OSError, asyncio.CancelledError):
                done = [pass_on(reader, far_writer, True), pass_on(far_reader, writer, False)]
                pending = {asyncio.ensure_future(each) for each in done}  # noqa: TID251 - both awaited here
                tasks.update(pending)
                await asyncio.wait(pending, return_when=asyncio.FIRST_COMPLETED)
                for task in pending:
                    task.cancel()
        finally:
            writer.close()
            far_writer.close()

    listening = await asyncio.start_server(serve, "127.0.0.1", 0)
    try:
        yield listening.sockets[0].getsockname()[1]
    finally:
        listening.close()
        for task in tasks:
            task.cancel()
