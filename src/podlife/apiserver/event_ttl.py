"""Removes Events that were not written for a while, as kube-apiserver does with `--event-ttl`.

kube-apiserver stores each write of an Event with a lease of etcd. Here the server notes its revision at intervals: an
Event whose revision had been reached a time to live ago was not written since. So a pass only compares numbers, and
nothing is kept for each Event. Events that were stored before the server started are as old as their own times say.
"""

from __future__ import annotations

import asyncio
import logging
import math
from collections import deque
from collections.abc import Sequence
from contextlib import suppress
from operator import attrgetter

import msgspec

from podlife.api.codec import decode_object, parse_time
from podlife.apiserver.registry import Registry
from podlife.apiserver.registry.object_codec import encoder
from podlife.apiserver.storage import Delete, Record, StoreError

log = logging.getLogger(__name__)

_EVENTS = "events"
# As upstream, where Events written within such a period share a lease: 5 % of the time to live, up to a minute.
_PERIOD_SHARE, _LEAST_PERIOD_SECONDS, _MOST_PERIOD_SECONDS = 0.05, 1.0, 60.0
# Events that are removed, or read when the server starts, before other tasks get a turn.
_BATCH = 100
_revision_of = attrgetter("revision")


class EventExpiry:
    """`run` ends when the store closes or the task is cancelled."""

    def __init__(self, registry: Registry, ttl_seconds: float) -> None:
        self._store = registry.store
        self._clock = registry.clock
        self._ttl_seconds = ttl_seconds
        share = _PERIOD_SHARE * ttl_seconds
        self._period = max(_LEAST_PERIOD_SECONDS, min(share, _MOST_PERIOD_SECONDS))
        # Times, and the revision at each, oldest first: as many as periods in a time to live.
        self._marks: deque[tuple[float, int]] = deque()
        # Events of this revision and before have expired.
        self._expired = 0

    async def run(self) -> None:
        await self._mark_stored()
        while not self._store.is_closed:
            now = self._clock.now().timestamp()
            self._marks.append((now, self._store.revision))
            while self._marks[0][0] <= now - self._ttl_seconds:
                _, self._expired = self._marks.popleft()
            try:
                await self._remove_expired()
            except StoreError as error:
                log.warning("expired events not removed, will retry: %s", error)
            except Exception:  # it must not affect the server
                log.exception("expired events not removed, will retry")
            await asyncio.sleep(self._period)

    async def _mark_stored(self) -> None:
        marks: dict[int, int] = {}
        now, newest = self._clock.now().timestamp(), 0
        for count, record in enumerate(sorted(self._store.list(_EVENTS), key=_revision_of)):
            # A time in the future is the writer's mistake. Later revisions are not older.
            newest = max(newest, int(min(_written_at(record), now) // self._period))
            marks[newest] = record.revision
            if count % _BATCH == 0:
                await asyncio.sleep(0)
        self._marks.extend(((place + 1) * self._period, revision) for place, revision in marks.items())

    async def _remove_expired(self) -> None:
        expired = [record for record in self._store.list(_EVENTS) if record.revision <= self._expired]
        for start in range(0, len(expired), _BATCH):
            await self._remove(expired[start : start + _BATCH])

    async def _remove(self, records: Sequence[Record]) -> None:
        async with self._store.locked(*(record.key for record in records)):
            # Those that were written again since stay.
            same = [record for record in records if self._store.get(record.key) is record]
            changes = (Delete(each.key, encoder(decode_object(each.value)), each.revision) for each in same)
            await self._store.commit(*changes)


class _Metadata(msgspec.Struct, rename="camel"):
    creation_timestamp: str = ""


class _Series(msgspec.Struct, rename="camel"):
    last_observed_time: str | None = None


class _Times(msgspec.Struct, rename="camel"):
    metadata: _Metadata
    event_time: str | None = None
    last_timestamp: str | None = None
    series: _Series | None = None


_decode_times = msgspec.json.Decoder(_Times).decode


def _written_at(record: Record) -> float:
    """When the Event was last written, by its own times; if they cannot be read, never yet."""
    try:
        found = _decode_times(record.value)
    except msgspec.MsgspecError:
        return math.inf
    latest = 0.0
    observed = None if found.series is None else found.series.last_observed_time
    for text in (found.metadata.creation_timestamp, found.event_time, found.last_timestamp, observed):
        with suppress(ValueError, OverflowError):
            latest = max(latest, parse_time(text).timestamp() if text else 0.0)
    return latest
