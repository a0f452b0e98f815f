"""Servers on loopback that behave as badly as a test asks them to."""

from __future__ import annotations

import asyncio
import ssl
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager

from aiohttp import web

Handler = Callable[[web.Request], Awaitable[web.StreamResponse]]
Script = Callable[[asyncio.StreamReader, asyncio.StreamWriter], Awaitable[None]]


@asynccontextmanager
async def serve(handler: Handler, context: ssl.SSLContext | None = None) -> AsyncIterator[str]:
    """An HTTP server that answers every request with `handler`; gives its address."""
    runner = web.ServerRunner(web.Server(handler), shutdown_timeout=0.01)  # type: ignore[arg-type]
    await runner.setup()
    site = web.TCPSite(runner, "127.0.0.1", 0, ssl_context=context)
    await site.start()
    port = runner.addresses[0][1]
    try:
        yield f"{'https' if context else 'http'}://127.0.0.1:{port}"
    finally:
        await runner.cleanup()


@asynccontextmanager
async def serve_raw(script: Script) -> AsyncIterator[str]:
    """A server that speaks no HTTP of its own: after the head of a request the script writes what it likes."""

    # A connection that is neither read nor written is known to nobody else: the garbage collector would take it, with
    # the script that waits in it, at any moment.
    talking: set[asyncio.Task[None] | None] = set()

    async def talk(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        talking.add(asyncio.current_task())
        try:
            await reader.readuntil(b"\r\n\r\n")
            await script(reader, writer)
        except (asyncio.IncompleteReadError, ConnectionError):
            pass
        finally:
            talking.discard(asyncio.current_task())
            writer.close()

    server = await asyncio.start_server(talk, "127.0.0.1", 0)
    try:
        yield f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}"
    finally:
        server.close()
