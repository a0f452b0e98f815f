"""Caches of what requests contain do not outlive the memory of large ones."""

from __future__ import annotations

import asyncio
from functools import lru_cache

import pytest
import yarl

import podlife.bounded_connection  # noqa: F401 - registers the caches of addresses
from podlife import memory


@memory.emptied_with_memory
@lru_cache(maxsize=4)
def _own(text: str) -> str:
    return text * 2


async def test_caches_are_emptied_when_memory_is_given_back(monkeypatch: pytest.MonkeyPatch) -> None:
    # Also where the C library cannot be asked to give memory back.
    monkeypatch.setattr(memory, "_trim", lambda _: None)
    monkeypatch.setattr(memory, "_SECONDS", 0.0)
    kept = yarl.URL.build(path="/api?a=1", encoded=True)
    assert yarl.URL.build(path="/api?a=1", encoded=True) is kept
    _own("a")
    memory.give_back_soon()
    async with asyncio.timeout(30):
        while _own.cache_info().currsize:
            await asyncio.sleep(0)
    assert yarl.URL.build(path="/api?a=1", encoded=True) is not kept
