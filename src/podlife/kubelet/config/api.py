"""Watches the pods bound to the node and puts them into a source.

A node has few pods: after every interruption they are listed again, so that nothing is missed. A list is used only
after the server was confirmed to be that of the node's cluster. Pods keep running while the server is unreachable; the
watch is retried indefinitely.
"""

from __future__ import annotations

import asyncio
import logging
import random
from collections.abc import Awaitable, Callable
from contextlib import aclosing

from podlife.api.codec import Object
from podlife.client import PODS, Bookmark, Client, EventType, WatchOptions
from podlife.errors import PodlifeError
from podlife.kubelet.config.pod_source import PodSource

log = logging.getLogger(__name__)

_FIRST_DELAY_SECONDS = 0.5
_MAX_DELAY_SECONDS = 30.0


async def watch_pods(
    client: Client, node_name: str, source: PodSource, confirm: Callable[[], Awaitable[None]]
) -> None:
    """Run until cancelled. `confirm` raises `PodlifeError` if the server must not be trusted."""
    delay = _FIRST_DELAY_SECONDS
    logged = ""
    while True:
        follower = _Follower(source, confirm)
        try:
            await follower.follow(client, node_name)
        except Exception as error:
            # Whatever the server sends, pods keep running. Each reason is logged once: watches end every day, and an
            # outage may be long.
            is_new = not follower.has_synced and str(error) != logged
            is_expected = isinstance(error, PodlifeError)
            level = logging.WARNING if is_new or not is_expected else logging.DEBUG
            log.log(
                level,
                "watch of pods on node %s ended, retrying: %s",
                node_name,
                error,
                exc_info=not is_expected,
            )
            logged = "" if follower.has_synced else str(error)
        delay = _FIRST_DELAY_SECONDS if follower.has_synced else min(delay * 2, _MAX_DELAY_SECONDS)
        # Jitter, because many nodes lose a server at the same time.
        await asyncio.sleep(delay * random.uniform(0.5, 1.0))  # noqa: S311 - spreads load, guards nothing


class _Follower:
    def __init__(self, source: PodSource, confirm: Callable[[], Awaitable[None]]) -> None:
        self.has_synced = False
        self._source = source
        self._confirm = confirm
        self._listed: list[Object] = []

    async def follow(self, client: Client, node_name: str) -> None:
        options = WatchOptions(
            field_selector=f"spec.nodeName={node_name}", resume_seconds=0.0, streams_list=False
        )
        async with aclosing(client.list_watch(PODS, options=options)) as events:
            async for event in events:
                if isinstance(event, Bookmark):
                    await self._on_bookmark(event)
                elif not self.has_synced:
                    self._listed.append(event.object)
                elif event.type is EventType.DELETED:
                    self._source.remove(event.object)
                else:
                    self._source.put(event.object)

    async def _on_bookmark(self, bookmark: Bookmark) -> None:
        if bookmark.is_synced and not self.has_synced:
            # After the list, so that the server that sent it is confirmed; before the list takes effect.
            await self._confirm()
            self.has_synced = True
            self._source.put_all(self._listed)
            self._listed.clear()
