"""The page's server over a real socket: the stream, and what the page asks for."""

from __future__ import annotations

import asyncio
import gzip
import json
import ssl
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
from aiohttp import ClientSession

from podlife.api.codec import format_micro_time
from podlife.cli.archive_options import ArchiveTarget
from podlife.client import PODS, DeleteOptions
from podlife.clock import SystemClock
from podlife.daemons.gc import PodArchive
from podlife.errors import NotFoundError
from podlife.pki.certificates import self_signed
from podlife.podgc import Settings
from podlife.podgc.archive import ArchiveLimits, FolderArchive, LogSettings
from podlife.podgc.policy.model import Guards, Policy, Rule
from podlife.ui import feed as feed_module
from podlife.ui import server
from podlife.ui.access import Access
from podlife.ui.cluster_api import ClusterSettings
from podlife.ui.feed import VERSION
from podlife.ui.journal import Journal
from podlife.ui.recording import Recording
from podlife.wire import Handler, Request, Response
from tests.component.ui.page import SECONDS, Browser, a_pod, browsing, opened, served, with_pods
from tests.kit import embedded
from tests.kit.wait import until
from tests.unit.explain.test_audit_log import line


async def test_the_stream_sends_everything_then_the_differences(tmp_path: Path) -> None:
    async with opened(tmp_path, "web-0") as (browser, client), browser.stream() as events:
        hello = await anext(events)
        assert (hello.event, hello.id, hello.data["mode"], hello.data["missing"]) == ("hello", "", "live", [])
        seen: dict[str, Any] = {}
        async for each in events:
            seen |= {life["name"]: life for life in each.data} if each.event == "lives" else {}
            if each.event == "synced":
                break
        assert seen["web-0"]["node"] == "n1"
        assert seen["n1"]["kind"] == "node"
        await client.create(PODS, a_pod("web-1"), "default")
        await client.delete(PODS, "web-0", "default", options=DeleteOptions(grace_period_seconds=0))
        async for each in events:
            seen |= {life["name"]: life for life in each.data} if each.event == "lives" else {}
            if "web-1" in seen and seen["web-0"]["to"] is not None:
                break
        assert seen["web-0"]["stage"] == "gone"
        assert seen["web-1"]["segs"][-1][1] == "pending"


async def test_a_reader_that_was_cut_off_goes_on_where_it_was(tmp_path: Path) -> None:
    async with opened(tmp_path, "web-0") as (browser, client):
        _, last_id = await browser.picture()
        await client.create(PODS, a_pod("web-1"), "default")
        async with browser.stream(last_id) as events:
            first = await anext(events)
            assert first.event == "resumed"
            names = set()
            async for each in events:
                names |= {life["name"] for life in each.data} if each.event == "lives" else set()
                if "web-1" in names:
                    break
        async with browser.stream("another-7") as events:
            assert (await anext(events)).event == "hello"


async def test_a_reader_that_waits_for_the_first_picture_gets_it_whole_though_the_journal_is_smaller(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(feed_module, "Journal", lambda: Journal(most_bytes=2_000))
    monkeypatch.setattr(feed_module, "CHUNK", 5)
    names, listed = [f"web-{number}" for number in range(40)], asyncio.Event()

    async def wait(request: Request, handler: Handler) -> Response:
        if request.path == "/api/v1/pods":
            await listed.wait()
        return await handler(request)

    handler = await embedded.start()
    async with embedded.connect(handler) as admin:
        await with_pods(admin, *names)
        async with served(embedded.connect(handler, wait), static=tmp_path) as browser:
            await browser.open()
            async with browser.stream() as events:
                assert (await anext(events)).event == "hello"
                listed.set()
                seen: list[str] = []
                async for each in events:
                    seen += [life["name"] for life in each.data] if each.event == "lives" else []
                    if each.event == "synced":
                        break
            # Each life is sent once.
            assert sorted(seen) == sorted([*names, "n1"])


async def test_a_status_tells_that_the_server_is_heard(tmp_path: Path) -> None:
    async with opened(tmp_path) as (browser, _), browser.stream() as events:
        async for each in events:
            if each.event == "status":
                assert (each.data["live"], each.data["missing"]) == (True, [])
                break


class EndlessFeed:
    """More than all buffers between a server and a client hold."""

    def __init__(self) -> None:
        self.journal = Journal()
        self.is_complete = True
        self.readers = 0

    def hello(self) -> dict[str, Any]:
        return {"version": 1}

    def now(self) -> int:
        return 0

    def chunks(self) -> Iterator[bytes]:
        self.readers += 1
        return (b"[%s]" % (b" " * 1_000_000) for _ in range(500))


async def test_a_slow_reader_is_cut_off(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(server, "_WRITE_SECONDS", 0.2)
    monkeypatch.setattr(server, "MOST_STREAMS", 1)
    feed = EndlessFeed()
    async with browsing(feed, None, static=tmp_path) as browser:
        await browser.open()
        cookie, port = f"{browser.access.cookie_name}={browser.access.secret}", browser.access.port
        _, writer = await asyncio.open_connection("127.0.0.1", port, limit=1024)
        head = f"GET {browser.access.prefix}/api/stream HTTP/1.1\r\nHost: 127.0.0.1:{port}\r\nCookie: {cookie}\r\n\r\n"
        writer.write(head.encode())
        await until(lambda: feed.readers == 1, seconds=SECONDS)
        # It never reads, and the only place is free again.
        await until(lambda: _status(browser, 200), seconds=SECONDS)
        writer.close()


async def test_of_too_many_connections_an_idle_one_is_closed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(server, "MOST_CONNECTIONS", 1)
    async with opened(tmp_path) as (browser, _):
        async with browser.stream() as events, ClientSession(cookie_jar=browser.session.cookie_jar) as other:
            await anext(events)
            # The only other connection answers: it is not idle.
            async with other.get(f"{browser.url}/api/plan") as answer:
                assert answer.status == 503
        monkeypatch.setattr(server, "MOST_CONNECTIONS", 2)
        idle, writer = await asyncio.open_connection("127.0.0.1", browser.access.port)
        async with browser.stream() as events, asyncio.timeout(SECONDS):
            await anext(events)
            assert (await browser.get("/api/plan"))[0] == 200
            assert await idle.read() == b""
        writer.close()


async def test_of_too_many_tls_handshakes_the_oldest_is_closed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(server, "MOST_HANDSHAKES", 2)
    now, pem = SystemClock().now(), tmp_path / "page.pem"
    pem.write_bytes(self_signed("page", ("127.0.0.1",), now - timedelta(hours=1), now + timedelta(hours=1)))
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(pem)
    access = Access("127.0.0.1", 0)
    page = server.PageServer(EndlessFeed(), lambda: access, None, static=tmp_path)
    async with asyncio.timeout(SECONDS), page.serving("127.0.0.1", (0,), context) as port:
        access = Access("127.0.0.1", port, is_tls=True)
        idle = [await asyncio.open_connection("127.0.0.1", port) for _ in range(3)]
        assert await idle[0][0].read() == b""
        async with ClientSession() as session, session.get(f"https://127.0.0.1:{port}/", ssl=False) as answer:
            assert answer.status == 403
        for _, writer in idle:
            writer.close()


async def test_an_answer_that_is_not_read_is_cut_off(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr(server, "_WRITE_SECONDS", 0.2)
    caplog.set_level("DEBUG", server.__name__)
    async with browsing(EndlessFeed(), None, static=tmp_path) as browser:
        (tmp_path / "big.js").write_bytes(b" " * 20_000_000)
        _, writer = await asyncio.open_connection("127.0.0.1", browser.access.port, limit=1024)
        host = f"Host: 127.0.0.1:{browser.access.port}"
        writer.write(f"GET {browser.access.prefix}/static/big.js HTTP/1.1\r\n{host}\r\n\r\n".encode())
        await until(lambda: "does not keep up" in caplog.text, seconds=SECONDS)
        writer.close()


async def _status(browser: Browser, wanted: int) -> bool:
    async with browser.session.get(f"{browser.url}/api/stream") as answer:
        return answer.status == wanted


async def test_only_so_many_streams_are_open_at_a_time(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(server, "MOST_STREAMS", 1)
    async with opened(tmp_path) as (browser, _):
        async with browser.stream() as events:
            await anext(events)
            status, answer = await browser.get("/api/stream")
            assert (status, answer) == (503, {"error": "1 pages are open already: close one"})

        await until(lambda: _status(browser, 200), seconds=SECONDS)


async def test_who_deleted_a_pod_is_told_by_the_audit_log_even_when_another_has_its_name(
    tmp_path: Path,
) -> None:
    log = tmp_path / "audit.log"
    log.write_bytes(b"")
    async with opened(tmp_path, "web-0", settings=ClusterSettings(audit_log=str(log))) as (browser, client):
        first, _ = await browser.picture()
        await client.delete(PODS, "web-0", "default", options=DeleteOptions(grace_period_seconds=0))
        await client.create(PODS, a_pod("web-0"), "default")

        async def is_seen_gone() -> bool:
            return (await browser.picture())[0]["web-0"]["uid"] != first["web-0"]["uid"]

        await until(is_seen_gone, seconds=SECONDS)
        uid, began = first["web-0"]["uid"], datetime.fromtimestamp(first["web-0"]["from"] / 1000, UTC)
        at = format_micro_time(began + timedelta(seconds=1))
        log.write_bytes(line("delete", "web-0", namespace="default", requestReceivedTimestamp=at))
        status, found = await browser.get(f"/api/pods/default/web-0/explain?uid={uid}")
        assert (status, found["stage"], "jane" in found["deletion"]) == (200, "gone", True)


async def test_explain_yaml_and_archive_are_what_the_commands_show(tmp_path: Path) -> None:
    async with opened(tmp_path, "web-0") as (browser, client):
        uid = (await client.get(PODS, "web-0", "default"))["metadata"]["uid"]
        status, found = await browser.get(f"/api/pods/default/web-0/explain?uid={uid}")
        assert (status, found["uid"], found["stage"]) == (200, uid, "starting")
        assert {"causes", "upcoming", "timeline", "unread"} <= set(found)
        assert (await browser.get("/api/pods/default/web-0/explain?uid=other"))[0] == 404
        status, found = await browser.get("/api/pods/default/none/explain")
        assert (status, found["uid"]) == (200, "")
        status, found = await browser.get("/api/nodes/n1/explain")
        assert (status, found["kind"]) == (200, "Node")
        status, text = await browser.get("/api/pods/default/web-0/yaml")
        assert (status, "managedFields" in text, f"uid: {uid}" in text) == (200, False, True)
        assert (await browser.get("/api/nodes/n1/yaml"))[0] == 200
        assert (await browser.get("/api/pods/default/none/yaml"))[0] == 404
        assert (await browser.get(f"/api/pods/default/web-0/yaml?uid={uid}"))[0] == 200
        for what in ("yaml", "log"):
            status, found = await browser.get(f"/api/pods/default/web-0/{what}?uid=other")
            assert (status, "another pod of this name" in found["error"]) == (404, True)
        status, found = await browser.get("/api/pods/default/web-0/archive")
        assert (status, "--archive" in found["error"]) == (404, True)


async def test_suggested_commands_carry_the_flags_of_the_cluster(tmp_path: Path) -> None:
    settings = ClusterSettings(kubectl_flags="--context=prod")
    async with opened(tmp_path, settings=settings) as (browser, client):
        await client.create(PODS, a_pod("lost", nodeName="nowhere"), "default")
        _, found = await browser.get("/api/pods/default/lost/explain")
        commands = [each["command"] for cause in found["causes"] for each in cause["commands"]]
        assert commands
        assert all("kubectl --context=prod " in command for command in commands)


async def ended(client: Any, name: str) -> None:
    await client.create(PODS, a_pod(name, nodeName="n1"), "default")
    await client.patch(PODS, name, {"status": {"phase": "Succeeded"}}, "default", subresource="status")


async def test_a_plan_is_shown_and_swept_only_with_its_digest(tmp_path: Path) -> None:
    settings = ClusterSettings(Settings(threshold=1))
    async with opened(tmp_path, "alive", settings=settings, allows_actions=True) as (browser, client):
        for name in ("a-old", "b-new"):
            await ended(client, name)
        status, plan = await browser.get("/api/plan")
        assert (status, [each["name"] for each in plan["now"]]) == (200, ["a-old"])
        assert {"ns", "uid", "reason", "rule", "why"} <= set(plan["now"][0])
        for body in ({}, {"digest": plan["digest"]}, {"digest": plan["digest"], "confirm": "no"}, [1]):
            assert (await browser.post("/api/sweep", body))[0] == 400
        status, answer = await browser.post("/api/sweep", {"digest": "other", "confirm": "yes"})
        assert (status, "has changed" in answer["error"]) == (409, True)
        assert len((await client.list(PODS)).items) == 3
        status, summary = await browser.post("/api/sweep", {"digest": plan["digest"], "confirm": "yes"})
        assert (status, summary["outcomes"], summary["complete"]) == (200, {"deleted": 1}, True)
        with pytest.raises(NotFoundError):
            await client.get(PODS, "a-old", "default")
        # What was confirmed is done: the digest is of no more use.
        assert (await browser.post("/api/sweep", {"digest": plan["digest"], "confirm": "yes"}))[0] == 409


async def test_what_is_swept_is_archived_and_shown_from_the_archive(tmp_path: Path) -> None:
    folder = tmp_path / "archive"
    archive = FolderArchive(folder, ArchiveLimits(), clock=SystemClock())
    archive.open()
    settings = ClusterSettings(
        Settings(threshold=1), ArchiveTarget(folder), PodArchive(archive, LogSettings(lines=0)).step
    )
    async with opened(tmp_path, settings=settings, allows_actions=True) as (browser, client):
        for name in ("a-old", "b-new"):
            await ended(client, name)
        assert (await browser.get("/api/pods/default/a-old/archive"))[0] == 404
        _, plan = await browser.get("/api/plan")
        uid = plan["now"][0]["uid"]
        status, _ = await browser.post("/api/sweep", {"digest": plan["digest"], "confirm": "yes"})
        assert status == 200
        for query in ("", f"?uid={uid}"):
            status, entry = await browser.get(f"/api/pods/default/a-old/archive{query}")
            assert (status, entry["header"]["uid"], entry["pod"]["metadata"]["name"]) == (200, uid, "a-old")
        _, found = await browser.get("/api/pods/default/a-old/explain")
        assert any("archived before its deletion" in each["what"] for each in found["timeline"])


async def test_a_page_without_actions_sweeps_nothing(tmp_path: Path) -> None:
    async with opened(tmp_path, settings=ClusterSettings(Settings(threshold=1))) as (browser, client):
        for name in ("a-old", "b-new"):
            await ended(client, name)
        _, plan = await browser.get("/api/plan")
        status, answer = await browser.post("/api/sweep", {"digest": plan["digest"], "confirm": "yes"})
        assert (status, "--allow-actions" in answer["error"]) == (403, True)
        assert len((await client.list(PODS)).items) == 2


async def test_a_replay_shows_the_recording_and_asks_no_cluster(tmp_path: Path) -> None:
    hello = {"version": VERSION, "cluster": "c", "started": 1, "now": 2}
    life = {"uid": "u", "kind": "pod", "name": "web", "from": 1, "segs": [[1, "ready"]]}
    frames = [{"event": "hello", "data": hello}, {"event": "lives", "data": [life]}]
    with gzip.open(tmp_path / "r.gz", "wt") as file:
        file.writelines(json.dumps(each) + "\n" for each in frames)
    async with browsing(Recording(tmp_path / "r.gz"), None, static=tmp_path, allows_actions=True) as browser:
        await browser.open()
        lives, _ = await browser.picture()
        assert set(lives) == {"web"}
        for path in ("/api/plan", "/api/pods/default/web/explain", "/api/nodes/n/yaml"):
            assert (await browser.get(path))[0] == 409
        assert (await browser.post("/api/sweep", {"digest": "", "confirm": "yes"}))[0] == 409


async def test_a_sweep_covers_what_waits_for_room_in_the_minute_and_nothing_that_came_later(
    tmp_path: Path,
) -> None:
    policy = Policy((Rule("all", ttl_seconds=0),), guards=Guards(per_minute=1))
    settings = ClusterSettings(Settings(policy=policy))
    async with opened(tmp_path, settings=settings, allows_actions=True) as (browser, client):
        await ended(client, "a")
        await ended(client, "b")
        _, plan = await browser.get("/api/plan")
        assert plan["sweep"] == {"now": 1, "minute": 1, "later": 0}
        assert [each["goes"] for each in plan["held"]] == [True]
        await ended(client, "c")
        status, _ = await browser.post("/api/sweep", {"digest": plan["digest"], "confirm": "yes"})
        assert (status, len((await client.list(PODS)).items)) == (409, 3)
