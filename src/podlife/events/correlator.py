"""Decides which events are sent and which are combined. Pure.

The rules are client-go's, in its order:

* Events that differ only in their message are combined into one after ten different messages, each within ten minutes
  of the one before.
* A repeated event patches the first one with its count, last time and message.
* A source may send 25 events about one object at once, then one every five minutes; the rest is counted and not sent.

The memory is bounded; an entry that falls out of it starts over.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any

from podlife.api.codec import Object, format_time
from podlife.lru import LruCache
from podlife.workqueue import TokenBucket

_COMBINED = "(combined from similar events): "

Key = tuple[str, ...]


@dataclass(frozen=True, slots=True)
class CorrelatorSettings:
    similar_events: int = 10
    similar_seconds: float = 600.0
    burst: int = 25
    refill_per_second: float = 1 / 300
    remembered: int = 4096


@dataclass(frozen=True, slots=True)
class Correlated:
    """An event to create or, if it has a patch, to patch."""

    key: Key
    event: Object
    patch: Object | None = None


@dataclass(slots=True)
class _Similar:
    messages: dict[str, None]
    at: datetime


@dataclass(slots=True)
class _Observed:
    count: int
    first_timestamp: str
    name: str


class Correlator:
    def __init__(self, settings: CorrelatorSettings | None = None) -> None:
        self._settings = settings or CorrelatorSettings()
        self._similar: LruCache[Key, _Similar] = LruCache(self._settings.remembered)
        self._observed: LruCache[Key, _Observed] = LruCache(self._settings.remembered)
        self._buckets: LruCache[Key, TokenBucket] = LruCache(self._settings.remembered)

    def correlate(self, event: Object, now: datetime) -> Correlated | None:
        """What to send for this event; None if its object exceeds the rate limit."""
        about = object_key(event["source"].get("component", ""), event["involvedObject"], event["type"])
        event, key = self._combine(event, about, now)
        correlated = self._count(event, key)
        # After counting, so that dropped events are in the count of the next one.
        return correlated if self._is_within_limit(about, now) else None

    def counts_only(self, about: Key, what: tuple[str, str, str], now: datetime) -> bool:
        """Whether an event is only counted: combined with others and over the rate limit. If so it has been counted,
        and need not be created: thousands of pods of one owner cause thousands of these. `what` is reason, message and
        reporter."""
        reason, message, component = what
        key = (*about, reason, component, "")
        similar = self._similar.get(key)
        if similar is None or now - similar.at > timedelta(seconds=self._settings.similar_seconds):
            return False
        if message in similar.messages or len(similar.messages) < self._settings.similar_events - 1:
            return False
        observed, bucket = self._observed.get(key), self._buckets.get(about)
        if observed is None or bucket is None or bucket.has_one(now.timestamp()):
            return False
        similar.messages[message] = None
        del similar.messages[next(iter(similar.messages))]
        similar.at = now
        observed.count += 1
        return True

    def update(self, correlated: Correlated, answer: Object) -> None:
        """Record the server's state of the event, from which repetitions are counted."""
        self._remember(correlated.key, answer)

    def _combine(self, event: Object, about: Key, now: datetime) -> tuple[Object, Key]:
        key = (*about, event["reason"], event["reportingComponent"], event["reportingInstance"])
        similar = self._similar.get(key)
        if similar is None or now - similar.at > timedelta(seconds=self._settings.similar_seconds):
            similar = _Similar({}, now)
        similar.messages[event["message"]] = None
        similar.at = now
        self._similar.put(key, similar)
        if len(similar.messages) < self._settings.similar_events:
            field_path = str(event["involvedObject"].get("fieldPath", ""))
            return event, (*about, field_path, event["reason"], event["message"])
        # Remove one, so that the next new message exceeds the limit again and the set stays small.
        del similar.messages[next(iter(similar.messages))]
        timestamp = format_time(now)
        combined = {
            **event,
            "message": f"{_COMBINED}{event['message']}",
            "count": 1,
            "firstTimestamp": timestamp,
            "lastTimestamp": timestamp,
        }
        return combined, key

    def _count(self, event: Object, key: Key) -> Correlated:
        observed = self._observed.get(key)
        if observed is None:
            self._remember(key, event)
            return Correlated(key, event)
        observed.count += 1
        event = {
            **event,
            "metadata": {**event["metadata"], "name": observed.name},
            "firstTimestamp": observed.first_timestamp,
            "count": observed.count,
        }
        patch = {field: event[field] for field in ("count", "lastTimestamp", "message")}
        return Correlated(key, event, patch)

    def _remember(self, key: Key, event: Object) -> None:
        observed = _Observed(event.get("count") or 1, event["firstTimestamp"], event["metadata"]["name"])
        self._observed.put(key, observed)

    def _is_within_limit(self, about: Key, now: datetime) -> bool:
        bucket = self._buckets.get(about)
        if bucket is None:
            bucket = TokenBucket(self._settings.refill_per_second, self._settings.burst)
            self._buckets.put(about, bucket)
        return bucket.take(now.timestamp())


def object_key(component: str, about: Mapping[str, Any], type_: str) -> Key:
    """Source, object and type."""
    return (
        component,
        "",
        str(about.get("kind", "")),
        str(about.get("namespace", "")),
        str(about.get("name", "")),
        str(about.get("uid", "")),
        str(about.get("apiVersion", "")),
        type_,
    )
