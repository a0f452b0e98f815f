"""Locks by key: first come, first served; nothing is kept for a key that is not held.

Several keys are taken in sorted order, so that there are no deadlocks. A waiter that is cancelled leaves the queue;
if the key was just handed to it, it passes it on.
"""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Sequence

from podlife.apiserver.storage.records import Key


class KeyLocks:
    def __init__(self) -> None:
        # A key is present while it is held, with its waiters.
        self._held: dict[Key, deque[asyncio.Future[None]]] = {}

    def __len__(self) -> int:
        return len(self._held)

    def hold(self, keys: Sequence[Key]) -> KeyHold:
        return KeyHold(self, keys if len(keys) == 1 else sorted(set(keys)))

    async def acquire(self, key: Key) -> None:
        waiting = self._held.get(key)
        if waiting is None:
            self._held[key] = deque()
            return
        turn: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        waiting.append(turn)
        try:
            await turn
        except asyncio.CancelledError:
            if turn.cancelled():
                if turn in waiting:
                    waiting.remove(turn)
            else:
                self.release(key)
            raise

    def release(self, key: Key) -> None:
        waiting = self._held[key]
        while waiting:
            turn = waiting.popleft()
            if not turn.done():
                # The key stays held by the next waiter.
                turn.set_result(None)
                return
        del self._held[key]


class KeyHold:
    """Holds the keys for the length of an `async with`."""

    __slots__ = ("_keys", "_locks", "_taken")

    def __init__(self, locks: KeyLocks, keys: Sequence[Key]) -> None:
        self._locks = locks
        self._keys = keys
        self._taken = 0

    async def __aenter__(self) -> None:
        try:
            for key in self._keys:
                await self._locks.acquire(key)
                self._taken += 1
        except BaseException:
            self._release()
            raise

    async def __aexit__(self, *_: object) -> None:
        self._release()

    def _release(self) -> None:
        while self._taken:
            self._taken -= 1
            self._locks.release(self._keys[self._taken])
