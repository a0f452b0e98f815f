"""`proxy` of pods, services and nodes, to a server on loopback that plays a pod."""

from __future__ import annotations

import asyncio
import ssl
import threading
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import aiohttp
import pytest
from aiohttp import web

from podlife.aio import cancel_and_wait, spawn
from podlife.api.codec import encode
from podlife.apiserver.http import HttpServer
from podlife.apiserver.storage import Key, Record
from podlife.apiserver.subresources import proxy
from podlife.apiserver.subresources.kubelet_proxy import KubeletProxy
from podlife.apiserver.subresources.proxy import ResourceProxy
from podlife.clock import SystemClock
from podlife.errors import ApiError
from podlife.pki import CertificateAuthority, Subject
from podlife.wire import Query, Request, Response
from tests.kit.wait import until

PREFIX = "/api/v1/namespaces/default/"


class World:
    """A pod that is a server here, a store that knows it, and the proxy."""

    def __init__(self, folder: Path) -> None:
        self.pki = CertificateAuthority(folder, SystemClock())
        self.seen: list[tuple[str, str, dict[str, str], bytes]] = []
        self.kept: dict[Key, dict[str, Any]] = {}
        self.hanging = 0
        self.page = ""
        self.port = self.tls_port = 0
        self.kubelets = KubeletProxy(self.get, self.tls)
        self.proxy = self.new_proxy()

    def new_proxy(self, *, proxies_to_loopback: bool = True) -> ResourceProxy:
        return ResourceProxy(self, self.kubelets, proxies_to_loopback=proxies_to_loopback)  # type: ignore[arg-type]

    def tls(self) -> ssl.SSLContext:
        return self.pki.client_context(self.pki.ensure("client.pem", Subject("apiserver")))

    def get(self, key: Key) -> Record | None:
        return Record(key, 1, encode(self.kept[key])) if key in self.kept else None

    def list(self, resource: str, namespace: str) -> list[Record]:
        return [
            Record(key, 1, encode(value))
            for key, value in self.kept.items()
            if (key.resource, key.namespace) == (resource, namespace)
        ]

    def keep(self, resource: str, name: str, namespace: str = "default", **content: Any) -> None:
        metadata = {"name": name, "namespace": namespace}
        self.kept[Key(resource, namespace, name)] = {"metadata": metadata, **content}

    async def handle(self, request: web.BaseRequest) -> web.StreamResponse:
        headers = {key.lower(): value for key, value in request.headers.items()}
        self.seen.append((request.method, request.raw_path, headers, await request.read()))
        path = request.path
        if path == "/given":
            return web.Response(text=self.page, content_type="text/html")
        if path == "/page":
            links = '<A class=x HREF="/a?b=1"><img src=\'http://elsewhere/b\'><a href="c">/d</a><p id="/e">'
            return web.Response(text=links, content_type="text/html")
        if path.startswith("/to/"):
            return web.Response(status=302, headers={"Location": request.rel_url.query["where"]})
        if path == "/headers":
            kept = {"Access-Control-Allow-Origin": "*", "Keep-Alive": "1", "X-Kept": "1"}
            return web.Response(status=418, text="tea", headers={**kept, "Set-Cookie": "a=b"})
        if path == "/socket":
            socket = web.WebSocketResponse()
            await socket.prepare(request)
            async for message in socket:
                await socket.send_str(message.data.upper())
            return socket
        if path in ("/hang", "/half"):
            self.hanging += 1
            if path == "/half":
                page = web.StreamResponse(headers={"Content-Type": "text/html"})
                await page.prepare(request)
                await page.write(b"<html>")
            try:
                await asyncio.Event().wait()
            finally:
                self.hanging -= 1
        if path == "/broken":
            answer = web.StreamResponse()
            await answer.prepare(request)
            await answer.write(b"begin")
            assert request.transport is not None
            request.transport.abort()
            return answer
        return web.Response(text=f"{request.method} {request.raw_path}")

    async def ask(self, path: str, method: str = "GET", **given: Any) -> Response:
        where, _, query = path.partition("?")
        resource, name, _, *_ = where.split("/")
        subpath = where.partition("/proxy")[2]
        request = Request(method, PREFIX + where, Query(query), **given)
        return await self.proxy.answer(request, resource, "default", name, subpath)

    async def serve(self, request: Request) -> Response:
        """As the handler of a server."""
        _, _, tail = request.path.partition("default/")
        resource, name, _, subpath = tail.split("/", 3)
        return await self.proxy.answer(request, resource, "default", name, "/" + subpath)

    async def text(self, path: str) -> str:
        response = await self.ask(path)
        if isinstance(response.body, AsyncIterator):
            return b"".join([part async for part in response.body]).decode()
        assert isinstance(response.body, bytes)
        return response.body.decode()


@pytest.fixture
async def world(tmp_path: Path) -> AsyncIterator[World]:
    made = World(tmp_path)
    server = web.Server(made.handle, handler_cancellation=True)
    loop = asyncio.get_running_loop()
    plain = await loop.create_server(server, "127.0.0.1", 0)
    serving = made.pki.ensure("agent.pem", Subject("system:node:n1", names=("n1",)))
    secure = await loop.create_server(server, "127.0.0.1", 0, ssl=made.pki.server_context(serving))
    made.port, made.tls_port = (each.sockets[0].getsockname()[1] for each in (plain, secure))
    ports = [{"containerPort": made.port, "name": "http"}]
    status = {
        "podIP": "127.0.0.1",
        "podIPs": [{"ip": "127.0.0.1"}],
        "conditions": [{"type": "Ready", "status": "True"}],
    }
    made.keep(
        "pods", "web", spec={"containers": [{"name": "c"}, {"name": "d", "ports": ports}]}, status=status
    )
    made.kept[Key("pods", "default", "web")]["metadata"]["labels"] = {"app": "web"}
    service_ports = [{"port": 80, "name": "one", "targetPort": "http"}, {"port": 81, "name": "two"}]
    made.keep("services", "svc", spec={"ports": service_ports, "selector": {"app": "web"}})
    target = {"kind": "Pod", "name": "web", "namespace": "default"}
    subset = {
        "addresses": [{"ip": "127.0.0.1", "targetRef": target}],
        "ports": [{"name": "one", "port": made.port}],
    }
    made.keep("endpoints", "svc", subsets=[subset])
    endpoint = {"kubeletEndpoint": {"Port": made.tls_port}}
    addresses = [{"type": "InternalIP", "address": "127.0.0.1"}]
    made.keep("nodes", "n1", namespace="", status={"addresses": addresses, "daemonEndpoints": endpoint})
    yield made
    await made.proxy.close()
    await made.kubelets.close()
    for listener in (plain, secure):
        listener.close()
    await server.shutdown(1)


@pytest.mark.parametrize(
    ("path", "told"),
    [
        ("pods/web/proxy/a", "GET /a"),
        ("pods/web:{port}/proxy/a/", "GET /a/"),
        ("pods/http:web:{port}/proxy/", "GET /"),
        ("pods/https:web:{tls_port}/proxy/a?b=%2F&c", "GET /a?b=%2F&c"),
        ("pods/web/proxy/a/../../b", "GET /b"),
        ("pods/web/proxy/a b#?", "GET /a%20b%23"),
        ("services/svc:80/proxy/a", "GET /a"),
        ("services/svc:one/proxy/a", "GET /a"),
        ("services/http:svc:one/proxy/a", "GET /a"),
        ("nodes/n1/proxy/a", "GET /a"),
        ("nodes/n1:{tls_port}/proxy/a", "GET /a"),
        ("nodes/http:n1:{port}/proxy/a", "GET /a"),
    ],
)
async def test_a_request_reaches_what_it_names(world: World, path: str, told: str) -> None:
    assert await world.text(path.format(port=world.port, tls_port=world.tls_port)) == told


@pytest.mark.parametrize(
    ("path", "code", "message"),
    [
        ("pods/none/proxy/", 404, 'pods "none" not found'),
        ("pods/a:b:c:d/proxy/", 400, 'invalid pod request "a:b:c:d"'),
        ("pods/ftp:web:1/proxy/", 400, 'invalid pod request "ftp:web:1"'),
        ("services/:80/proxy/", 400, 'invalid service request ":80"'),
        ("services/none/proxy/", 404, 'services "none" not found'),
        ("services/none:80/proxy/", 404, 'services "none" not found'),
        ("services/svc:82/proxy/", 503, 'no service port 82 found for service "svc"'),
        ("services/svc/proxy/", 503, 'no endpoints available for service "svc"'),
        ("services/svc:none/proxy/", 503, 'no endpoints available for service "svc:none"'),
        ("nodes/none/proxy/", 404, 'nodes "none" not found'),
        (
            "pods/web:http/proxy/",
            503,
            "error trying to reach service: dial tcp: lookup tcp/http: unknown port",
        ),
    ],
)
async def test_what_is_not_there_is_told_as_upstream_tells_it(
    world: World, path: str, code: int, message: str
) -> None:
    with pytest.raises(ApiError) as caught:
        await world.ask(path)
    assert (caught.value.code, caught.value.message) == (code, message)


@pytest.mark.parametrize(
    "address",
    ["127.0.0.1", "::1", "::ffff:127.0.0.1", "169.254.169.254", "fe80::1", "0.0.0.0", "224.0.0.1", "", "x"],
)
@pytest.mark.parametrize("path", ["pods/web/proxy/a", "services/svc:80/proxy/a", "nodes/n1:1/proxy/a"])
async def test_addresses_that_are_not_of_the_cluster_are_refused(
    world: World, address: str, path: str
) -> None:
    status = {"podIP": address, "podIPs": [{"ip": address}]}
    world.kept[Key("pods", "default", "web")]["status"] = status
    world.kept[Key("endpoints", "default", "svc")]["subsets"][0]["addresses"][0]["ip"] = address
    world.kept[Key("nodes", "", "n1")]["status"]["addresses"][0]["address"] = address
    world.proxy = world.new_proxy(proxies_to_loopback=False)
    with pytest.raises(ApiError, match=r"address not allowed|invalid node address"):
        await world.ask(path)
    assert world.seen == []


async def test_endpoints_that_are_not_of_a_pod_of_the_namespace_are_not_contacted(world: World) -> None:
    [subset] = world.kept[Key("endpoints", "default", "svc")]["subsets"]
    world.proxy = world.new_proxy(proxies_to_loopback=False)
    [address] = subset["addresses"]
    for wrong in (
        {"ip": "10.0.0.1"},
        {"ip": "10.0.0.1", "targetRef": {"name": "web", "namespace": "default"}},
        {"ip": "127.0.0.1", "targetRef": {"name": "web", "namespace": "other"}},
        {"ip": "127.0.0.1", "targetRef": {"name": "gone", "namespace": "default"}},
    ):
        address.clear()
        address |= wrong
        with pytest.raises(ApiError, match='no endpoints available for service "svc:80"'):
            await world.ask("services/svc:80/proxy/")
    assert world.seen == []


async def test_a_kubelet_must_prove_which_node_it_is(world: World) -> None:
    world.kept[Key("nodes", "", "n2")] = world.kept[Key("nodes", "", "n1")]
    with pytest.raises(ApiError, match=r"error trying to reach service: .*certificate"):
        await world.ask("nodes/n2/proxy/healthz")
    assert world.seen == []


async def test_a_server_that_does_not_answer_is_told(world: World) -> None:
    with pytest.raises(ApiError) as caught:
        await world.ask("pods/web:1/proxy/")
    assert caught.value.code == 503
    told = "error trying to reach service: dial tcp 127.0.0.1:1: connect: connection refused"
    assert caught.value.message == told


async def test_body_and_headers_are_passed_on_but_no_credentials(world: World) -> None:
    headers = {"Authorization": "secret", "Cookie": "a", "X-Own": "1", "Connection": "X-Hop", "X-Hop": "1"}
    await world.ask("pods/web/proxy/a", "POST", headers=headers, body=b"data", source_ip="192.0.2.1")
    method, _, heard, body = world.seen[0]
    assert (method, body) == ("POST", b"data")
    assert {"cookie": "a", "x-own": "1", "x-forwarded-for": "192.0.2.1"}.items() <= heard.items()
    assert heard["x-forwarded-uri"] == f"{PREFIX}pods/web/proxy/a"
    assert not {"authorization", "x-hop"} & heard.keys()


async def test_status_and_headers_come_back_but_those_of_another_origin(world: World) -> None:
    response = await world.ask("pods/web/proxy/headers")
    assert (response.status, response.content_type) == (418, "text/plain; charset=utf-8")
    names = set(dict(response.headers))
    assert {"X-Kept", "Set-Cookie"} <= names
    assert not {"Access-Control-Allow-Origin", "Keep-Alive", "Content-Length"} & names


async def test_a_root_without_a_slash_is_redirected(world: World) -> None:
    for method in ("GET", "HEAD"):
        response = await world.ask("pods/web/proxy?a=b", method)
        assert (response.status, dict(response.headers)["Location"]) == (301, f"{PREFIX}pods/web/proxy/?a=b")
    assert (await world.ask("pods/web/proxy", "POST")).status == 200


@pytest.mark.parametrize(
    ("where", "rewritten"),
    [
        ("/x/?y", f"{PREFIX}pods/web/proxy/x/?y"),
        ("http://127.0.0.1:{port}/x", f"{PREFIX}pods/web/proxy/x"),
        ("http://example.com/x", "http://example.com/x"),
        ("x", "x"),
        (f"{PREFIX}pods/web/proxy/x", f"{PREFIX}pods/web/proxy/x"),
    ],
)
async def test_redirects_lead_through_the_proxy_again(world: World, where: str, rewritten: str) -> None:
    response = await world.ask(f"pods/web/proxy/to/?where={where.format(port=world.port)}")
    assert (response.status, dict(response.headers)["Location"]) == (302, rewritten)


async def test_links_of_a_page_lead_through_the_proxy_again(world: World) -> None:
    prefix = f"{PREFIX}pods/web/proxy"
    assert await world.text("pods/web/proxy/page") == (
        f'<A class=x HREF="{prefix}/a?b=1"><img src=\'http://elsewhere/b\'><a href="c">/d</a><p id="/e">'
    )


@pytest.mark.parametrize("room", [1 << 20, 100_000])
async def test_many_links_are_rewritten_beside_the_event_loop_and_add_a_bounded_amount(
    world: World, monkeypatch: pytest.MonkeyPatch, room: int
) -> None:
    monkeypatch.setattr(proxy, "_MOST_ADDED", room)
    threads: set[int] = set()
    rewrite = proxy._through_proxy

    def recorded(*given: Any) -> str:
        threads.add(threading.get_ident())
        return rewrite(*given)

    monkeypatch.setattr(proxy, "_through_proxy", recorded)
    world.page = '<a href="/">' * 3000 + f'<a href="/{"x" * 10_000}">'
    prefix = f"{PREFIX}pods/web/proxy"
    page = await world.text("pods/web/proxy/given")
    links = min(3000, -(-room // len(prefix)))
    expected = f'<a href="{prefix}/">' * links + world.page[len('<a href="/">') * links :]
    assert page == expected
    assert threads
    assert threading.get_ident() not in threads


async def test_an_answer_that_breaks_off_is_not_taken_for_whole(world: World) -> None:
    with pytest.raises(ConnectionResetError):
        await world.text("pods/web/proxy/broken")


@pytest.mark.parametrize("path", ["pods/web/proxy/socket", "services/svc:80/proxy/socket"])
async def test_an_upgrade_is_passed_through(world: World, path: str) -> None:
    face = HttpServer(world.serve, tls=None)
    await face.start("127.0.0.1", 0)
    url = f"http://127.0.0.1:{face.port}{PREFIX}{path}"
    async with (
        aiohttp.ClientSession(timeout=aiohttp.ClientTimeout(60)) as session,
        session.ws_connect(url) as socket,
    ):
        await socket.send_str("hello")
        assert await socket.receive_str() == "HELLO"
    await face.stop(seconds=1)


@pytest.mark.parametrize("path", ["/hang", "/half"])
async def test_a_request_ends_with_its_client(world: World, path: str) -> None:
    face = HttpServer(world.serve, tls=None)
    await face.start("127.0.0.1", 0)
    _, writer = await asyncio.open_connection("127.0.0.1", face.port)
    writer.write(f"GET {PREFIX}pods/web/proxy{path} HTTP/1.1\r\nHost: x\r\n\r\n".encode())
    await until(lambda: world.hanging, "the pod has the request", seconds=20)
    writer.close()
    await until(lambda: not world.hanging, "the pod's connection is closed", seconds=20)
    await face.stop(seconds=1)


async def test_a_backend_without_a_free_place_is_told_and_blocks_no_other(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(proxy, "_MOST_OF_BACKEND", 2)
    monkeypatch.setattr(proxy, "_MOST_OF_NAMESPACE", 3)
    hanging = [spawn(world.ask("pods/web/proxy/hang"), name="hanging", on_failure=print) for _ in range(2)]
    await until(lambda: world.hanging == 2, "the pod has both requests", seconds=20)
    monkeypatch.setattr(proxy, "_SECONDS", 0.01)
    with pytest.raises(ApiError) as caught:
        await world.ask("pods/web/proxy/a")
    where = f'http://127.0.0.1:{world.port} in namespace "default"'
    told = f"too many proxied requests under way: limit for {where} is 2, try again later"
    assert (caught.value.code, str(caught.value)) == (503, told)
    other = f"pods/https:web:{world.tls_port}/proxy/a"
    unread = await world.ask(other)
    with pytest.raises(ApiError, match='limit for namespace "default" is 3, try again later'):
        await world.ask(other)
    assert isinstance(unread.body, AsyncIterator)
    assert [part async for part in unread.body] == [b"GET /a"]
    assert await world.text(other) == "GET /a"
    await cancel_and_wait(*hanging)
    monkeypatch.setattr(proxy, "_SECONDS", 30.0)
    for _ in range(3):
        assert await world.text("pods/web/proxy/a") == "GET /a"


async def test_pods_on_loopback_serve_a_service_whose_endpoints_cannot_name_them(world: World) -> None:
    world.kept[Key("endpoints", "default", "svc")]["subsets"] = []
    assert await world.text("services/svc:80/proxy/a") == "GET /a"
    world.kept[Key("pods", "default", "web")]["status"]["conditions"] = []
    with pytest.raises(ApiError, match='no endpoints available for service "svc"'):
        await world.ask("services/svc:80/proxy/a")
