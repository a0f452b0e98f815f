"""Upgraded connections over TLS: what waits for a client that does not read is bounded."""

from __future__ import annotations

import asyncio
from pathlib import Path

from aiohttp import web

from podlife.clock import SystemClock
from podlife.pki import CertificateAuthority, Subject
from podlife.upgraded_connection import UpgradedConnection
from tests.kit.wait import until

CHUNK = 16 * 1024


async def test_little_waits_for_a_client_that_does_not_read(tmp_path: Path) -> None:
    ca = CertificateAuthority(tmp_path, SystemClock())
    accepted: list[web.BaseRequest] = []

    async def answer(request: web.BaseRequest) -> web.StreamResponse:
        channel = await UpgradedConnection.accept(request, ())
        accepted.append(request)
        while True:
            await channel.send(bytes(CHUNK))

    server = web.Server(answer, handler_cancellation=True)
    tls = ca.server_context(ca.ensure("serving.pem", Subject("server", names=("localhost",))))
    listener = await asyncio.get_running_loop().create_server(server, "127.0.0.1", 0, ssl=tls)
    port = listener.sockets[0].getsockname()[1]
    trust = ca.client_context(ca.ensure("client.pem", Subject("client")))
    _, writer = await asyncio.open_connection(
        "127.0.0.1", port, ssl=trust, server_hostname="localhost", limit=CHUNK
    )
    writer.write(b"GET / HTTP/1.1\r\nHost: h\r\nConnection: Upgrade\r\nUpgrade: x\r\n\r\n")
    await until(lambda: accepted and accepted[0].protocol.writing_paused, "the server waits", seconds=30)

    transport = accepted[0].transport
    assert transport is not None
    # The encrypted form is a little longer, and the last message goes over the limit.
    assert 0 < transport.get_write_buffer_size() <= 64 * 1024 + 2 * CHUNK

    writer.transport.abort()
    await until(lambda: not server.connections, "the connection is closed", seconds=30)
    listener.close()
    await server.shutdown(1)
