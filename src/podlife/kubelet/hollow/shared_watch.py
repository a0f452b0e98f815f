"""One watch of a resource for all hollow nodes: reports every object that is added, changed or deleted.

After an interruption it resumes; if its resourceVersion has expired it lists again, confirms that the server still
belongs to the same cluster, and reports missing objects as deleted. It retries indefinitely; `synced` is set after the
first list.
"""

from __future__ import annotations

import asyncio
import logging
import math
import random
from collections.abc import Awaitable, Callable
from contextlib import aclosing

from podlife.api.codec import Object
from podlife.client import Bookmark, Client, EventType, Ref, WatchOptions
from podlife.errors import ExpiredError, ForbiddenError, PodlifeError, UnauthorizedError

log = logging.getLogger(__name__)

_FIRST_DELAY_SECONDS, _MAX_DELAY_SECONDS = 0.5, 30.0


class SharedWatch:
    """Calls `changed` with each event's type and object, without managedFields, which are half of it. Objects that
    are not `wanted` are ignored. `confirm` raises `PodlifeError` if the server must not be trusted."""

    def __init__(
        self,
        client: Client,
        ref: Ref,
        changed: Callable[[EventType, Object], None],
        *,
        confirm: Callable[[], Awaitable[None]],
        wanted: Callable[[Object], bool] = lambda _: True,
        label_selector: str = "",
        field_selector: str = "",
    ) -> None:
        self.synced = asyncio.Event()
        self._client = client
        self._ref = ref
        self._changed = changed
        self._is_wanted = wanted
        self._confirm = confirm
        self._options = WatchOptions(
            label_selector=label_selector, field_selector=field_selector, resume_seconds=math.inf
        )
        # The last reported state of each object, to report a deletion that the watch missed.
        self._known: dict[str, Object] = {}

    async def run(self) -> None:
        """Run until cancelled. Raises UnauthorizedError or ForbiddenError before the first list, else retries."""
        delay = _FIRST_DELAY_SECONDS
        while True:
            try:
                await self._follow()
            except (UnauthorizedError, ForbiddenError):
                if not self.synced.is_set():
                    raise
            except ExpiredError:
                delay = _FIRST_DELAY_SECONDS
            except PodlifeError as error:
                log.warning("watch of %s failed, retrying: %s", self._ref, error)
                delay = min(delay * 2, _MAX_DELAY_SECONDS)
            await asyncio.sleep(delay * random.uniform(0.5, 1.0))  # noqa: S311 - spreads load, guards nothing

    async def _follow(self) -> None:
        listed: list[Object] | None = []
        async with aclosing(self._client.list_watch(self._ref, options=self._options)) as events:
            async for event in events:
                if not isinstance(event, Bookmark):
                    if listed is None:
                        self._handle(event.type, event.object)
                    elif self._is_wanted(event.object):
                        listed.append(event.object)
                elif event.is_synced and listed is not None:
                    await self._confirm()
                    self._handle_list(listed)
                    listed = None

    def _handle_list(self, listed: list[Object]) -> None:
        unseen = dict(self._known)
        for obj in listed:
            unseen.pop(obj["metadata"]["uid"], None)
            self._handle(EventType.ADDED, obj)
        for gone in unseen.values():
            self._handle(EventType.DELETED, gone)
        self.synced.set()

    def _handle(self, type_: EventType, obj: Object) -> None:
        if not self._is_wanted(obj):
            return
        metadata = obj["metadata"]
        metadata.pop("managedFields", None)
        if type_ is EventType.DELETED:
            self._known.pop(metadata["uid"], None)
        else:
            self._known[metadata["uid"]] = obj
        self._changed(type_, obj)
