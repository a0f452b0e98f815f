"""Records every change of the nodes and pods of a demo's cluster, in order.

A step is checked against the recording, not the current state, so a change is found even if it was brief or long ago.
"""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Callable, Iterator
from contextlib import aclosing
from dataclasses import dataclass
from typing import TypeVar

from podlife.aio import wait_until_set
from podlife.api.codec import Object
from podlife.client import NODES, PODS, Client, Ref, WatchEvent
from podlife.errors import PodlifeError

T = TypeVar("T")

NAMESPACE = "default"
# Some hundred times what a demo records.
_MOST = 20_000
_POLL_SECONDS = 0.1


class NotObservedError(PodlifeError):
    """A step of a demo did not happen."""

    def __init__(self, what: str) -> None:
        super().__init__(f"the demo did not observe what it describes: {what}")


@dataclass(frozen=True, slots=True)
class RecordedObject:
    """An object as it was at a time of the event loop."""

    at: float
    object: Object
    is_gone: bool = False

    @property
    def name(self) -> str:
        return str(self.object["metadata"]["name"])

    @property
    def uid(self) -> str:
        return str(self.object["metadata"]["uid"])


class ClusterRecorder:
    def __init__(self, client: Client) -> None:
        self._client = client
        self._seen: dict[str, deque[RecordedObject]] = {}
        self._now: dict[str, dict[str, RecordedObject]] = {}
        self._changed = asyncio.Event()

    async def run(self) -> None:
        async with asyncio.TaskGroup() as group:
            group.create_task(self._follow(NODES), name="nodes")
            group.create_task(self._follow(PODS, NAMESPACE), name="pods")

    async def _follow(self, ref: Ref, namespace: str = "") -> None:
        seen = self._seen[ref.plural] = deque(maxlen=_MOST)
        now = self._now[ref.plural] = {}
        async with aclosing(self._client.list_watch(ref, namespace)) as changes:
            async for change in changes:
                if not isinstance(change, WatchEvent):
                    continue
                each = RecordedObject(
                    asyncio.get_running_loop().time(), change.object, change.type == "DELETED"
                )
                seen.append(each)
                now[each.name] = each
                if each.is_gone:
                    del now[each.name]
                self._changed.set()

    # Current state

    def pod(self, name: str) -> Object | None:
        found = self._now.get("pods", {}).get(name)
        return found.object if found else None

    def node(self, name: str) -> Object | None:
        found = self._now.get("nodes", {}).get(name)
        return found.object if found else None

    def pods(self, app: str) -> list[Object]:
        """Sorted by name."""
        found = [each.object for each in self._now.get("pods", {}).values()]
        labelled = [pod for pod in found if (pod["metadata"].get("labels") or {}).get("app") == app]
        return sorted(labelled, key=lambda pod: str(pod["metadata"]["name"]))

    # History

    def history(self, uid: str, *, since: float = 0.0) -> Iterator[RecordedObject]:
        for seen in self._seen.values():
            yield from (each for each in seen if each.uid == uid and each.at >= since)

    async def until(self, what: str, find: Callable[[], T | None], *, seconds: float = 30.0) -> T:
        """Return what `find` returns; raises NotObservedError if that is None until the deadline."""
        deadline = asyncio.get_running_loop().time() + seconds
        while (found := find()) is None:
            left = deadline - asyncio.get_running_loop().time()
            if left <= 0:
                raise NotObservedError(f"{what}, within {seconds:.0f} s")
            self._changed.clear()
            # Poll too: files and processes send no notification.
            await wait_until_set(self._changed, seconds=min(left, _POLL_SECONDS))
        return found

    async def until_true(self, what: str, is_true: Callable[[], bool], *, seconds: float = 30.0) -> None:
        await self.until(what, lambda: True if is_true() else None, seconds=seconds)

    async def until_seen(
        self,
        what: str,
        uid: str,
        is_it: Callable[[RecordedObject], bool],
        *,
        since: float = 0.0,
        seconds: float = 30.0,
    ) -> RecordedObject:
        """The first matching observation of an object."""

        def find() -> RecordedObject | None:
            return next((each for each in self.history(uid, since=since) if is_it(each)), None)

        return await self.until(what, find, seconds=seconds)


def condition(obj: Object, type_: str) -> Object:
    """Empty if the object does not have it."""
    for each in (obj.get("status") or {}).get("conditions") or ():
        if each["type"] == type_:
            return dict(each)
    return {}
