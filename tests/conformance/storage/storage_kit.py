"""What the suites of the store's seam share: short ways to change a store and to read what it says."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine
from typing import Any

from podlife.apiserver.storage import Batch, Delete, Event, Key, Put, Record, Store, Subscription


def pod(name: str, namespace: str = "default") -> Key:
    return Key("pods", namespace, name)


def text(content: str) -> Callable[[int], bytes]:
    """A value that carries its own revision, as the API server's do."""
    return lambda revision: f"{content}@{revision}".encode()


def expected(store: Store, key: Key) -> int:
    record = store.get(key)
    return 0 if record is None else record.revision


def held(store: Store, key: Key) -> Record:
    record = store.get(key)
    assert record is not None
    return record


async def put(store: Store, key: Key, content: str = "x") -> Record:
    (record,) = await store.commit(Put(key, text(content), expected(store, key)))
    return record


async def delete(store: Store, key: Key) -> Record:
    (record,) = await store.commit(Delete(key, text("gone"), expected(store, key)))
    return record


def seen(event: Event) -> tuple[str, str, int, bytes]:
    return event.type.value, event.record.key.path, event.revision, event.record.value


async def read(subscription: Subscription, count: int) -> list[Event]:
    """The next `count` events, in as many batches as they come."""
    events: list[Event] = []
    while len(events) < count:
        events.extend((await next_batch(subscription)).events)
    assert len(events) == count
    return events


async def next_batch(subscription: Subscription) -> Batch:
    async with asyncio.timeout(60):
        return await subscription.next()


def start(coroutine: Coroutine[Any, Any, Any]) -> asyncio.Task[Any]:
    """A task of the test's own, which awaits it before it ends."""
    return asyncio.get_running_loop().create_task(coroutine)


async def pass_turns(count: int = 5) -> None:
    """Let every task that can go on go on."""
    for _ in range(count):
        await asyncio.sleep(0)
