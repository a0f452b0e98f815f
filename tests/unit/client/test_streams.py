"""Streams into pods, against a server that plays the API server and its kubelets."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator
from dataclasses import dataclass, field

import pytest
from aiohttp import web

from podlife.client import Client, Connection, TokenAuth
from podlife.client.in_process import InProcessTransport
from podlife.errors import ApiError, ConfigError, UnreachableError
from podlife.wire import Request, Response

V5, V4 = "v5.channel.k8s.io", "v4.channel.k8s.io"
FAILED = {"status": "Failure", "details": {"causes": [{"reason": "ExitCode", "message": "3"}]}}


@dataclass
class Played:
    url: str = ""
    protocols: tuple[str, ...] = (V5, V4)
    status: int = 200
    asked: list[tuple[str, str, str]] = field(default_factory=list)
    last: list[bytes] = field(default_factory=list)
    sent: asyncio.Event = field(default_factory=asyncio.Event)

    async def handle(self, request: web.BaseRequest) -> web.StreamResponse:
        self.asked.append((request.path, request.query_string, request.headers.get("Authorization", "")))
        if self.status != 200:
            return web.Response(status=self.status, text="refused")
        socket = web.WebSocketResponse(protocols=self.protocols)
        await socket.prepare(request)
        if request.path.endswith("/portforward"):
            for channel in (b"\0", b"\1"):
                await socket.send_bytes(channel + (80).to_bytes(2, "little"))
        for message in self.last:
            await socket.send_bytes(message)
        self.sent.set()
        if not self.last:
            async for received in socket:
                if received.data[:1] == b"\xff":
                    await socket.send_bytes(b'\x03{"status":"Success"}')
                    break
                await socket.send_bytes(
                    bytes((received.data[0] ^ (not request.path.endswith("d")),)) + received.data[1:]
                )
        await socket.close()
        return socket


@pytest.fixture
async def played() -> AsyncIterator[Played]:
    made = Played()
    server = web.Server(made.handle)
    listener = await asyncio.get_running_loop().create_server(server, "127.0.0.1", 0)
    made.url = f"http://127.0.0.1:{listener.sockets[0].getsockname()[1]}"
    yield made
    listener.close()
    await server.shutdown(1)


@pytest.fixture
async def client(played: Played) -> AsyncIterator[Client]:
    async with Client.connect(Connection(played.url, auth=TokenAuth("t"))) as made:
        yield made


async def test_a_command_is_asked_for_written_to_and_its_end_is_known(played: Played, client: Client) -> None:
    async with client.exec("web", "default", ["a b", "c"], container="main", stdin=True) as session:
        await session.write(b"x" * 1_000_000)
        assert await session.stdout.readexactly(1_000_000) == b"x" * 1_000_000
        await session.close_stdin()
        assert await session.wait() == 0
        assert await session.stdout.read() == b""
    query = "command=a b&command=c&container=main&stdin=true&stdout=true&stderr=true"
    assert played.asked == [("/api/v1/namespaces/default/pods/web/exec", query, "Bearer t")]


@pytest.mark.parametrize(
    ("status", "outcome"),
    [
        (FAILED, 3),
        ({"status": "Failure", "message": "no such program", "code": 500}, "no such program"),
        (None, "the connection ended before the command did"),
    ],
)
async def test_how_a_command_ends(
    played: Played, client: Client, status: dict[str, object] | None, outcome: object
) -> None:
    played.last = [b"\x02err"] + ([] if status is None else [b"\x03" + json.dumps(status).encode()])
    async with client.exec("web", "default", ["x"]) as session:
        assert await session.stderr.read() == b"err"
        if isinstance(outcome, int):
            assert await session.wait() == outcome
        else:
            with pytest.raises((ApiError, UnreachableError), match=str(outcome)):
                await session.wait()


async def test_an_attached_terminal_is_resized(played: Played, client: Client) -> None:
    async with client.attach("web", "default", stdin=True, tty=True) as session:
        await session.resize(columns=80, rows=24)
        await session.write(b"hi")
        assert await session.stdout.readexactly(2) == b"hi"
    assert played.asked[0][1] == "stdin=true&stdout=true&tty=true"


async def test_an_old_server_cannot_end_the_input(played: Played, client: Client) -> None:
    played.protocols = (V4,)
    async with client.exec("web", "default", ["x"], stdin=True) as session:
        with pytest.raises(UnreachableError, match="too old"):
            await session.close_stdin()


async def test_a_port_is_connected_to(played: Played, client: Client) -> None:
    async with client.port_forward("web", "default", 80) as connection:
        await connection.write(b"hello")
        assert await connection.reader.readexactly(5) == b"hello"
    assert played.asked[0][1] == "ports=80"
    played.last = [b"\x01connection refused"]
    async with client.port_forward("web", "default", 81) as connection:
        assert await connection.reader.read() == b""
        assert await connection.failure() == "connection refused"


async def test_what_is_not_read_is_not_received_either(played: Played, client: Client) -> None:
    played.last = [b"\x01" + bytes(1_000_000)] * 60
    async with client.exec("web", "default", ["x"]) as session:
        assert await session.stdout.readexactly(1)
        assert not played.sent.is_set()
        assert len(await session.stdout.read()) == 59_999_999


async def test_a_refusal_is_an_error_with_its_code(played: Played, client: Client) -> None:
    played.status = 404
    with pytest.raises(ApiError) as refused:
        async with client.attach("web", "default"):
            pass
    assert refused.value.code == 404


async def test_a_server_that_is_gone_is_unreachable() -> None:
    async with Client.connect(Connection("http://127.0.0.1:1")) as client:
        with pytest.raises(UnreachableError):
            async with client.port_forward("web", "default", 80):
                pass


async def test_a_connection_within_the_process_has_no_streams() -> None:
    async def handler(_: Request) -> Response:
        return Response()

    async with Client(InProcessTransport(handler)) as client:
        with pytest.raises(ConfigError, match="over HTTP"):
            client.port_forward("web", "default", 80)
