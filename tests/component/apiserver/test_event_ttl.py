"""Events are removed when they were not written for their time to live."""

from __future__ import annotations

import asyncio
from contextlib import aclosing
from typing import Any

from podlife.api.codec import decode_object, encode, format_time
from podlife.apiserver.endpoints import ApiHandler
from podlife.apiserver.event_ttl import EventExpiry
from podlife.apiserver.storage import Put
from podlife.client import EVENTS, Client, EventType, PatchType, WatchEvent
from podlife.clock import add_seconds
from podlife.testing import LoopClock, virtual_time
from tests.kit.embedded import connect, start
from tests.workloads.runs import at_work

HOUR = 3600.0
# An event goes at the next pass, which comes every minute.
PASS = 61.0


def event(name: str, **fields: Any) -> dict[str, Any]:
    about = {"kind": "Pod", "namespace": "default", "name": "web", "uid": "u"}
    return {"metadata": {"name": name, "namespace": "default"}, "involvedObject": about, **fields}


async def names(client: Client) -> list[str]:
    return [each["metadata"]["name"] for each in (await client.list(EVENTS)).items]


def expiry(handler: ApiHandler) -> EventExpiry:
    return EventExpiry(handler.registry, HOUR)


@virtual_time
async def test_an_event_goes_an_hour_after_it_was_created_and_watchers_see_it() -> None:
    handler = await start()
    client = connect(handler)
    async with at_work(expiry(handler).run):
        await asyncio.sleep(10)
        await client.create(EVENTS, event("old"))
        revision = (await client.list(EVENTS)).resource_version
        await asyncio.sleep(HOUR - 1)
        await client.create(EVENTS, event("young"))
        assert await names(client) == ["old", "young"]
        await asyncio.sleep(PASS)
        assert await names(client) == ["young"]
        async with aclosing(client.watch(EVENTS, "default", resource_version=revision)) as events:
            seen = [await anext(events) for _ in range(2)]
        assert [
            (each.type, each.object["metadata"]["name"]) for each in seen if isinstance(each, WatchEvent)
        ] == [
            (EventType.ADDED, "young"),
            (EventType.DELETED, "old"),
        ]


@virtual_time
async def test_an_event_that_is_written_again_lives_for_an_hour_from_then_on() -> None:
    handler = await start()
    client = connect(handler)
    async with at_work(expiry(handler).run):
        await client.create(EVENTS, event("again", count=1))
        await asyncio.sleep(HOUR / 2)
        await client.patch(EVENTS, "again", {"count": 2}, "default", type=PatchType.MERGE)
        await asyncio.sleep(HOUR - 1)
        assert await names(client) == ["again"]
        await asyncio.sleep(PASS)
        assert await names(client) == []


@virtual_time
async def test_an_event_whose_times_cannot_be_read_lives_for_an_hour_from_the_start() -> None:
    handler = await start()
    client, store = connect(handler), handler.registry.store
    await client.create(EVENTS, event("odd"))
    [record] = store.list("events")
    value = encode({**decode_object(record.value), "lastTimestamp": 5})
    await store.commit(Put(record.key, lambda _: value, record.revision))
    await asyncio.sleep(HOUR)
    async with at_work(expiry(handler).run):
        await asyncio.sleep(HOUR - PASS)
        assert await names(client) == ["odd"]
        await asyncio.sleep(3 * PASS)
        assert await names(client) == []


@virtual_time
async def test_after_a_restart_events_are_as_old_as_their_own_times_say() -> None:
    handler = await start()
    client, now = connect(handler), LoopClock().now()
    earlier, later = format_time(now), format_time(add_seconds(now, 30 * 60))
    await client.create(EVENTS, event("created-long-ago", lastTimestamp=earlier))
    await client.create(EVENTS, event("seen-again", lastTimestamp=later))
    await client.create(EVENTS, event("of-the-future", lastTimestamp="2999-01-01T00:00:00Z"))
    await asyncio.sleep(HOUR + 2 * PASS)
    async with at_work(expiry(handler).run):
        await asyncio.sleep(1)
        assert await names(client) == ["of-the-future", "seen-again"]
        await asyncio.sleep(HOUR / 2)
        assert await names(client) == ["of-the-future"]
        await asyncio.sleep(HOUR / 2 + PASS)
        assert await names(client) == []


@virtual_time
async def test_thousands_of_events_of_one_moment_go_together_and_nothing_is_kept_of_them() -> None:
    handler = await start()
    client, expiring = connect(handler), expiry(handler)
    for number in range(1_500):
        await client.create(EVENTS, event(f"e{number}"))
    async with at_work(expiring.run):
        for _ in range(3 * 60):
            await asyncio.sleep(60)
            assert len(expiring._marks) <= 62
    assert await names(client) == []
    assert handler.registry.store.count("events") == 0
