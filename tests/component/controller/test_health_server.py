"""The health endpoints and metrics as a kubelet and Prometheus read them."""

from __future__ import annotations

import asyncio
import re
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import aiohttp
import pytest
from prometheus_client import CollectorRegistry
from prometheus_client.parser import text_string_to_metric_families

from podlife.aio import cancel_and_wait
from podlife.bounded_connection import OpenServer
from podlife.controller import (
    Again,
    Controller,
    Health,
    HealthServer,
    Index,
    LeaderElector,
    export_controllers,
    export_election,
    export_queues,
)
from podlife.errors import ConfigError
from podlife.testing import LoopClock
from podlife.wire import Request, Response
from podlife.workqueue import RateLimitedQueue
from tests.kit.embedded import connect


@asynccontextmanager
async def serving(
    health: Health, registry: CollectorRegistry | None = None, index: Index | None = None
) -> AsyncIterator[aiohttp.ClientSession]:
    server = HealthServer("127.0.0.1", 0, health, registry=registry, index=index)
    running = asyncio.get_running_loop().create_task(server.run())
    try:
        async with aiohttp.ClientSession(f"http://127.0.0.1:{await server.port()}") as session:
            yield session
    finally:
        await cancel_and_wait(running)


async def get(session: aiohttp.ClientSession, path: str) -> tuple[int, str]:
    async with session.get(path) as answer:
        return answer.status, await answer.text()


async def test_ready_and_not_ready_are_told_apart_from_alive() -> None:
    health = Health()
    why = "pods have not synced"
    health.add("informer", lambda: why)
    async with serving(health) as session:
        assert await get(session, "/readyz") == (
            503,
            "[-]informer failed: pods have not synced\nreadyz check failed\n",
        )
        assert await get(session, "/healthz") == (200, "ok")
        assert await get(session, "/livez") == (200, "ok")
        why = ""
        assert await get(session, "/readyz") == (200, "ok")
        assert await get(session, "/readyz?verbose") == (200, "[+]informer ok\nreadyz check passed\n")


async def test_what_is_not_there_is_not_found_and_nothing_can_be_written() -> None:
    async with serving(Health()) as session:
        assert (await get(session, "/none"))[0] == 404
        assert (await get(session, "/metrics"))[0] == 404
        async with session.post("/readyz") as answer:
            assert answer.status == 405
        async with session.head("/readyz") as answer:
            assert answer.status == 200


async def test_the_index_links_to_all_there_is() -> None:
    index = Index("gc <1>", {"page": "https://page/?a&b"}, ("a <note>",))
    async with serving(Health(), CollectorRegistry(), index) as session:
        status, page = await get(session, "/")
    links = re.findall(r'href="([^"]*)"', page)
    assert (status, links) == (200, ["/healthz", "/readyz?verbose", "/metrics", "https://page/?a&amp;b"])
    assert "<1>" not in page
    assert "a &lt;note&gt;" in page


async def test_a_head_without_end_is_refused_and_others_are_answered() -> None:
    async with serving(Health()) as session, asyncio.timeout(60):
        reader, writer = await dialled(session)
        writer.write(b"GET /healthz HTTP/1.1\r\nHost: h\r\n" + (b"X: " + b"x" * 995 + b"\r\n") * 20)
        assert (await reader.read()).startswith(b"HTTP/1.1 431 ")
        assert await get(session, "/healthz") == (200, "ok")
        writer.close()


async def test_a_connection_without_a_request_is_closed_in_time(monkeypatch: pytest.MonkeyPatch) -> None:
    defaults = OpenServer.__init__.__kwdefaults__
    assert defaults is not None
    monkeypatch.setitem(defaults, "first_head_seconds", 0.2)
    async with serving(Health()) as session, asyncio.timeout(60):
        reader, writer = await dialled(session)
        writer.write(b"GET /healthz")
        assert await reader.read() == b""
        assert await get(session, "/healthz") == (200, "ok")
        writer.close()


async def test_idle_connections_beyond_the_bound_cost_the_oldest_its_place() -> None:
    async with serving(Health()) as session, asyncio.timeout(60):
        idle = [await dialled(session) for _ in range(101)]
        assert await idle[0][0].read() == b""
        assert await get(session, "/healthz") == (200, "ok")
        reader, writer = idle[-1]
        writer.write(b"GET /healthz HTTP/1.1\r\nHost: h\r\nConnection: close\r\n\r\n")
        assert (await reader.read()).endswith(b"\r\n\r\nok")
        for _, each in idle:
            each.close()


async def dialled(session: aiohttp.ClientSession) -> tuple[asyncio.StreamReader, asyncio.StreamWriter]:
    return await asyncio.open_connection("127.0.0.1", port_of(session))


def port_of(session: aiohttp.ClientSession) -> int:
    assert session._base_url is not None
    assert session._base_url.port is not None
    return session._base_url.port


async def test_an_address_that_cannot_be_had_is_told_in_a_line() -> None:
    async with serving(Health()) as session:
        port = port_of(session)
        with pytest.raises(ConfigError, match=f"cannot listen on 127.0.0.1:{port}"):
            await HealthServer("127.0.0.1", port, Health()).run()


async def test_queues_controllers_and_elections_are_shown_to_prometheus_under_their_known_names() -> None:
    registry = CollectorRegistry()
    queue: RateLimitedQueue[str] = RateLimitedQueue("pods")

    async def reconcile(key: str) -> Again | None:
        return Again(1000) if key == "later" else None

    async def nobody(request: Request) -> Response:
        raise AssertionError

    controller = Controller("collector", queue, reconcile)
    export_queues(registry, queue)
    export_controllers(registry, controller)
    export_election(registry, "gc", LeaderElector(connect(nobody), "ns", "gc", "me", clock=LoopClock()))
    for key in ("a", "later"):
        queue.add(key)
    async with serving(Health(), registry) as session, asyncio.TaskGroup() as group:
        group.create_task(controller.run())
        async with asyncio.timeout(60):
            while queue.metrics.work_seconds.total < 2:
                await asyncio.sleep(0)
        status, text = await get(session, "/metrics")
        await queue.shut_down()
    assert status == 200
    samples = {
        (sample.name, *sorted(sample.labels.values())): sample.value
        for family in text_string_to_metric_families(text)
        for sample in family.samples
    }
    assert samples["workqueue_depth", "pods"] == 0
    assert samples["workqueue_adds_total", "pods"] == 2
    assert samples["workqueue_retries_total", "pods"] == 1
    assert samples["workqueue_queue_duration_seconds_count", "pods"] == 2
    assert samples["workqueue_work_duration_seconds_bucket", "+Inf", "pods"] == 2
    assert samples["workqueue_longest_running_processor_seconds", "pods"] == 0
    assert samples["workqueue_unfinished_work_seconds", "pods"] == 0
    assert samples["podlife_controller_reconcile_total", "collector", "success"] == 1
    assert samples["podlife_controller_reconcile_total", "collector", "requeue_after"] == 1
    assert samples["podlife_controller_reconcile_seconds_count", "collector"] == 2
    assert samples["podlife_controller_active_workers", "collector"] == 0
    assert samples["leader_election_master_status", "gc"] == 0
