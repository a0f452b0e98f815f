"""Watches the daemon for changes.

It uses CRI's events, or containerd's own if the daemon is older, and lists: frequent without events, occasional with
them, because no event stream is guaranteed to be complete. It reconnects to an unreachable daemon. A failed list
changes nothing.
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
# containerd sends the exit event before its CRI plugin updates the state; after these checks the next list finds it.
_EXIT_CHECKS = 40
_CHECK_SECONDS = 0.025


class DaemonWatch:
    def __init__(self, client: CriClient, reader: StateReader, settings: ContainerdSettings) -> None:
        self._client = client
        self._reader = reader
        self._settings = settings
        # When the current stream was opened, in loop time.
        self._subscribed_since: float | None = None
        self._relist_now = asyncio.Event()
        self._suspects: dict[str, int] = {}
        self._has_suspects = asyncio.Event()

    async def run(self) -> None:
        """Run until cancelled."""
        async with asyncio.TaskGroup() as tasks:
            tasks.create_task(self._listen(), name="containerd events")
            tasks.create_task(self._list(), name="containerd relist")
            tasks.create_task(self._check_suspects(), name="containerd checks")

    def suspect(self, container_or_sandbox_id: str, *, checks: int = 1) -> None:
        """Check it soon, and up to `checks` times while it still runs."""
        left = self._suspects.get(container_or_sandbox_id, 0)
        self._suspects[container_or_sandbox_id] = max(left, checks)
        self._has_suspects.set()

    async def _listen(self) -> None:
        while True:
            try:
                await self._subscribe(self._client.container_events, checks=1)
            except NotOfferedError:
                await self._subscribe_containerd()
            except ContainerRuntimeError as error:
                log.debug("containerd: %s", error)
            await asyncio.sleep(_RECONNECT_SECONDS)

    async def _subscribe_containerd(self) -> None:
        try:
            await self._subscribe(self._client.task_exits, checks=_EXIT_CHECKS)
        except NotOfferedError:
            # Another CRI runtime: only lists work. Try again later, in case the daemon is replaced.
            await asyncio.sleep(self._settings.relist_when_told_seconds)
        except ContainerRuntimeError as error:
            log.debug("containerd: %s", error)

    async def _subscribe(self, subscribe: Callable[[], AsyncGenerator[str, None]], *, checks: int) -> None:
        # Only a list has the changes before the subscription.
        self._relist_now.set()
        self._subscribed_since = asyncio.get_running_loop().time()
        try:
            async with aclosing(subscribe()) as events:
                async for changed_id in events:
                    self.suspect(changed_id, checks=checks)
        finally:
            self._subscribed_since = None

    async def _list(self) -> None:
        while True:
            self._relist_now.clear()
            await _log_errors(self._reader.relist())
            await wait_until_set(self._relist_now, seconds=self._relist_seconds())

    def _relist_seconds(self) -> float:
        """The daemon does not confirm a subscription; one that stays open for a while counts as established."""
        since = self._subscribed_since
        if since is not None and asyncio.get_running_loop().time() - since > _SETTLED_SECONDS:
            return self._settings.relist_when_told_seconds
        return self._settings.relist_seconds

    async def _check_suspects(self) -> None:
        while True:
            await self._has_suspects.wait()
            self._has_suspects.clear()
            while self._suspects:
                for suspect in list(self._suspects):
                    await self._check(suspect)
                if self._suspects:
                    await asyncio.sleep(_CHECK_SECONDS)

    async def _check(self, suspect: str) -> None:
        self._suspects[suspect] -= 1
        left = self._suspects[suspect]
        ended = await _log_errors(self._reader.refresh(suspect))
        if ended or left <= 0:
            self._suspects.pop(suspect, None)


async def _log_errors(read: Awaitable[bool | None]) -> bool | None:
    try:
        return await read
    except RuntimeUnavailableError as error:
        log.debug("containerd: %s", error)
    except ContainerRuntimeError as error:
        log.warning("containerd: %s", error)
    return None
