"""A bounded cache whose entries expire."""

from __future__ import annotations

import asyncio
from collections import OrderedDict
from collections.abc import Hashable
from typing import Generic, TypeVar

K = TypeVar("K", bound=Hashable)
V = TypeVar("V")

_MOST = 2048


class TtlCache(Generic[K, V]):
    def __init__(self, most: int = _MOST) -> None:
        self._most = most
        self._kept: OrderedDict[K, tuple[V, float]] = OrderedDict()

    def get(self, key: K) -> V | None:
        value, until = self._kept.get(key, (None, 0.0))
        if value is None or asyncio.get_running_loop().time() >= until:
            return None
        return value

    def keep(self, key: K, value: V, *, seconds: float) -> None:
        self._kept.pop(key, None)
        self._kept[key] = (value, asyncio.get_running_loop().time() + seconds)
        if len(self._kept) > self._most:
            self._kept.popitem(last=False)
