"""Watches the daemon for changes.

By CRI's own events; by containerd's where the daemon is older; and by lists, frequent where there are no events and
occasional where there are, since no event stream is known to be complete. An unreachable daemon is waited for. A list
that fails changes nothing.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import AsyncGenerator, Awaitable, Callable
from contextlib import aclosing

from podlife.aio import wait_until_set
from podlife.kubelet.runtime import ContainerRuntimeError, RuntimeUnavailableError

from .client import ContainerdSettings, CriClient, NotOfferedError
from .reader import StateReader

log = logging.getLogger(__name__)

_RECONNECT_SECONDS = 0.2
_SETTLED_SECONDS = 3.0
# The daemon tells that a process ended before its CRI part knows: after this long the next listing will see it.
_LOOKS = 40
_LOOK_SECONDS = 0.025


class DaemonWatch:
    def __init__(self, client: CriClient, reader: StateReader, settings: ContainerdSettings) -> None:
        self._client = client
        self._reader = reader
        self._settings = settings
        # When the stream that is open now began, by the loop's time.
        self._listens_since: float | None = None
        self._list_again = asyncio.Event()
        self._suspects: dict[str, int] = {}
        self._has_suspects = asyncio.Event()

    async def run(self) -> None:
        """Run until cancelled."""
        async with asyncio.TaskGroup() as tasks:
            tasks.create_task(self._listen(), name="containerd events")
            tasks.create_task(self._list(), name="containerd relist")
            tasks.create_task(self._look(), name="containerd looks")

    def suspect(self, container_or_sandbox_id: str, *, looks: int = 1) -> None:
        """Something happened to it: look soon, and if it still runs again, as many times."""
        left = self._suspects.get(container_or_sandbox_id, 0)
        self._suspects[container_or_sandbox_id] = max(left, looks)
        self._has_suspects.set()

    async def _listen(self) -> None:
        while True:
            try:
                await self._hear(self._client.container_events, looks=1)
            except NotOfferedError:
                await self._hear_containerd()
            except ContainerRuntimeError as error:
                log.debug("containerd: %s", error)
            await asyncio.sleep(_RECONNECT_SECONDS)

    async def _hear_containerd(self) -> None:
        try:
            await self._hear(self._client.task_exits, looks=_LOOKS)
        except NotOfferedError:
            # Another runtime that speaks CRI: its listings are all there is, until it is another one.
            await asyncio.sleep(self._settings.relist_when_told_seconds)
        except ContainerRuntimeError as error:
            log.debug("containerd: %s", error)

    async def _hear(self, subscribe: Callable[[], AsyncGenerator[str, None]], *, looks: int) -> None:
        # What happened before the subscription began is only in a listing.
        self._list_again.set()
        self._listens_since = asyncio.get_running_loop().time()
        try:
            async with aclosing(subscribe()) as events:
                async for changed in events:
                    self.suspect(changed, looks=looks)
        finally:
            self._listens_since = None

    async def _list(self) -> None:
        while True:
            self._list_again.clear()
            await _quietly(self._reader.relist())
            await wait_until_set(self._list_again, seconds=self._seconds_to_the_next_listing())

    def _seconds_to_the_next_listing(self) -> float:
        """No daemon says when a subscription has begun: one that stays open for a while has."""
        since = self._listens_since
        if since is not None and asyncio.get_running_loop().time() - since > _SETTLED_SECONDS:
            return self._settings.relist_when_told_seconds
        return self._settings.relist_seconds

    async def _look(self) -> None:
        while True:
            await self._has_suspects.wait()
            self._has_suspects.clear()
            while self._suspects:
                for suspect in list(self._suspects):
                    await self._look_once(suspect)
                if self._suspects:
                    await asyncio.sleep(_LOOK_SECONDS)

    async def _look_once(self, suspect: str) -> None:
        self._suspects[suspect] -= 1
        left = self._suspects[suspect]
        ended = await _quietly(self._reader.look_at(suspect))
        if ended or left <= 0:
            self._suspects.pop(suspect, None)


async def _quietly(look: Awaitable[bool | None]) -> bool | None:
    try:
        return await look
    except RuntimeUnavailableError as error:
        log.debug("containerd: %s", error)
    except ContainerRuntimeError as error:
        log.warning("containerd: %s", error)
    return None
