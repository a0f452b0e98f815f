"""Pods that may have left something behind, queued for the next cleanup pass.

Every component that ends or drops a pod adds it here; `PodCleanups` takes them. Adding never waits.
"""

from __future__ import annotations

import asyncio

from podlife.aio import wait_until_set


class CleanupQueue:
    def __init__(self) -> None:
        # The first pass covers everything.
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
        """The last pass failed: repeat it."""
        self._wakeup.set()

    async def wait(self, *, seconds: float) -> None:
        """Wait until something is added; after `seconds` without that, a full pass is due."""
        if not await wait_until_set(self._wakeup, seconds=seconds):
            self.is_full_pass_due = True
        self._wakeup.clear()

    def take(self) -> tuple[list[str], bool]:
        """The queued UIDs, and whether a full pass is due; both are reset."""
        taken = list(self._uids), self.is_full_pass_due
        self._uids, self.is_full_pass_due = {}, False
        return taken
