"""Bounded dictionaries: what is dropped, and when entries expire."""

from __future__ import annotations

import asyncio

from podlife.lru import LruCache, TtlCache
from podlife.testing import virtual_time


def test_the_least_recently_used_entry_is_dropped() -> None:
    cache = LruCache[str, int](2)
    cache.put("a", 1)
    cache.put("b", 2)
    assert cache.get("a") == 1
    cache.put("c", 3)
    assert (cache.get("a"), cache.get("b"), cache.get("c"), len(cache)) == (1, None, 3, 2)
    assert (cache.pop("a"), cache.pop("a"), len(cache)) == (1, None, 1)


@virtual_time
async def test_an_entry_expires_after_its_seconds() -> None:
    cache = TtlCache[str, bool]()
    cache.keep("no", False, seconds=10)
    await asyncio.sleep(9)
    assert cache.get("no") is False
    await asyncio.sleep(1)
    assert cache.get("no") is None


@virtual_time
async def test_no_more_entries_are_kept_than_there_is_room_for() -> None:
    kept: TtlCache[int, int] = TtlCache(most=3)
    for number in range(10):
        kept.keep(number, number, seconds=60)
    assert [kept.get(number) for number in range(10)] == [None] * 7 + [7, 8, 9]
