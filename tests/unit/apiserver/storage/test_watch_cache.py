"""Encoded bytes are cached only while readers are likely to share them."""

from __future__ import annotations

import asyncio

from podlife.apiserver.storage import Key, MemoryStore, Put
from podlife.apiserver.storage.watch_cache import RUNS_KEPT
from tests.conformance.storage.storage_kit import start

POD = Key("pods", "default", "a")


async def put(store: MemoryStore) -> None:
    record = store.get(POD)
    await store.commit(Put(POD, lambda revision: b"%d" % revision, record.revision if record else 0))


async def test_what_was_encoded_for_a_run_goes_with_the_run_and_the_event_stays() -> None:
    store = MemoryStore()
    subscription = store.subscribe("pods", since=0)
    await put(store)
    first = await subscription.next()
    first.events[0].frames["json"] = b"frame"
    for _ in range(RUNS_KEPT):
        assert first.events[0].frames == {"json": b"frame"}
        await put(store)
        await subscription.next()

    assert first.events[0].frames == {}
    again = await store.subscribe("pods", since=0).next()
    assert again.events[0] is first.events[0]


async def test_a_reader_that_has_gone_leaves_no_waiter_behind() -> None:
    store = MemoryStore()
    tasks = [start(store.subscribe("pods", since=0).next()) for _ in range(3)]
    await asyncio.sleep(0)
    waiters = store._collections["pods"].waiters
    assert len(waiters) == 3
    for task in tasks:
        task.cancel()
    await asyncio.gather(*tasks, return_exceptions=True)
    assert len(waiters) == 0
