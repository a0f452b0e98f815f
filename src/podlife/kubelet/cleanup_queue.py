"""Pods that may have left something behind, waiting for the next cleanup pass.

Every part that ends or drops a pod adds it here; `PodCleanups` takes what has come. Adding never waits.
"""

from __future__ import annotations

import asyncio

from podlife.aio import wait_until_set


class CleanupQueue:
    def __init__(self) -> None:
        # The first pass looks at everything.
        self.is_full_pass_due = True
        self._uids: dict[str, None] = {}
        self._wakeup = asyncio.Event()

    def add(self, uid: str) -> None:
        self._uids[uid] = None
        self._wakeup.set()

    def add_all(self) -> None:
        self.is_full_pass_due = True
        self._wakeup.set()

    def retry(self) -> None:
        """The last pass failed: make another one, for what it did not take."""
        self._wakeup.set()

    async def wait(self, *, seconds: float) -> None:
        """Wait until something was added; after `seconds` a full pass is due in any case."""
        if not await wait_until_set(self._wakeup, seconds=seconds):
            self.is_full_pass_due = True
        self._wakeup.clear()

    def take(self) -> tuple[list[str], bool]:
        """The UIDs that were added, and whether a full pass is due; both are reset."""
        taken = list(self._uids), self.is_full_pass_due
        self._uids, self.is_full_pass_due = {}, False
        return taken
