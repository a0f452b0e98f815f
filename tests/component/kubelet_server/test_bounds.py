"""What a caller can make a node hold is bounded; and a port that cannot be had is told."""

from __future__ import annotations

import asyncio
import logging
import socket
import ssl
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress
from pathlib import Path
from typing import Any

import pytest

from podlife.clock import SystemClock
from podlife.errors import ConfigError
from podlife.kubelet.server import (
    Caller,
    CertificateSettings,
    KubeletServer,
    ServedNode,
    ServerSettings,
    connections,
)
from tests.component.kubelet_server.kit import NoSigning, trusting_anybody
from tests.kit.wait import until


class Everybody:
    """Lets everybody in."""

    async def authenticate(self, certificate: Any, authorization: str) -> Caller | None:
        return Caller("somebody")

    async def authorize(self, caller: Caller, method: str, path: str) -> None:
        return


def endpoint_in(folder: Path, **settings: Any) -> KubeletServer:
    # Nothing that is asked here asks for pods or containers.
    nothing: Any = None
    node = ServedNode("n1", nothing, nothing, SystemClock(), trouble=lambda: "the runtime is down")
    asked = ServerSettings(CertificateSettings("n1", folder / "pki"), **{"port": 0, **settings})
    return KubeletServer(node, Everybody(), asked, signing=NoSigning(), clock=SystemClock())


@asynccontextmanager
async def running(endpoint: KubeletServer) -> AsyncIterator[int]:
    async with asyncio.TaskGroup() as group:
        task = group.create_task(endpoint.run())
        await endpoint.ready.wait()
        yield endpoint.port
        task.cancel()


async def connected(port: int) -> tuple[asyncio.StreamReader, asyncio.StreamWriter]:
    return await asyncio.open_connection("127.0.0.1", port, ssl=trusting_anybody())


HEALTH = b"GET /healthz HTTP/1.1\r\nHost: n1\r\n\r\n"


async def ask(port: int, request: bytes = HEALTH, *, to_the_end: bool = False) -> bytes:
    """The first line of the answer, or everything until the node closes the connection."""
    reader, writer = await connected(port)
    try:
        writer.write(request)
        async with asyncio.timeout(60):
            return await (reader.read() if to_the_end else reader.readline())
    finally:
        writer.close()


async def test_beyond_so_many_connections_the_next_is_refused(tmp_path: Path) -> None:
    async with running(endpoint_in(tmp_path, most_connections=2)) as port:
        held = [await connected(port) for _ in range(2)]
        with suppress(ConnectionError):
            assert await ask(port) == b""
        for _, writer in held:
            writer.close()
            await writer.wait_closed()
        await until(lambda: _is_answered(port))


async def _is_answered(port: int) -> bool:
    """Refused for as long as the node has not noticed that others have gone."""
    try:
        return (await ask(port)).startswith(b"HTTP/1.1 500")
    except ConnectionError:
        return False


async def test_a_connection_on_which_nothing_is_asked_is_closed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(connections, "_FIRST_REQUEST_SECONDS", 0.05)
    async with running(endpoint_in(tmp_path)) as port:
        reader, writer = await connected(port)
        async with asyncio.timeout(60):
            assert await reader.read() == b""
        writer.close()


@pytest.mark.parametrize(
    "request_",
    [
        b"\x00\xff\r\n\r\n",
        b"GET /" + b"x" * 40_000 + b" HTTP/1.1\r\n\r\n",
        b"GET / HTTP/1.1\r\nA: " + b"x" * 40_000,
    ],
)
async def test_what_is_no_request_is_answered_with_400_and_fills_no_log(
    tmp_path: Path, request_: bytes, caplog: pytest.LogCaptureFixture
) -> None:
    async with running(endpoint_in(tmp_path)) as port:
        assert b" 400 " in await ask(port, request_)
    assert [each for each in caplog.records if each.levelno >= logging.INFO] == []


async def test_the_connection_of_a_stranger_is_not_kept(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def nobody(*_: object) -> None:
        return None

    monkeypatch.setattr(Everybody, "authenticate", nobody)
    async with running(endpoint_in(tmp_path)) as port:
        assert b" 401 " in await ask(port, to_the_end=True)


async def test_a_connection_on_which_nothing_more_is_asked_is_closed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(connections, "_NEXT_REQUEST_SECONDS", 0.05)
    async with running(endpoint_in(tmp_path)) as port:
        assert b" 500 " in await ask(port, to_the_end=True)


async def test_a_caller_that_does_not_say_goodbye_is_cut_when_the_node_stops(tmp_path: Path) -> None:
    # TLS alone would wait for it much longer.
    async with asyncio.timeout(60), running(endpoint_in(tmp_path)) as port:
        raw = await asyncio.to_thread(socket.create_connection, ("127.0.0.1", port))
        tls = await asyncio.to_thread(trusting_anybody().wrap_socket, raw)
        await asyncio.to_thread(tls.sendall, HEALTH)
        assert (await asyncio.to_thread(tls.recv, 12)).startswith(b"HTTP/1.1 500")
    tls.settimeout(60)
    with suppress(ConnectionError, ssl.SSLError):
        while tls.recv(1000):
            pass
    tls.close()


async def test_a_port_that_is_taken_is_told_in_one_line(tmp_path: Path) -> None:
    async with running(endpoint_in(tmp_path)) as port:
        with pytest.raises(ConfigError, match=f"port {port} on 127.0.0.1 is in use"):
            await endpoint_in(tmp_path, port=port).run()
