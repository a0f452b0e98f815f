from __future__ import annotations

import asyncio

from podlife.apiserver.storage import Key
from podlife.apiserver.storage.key_locks import KeyLocks
from tests.conformance.storage.storage_kit import start

A, B = Key("pods", "default", "a"), Key("pods", "default", "b")


async def test_nothing_is_kept_of_keys_that_nobody_holds() -> None:
    locks = KeyLocks()
    async with locks.hold([A, B]):
        assert len(locks) == 2
        waiting = start(locks.acquire(A))
        await asyncio.sleep(0)
        waiting.cancel()
        await asyncio.gather(waiting, return_exceptions=True)
    assert len(locks) == 0


async def test_a_key_handed_to_somebody_already_cancelled_goes_to_the_next() -> None:
    locks = KeyLocks()
    await locks.acquire(A)
    cancelled, waiting = start(locks.acquire(A)), start(locks.acquire(A))
    await asyncio.sleep(0)
    # Its future is cancelled at once, it leaves the queue only in its next turn.
    cancelled.cancel()
    locks.release(A)
    await waiting
    await asyncio.gather(cancelled, return_exceptions=True)
    assert len(locks) == 1
    locks.release(A)
    assert len(locks) == 0
