"""Bounded dictionaries: one that drops the least recently used entry, and one whose entries also expire."""

from __future__ import annotations

import asyncio
from collections import OrderedDict
from collections.abc import Hashable
from typing import Generic, TypeVar

K = TypeVar("K", bound=Hashable)
V = TypeVar("V")


class LruCache(Generic[K, V]):
    def __init__(self, most: int) -> None:
        self._most = most
        self._entries: OrderedDict[K, V] = OrderedDict()

    def __len__(self) -> int:
        return len(self._entries)

    def get(self, key: K) -> V | None:
        value = self._entries.get(key)
        if value is not None:
            self._entries.move_to_end(key)
        return value

    def put(self, key: K, value: V) -> None:
        self._entries[key] = value
        self._entries.move_to_end(key)
        if len(self._entries) > self._most:
            self._entries.popitem(last=False)

    def pop(self, key: K) -> V | None:
        return self._entries.pop(key, None)


class TtlCache(Generic[K, V]):
    """Times are the event loop's."""

    def __init__(self, most: int = 2048) -> None:
        self._entries = LruCache[K, tuple[V, float]](most)

    def get(self, key: K) -> V | None:
        value, until = self._entries.get(key) or (None, 0.0)
        return value if asyncio.get_running_loop().time() < until else None

    def keep(self, key: K, value: V, *, seconds: float) -> None:
        self._entries.put(key, (value, asyncio.get_running_loop().time() + seconds))
