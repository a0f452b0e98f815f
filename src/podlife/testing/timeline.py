"""Observed changes of objects with their times, to assert when and in which order something happened.

async with cluster.timeline() as seen:
    await cluster.client.delete(PODS, "web", "default")
    await cluster.advance(minutes=1)
    assert seen.first("Pod", "web", is_gone) == 30
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence
from contextlib import aclosing
from dataclasses import dataclass
from typing import Any

from podlife.api.codec import Object
from podlife.client import Bookmark, Client, EventType, Ref
from podlife.errors import ExpiredError


@dataclass(frozen=True, slots=True)
class ObservedChange:
    """`at` is the event loop's time. For a deleted object, `object` is its last state."""

    at: float
    kind: str
    object: Object
    is_gone: bool

    @property
    def name(self) -> str:
        return str(self.object["metadata"]["name"])

    @property
    def uid(self) -> str:
        return str(self.object["metadata"]["uid"])


def is_gone(change: ObservedChange) -> bool:
    return change.is_gone


def is_terminating(change: ObservedChange) -> bool:
    return "deletionTimestamp" in change.object["metadata"]


class Timeline:
    """`changes` are all changes, in order. Times are relative to its start."""

    def __init__(self, client: Client, refs: Sequence[Ref]) -> None:
        self.changes: list[ObservedChange] = []
        self.began_at = asyncio.get_running_loop().time()
        self._client = client
        self._refs = refs
        self._unsynced = set(refs)
        self.synced = asyncio.Event()

    async def run(self) -> None:
        async with asyncio.TaskGroup() as group:
            for ref in self._refs:
                group.create_task(self._follow(ref), name=f"timeline of {ref}")

    def of(self, kind: str, name: str) -> list[ObservedChange]:
        return [each for each in self.changes if (each.kind, each.name) == (kind, name)]

    def first(self, kind: str, name: str, holds: Callable[[ObservedChange], object]) -> float | None:
        """Seconds until the predicate first held; None if it never did."""
        for change in self.of(kind, name):
            if holds(change):
                return change.at - self.began_at
        return None

    def states(self, kind: str, name: str, show: Callable[[ObservedChange], Any]) -> list[Any]:
        """Its observed states in order, without repetitions."""
        shown: list[Any] = []
        for change in self.of(kind, name):
            if not shown or shown[-1] != show(change):
                shown.append(show(change))
        return shown

    async def _follow(self, ref: Ref) -> None:
        while True:
            try:
                await self._follow_once(ref)
            except ExpiredError:
                continue

    async def _follow_once(self, ref: Ref) -> None:
        loop = asyncio.get_running_loop()
        async with aclosing(self._client.list_watch(ref)) as events:
            async for event in events:
                if not isinstance(event, Bookmark):
                    gone = event.type is EventType.DELETED
                    self.changes.append(ObservedChange(loop.time(), ref.kind, event.object, gone))
                elif event.is_synced:
                    self._unsynced.discard(ref)
                    if not self._unsynced:
                        self.synced.set()
