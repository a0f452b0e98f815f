"""The recorder that controllers use: accepts events without waiting and sends them in the background.

Guarantees:
* `event` never waits and never raises.
* The queue is bounded; events that do not fit are dropped and counted.
* At most one request is in flight, and no failure of an event ends `run`.
"""

from __future__ import annotations

import asyncio
import logging
import random
import uuid
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from datetime import datetime
from functools import lru_cache
from typing import Any

from podlife.api.codec import Object, format_time
from podlife.api.names import check_dns_subdomain
from podlife.client import Client
from podlife.clock import Clock
from podlife.events.correlator import Correlator, CorrelatorSettings, object_key
from podlife.events.sink import EventRejection, Sink

log = logging.getLogger(__name__)

_MOST_WAITING = 1000
_TYPES = frozenset({"Normal", "Warning"})
# Namespace of events about cluster-scoped objects.
_CLUSTER_SCOPED_NAMESPACE = "default"


@dataclass(slots=True)
class RecorderCounts:
    # Stored by the server, as new events or as counts of existing ones.
    sent: int = 0
    # The queue was full.
    dropped: int = 0
    # Over the rate limit of one object.
    filtered: int = 0
    # Invalid, refused by the server, or not delivered after all retries.
    failed: int = 0


class Recorder:
    def __init__(
        self,
        client: Client,
        component: str,
        *,
        clock: Clock,
        settings: CorrelatorSettings | None = None,
        most_waiting: int = _MOST_WAITING,
        on_event: Callable[[Mapping[str, Any], str, str], None] | None = None,
    ) -> None:
        """`on_event` is called with object, reason and message of each event, sent or not."""
        self.counts = RecorderCounts()
        self._component = component
        self._on_event = on_event
        self._clock = clock
        self._namer = Namer()
        self._correlator = Correlator(settings)
        self._sink = Sink(client)
        self._queue: asyncio.Queue[Object] = asyncio.Queue(most_waiting)
        self._is_overrun = False
        self._is_sending = False

    @property
    def waiting(self) -> int:
        return self._queue.qsize()

    def event(self, regarding: Mapping[str, Any], type_: str, reason: str, message: str) -> None:
        """Record an event about `regarding`, an ObjectReference: kind, name and, if any, namespace, uid, apiVersion.
        `type_` is Normal or Warning. Never waits, never raises."""
        try:
            if type_ not in _TYPES:
                raise ValueError(f"invalid event type {type_!r}: expected Normal or Warning")
            now = self._clock.now()
            if self._on_event is not None:
                self._on_event(regarding, reason, message)
            if self._is_counted(regarding, type_, (reason, message), now):
                self.counts.filtered += 1
                return
            event = make_event(regarding, (type_, reason, message), self._component, now, self._namer)
        except Exception as error:  # noqa: BLE001 - a failing event must not stop the caller's work
            self.counts.failed += 1
            log.warning("event %s dropped: %r", reason, error)
            return
        self._enqueue(event)

    async def run(self) -> None:
        """Send events until cancelled."""
        while True:
            event = await self._queue.get()
            self._is_sending = True
            try:
                await self._send(event)
            except Exception:
                # The failure concerns this event only.
                self.counts.failed += 1
                log.exception("event not sent")
            finally:
                self._is_sending = False
                self._queue.task_done()

    async def flush(self, *, seconds: float) -> bool:
        """Wait until all events so far are sent or given up, at most this long; returns whether they are. `run` must be
        running."""
        try:
            async with asyncio.timeout(seconds):
                await self._queue.join()
        except TimeoutError:
            return False
        return True

    def _is_counted(
        self, regarding: Mapping[str, Any], type_: str, what: tuple[str, str], now: datetime
    ) -> bool:
        """Whether the event is only counted; false while earlier events are queued."""
        if self._is_sending or not self._queue.empty() or "fieldPath" in regarding:
            return False
        about = object_key(self._component, regarding, type_)
        return self._correlator.counts_only(about, (*what, self._component), now)

    def _enqueue(self, event: Object) -> None:
        try:
            self._queue.put_nowait(event)
        except asyncio.QueueFull:
            self.counts.dropped += 1
            if not self._is_overrun:
                log.warning("%d events queued, dropping more", self._queue.qsize())
            self._is_overrun = True
        else:
            self._is_overrun = False

    async def _send(self, event: Object) -> None:
        correlated = self._correlator.correlate(event, self._clock.now())
        if correlated is None:
            self.counts.filtered += 1
            return
        answer = await self._sink.send(correlated)
        if isinstance(answer, EventRejection):
            self.counts.failed += answer is EventRejection.FAILED
            return
        self.counts.sent += 1
        self._correlator.update(correlated, answer)


class Namer:
    """Event names as upstream's: the object's name and the time in nanoseconds.

    Clocks are coarser, so events with the same time must get different names: the second would be rejected as a
    duplicate."""

    def __init__(self) -> None:
        self._last = 0
        # Random, so that two recorders do not generate the same name in the same microsecond.
        self._offset = random.randrange(1000)  # noqa: S311 - keeps names apart, guards nothing

    def name(self, of: str, now: datetime) -> str:
        nanoseconds = int(now.timestamp() * 1_000_000) * 1000 + self._offset
        self._last = nanoseconds = max(nanoseconds, self._last + 1)
        return f"{of}.{nanoseconds:x}" if _is_valid_prefix(of) else str(uuid.uuid4())


@lru_cache(maxsize=1024)
def _is_valid_prefix(of: str) -> bool:
    # Not every object name is valid in an event's name: roles may contain colons.
    return not check_dns_subdomain(f"{of}.{0:016x}")


def make_event(
    regarding: Mapping[str, Any], what: tuple[str, str, str], component: str, now: datetime, namer: Namer
) -> Object:
    """`what` is type, reason and message. `regarding` is an ObjectReference; empty fields are left out."""
    type_, reason, message = what
    moment = format_time(now)
    return {
        "apiVersion": "v1",
        "kind": "Event",
        "metadata": {
            "name": namer.name(regarding["name"], now),
            "namespace": regarding.get("namespace") or _CLUSTER_SCOPED_NAMESPACE,
        },
        "involvedObject": {field: value for field, value in regarding.items() if value},
        "reason": reason,
        "message": message,
        "type": type_,
        "count": 1,
        "firstTimestamp": moment,
        "lastTimestamp": moment,
        "source": {"component": component},
        "reportingComponent": component,
        "reportingInstance": "",
    }
