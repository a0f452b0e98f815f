"""What a server holds, followed for all scenarios at once: their waits ask nothing of the server."""

from __future__ import annotations

import asyncio
from collections import defaultdict
from collections.abc import Sequence
from contextlib import aclosing
from typing import Any

from podlife.client import (
    CONFIG_MAPS,
    CONTROLLER_REVISIONS,
    CRON_JOBS,
    DAEMON_SETS,
    DEPLOYMENTS,
    EVENTS,
    JOBS,
    NODES,
    PERSISTENT_VOLUME_CLAIMS,
    POD_DISRUPTION_BUDGETS,
    PODS,
    REPLICA_SETS,
    REPLICATION_CONTROLLERS,
    STATEFUL_SETS,
    Bookmark,
    Client,
    EventType,
    Ref,
)

Object = dict[str, Any]

FOLLOWED: Sequence[Ref] = (
    CONFIG_MAPS,
    CONTROLLER_REVISIONS,
    CRON_JOBS,
    DAEMON_SETS,
    DEPLOYMENTS,
    EVENTS,
    JOBS,
    NODES,
    PERSISTENT_VOLUME_CLAIMS,
    POD_DISRUPTION_BUDGETS,
    PODS,
    REPLICA_SETS,
    REPLICATION_CONTROLLERS,
    STATEFUL_SETS,
)


class Observatory:
    def __init__(self, client: Client) -> None:
        self._client = client
        self._objects: dict[tuple[Ref, str], dict[str, Object]] = defaultdict(dict)
        self._revisions: dict[Ref, int] = {}
        self._changed_at: dict[str, float] = {}
        self._news: dict[str, asyncio.Event] = {}
        self._is_synced = {ref: asyncio.Event() for ref in FOLLOWED}

    async def run(self) -> None:
        async with asyncio.TaskGroup() as group:
            for ref in FOLLOWED:
                group.create_task(self._follow(ref), name=f"observing {ref}")

    async def wait_for_sync(self) -> None:
        async with asyncio.timeout(180):
            for event in self._is_synced.values():
                await event.wait()

    def objects(self, ref: Ref, namespace: str) -> dict[str, Object]:
        """By name."""
        return self._objects[ref, namespace if ref.namespaced else ""]

    def has_seen(self, ref: Ref, revision: int) -> bool:
        return ref not in self._is_synced or self._revisions.get(ref, 0) >= revision

    def changed_at(self, namespace: str) -> float:
        """When something last changed there, in the loop's time."""
        return self._changed_at.get(namespace, 0.0)

    def news(self, namespace: str) -> asyncio.Event:
        """Set at the next change there. Take it before looking, so that nothing is missed."""
        return self._news.setdefault(namespace, asyncio.Event())

    def wake(self, namespace: str) -> None:
        """Whoever waits for news there looks again."""
        if (news := self._news.pop(namespace, None)) is not None:
            news.set()

    async def _follow(self, ref: Ref) -> None:
        async with aclosing(self._client.list_watch(ref)) as events:
            async for event in events:
                if isinstance(event, Bookmark):
                    self._advance(ref, event.resource_version)
                    if event.is_synced:
                        self._is_synced[ref].set()
                else:
                    self._apply(ref, event.type, event.object)

    def _apply(self, ref: Ref, type_: EventType, obj: Object) -> None:
        metadata = obj["metadata"]
        namespace, name = metadata.get("namespace", ""), metadata["name"]
        if type_ is EventType.DELETED:
            self._objects[ref, namespace].pop(name, None)
        else:
            # A list leaves out what all its items have in common.
            self._objects[ref, namespace][name] = {**obj, "kind": ref.kind, "apiVersion": ref.api_version}
        self._advance(ref, metadata["resourceVersion"])
        self._changed_at[namespace] = asyncio.get_running_loop().time()
        for concerned in [namespace] if namespace else list(self._news):
            self.wake(concerned)

    def _advance(self, ref: Ref, revision: str) -> None:
        self._revisions[ref] = max(self._revisions.get(ref, 0), int(revision or 0))
