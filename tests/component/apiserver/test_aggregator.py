"""Another API server behind an APIService: requests reach it with the user's name, and its failures stay its own."""

from __future__ import annotations

import asyncio
import base64
import inspect
import json
import ssl
from collections.abc import AsyncIterator, Callable
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest
from aiohttp import web

from podlife.apiserver.aggregation.controller import Aggregator
from podlife.apiserver.aggregation.proxy import RemoteApiProxy
from podlife.apiserver.assembly import assemble
from podlife.apiserver.authn import ADMIN, Authenticator
from podlife.apiserver.endpoints import ApiHandler
from podlife.apiserver.http import HttpServer
from podlife.apiserver.namespace import create_system_namespaces
from podlife.apiserver.storage import MemoryStore
from podlife.client import SERVICES, Client, Ref
from podlife.clock import SystemClock
from podlife.pki import CertificateAuthority, Subject
from podlife.wire import Peer, Query, Request, Response
from tests.component.apiserver.requests import whole
from tests.kit.embedded import connect
from tests.kit.wait import until
from tests.workloads.runs import at_work

API_SERVICES = Ref("apiregistration.k8s.io", "v1", "apiservices", namespaced=False, kind="APIService")
NAME = "v1.fish.example.com"
GROUP = "/apis/fish.example.com"
RESOURCES = [
    {
        "name": "trouts",
        "singularName": "trout",
        "namespaced": True,
        "kind": "Trout",
        "verbs": ["get", "list"],
    },
    {"name": "trouts/status", "singularName": "", "namespaced": True, "kind": "Trout", "verbs": ["get"]},
]


@dataclass
class Backend:
    """The other server: what it was asked, and what it answers beyond the usual."""

    port: int = 0
    seen: list[web.Request] = field(default_factory=list)
    subjects: list[Any] = field(default_factory=list)
    answer: Callable[[web.Request], Any] | None = None

    async def handle(self, request: web.Request) -> web.StreamResponse:
        self.seen.append(request)
        assert request.transport is not None
        self.subjects.append(request.transport.get_extra_info("peercert"))
        if self.answer is not None:
            result = self.answer(request)
            return await result if inspect.isawaitable(result) else result
        if request.path == f"{GROUP}/v1":
            return web.json_response({"kind": "APIResourceList", "resources": RESOURCES})
        return web.json_response(
            {"path": request.path_qs, "body": (await request.read()).decode()}, status=202
        )


@dataclass
class World:
    client: Client
    handler: ApiHandler
    backend: Backend
    ca: CertificateAuthority

    async def register(self, *, port: int = 0, **spec: Any) -> None:
        service = {
            "spec": {"type": "ExternalName", "externalName": "localhost"},
            "metadata": {"name": "fish"},
        }
        await self.client.create(SERVICES, service, "default")
        given = {
            "group": "fish.example.com",
            "version": "v1",
            "groupPriorityMinimum": 2000,
            "versionPriority": 10,
            "service": {"namespace": "default", "name": "fish", "port": port or self.backend.port},
            "caBundle": base64.b64encode(self.ca.authority_file.read_bytes()).decode(),
        }
        kept = {key: value for key, value in (given | spec).items() if value is not None}
        await self.client.create(API_SERVICES, {"metadata": {"name": NAME}, "spec": kept})

    async def condition(self) -> dict[str, Any]:
        status = (await self.client.get(API_SERVICES, NAME)).get("status", {})
        found = [each for each in status.get("conditions", []) if each["type"] == "Available"]
        return dict(found[0]) if found else {"status": "", "reason": ""}

    async def becomes(self, reason: str) -> dict[str, Any]:
        async def has_reason() -> bool:
            return bool((await self.condition())["reason"] == reason)

        await until(has_reason)
        return await self.condition()

    async def ask(self, path: str, method: str = "GET", **more: Any) -> tuple[int, Any]:
        peer = more.pop("peer", Peer("admin", ("system:masters",)))
        query = Query(more.pop("query", ""))
        response = await self.handler(Request(method, path, query, peer=peer, **more))
        return response.status, json.loads(await whole(response))


@asynccontextmanager
async def world(tmp_path: Path, *, request_seconds: float = 1.0) -> AsyncIterator[World]:
    ca, front = (CertificateAuthority(tmp_path / name, SystemClock()) for name in ("ca", "front"))
    serving = ca.ensure("serving.pem", Subject("fish", names=("fish.default.svc", "localhost")))
    own = front.ensure("client.pem", Subject("front-proxy-client"))
    tls = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    tls.load_cert_chain(serving)
    tls.load_verify_locations(front.authority_file)
    tls.verify_mode = ssl.CERT_OPTIONAL
    backend = Backend()
    async with AsyncExitStack() as stack:
        runner = web.AppRunner(application := web.Application())
        application.router.add_route("*", "/{path:.*}", backend.handle)
        await runner.setup()
        stack.push_async_callback(runner.cleanup)
        site = web.TCPSite(runner, "127.0.0.1", 0, ssl_context=tls)
        await site.start()
        backend.port = runner.addresses[0][1]
        store = MemoryStore()
        handler = assemble(store, clock=SystemClock(), authenticator=Authenticator())
        await create_system_namespaces(handler.registry, ADMIN)
        proxy = RemoteApiProxy(
            store, lambda context: context.load_cert_chain(own), request_seconds=request_seconds
        )
        stack.push_async_callback(proxy.close)
        handler.aggregator = Aggregator(handler.registry, proxy)
        await stack.enter_async_context(at_work(handler.aggregator.run))
        yield World(connect(handler), handler, backend, ca)


async def test_requests_reach_the_other_server_with_the_name_of_the_user(tmp_path: Path) -> None:
    async with world(tmp_path) as its:
        await its.register()
        assert (await its.becomes("Passed"))["message"] == "all checks passed"
        headers = {
            "Authorization": "Bearer secret",
            "X-Remote-User": "forged",
            "X-Remote-Extra-Scopes": "forged",
            "Impersonate-User": "ada",
            "Impersonate-Group": "system:masters",
            "Content-Type": "application/json",
        }
        path = f"{GROUP}/v1/namespaces/a%b/trouts"
        code, body = await its.ask(path, "POST", headers=headers, body=b"{}", query="dryRun=All&x=%2F")
        assert (code, body) == (
            202,
            {"path": f"{GROUP}/v1/namespaces/a%25b/trouts?dryRun=All&x=%2F", "body": "{}"},
        )
        seen = its.backend.seen[-1].headers
        assert seen.getall("X-Remote-User") == ["ada"]
        assert seen.getall("X-Remote-Group") == ["system:masters", "system:authenticated"]
        assert not {"Authorization", "Impersonate-User", "Impersonate-Group", "X-Remote-Extra-Scopes"} & set(
            seen
        )
        [[(_, name)]] = [each for each in its.backend.subjects[-1]["subject"] if each[0][0] == "commonName"]
        assert name == "front-proxy-client"
        await its.ask(path, "POST", headers={}, body=b"{}")
        assert "Content-Type" not in its.backend.seen[-1].headers, "the other server has its own default"


async def test_discovery_shows_what_the_other_server_serves(tmp_path: Path) -> None:
    async with world(tmp_path) as its:
        await its.register()
        await its.becomes("Passed")
        groups = [each["name"] for each in (await its.ask("/apis"))[1]["groups"]]
        assert "fish.example.com" in groups
        assert (await its.ask(GROUP))[1]["preferredVersion"]["version"] == "v1"
        assert (await its.ask(f"{GROUP}/v1"))[1]["resources"] == RESOURCES
        accept = {"Accept": "application/json;g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList"}
        items = (await its.ask("/apis", headers=accept))[1]["items"]
        [found] = [each for each in items if each["metadata"]["name"] == "fish.example.com"]
        [version] = found["versions"]
        [resource] = version["resources"]
        assert (version["freshness"], resource["resource"], resource["scope"]) == (
            "Current",
            "trouts",
            "Namespaced",
        )
        assert [each["subresource"] for each in resource["subresources"]] == ["status"]
        await its.client.delete(API_SERVICES, NAME)

        async def is_gone() -> bool:
            return (await its.ask(GROUP))[0] == 404

        await until(is_gone)
        assert (await its.ask(f"{GROUP}/v1/trouts"))[0] == 404


async def test_a_request_ends_with_its_client(tmp_path: Path) -> None:
    async with world(tmp_path, request_seconds=1000.0) as its:
        await its.register()
        await its.becomes("Passed")
        hanging: list[web.Request] = []

        async def hang(request: web.Request) -> web.Response:
            hanging.append(request)
            await until(lambda: request.transport is None, "the connection is closed", seconds=20)
            hanging.remove(request)
            return web.Response()

        async def serve(request: Request) -> Response:
            request.peer = Peer("admin", ("system:masters",))
            return await its.handler(request)

        face = HttpServer(serve, tls=None)
        await face.start("127.0.0.1", 0)
        its.backend.answer = lambda request: hang(request) if "trouts" in request.path else web.Response()
        _, writer = await asyncio.open_connection("127.0.0.1", face.port)
        writer.write(f"GET {GROUP}/v1/trouts HTTP/1.1\r\nHost: x\r\n\r\n".encode())
        await until(lambda: hanging, "the other server has the request", seconds=20)
        writer.close()
        await until(lambda: not hanging, "the other server's connection is closed", seconds=30)
        assert its.handler.metrics.in_flight == 0
        await face.stop(seconds=1)


async def test_users_without_rights_do_not_reach_it(tmp_path: Path) -> None:
    async with world(tmp_path) as its:
        await its.register()
        await its.becomes("Passed")
        count = len(its.backend.seen)
        code, _ = await its.ask(f"{GROUP}/v1/trouts", peer=Peer("somebody"))
        assert (code, len(its.backend.seen)) == (403, count)


@pytest.mark.parametrize(
    ("spec", "words"),
    [
        ({"caBundle": None}, "certificate"),
        ({"service": {"namespace": "default", "name": "other", "port": 1}}, "is not present"),
    ],
)
async def test_a_server_that_is_not_trusted_or_not_there_is_unavailable(
    tmp_path: Path, spec: dict[str, Any], words: str
) -> None:
    async with world(tmp_path) as its:
        await its.register(**spec)

        async def has_failed() -> bool:
            return (await its.condition())["status"] == "False"

        await until(has_failed)
        assert words in (await its.condition())["message"]
        code, body = await its.ask(f"{GROUP}/v1/trouts")
        assert (code, body["reason"]) == (503, "ServiceUnavailable")
        # Nothing else suffers.
        assert (await its.ask("/api/v1/namespaces"))[0] == 200
        assert its.backend.subjects == []


async def test_without_verification_any_certificate_will_do(tmp_path: Path) -> None:
    async with world(tmp_path) as its:
        await its.register(caBundle=None, insecureSkipTLSVerify=True)
        await its.becomes("Passed")
        assert (await its.ask(f"{GROUP}/v1/trouts"))[0] == 202


@pytest.mark.parametrize(
    "answer",
    [
        lambda _: web.Response(status=500),
        lambda _: web.Response(text="nonsense"),
        lambda _: web.json_response([]),
        lambda _: web.json_response({"resources": [{"name": 1}]}),
        lambda _: web.json_response(
            {"resources": [{"name": "a/b", "kind": "A", "verbs": [], "namespaced": True}]}
        ),
        lambda _: web.Response(body=b" " * (5 << 20)),
        lambda _: web.Response(status=302, headers={"Location": "/elsewhere"}),
    ],
)
async def test_an_answer_that_is_none_makes_it_unavailable(tmp_path: Path, answer: Any) -> None:
    async with world(tmp_path) as its:
        its.backend.answer = answer
        await its.register()
        assert (await its.becomes("FailedDiscoveryCheck"))["status"] == "False"
        its.backend.answer = None
        await its.becomes("Passed")


async def test_redirects_are_not_passed_on(tmp_path: Path) -> None:
    async with world(tmp_path) as its:
        await its.register()
        await its.becomes("Passed")
        its.backend.answer = lambda _: web.Response(status=302, headers={"Location": "https://x.example/"})
        code, body = await its.ask(f"{GROUP}/v1/trouts")
        assert (code, "redirect" in body["message"]) == (502, True)


async def test_a_server_that_hangs_is_given_up_on(tmp_path: Path) -> None:
    async with world(tmp_path) as its:
        await its.register()
        await its.becomes("Passed")
        release = asyncio.Event()

        async def hang(request: web.Request) -> web.StreamResponse:
            await release.wait()
            return web.Response()

        its.backend.answer = hang
        try:
            code, body = await its.ask(f"{GROUP}/v1/trouts")
            assert (code, "in time" in body["message"]) == (503, True)
        finally:
            release.set()


async def test_no_other_server_takes_over_a_group_of_this_one(tmp_path: Path) -> None:
    async with world(tmp_path) as its:
        service = {
            "spec": {"type": "ExternalName", "externalName": "localhost"},
            "metadata": {"name": "fish"},
        }
        await its.client.create(SERVICES, service, "default")
        spec = {
            "group": "apps",
            "version": "v1",
            "groupPriorityMinimum": 20000,
            "versionPriority": 100,
            "service": {"namespace": "default", "name": "fish", "port": its.backend.port},
            "insecureSkipTLSVerify": True,
        }
        await its.client.create(API_SERVICES, {"metadata": {"name": "v1.apps"}, "spec": spec})

        async def is_checked() -> bool:
            return bool(its.backend.seen)

        await until(is_checked)
        count = len(its.backend.seen)
        assert (await its.ask("/apis/apps/v1/deployments"))[1]["kind"] == "DeploymentList"
        assert len(its.backend.seen) == count
