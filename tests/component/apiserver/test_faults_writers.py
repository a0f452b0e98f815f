"""Conflicting writers, a collection of thousands, and a clock that is set back."""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import AsyncIterator
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any

import aiohttp
import msgspec
import pytest

from podlife.api.codec import format_time
from podlife.apiserver.server import ApiServer, ServingInfo
from podlife.apiserver.settings import ApiServerSettings
from podlife.clock import SystemClock
from tests.component.apiserver.requests import CONFIG_MAPS, PODS, TABLE
from tests.kit import objects
from tests.kit.server_process import ServerProcess, running_server

MERGE = "application/merge-patch+json"
STRATEGIC = "application/strategic-merge-patch+json"
JSON_PATCH = "application/json-patch+json"


@pytest.fixture
async def session(tmp_path: Path) -> AsyncIterator[aiohttp.ClientSession]:
    with running_server(tmp_path) as server:
        async with server.session(seconds=120) as session:
            yield session


async def send(session: aiohttp.ClientSession, method: str, path: str, body: Any = None, **more: Any) -> Any:
    """The code and the decoded body of an answer."""
    content_type = more.pop("content_type", "application/json")
    data = None if body is None else msgspec.json.encode(body)
    headers = {"Content-Type": content_type}
    async with session.request(method, path, data=data, headers=headers, **more) as answer:
        return answer.status, msgspec.json.decode(await answer.read())


async def test_of_conflicting_updates_exactly_one_wins_each_revision(session: aiohttp.ClientSession) -> None:
    _, obj = await send(session, "POST", CONFIG_MAPS, {"metadata": {"name": "contested"}, "data": {}})
    for number in range(20):
        rivals = [{**obj, "data": {"winner": f"{number}-{rival}"}} for rival in range(16)]
        answers = await asyncio.gather(
            *(send(session, "PUT", f"{CONFIG_MAPS}/contested", rival) for rival in rivals)
        )
        assert Counter(code for code, _ in answers) == {200: 1, 409: 15}
        [won] = [body for code, body in answers if code == 200]
        _, obj = await send(session, "GET", f"{CONFIG_MAPS}/contested")
        assert obj == won


async def test_no_patch_of_any_format_is_lost_among_others(session: aiohttp.ClientSession) -> None:
    meta = {"name": "patched", "annotations": {"first": "yes"}}
    assert (await send(session, "POST", CONFIG_MAPS, {"metadata": meta}))[0] == 201

    def patch(number: int) -> tuple[str, Any]:
        if number % 3 == 0:
            path = f"/metadata/annotations/n{number}"
            return JSON_PATCH, [{"op": "add", "path": path, "value": "yes"}]
        return (MERGE, STRATEGIC)[number % 2], {"metadata": {"annotations": {f"n{number}": "yes"}}}

    # More at once would wait for their TLS handshakes longer than a busy server allows.
    places = asyncio.Semaphore(50)

    async def apply(number: int) -> int:
        content_type, body = patch(number)
        async with places:
            code, _ = await send(session, "PATCH", f"{CONFIG_MAPS}/patched", body, content_type=content_type)
        return int(code)

    assert set(await asyncio.gather(*map(apply, range(300)))) == {200}
    _, obj = await send(session, "GET", f"{CONFIG_MAPS}/patched")
    assert obj["metadata"]["annotations"] == {"first": "yes"} | {f"n{n}": "yes" for n in range(300)}


async def test_a_collection_of_thousands_is_deleted_whole_and_every_end_is_seen(
    session: aiohttp.ClientSession,
) -> None:
    many = 3_000
    remaining = iter(range(many))

    async def create() -> None:
        for number in remaining:
            body = {"metadata": {"name": f"m{number:05}", "labels": {"fate": "doomed"}}}
            assert (await send(session, "POST", CONFIG_MAPS, body))[0] == 201

    await asyncio.gather(*(create() for _ in range(32)))
    await send(session, "POST", CONFIG_MAPS, {"metadata": {"name": "spared"}})
    _, before = await send(session, "GET", CONFIG_MAPS)
    query = {"watch": "1", "resourceVersion": before["metadata"]["resourceVersion"]}
    async with session.get(CONFIG_MAPS, params=query) as watch:
        code, answer = await send(session, "DELETE", CONFIG_MAPS, params={"labelSelector": "fate=doomed"})
        assert (code, len(answer["items"])) == (200, many)
        ended: list[Any] = []
        while len(ended) < many:
            event = msgspec.json.decode(await watch.content.readline())
            assert event["type"] == "DELETED"
            ended.append(event["object"]["metadata"])
    revisions = [int(meta["resourceVersion"]) for meta in ended]
    assert revisions == sorted(set(revisions))
    assert len({meta["name"] for meta in ended}) == many
    _, after = await send(session, "GET", CONFIG_MAPS)
    assert "spared" in {item["metadata"]["name"] for item in after["items"]}
    assert not any("labels" in item["metadata"] for item in after["items"])


@dataclass
class TurnedClock:
    """It can be set in either direction, and starts with the true time, by which clients judge certificates."""

    time: datetime = field(default_factory=SystemClock().now)

    def now(self) -> datetime:
        return self.time


async def test_a_clock_that_is_turned_back_stops_nothing(tmp_path: Path) -> None:
    clock = TurnedClock()
    server = ApiServer(ApiServerSettings(data=tmp_path / "data", port=0), clock=clock)
    ready: asyncio.Future[ServingInfo] = asyncio.get_running_loop().create_future()
    async with asyncio.TaskGroup() as group, asyncio.timeout(180):
        group.create_task(server.run(ready.set_result))
        serving = await ready
        process = ServerProcess(tmp_path)
        process.port = int(serving.url.rpartition(":")[2])
        async with process.session() as session:
            await live_through_a_turned_clock(session, clock)
        server.stop()


async def live_through_a_turned_clock(session: aiohttp.ClientSession, clock: TurnedClock) -> None:
    _, first = await send(session, "POST", PODS, objects.pod("first", nodeName="n"))
    query = {"watch": "1", "resourceVersion": first["metadata"]["resourceVersion"]}
    async with session.get(PODS, params=query) as watch:
        clock.time -= timedelta(hours=1)
        code, second = await send(session, "POST", PODS, objects.pod("second", nodeName="n"))
        assert code == 201
        assert second["metadata"]["creationTimestamp"] < first["metadata"]["creationTimestamp"]
        assert int(second["metadata"]["resourceVersion"]) > int(first["metadata"]["resourceVersion"])

        asked = clock.time
        code, marked = await send(session, "DELETE", f"{PODS}/first")
        ends = format_time(asked + timedelta(seconds=30))
        assert (code, marked["metadata"]["deletionTimestamp"]) == (200, ends)
        clock.time -= timedelta(hours=1)
        code, shorter = await send(session, "DELETE", f"{PODS}/first?gracePeriodSeconds=5")
        # Counted from the first request, as ever, whatever the clock says now.
        ends = format_time(asked + timedelta(seconds=5))
        assert (code, shorter["metadata"]["deletionTimestamp"]) == (200, ends)
        assert (await send(session, "DELETE", f"{PODS}/first?gracePeriodSeconds=0"))[0] == 200
        assert (await send(session, "GET", f"{PODS}/first"))[0] == 404

        clock.time -= timedelta(hours=1)
        async with session.get(PODS, headers={"Accept": TABLE}) as answer:
            assert answer.status == 200
        seen = [msgspec.json.decode(await watch.content.readline()) for _ in range(5)]
    assert [(event["type"], event["object"]["metadata"]["name"]) for event in seen] == [
        ("ADDED", "second"),
        ("MODIFIED", "first"),
        ("MODIFIED", "first"),
        ("MODIFIED", "first"),
        ("DELETED", "first"),
    ]
