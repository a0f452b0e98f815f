"""What a stranger, another page or another user sends to the page's server: nothing is told, nothing is done."""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest

from podlife.client import PODS
from podlife.podgc import Settings
from podlife.podgc.policy.model import Guards, Policy, Rule
from podlife.ui.cluster_api import ClusterSettings
from podlife.wire import Handler, Request, Response
from tests.component.ui.page import Browser, opened, served, with_pods
from tests.kit import embedded

API = ("/api/stream", "/api/plan", "/api/pods/default/web-0/explain", "/api/nodes/n1/yaml", "/api/none")


PATHS = """
/static/../server.py /static/..%2fserver.py /static/%2e%2e/server.py /static/....//server.py
/static//etc/passwd /static/%2fetc%2fpasswd /static/main.js%00.css /static/.hidden.js /static/
/static/index.html/.. /static/MAIN.JS /static/secret.txt /api/pods/default/../../nodes/n1/yaml
/api/pods/default/web-0%2f..%2f..%2f..%2fsecrets%2fx/yaml /api/pods/default/web-0/yaml/
/api/pods/Default/web-0/yaml /api/pods/default/web-0?x/exec /api/pods/default/web-0/exec
/api/pods/default/web-0/__class__ /api/nodes/..%2fnamespaces%2fdefault/yaml /api/nodes/n1/log
/api/secrets/default/x/yaml /metrics //evil.example/
"""


async def test_without_the_cookie_nothing_is_told(tmp_path: Path) -> None:
    async with opened(tmp_path, "web-0") as (browser, _):
        browser.session.cookie_jar.clear()
        for path in API:
            status, answer = await browser.get(path)
            assert (status, set(answer)) == (401, {"error"})
            assert (await browser.get(path, Cookie=f"{browser.access.cookie_name}=guess"))[0] == 401
        assert (await browser.post("/api/sweep", {"digest": "", "confirm": "yes"}))[0] == 401
        status, text = await browser.get("/")
        assert (status, "token" in text) == (403, True)


async def test_a_wrong_token_gives_no_cookie_and_the_right_one_leaves_the_address(tmp_path: Path) -> None:
    async with opened(tmp_path) as (browser, _):
        browser.session.cookie_jar.clear()
        for token in ("", "guess", browser.access.token[:-1], browser.access.secret, "%ff"):
            async with browser.session.get(f"{browser.origin}/?token={token}") as answer:
                assert answer.status == 403
        assert not list(browser.session.cookie_jar)
        await browser.open()
        assert (await browser.get("/"))[0] == 200


async def test_the_cookie_belongs_to_a_path_that_other_servers_of_this_host_do_not_know(
    tmp_path: Path,
) -> None:
    async with opened(tmp_path) as (browser, _):
        [cookie] = browser.session.cookie_jar
        assert (cookie["path"], len(browser.access.prefix)) == (f"{browser.access.prefix}/", 33)
        # Outside of it nothing is served, and a cookie of the same name from another server does no harm.
        assert b" 404 " in await raw(browser, "GET /api/plan HTTP/1.1")
        other = f"{browser.access.cookie_name}=other; {browser.access.cookie_name}={browser.access.secret}"
        assert (await browser.get("/api/plan", Cookie=other))[0] == 200


async def test_another_host_or_origin_is_refused_even_with_the_cookie(tmp_path: Path) -> None:
    async with opened(tmp_path, "web-0") as (browser, _):
        for path in ("/", "/static/main.js", *API):
            assert (await browser.get(path, Host="evil.example"))[0] == 421
            assert (await browser.get(path, Origin="http://evil.example"))[0] == 403
        assert (await browser.get("/api/plan", Sec_Fetch_Site="cross-site"))[0] == 403
        body = {"digest": "", "confirm": "yes"}
        assert (await browser.post("/api/sweep", body, Origin="null"))[0] == 403


async def raw(browser: Browser, head: str) -> bytes:
    """An answer to exactly these bytes: a client library would tidy them."""
    cookie = f"{browser.access.cookie_name}={browser.access.secret}"
    async with asyncio.timeout(120):
        reader, writer = await asyncio.open_connection("127.0.0.1", browser.access.port)
        host = f"Host: 127.0.0.1:{browser.access.port}\r\nCookie: {cookie}\r\nConnection: close\r\n\r\n"
        writer.write(f"{head}\r\n{host}".encode("latin-1"))
        try:
            return await reader.read()
        finally:
            writer.close()


@pytest.mark.parametrize("path", PATHS.split())
async def test_paths_lead_nowhere_else(tmp_path: Path, path: str) -> None:
    (tmp_path / "secret.txt").write_text("s3cret")
    async with opened(tmp_path, "web-0") as (browser, _):
        answer = await raw(browser, f"GET {browser.access.prefix}{path} HTTP/1.1")
        assert answer.split(b" ")[1] in (b"404", b"400", b"421"), answer
        assert b"s3cret" not in answer


@pytest.mark.parametrize("method", ["PUT", "DELETE", "OPTIONS", "PATCH", "TRACE"])
async def test_other_methods_are_refused(tmp_path: Path, method: str) -> None:
    async with opened(tmp_path) as (browser, _):
        for path in ("/", "/api/plan", "/api/sweep", "/static/main.js"):
            assert (
                b" 405 "
                in (await raw(browser, f"{method} {browser.access.prefix}{path} HTTP/1.1")).splitlines()[0]
            )
        for head in ("GET /api/sweep", "HEAD /api/stream", "POST /api/plan"):
            method, path = head.split()
            line = f"{method} {browser.access.prefix}{path} HTTP/1.1"
            answer = await raw(browser, f"{line}\r\nOrigin: {browser.origin}")
            assert b" 405 " in answer.splitlines()[0]


async def test_heads_and_bodies_are_bounded(tmp_path: Path) -> None:
    async with opened(tmp_path, allows_actions=True) as (browser, _):
        assert b" 400 " in await raw(browser, "GET / HTTP/1.1\r\nX: " + "x" * 20_000)
        assert b" 431 " in await raw(browser, "GET / HTTP/1.1" + f"\r\nX: {'x' * 900}" * 20)
        body = {"digest": "x" * 10_000, "confirm": "yes"}
        assert (await browser.post("/api/sweep", body))[0] == 413


@pytest.mark.parametrize("query", ["tail=-1", "tail=x", "tail=999999999", "tail="])
async def test_a_strange_query_is_refused_in_one_line(tmp_path: Path, query: str) -> None:
    async with opened(tmp_path, "web-0") as (browser, _):
        status, answer = await browser.get(f"/api/pods/default/web-0/log?{query}")
        assert (status, "\n" in answer["error"]) == (400, False)


async def test_every_answer_has_the_security_headers(tmp_path: Path) -> None:
    async with opened(tmp_path, "web-0") as (browser, _):
        for path in ("/", "/static/main.js", "/static/none.js", "/api/plan", "/api/none"):
            async with browser.session.get(browser.url + path) as answer:
                policy = answer.headers["Content-Security-Policy"]
                assert "default-src 'none'" in policy
                assert "unsafe" not in policy
                assert answer.headers["X-Content-Type-Options"] == "nosniff"
                assert answer.headers["Cache-Control"] == "no-store"
                assert "Access-Control-Allow-Origin" not in answer.headers


async def test_names_and_messages_stay_text(tmp_path: Path) -> None:
    async with opened(tmp_path, "web-0") as (browser, _):
        async with browser.session.get(f"{browser.url}/api/pods/default/web-0/yaml") as answer:
            assert answer.content_type == "text/plain"
        async with browser.session.get(f"{browser.url}/api/pods/default/%3Cscript%3E/yaml") as answer:
            assert answer.content_type == "application/json"


# A user who may not see everything


def refusing(*paths: str) -> embedded.Disturbance:
    async def disturb(request: Request, handler: Handler) -> Response:
        if request.path in paths:
            return embedded.refusal(403, "Forbidden")
        return await handler(request)

    return disturb


async def test_what_may_not_be_read_is_listed_and_the_rest_is_shown(tmp_path: Path) -> None:
    forbidden = (
        "/api/v1/nodes",
        "/api/v1/events",
        "/apis/coordination.k8s.io/v1/namespaces/kube-node-lease/leases",
    )
    handler = await embedded.start()
    async with embedded.connect(handler) as admin:
        await with_pods(admin, "web-0")
        async with served(embedded.connect(handler, refusing(*forbidden)), static=tmp_path) as browser:
            await browser.open()
            lives, _ = await browser.picture()
            # Nothing is concluded from nodes that may not be read.
            assert (set(lives), lives["web-0"]["stuck"]) == ({"web-0"}, [])
            async with browser.stream() as events:
                missing = (await anext(events)).data["missing"]
            assert len(missing) == 3
            assert all("403 Forbidden" in each for each in missing)


async def test_who_may_read_one_namespace_is_shown_that_one(tmp_path: Path) -> None:
    handler = await embedded.start()
    async with embedded.connect(handler) as admin:
        await with_pods(admin, "web-0")
        refused = refusing("/api/v1/pods", "/api/v1/events", "/apis/apps/v1/replicasets")
        async with served(embedded.connect(handler, refused), static=tmp_path) as browser:
            await browser.open()
            lives, _ = await browser.picture()
            assert set(lives) == {"web-0", "n1"}
            async with browser.stream() as events:
                hello = (await anext(events)).data
            assert (hello["namespace"], hello["missing"]) == (
                "default",
                ["pods of other namespaces (403 Forbidden)"],
            )


async def test_who_may_read_one_namespace_only_sees_its_plan(tmp_path: Path) -> None:
    handler = await embedded.start()
    async with embedded.connect(handler) as admin:
        await with_pods(admin, "web-0")
        refused, settings = refusing("/api/v1/pods", "/api/v1/nodes"), ClusterSettings(namespace="default")
        client = embedded.connect(handler, refused)
        async with served(client, static=tmp_path, settings=settings) as browser:
            await browser.open()
            status, plan = await browser.get("/api/plan")
            assert (status, plan["now"], plan["later"]) == (200, [], [])
            assert "orphans are not planned" in plan["unread"][0]


async def test_who_may_read_one_namespace_only_sees_its_plan_by_a_policy_and_may_not_sweep(
    tmp_path: Path,
) -> None:
    handler = await embedded.start()
    policy = Policy((Rule("all", ttl_seconds=0),), guards=Guards(share_of_namespace=0.9))
    async with embedded.connect(handler) as admin:
        await with_pods(admin, "web-0", "done-0")
        await admin.patch(PODS, "done-0", {"status": {"phase": "Succeeded"}}, "default", subresource="status")
        refused = refusing("/api/v1/pods", "/api/v1/nodes", "/api/v1/namespaces")
        settings = ClusterSettings(Settings(policy=policy), namespace="default")
        client = embedded.connect(handler, refused)
        async with served(client, static=tmp_path, settings=settings, allows_actions=True) as browser:
            await browser.open()
            status, plan = await browser.get("/api/plan")
            assert (status, [each["name"] for each in plan["now"]]) == (200, ["done-0"])
            assert "kube-system" in plan["unread"][1]
            # It cannot know whether all deletions are stopped.
            status, _ = await browser.post("/api/sweep", {"digest": plan["digest"], "confirm": "yes"})
            assert (status, len((await admin.list(PODS)).items)) == (403, 2)


async def test_a_refusal_of_the_api_server_becomes_one_line(tmp_path: Path) -> None:
    handler = await embedded.start()
    async with embedded.connect(handler) as admin:
        await with_pods(admin, "web-0")
        refused = refusing("/api/v1/namespaces/default/pods/web-0")
        async with served(embedded.connect(handler, refused), static=tmp_path) as browser:
            await browser.open()
            for what in ("yaml", "explain"):
                status, answer = await browser.get(f"/api/pods/default/web-0/{what}")
                assert (status, set(answer)) == (403, {"error"})
