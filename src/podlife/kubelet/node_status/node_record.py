"""The newest known state of the Node object: what the server returned, and what a watch has brought since."""

from __future__ import annotations

import asyncio
import logging
from contextlib import aclosing

from podlife.api.codec import Object
from podlife.client import NODES, Bookmark, Client, EventType, WatchOptions
from podlife.errors import ExpiredError, PodlifeError

log = logging.getLogger(__name__)

_FIRST_RETRY_SECONDS, _LAST_RETRY_SECONDS = 1.0, 30.0


class NodeRecord:
    """`node` is None while there is no such node, or none yet."""

    def __init__(self) -> None:
        self.node: Object | None = None

    @property
    def uid(self) -> str:
        return str(self.node["metadata"]["uid"]) if self.node is not None else ""

    def put(self, node: Object) -> None:
        """What comes late is left out: an answer to a write is newer than the watch that has yet to tell of it."""
        if self.node is None or not _is_older(node, self.node):
            self.node = node

    def remove(self, uid: str) -> None:
        """The node of this UID is gone; another of its name is not."""
        if uid == self.uid:
            self.node = None


def _is_older(node: Object, than: Object) -> bool:
    one, other = node["metadata"], than["metadata"]
    versions = str(one.get("resourceVersion")), str(other.get("resourceVersion"))
    if one.get("uid") != other.get("uid") or not all(each.isdecimal() for each in versions):
        return False
    return int(versions[0]) < int(versions[1])


async def follow_node(client: Client, name: str, record: NodeRecord) -> None:
    """Keep the record as new as the server's own, until cancelled."""
    delay = _FIRST_RETRY_SECONDS
    while True:
        try:
            await _follow_once(client, name, record)
        except ExpiredError:
            delay = _FIRST_RETRY_SECONDS
        except Exception as error:
            # A kubelet without this watch still learns of its node from its own requests.
            is_expected = isinstance(error, PodlifeError)
            level = logging.DEBUG if is_expected else logging.WARNING
            log.log(level, "watch of node %s ended, retrying: %s", name, error, exc_info=not is_expected)
            delay = min(_LAST_RETRY_SECONDS, delay * 2)
        await asyncio.sleep(delay)


async def _follow_once(client: Client, name: str, record: NodeRecord) -> None:
    options = WatchOptions(field_selector=f"metadata.name={name}", streams_list=False)
    known, listed = record.uid, ""
    async with aclosing(client.list_watch(NODES, options=options)) as events:
        async for event in events:
            if isinstance(event, Bookmark):
                if event.is_synced and not listed:
                    record.remove(known)
                continue
            node: Object = event.object
            if event.type is EventType.DELETED:
                record.remove(node["metadata"]["uid"])
            else:
                listed = node["metadata"]["uid"]
                record.put(node)
