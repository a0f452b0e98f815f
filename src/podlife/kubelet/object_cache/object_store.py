"""A cache of config maps, or of secrets.

An object is read again about a minute after it was read, or when a pod that refers to it arrives: a change arrives
within that time, and a new pod never starts with old data. Only objects that pods refer to are kept, up to a limit. A
missing object is never cached: a pod that waits for it sees it as soon as it exists. While the server is unreachable,
cached objects stay valid.
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
from podlife.kubelet.object_cache.single_flight import PATIENCE_SECONDS, SingleFlight
from podlife.lru import LruCache

TTL_SECONDS = 60.0
# Objects that came at the same time do not all go at the same time.
_JITTER = 0.1
_MOST_KEPT = 1000
# A server that does not answer is not asked with every look at a pod.
_ASK_AGAIN_SECONDS = 10.0

Key = tuple[str, str]


@dataclass(slots=True)
class _Kept:
    object: Object
    fresh_until: float


class ObjectStore:
    """Of one resource, by namespace and name."""

    def __init__(self, client: Client, ref: Ref, *, jitter: Callable[[], float] = random.random) -> None:
        self._client = client
        self._ref = ref
        self._jitter = jitter
        self._referrers: Counter[Key] = Counter()
        # Of each object that is referred to: since which of all outdatings answers count.
        self._epochs: dict[Key, int] = {}
        self._next_epoch = itertools.count()
        self._kept = LruCache[Key, _Kept](_MOST_KEPT)
        self._calls: SingleFlight[Object | None] = SingleFlight()

    async def get(self, namespace: str, name: str) -> Object | None:
        """None is an object that there is not. Raises the client's error where nothing is kept to answer with."""
        if check_dns_subdomain(name):
            # No server has it, and it could mean something else in a path.
            return None
        key = namespace, name
        kept = self._kept.get(key)
        if kept is not None and asyncio.get_running_loop().time() < kept.fresh_until:
            return kept.object
        name_of_task = f"read {self._ref} {namespace}/{name}"
        seconds = None if kept is None else PATIENCE_SECONDS
        try:
            return await self._calls.join(key, name_of_task, lambda: self._read(key), seconds=seconds)
        except TimeoutError:
            if kept is None:
                raise
            kept.fresh_until = asyncio.get_running_loop().time() + _ASK_AGAIN_SECONDS
            return kept.object

    def add(self, keys: Iterable[Key]) -> None:
        """A pod refers to them: what is known of them is too old."""
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
            # Only another look at the same object: the server's own cache is new enough for it.
            version = "" if kept is None else "0"
            found: Object = await self._client.get(self._ref, key[1], key[0], resource_version=version)
        except NotFoundError:
            if self._epochs.get(key) == epoch:
                self._kept.pop(key)
            return None
        except PodlifeError:
            if kept is None:
                raise
            kept.fresh_until = asyncio.get_running_loop().time() + _ASK_AGAIN_SECONDS
            return kept.object
        if kept is not None and _is_older(found, kept.object):
            return kept.object
        # An answer to a question from before a pod came may be older than the pod.
        if epoch is not None and self._epochs.get(key) == epoch:
            self._keep(key, found)
        return found

    def _keep(self, key: Key, found: Object) -> None:
        seconds = TTL_SECONDS * (1 + _JITTER * self._jitter())
        self._kept.put(key, _Kept(found, asyncio.get_running_loop().time() + seconds))


def _is_older(one: Object, other: Object) -> bool:
    """Versions are opaque, but a server whose versions are numbers counts upwards."""
    mine, others = (str(each["metadata"].get("resourceVersion", "")) for each in (one, other))
    return mine.isdecimal() and others.isdecimal() and int(mine) < int(others)
