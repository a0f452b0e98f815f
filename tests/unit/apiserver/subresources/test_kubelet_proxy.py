"""`log`, `exec`, `attach` and `portforward` proxied to a fake kubelet on loopback, with TLS and WebSockets."""

from __future__ import annotations

import asyncio
import base64
import socket
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import aiohttp
import pytest
from aiohttp import web

from podlife.api.codec import encode
from podlife.apiserver.http import HttpServer
from podlife.apiserver.storage import Key, Record
from podlife.apiserver.subresources.kubelet_proxy import KubeletProxy
from podlife.apiserver.subresources.tunnel import Backend, tunnel
from podlife.clock import SystemClock
from podlife.errors import ApiError, InvalidError, NotFoundError
from podlife.pki import CertificateAuthority, Subject
from podlife.wire import Query, Request, Response
from tests.kit import objects
from tests.kit.embedded import stream_of

POD = objects.stored(objects.pod("web", nodeName="n1"))
TWO = objects.stored(
    objects.pod(
        "two",
        objects.container("a"),
        objects.container("b"),
        nodeName="n1",
        initContainers=[objects.container("init")],
    )
)
NODE = Key("nodes", "", "n1")
V5 = "v5.channel.k8s.io"


class Agent:
    """Plays a kubelet. `answer` may be replaced; what was asked is kept."""

    def __init__(self) -> None:
        self.asked: list[tuple[str, str, str]] = []
        self.gone = asyncio.Event()
        self.lines: asyncio.Queue[bytes | None] = asyncio.Queue()
        self.status, self.text = 200, ""
        self.protocols: tuple[str, ...] = (V5,)

    async def handle(self, request: web.BaseRequest) -> web.StreamResponse:
        assert request.transport is not None
        subject = dict(pair[0] for pair in request.transport.get_extra_info("peercert")["subject"])
        self.asked.append((request.path, request.rel_url.raw_query_string, subject["commonName"]))
        if not request.path.startswith("/containerLogs/"):
            return await self._exec(request)
        if self.status != 200:
            return web.Response(status=self.status, text=self.text)
        answer = web.StreamResponse()
        await answer.prepare(request)
        try:
            while (line := await self.lines.get()) is not None:
                await answer.write(line)
        except (asyncio.CancelledError, ConnectionError):
            self.gone.set()
            raise
        return answer

    async def _exec(self, request: web.BaseRequest) -> web.StreamResponse:
        if self.status != 200:
            return web.Response(status=self.status, text=self.text)
        channel = web.WebSocketResponse(protocols=self.protocols)
        await channel.prepare(request)
        try:
            async for message in channel:
                if message.data == b"\x00exit":
                    await channel.send_bytes(b'\x03{"status":"Success"}')
                    break
                await channel.send_bytes(b"\x01" + message.data[1:])
            await channel.close()
        finally:
            self.gone.set()
        return channel


class World:
    """A kubelet, a store with its node and pods, and the proxy."""

    def __init__(
        self, agent: Agent, pki: CertificateAuthority, objects: dict[Key, dict[str, Any]], port: int
    ) -> None:
        self.agent, self.pki, self.objects, self.port = agent, pki, objects, port
        self.proxy = KubeletProxy(self.read, self.tls, connect_seconds=60.0)

    def tls(self) -> Any:
        return self.pki.client_context(
            self.pki.ensure("client.pem", Subject("kube-apiserver-kubelet-client"))
        )

    def read(self, key: Key) -> Record | None:
        return Record(key, 1, encode(self.objects[key])) if key in self.objects else None

    async def log(self, query: str = "", name: str = "web") -> Response:
        return await self.proxy.log(Request("GET", "/log", Query(query)), "default", name)

    def write(self, *lines: bytes | None) -> None:
        """What the kubelet has in a log; None ends it."""
        for line in lines:
            self.agent.lines.put_nowait(line)


@pytest.fixture
async def world(tmp_path: Path) -> AsyncIterator[World]:
    pki = CertificateAuthority(tmp_path, SystemClock())
    serving = pki.ensure("agent.pem", Subject("system:node:n1", names=("n1",)))
    agent = Agent()
    server = web.Server(agent.handle, handler_cancellation=True)
    listener = await asyncio.get_running_loop().create_server(
        server, "127.0.0.1", 0, ssl=pki.server_context(serving)
    )
    port = listener.sockets[0].getsockname()[1]
    node = {
        "status": {
            "addresses": [
                {"type": "ExternalIP", "address": "203.0.113.1"},
                {"type": "Hostname", "address": "localhost"},
            ],
            "daemonEndpoints": {"kubeletEndpoint": {"Port": port}},
        }
    }
    stored = {
        NODE: node,
        Key("pods", "default", "web"): POD,
        Key("pods", "default", "two"): TWO,
        Key("pods", "default", "waiting"): objects.stored(objects.pod("waiting")),
    }
    world = World(agent, pki, stored, port)
    yield world
    await world.proxy.close()
    listener.close()
    await server.shutdown(1)


async def text_of(response: Response) -> bytes:
    assert isinstance(response.body, AsyncIterator)
    return b"".join([part async for part in response.body])


# --- logs ------------------------------------------------------------------------------------------------


async def test_a_log_comes_from_the_agent_which_is_shown_our_own_certificate(world: World) -> None:
    world.write(b"one\n", b"two\n", None)
    response = await world.log()
    assert (response.status, response.content_type) == (200, "text/plain")
    assert await text_of(response) == b"one\ntwo\n"
    assert world.agent.asked == [("/containerLogs/default/web/main", "", "kube-apiserver-kubelet-client")]


async def test_the_options_of_a_log_are_passed_on(world: World) -> None:
    world.write(None)
    query = (
        "follow=true&previous=false&timestamps=1&tailLines=5&limitBytes=9&sinceTime=2030-01-01T00:00:00Z&x=y"
    )
    await text_of(await world.log(query))
    assert world.agent.asked[0][1] == (
        "follow=true&timestamps=true&tailLines=5&limitBytes=9&sinceTime=2030-01-01T00%3A00%3A00Z"
    )


async def test_a_followed_log_arrives_line_by_line_and_ends_with_its_reader(world: World) -> None:
    response = await world.log("follow=true")
    assert isinstance(response.body, AsyncIterator)
    async with asyncio.timeout(60):
        for line in (b"one\n", b"two\n"):
            world.write(line)
            assert await anext(response.body) == line
        await stream_of(response).aclose()
        await world.agent.gone.wait()


@pytest.mark.parametrize(
    ("name", "query", "message"),
    [
        ("two", "", "a container name must be specified for pod two, choose one of: [init a b]"),
        ("two", "container=c", "container c is not valid for pod two"),
        ("web", "tailLines=many", 'strconv.ParseInt: parsing "many": invalid syntax'),
        ("web", "tailLines=1_0", 'strconv.ParseInt: parsing "1_0": invalid syntax'),
        ("web", "limitBytes=" + "9" * 20, f'strconv.ParseInt: parsing "{"9" * 20}": value out of range'),
    ],
)
async def test_a_log_of_no_certain_container_is_a_400(
    world: World, name: str, query: str, message: str
) -> None:
    with pytest.raises(ApiError) as caught:
        await world.log(query, name)
    assert (caught.value.code, caught.value.reason, caught.value.message) == (400, "BadRequest", message)


async def test_any_container_of_the_pod_may_be_chosen(world: World) -> None:
    world.write(None)
    await text_of(await world.log("container=init", "two"))
    assert world.agent.asked[0][0] == "/containerLogs/default/two/init"


@pytest.mark.parametrize(
    ("query", "message"),
    [
        ("tailLines=-1", "tailLines: Invalid value: -1: must be greater than or equal to 0"),
        ("limitBytes=0", "limitBytes: Invalid value: 0: must be greater than 0"),
        ("sinceSeconds=0", "sinceSeconds: Invalid value: 0: must be greater than 0"),
        (
            "sinceSeconds=1&sinceTime=x",
            "Forbidden: at most one of `sinceTime` or `sinceSeconds` may be specified",
        ),
    ],
)
async def test_options_that_make_no_sense_are_invalid(world: World, query: str, message: str) -> None:
    with pytest.raises(InvalidError) as caught:
        await world.log(query)
    assert caught.value.message.startswith('PodLogOptions "web" is invalid: ')
    assert caught.value.message.endswith(message)


async def test_a_pod_without_a_node_has_no_log_yet(world: World) -> None:
    assert (await world.log(name="waiting")).status == 204


async def test_what_is_not_there_is_not_found(world: World) -> None:
    with pytest.raises(NotFoundError, match='pods "gone" not found'):
        await world.log(name="gone")
    del world.objects[NODE]
    with pytest.raises(NotFoundError, match='nodes "n1" not found'):
        await world.log()


@pytest.mark.parametrize(
    ("status", "code", "message"),
    [
        (400, 400, "agent's words"),
        (500, 500, "Internal error occurred: agent's words"),
        (404, 404, "the server could not find the requested resource ( pods/log web)"),
        (403, 403, "agent's words ( pods/log web)"),
        (
            418,
            418,
            "the server responded with the status code 418 but did not return more information ( pods/log web)",
        ),
    ],
)
async def test_what_the_agent_refuses_is_passed_on(
    world: World, status: int, code: int, message: str
) -> None:
    world.agent.status, world.agent.text = status, "agent's words"
    with pytest.raises(ApiError) as caught:
        await world.log()
    assert (caught.value.code, caught.value.message) == (code, message)


async def test_a_node_that_does_not_answer_is_a_500_that_names_it(world: World) -> None:
    with socket.socket() as nobody:
        nobody.bind(("127.0.0.1", 0))
        port = nobody.getsockname()[1]
        endpoint = {"kubeletEndpoint": {"Port": port}}
        world.objects[NODE]["status"]["daemonEndpoints"] = endpoint
        with pytest.raises(ApiError) as caught:
            await world.log()
    assert caught.value.code == 500
    assert caught.value.message == (
        f'Get "https://localhost:{port}/containerLogs/default/web/main": '
        f"dial tcp localhost:{port}: connect: connection refused"
    )


async def test_a_node_without_an_address_is_told(world: World) -> None:
    world.objects[NODE]["status"]["addresses"] = [{"type": "Odd", "address": "x"}]
    with pytest.raises(ApiError, match=r"no preferred addresses found; known addresses: \[\{Odd x\}\]"):
        await world.log()


@pytest.mark.parametrize("tail", ["/api/v1/secrets?", "/x#", "@localhost", "\\x", " ", ""])
async def test_a_node_chooses_its_host_and_nothing_else_of_what_is_asked_there(
    world: World, tail: str
) -> None:
    address = f"localhost:{world.port}{tail}" if tail else ""
    world.objects[NODE]["status"]["addresses"] = [{"type": "Hostname", "address": address}]
    with pytest.raises(ApiError, match="invalid node address"):
        await world.log()


async def test_an_agent_of_another_authority_is_not_trusted(world: World, tmp_path: Path) -> None:
    other = CertificateAuthority(tmp_path / "other", SystemClock())
    world.proxy = KubeletProxy(
        world.read, lambda: other.client_context(other.ensure("client.pem", Subject("me")))
    )
    with pytest.raises(ApiError, match="certificate"):
        await world.log()
    assert world.agent.asked == []
    await world.proxy.close()


async def test_an_agent_with_the_certificate_of_another_node_is_not_trusted(world: World) -> None:
    world.objects[Key("nodes", "", "n2")] = world.objects[NODE]
    world.objects[Key("pods", "default", "web")] = {**POD, "spec": {**POD["spec"], "nodeName": "n2"}}
    with pytest.raises(ApiError, match="certificate is not valid for 'n2'"):
        await world.log()
    assert world.agent.asked == []


# --- exec ------------------------------------------------------------------------------------------------


@pytest.fixture
async def session(world: World) -> AsyncIterator[aiohttp.ClientSession]:
    """A client of an HTTP server for exec of the pod in the path, and for the log of one."""

    async def handler(request: Request) -> Response:
        try:
            if request.path == "/web/log":
                return await world.proxy.log(request, "default", "web")
            name, _, subresource = request.path.strip("/").partition("/")
            return await world.proxy.connect(request, "default", name, subresource or "exec")
        except ApiError as error:
            return Response(error.code, error.message.encode(), "text/plain")

    face = HttpServer(handler, tls=None)
    await face.start("127.0.0.1", 0)
    url = f"http://127.0.0.1:{face.port}"
    async with aiohttp.ClientSession(url, timeout=aiohttp.ClientTimeout(60)) as session:
        yield session
    await face.stop(seconds=1)


async def test_exec_relays_messages_both_ways_until_the_command_ends(
    world: World, session: aiohttp.ClientSession
) -> None:
    asked = "/web?command=sh&command=-c&command=a%20b&stdin=true&stdout=true&tty=false"
    async with session.ws_connect(asked, protocols=(V5,)) as client:
        assert client.protocol == V5
        await client.send_bytes(b"\x00hello")
        assert await client.receive_bytes() == b"\x01hello"
        await client.send_bytes(b"\x00exit")
        assert await client.receive_bytes() == b'\x03{"status":"Success"}'
        assert (await client.receive()).type in (aiohttp.WSMsgType.CLOSE, aiohttp.WSMsgType.CLOSED)
    path, query, _ = world.agent.asked[0]
    assert path == "/exec/default/web/main"
    assert query == "input=1&output=1&command=sh&command=-c&command=a+b"


@pytest.mark.parametrize("upgrade", ["websocket", "SPDY/3.1"])
async def test_what_an_agent_refuses_is_told_in_its_own_words(world: World, upgrade: str) -> None:
    world.agent.status, world.agent.text = 404, "no such pod"
    headers = {"Connection": "Upgrade", "Upgrade": upgrade, "Sec-WebSocket-Protocol": V5}
    request = Request("GET", "/exec", Query("command=x"), headers)
    answer = await world.proxy.connect(request, "default", "web", "exec")
    assert (answer.status, answer.body) == (404, b"no such pod")


@pytest.mark.parametrize(
    ("asked", "path", "query"),
    [
        ("attach?container=a&stdin=true&tty=true", "/attach/default/two/a", "input=1&tty=1"),
        ("portforward?ports=80&ports=443", "/portForward/default/two", "port=80%2C443"),
        ("portforward", "/portForward/default/two", ""),
    ],
)
async def test_attach_and_portforward_have_paths_of_their_own(
    world: World, session: aiohttp.ClientSession, asked: str, path: str, query: str
) -> None:
    async with session.ws_connect(f"/two/{asked}", protocols=(V5,)) as client:
        await client.send_bytes(b"\x00hello")
        assert await client.receive_bytes() == b"\x01hello"
    assert world.agent.asked[0][:2] == (path, query)


async def test_credentials_of_the_client_are_not_passed_on_and_its_address_is(world: World) -> None:
    seen: list[str] = []

    async def talk(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        seen.append((await reader.readuntil(b"\r\n\r\n")).decode())
        writer.write(b"HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n")
        await writer.drain()
        writer.close()

    server = await asyncio.start_server(talk, "127.0.0.1", 0)
    headers = {
        "Connection": "Upgrade, X-Hop",
        "Upgrade": "websocket",
        "Authorization": "Bearer secret",
        "Impersonate-User": "root",
        "X-Hop": "1",
        "X-Forwarded-For": "192.0.2.1",
        "Host": "example.com",
    }
    request = Request("GET", "/x", headers=headers, source_ip="192.0.2.2")
    backend = Backend("127.0.0.1", server.sockets[0].getsockname()[1])
    async with server:
        with pytest.raises(ApiError, match="invalid upgrade response: status code 200"):
            await tunnel(backend, "/y?z=1", request, connect_seconds=60)
    lines = seen[0].split("\r\n")
    assert lines[0] == "GET /y?z=1 HTTP/1.1"
    assert {"Host: example.com", "Upgrade: websocket", "X-Forwarded-For: 192.0.2.1, 192.0.2.2"} <= set(lines)
    assert not [line for line in lines if line.startswith(("Authorization", "Impersonate", "X-Hop"))]


async def test_a_kubelet_that_is_gone_is_told_as_upstream_tells_it(world: World) -> None:
    with socket.socket() as nobody:
        nobody.bind(("127.0.0.1", 0))
        port = nobody.getsockname()[1]
        world.objects[NODE]["status"]["daemonEndpoints"] = {"kubeletEndpoint": {"Port": port}}
        headers = {"Connection": "Upgrade", "Upgrade": "websocket"}
        with pytest.raises(ApiError) as caught:
            await world.proxy.connect(
                Request("GET", "/", Query("command=x"), headers), "default", "web", "exec"
            )
    assert caught.value.code == 500
    assert caught.value.message.startswith(f"error dialing backend: dial tcp localhost:{port}: connect: ")


async def test_the_protocol_is_the_one_the_agent_knows_too(
    world: World, session: aiohttp.ClientSession
) -> None:
    world.agent.protocols = ("v4.channel.k8s.io",)
    protocols = (V5, "v4.channel.k8s.io")
    async with session.ws_connect("/web?command=ls", protocols=protocols) as client:
        assert client.protocol == "v4.channel.k8s.io"


async def test_a_client_that_goes_ends_the_command(world: World, session: aiohttp.ClientSession) -> None:
    await session.ws_connect("/web?command=cat", protocols=(V5,))
    await session.close()
    async with asyncio.timeout(60):
        await world.agent.gone.wait()


async def test_large_messages_pass_whole(world: World, session: aiohttp.ClientSession) -> None:
    async with session.ws_connect("/web?command=cat", protocols=(V5,)) as client:
        for size in (1, 100_000, 3_000_000):
            await client.send_bytes(b"\x00" + b"x" * size)
            assert await client.receive_bytes() == b"\x01" + b"x" * size


@pytest.mark.parametrize(
    ("path", "protocol", "message"),
    [
        (
            "/two",
            V5,
            "a container name must be specified for pod two, choose one of: [init a b]",
        ),
        ("/waiting", V5, "pod waiting does not have a host assigned"),
        ("/two/attach", V5, "a container name must be specified for pod two, choose one of: [init a b]"),
        ("/waiting/portforward", V5, "pod waiting does not have a host assigned"),
        (
            "/web/portforward?ports=1,x",
            V5,
            'cannot convert to []int32: strconv.ParseUint: parsing "x": invalid syntax',
        ),
    ],
)
async def test_what_cannot_be_executed_is_refused_before_the_upgrade(
    world: World, session: aiohttp.ClientSession, path: str, protocol: str, message: str
) -> None:
    headers = {
        "Upgrade": "websocket",
        "Connection": "Upgrade",
        "Sec-WebSocket-Version": "13",
        "Sec-WebSocket-Key": "dGhlIHNhbXBsZSBub25jZQ==",
        "Sec-WebSocket-Protocol": protocol,
    }
    async with session.get(path, headers=headers) as answer:
        assert answer.status == 400
        assert (await answer.text()).startswith(message)
    assert world.agent.asked == []


async def test_a_request_that_is_no_upgrade_is_refused(world: World, session: aiohttp.ClientSession) -> None:
    async with session.get("/web") as answer:
        assert (answer.status, await answer.text()) == (400, "Upgrade request required")


async def test_a_log_can_be_had_in_base64(world: World, session: aiohttp.ClientSession) -> None:
    world.write(b"one\n", None)
    async with session.ws_connect("/web/log", protocols=("base64.binary.k8s.io",)) as client:
        heard = [message.data async for message in client]
    assert heard == ["", base64.b64encode(b"one\n").decode()]


@pytest.mark.parametrize("protocols", [(), ("binary.k8s.io",)])
async def test_a_log_can_be_had_over_a_websocket(
    world: World, session: aiohttp.ClientSession, protocols: tuple[str, ...]
) -> None:
    world.write(b"one\n", b"two\n", None)
    async with session.ws_connect("/web/log", protocols=protocols) as client:
        assert client.protocol == (protocols[0] if protocols else None)
        assert b"".join([message.data async for message in client]) == b"one\ntwo\n"


async def test_a_client_that_goes_ends_the_log_that_it_follows(
    world: World, session: aiohttp.ClientSession
) -> None:
    async with session.ws_connect("/web/log?follow=true") as client:
        world.write(b"one\n")
        assert [await client.receive_bytes(), await client.receive_bytes()] == [b"", b"one\n"]
    async with asyncio.timeout(60):
        while not world.agent.gone.is_set():
            world.write(b"more\n")
            await asyncio.sleep(0)


async def test_a_log_in_a_protocol_that_is_not_known_is_refused(
    world: World, session: aiohttp.ClientSession
) -> None:
    with pytest.raises(aiohttp.WSServerHandshakeError) as refused:
        await session.ws_connect("/web/log", protocols=("v9.example.com",))
    assert refused.value.status == 400
