"""A cache of config maps, or of secrets.

An object is read again about a minute after it was read, or when a pod that refers to it arrives: changes arrive within
that time, and a new pod never starts with old data. Only objects that pods refer to are cached, up to a limit. Missing
objects are not cached: a waiting pod sees a new object as soon as it exists. While the server is unreachable, cached
objects stay valid.
"""

from __future__ import annotations

import asyncio
import itertools
import random
from collections import Counter
from collections.abc import Callable, Iterable
from dataclasses import dataclass

from podlife.api.codec import Object
from podlife.api.names import check_dns_subdomain
from podlife.client import Client
from podlife.client.refs import Ref
from podlife.errors import NotFoundError, PodlifeError
from podlife.kubelet.object_cache.single_flight import FALLBACK_SECONDS, SingleFlight
from podlife.lru import LruCache

TTL_SECONDS = 60.0
# Spreads the expiry of objects that were read at the same time.
_JITTER = 0.1
_MAX_KEPT = 1000
# Delay before asking an unresponsive server again.
_RETRY_SECONDS = 10.0

Key = tuple[str, str]


@dataclass(slots=True)
class _Kept:
    object: Object
    fresh_until: float


class ObjectStore:
    """Caches one resource, by namespace and name."""

    def __init__(self, client: Client, ref: Ref, *, jitter: Callable[[], float] = random.random) -> None:
        self._client = client
        self._ref = ref
        self._jitter = jitter
        self._referrers: Counter[Key] = Counter()
        # Responses to requests from before the current epoch of an object are not cached.
        self._epochs: dict[Key, int] = {}
        self._next_epoch = itertools.count()
        self._kept = LruCache[Key, _Kept](_MAX_KEPT)
        self._calls: SingleFlight[Object | None] = SingleFlight()

    async def get(self, namespace: str, name: str) -> Object | None:
        """None if the object does not exist. Raises the client's error unless the object is cached."""
        if check_dns_subdomain(name):
            # No server has an object of this name, and it could alter the request path.
            return None
        key = namespace, name
        kept = self._kept.get(key)
        if kept is not None and asyncio.get_running_loop().time() < kept.fresh_until:
            return kept.object
        task_name = f"read {self._ref} {namespace}/{name}"
        seconds = None if kept is None else FALLBACK_SECONDS
        try:
            return await self._calls.join(key, task_name, lambda: self._read(key), seconds=seconds)
        except TimeoutError:
            if kept is None:
                raise
            kept.fresh_until = asyncio.get_running_loop().time() + _RETRY_SECONDS
            return kept.object

    def add(self, keys: Iterable[Key]) -> None:
        """A new pod refers to them: invalidate what is cached."""
        for key in keys:
            self._referrers[key] += 1
            self._epochs[key] = next(self._next_epoch)
            self._kept.pop(key)
            self._calls.forget(key)

    def drop(self, keys: Iterable[Key]) -> None:
        for key in keys:
            self._referrers[key] -= 1
            if self._referrers[key] <= 0:
                del self._referrers[key], self._epochs[key]
                self._kept.pop(key)

    def __len__(self) -> int:
        return len(self._kept)

    async def _read(self, key: Key) -> Object | None:
        kept, epoch = self._kept.get(key), self._epochs.get(key)
        try:
            # For a refresh, the server's own cache is new enough.
            version = "" if kept is None else "0"
            found: Object = await self._client.get(self._ref, key[1], key[0], resource_version=version)
        except NotFoundError:
            if self._epochs.get(key) == epoch:
                self._kept.pop(key)
            return None
        except PodlifeError:
            if kept is None:
                raise
            kept.fresh_until = asyncio.get_running_loop().time() + _RETRY_SECONDS
            return kept.object
        if kept is not None and _is_older(found, kept.object):
            return kept.object
        # A response to a request from before the pod's arrival may be older than the pod.
        if epoch is not None and self._epochs.get(key) == epoch:
            self._keep(key, found)
        return found

    def _keep(self, key: Key, found: Object) -> None:
        seconds = TTL_SECONDS * (1 + _JITTER * self._jitter())
        self._kept.put(key, _Kept(found, asyncio.get_running_loop().time() + seconds))


def _is_older(one: Object, other: Object) -> bool:
    """Versions are opaque, but servers whose versions are numbers count upwards."""
    mine, others = (str(each["metadata"].get("resourceVersion", "")) for each in (one, other))
    return mine.isdecimal() and others.isdecimal() and int(mine) < int(others)
