"""Reads the events of pods.

To find the events of one pod, the server scans its whole namespace. If a namespace is requested often, all its events
are listed once and cached for a few seconds: otherwise a sweep of ten thousand pods would cost ten thousand scans. In a
namespace with too many events to cache, each pod is requested on its own.
"""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from dataclasses import dataclass, field

import msgspec

from podlife.api.codec import Object
from podlife.client import EVENTS, Client, ListOptions
from podlife.errors import ExpiredError

# Of one pod.
MOST_EVENTS = 500
# An event has about a kilobyte, but may have a megabyte.
MOST_EVENT_BYTES = 4 << 20
# Cached per namespace, undecoded.
_MOST_HELD, _MOST_HELD_BYTES = 20_000, 40 << 20
_PAGE = 2_000
# After this many requests within this time, the whole namespace is listed and cached for the same time.
_OFTEN, _SECONDS = 20, 10.0


class _About(msgspec.Struct):
    uid: str = ""


class _Event(msgspec.Struct, rename="camel"):
    involved_object: _About = msgspec.field(default_factory=_About)


_about = msgspec.json.Decoder(_Event)


@dataclass(slots=True)
class _Namespace:
    """Number of requests since a time, and cached events by UID, if any."""

    since: float
    asked: int = 0
    until: float = 0.0
    events: dict[str, list[msgspec.Raw]] | None = None
    turn: asyncio.Lock = field(default_factory=asyncio.Lock)


class PodEvents:
    def __init__(self, client: Client) -> None:
        self._client = client
        self._namespaces: dict[str, _Namespace] = {}

    async def of(self, namespace: str, uid: str) -> tuple[Sequence[Object], bool]:
        """The events of a pod, and whether some were left out."""
        now = asyncio.get_running_loop().time()
        known = self._namespace(namespace, now)
        if known.asked > _OFTEN:
            # Concurrent callers share one list.
            async with known.turn:
                if known.until <= asyncio.get_running_loop().time():
                    await self._read(namespace, known)
        if known.events is None:
            return await self._asked(namespace, uid)
        return _bounded(known.events.get(uid, ()))

    def _namespace(self, name: str, now: float) -> _Namespace:
        """Drops namespaces that were not requested lately."""
        for each, known in list(self._namespaces.items()):
            if known.since + _SECONDS <= now and known.until <= now and not known.turn.locked():
                del self._namespaces[each]
        known = self._namespaces.setdefault(name, _Namespace(now))
        known.asked += 1
        return known

    async def _asked(self, namespace: str, uid: str) -> tuple[Sequence[Object], bool]:
        options = ListOptions(field_selector=f"involvedObject.uid={uid}", limit=MOST_EVENTS)
        page = await self._client.list(EVENTS, namespace, options=options, view=msgspec.Raw)
        events, has_more = _bounded(page.items)
        return events, has_more or bool(page.continue_token)

    async def _read(self, namespace: str, known: _Namespace) -> None:
        """Cache all events of the namespace, unless there are too many."""
        try:
            known.events = await self._all(namespace)
        except ExpiredError:
            # Too many or too slow: request pod by pod.
            known.events = None
        known.until = asyncio.get_running_loop().time() + _SECONDS

    async def _all(self, namespace: str) -> dict[str, list[msgspec.Raw]] | None:
        found: dict[str, list[msgspec.Raw]] = {}
        number = size = 0
        options = ListOptions(limit=_PAGE)
        async for page in self._client.pages(EVENTS, namespace, options=options, view=msgspec.Raw):
            number += len(page.items)
            size += sum(len(memoryview(event)) for event in page.items)
            if number > _MOST_HELD or size > _MOST_HELD_BYTES:
                return None
            for event in page.items:
                found.setdefault(_uid_of(event), []).append(event)
        return found


def _bounded(events: Sequence[msgspec.Raw]) -> tuple[Sequence[Object], bool]:
    """The events kept of one pod, and whether some were left out."""
    kept: list[msgspec.Raw] = []
    size = 0
    for event in events[:MOST_EVENTS]:
        size += len(memoryview(event))
        if size > MOST_EVENT_BYTES:
            break
        kept.append(event)
    return [msgspec.json.decode(each, type=Object) for each in kept], len(kept) < len(events)


def _uid_of(event: msgspec.Raw) -> str:
    try:
        return _about.decode(event).involved_object.uid
    except (msgspec.MsgspecError, UnicodeDecodeError):
        # An event without an object.
        return ""
