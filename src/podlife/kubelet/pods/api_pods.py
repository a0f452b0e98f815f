"""Follows the pods that the API server has given to a node, and puts them into a source.

A node has few pods: after every interruption they are listed anew, so that nothing is missed and a server that has lost
its memory is believed. It never gives up: pods run on while their server is away.
"""

from __future__ import annotations

import asyncio
import logging
import random
from contextlib import aclosing

from podlife.client import PODS, Bookmark, Client, EventType, WatchOptions
from podlife.errors import PodlifeError
from podlife.kubelet.pods.sources import PodSource

__all__ = ["follow_pods"]

log = logging.getLogger(__name__)

_FIRST_DELAY_SECONDS = 0.5
_MOST_DELAY_SECONDS = 30.0


async def follow_pods(client: Client, node_name: str, source: PodSource) -> None:
    """Until it is cancelled."""
    delay = _FIRST_DELAY_SECONDS
    complaint = ""
    while True:
        follower = _Follower(source)
        try:
            await follower.follow(client, node_name)
        except Exception as error:
            # Pods run on, whatever is wrong with what the server says.
            # Once for each reason: a watch that ends is an everyday thing, and a server that is away is away for long.
            is_new = not follower.has_synced and str(error) != complaint
            is_expected = isinstance(error, PodlifeError)
            level = logging.WARNING if is_new or not is_expected else logging.DEBUG
            log.log(
                level,
                "watch of pods on node %s ended, retrying: %s",
                node_name,
                error,
                exc_info=not is_expected,
            )
            complaint = "" if follower.has_synced else str(error)
        delay = _FIRST_DELAY_SECONDS if follower.has_synced else min(delay * 2, _MOST_DELAY_SECONDS)
        # Many nodes lose one server at the same moment.
        await asyncio.sleep(delay * random.uniform(0.5, 1.0))  # noqa: S311 - spreads load, guards nothing


class _Follower:
    def __init__(self, source: PodSource) -> None:
        self.has_synced = False
        self._source = source
        self._unseen = set(source.uids)

    async def follow(self, client: Client, node_name: str) -> None:
        options = WatchOptions(
            field_selector=f"spec.nodeName={node_name}", resume_seconds=0.0, streams_list=False
        )
        async with aclosing(client.follow(PODS, options=options)) as events:
            async for event in events:
                if isinstance(event, Bookmark):
                    self._pass_bookmark(event)
                elif event.type is EventType.DELETED:
                    self._source.remove(event.object)
                else:
                    self._unseen.discard(event.object["metadata"]["uid"])
                    self._source.put(event.object)

    def _pass_bookmark(self, bookmark: Bookmark) -> None:
        if bookmark.is_synced and not self.has_synced:
            self.has_synced = True
            for uid in self._unseen:
                self._source.remove_uid(uid)
            self._source.complete()
