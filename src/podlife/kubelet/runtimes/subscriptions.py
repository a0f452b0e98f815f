"""Delivers the events of a runtime to its subscribers.

A subscriber that does not keep up loses its queued events and gets one `RELIST` instead. Publishing never waits.
"""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from podlife.kubelet.runtime import EventKind, RuntimeEvent

_MAX_WAITING = 1000


class Subscriptions:
    def __init__(self, *, max_waiting: int = _MAX_WAITING) -> None:
        self._max_waiting = max_waiting
        self._subscribers: set[_Subscriber] = set()

    def publish(self, event: RuntimeEvent) -> None:
        for subscriber in self._subscribers:
            subscriber.put(event, self._max_waiting)

    @asynccontextmanager
    async def events(self) -> AsyncIterator[AsyncIterator[RuntimeEvent]]:
        subscriber = _Subscriber()
        self._subscribers.add(subscriber)
        try:
            yield subscriber
        finally:
            self._subscribers.discard(subscriber)


class _Subscriber:
    def __init__(self) -> None:
        self._waiting: deque[RuntimeEvent] = deque()
        self._has_more = asyncio.Event()

    def put(self, event: RuntimeEvent, max_waiting: int) -> None:
        if len(self._waiting) >= max_waiting:
            self._waiting.clear()
            event = RuntimeEvent(EventKind.RELIST)
        self._waiting.append(event)
        self._has_more.set()

    def __aiter__(self) -> AsyncIterator[RuntimeEvent]:
        return self

    async def __anext__(self) -> RuntimeEvent:
        while not self._waiting:
            self._has_more.clear()
            await self._has_more.wait()
        return self._waiting.popleft()
