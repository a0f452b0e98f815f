"""What controllers have done, for the log: a line for each object and kind of act, however often it was done within a
second. A thousand pods that one ReplicaSet makes are a line, not a thousand; each by itself is told at debug.

What was done is taken from the events that controllers tell their objects; who deletes without telling anybody notes
it here.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Mapping
from typing import Any

__all__ = ["Acts"]

log = logging.getLogger(__name__)

# How long acts are gathered for one line.
_GATHER_SECONDS = 1.0
# Of more kinds of acts at once than this, the rest is told as one number.
_MOST_LINES = 1000
# How the events of pod control begin: what several of them are together.
_TOGETHER = {"Created pod: ": "pods created", "Deleted pod: ": "pods deleted"}
# These are told by who tells them: the pod collector for each pod, and the reconcile loop for what failed.
_TOLD_ELSEWHERE = ("PodGarbageCollected", "Failed")


class Acts:
    def __init__(self) -> None:
        # How often, and the last one of them in full.
        self._done: dict[tuple[str, str], tuple[int, str]] = {}
        self._untold = 0

    def note(self, subject: str, one: str, many: str) -> None:
        """`subject` did, or was done, `one` thing; several such are so `many`: "pods created"."""
        log.debug("%s: %s", subject, one)
        count, _ = self._done.get((subject, many), (0, ""))
        if not count and len(self._done) >= _MOST_LINES:
            self._untold += 1
            return
        self._done[subject, many] = count + 1, one

    def note_event(self, regarding: Mapping[str, Any], reason: str, message: str) -> None:
        """An event that was told of an object."""
        if reason.startswith(_TOLD_ELSEWHERE):
            return
        name = f"{regarding.get('namespace', '')}/{regarding['name']}".removeprefix("/")
        many = next(
            (text for start, text in _TOGETHER.items() if message.startswith(start)), f"times {reason}"
        )
        self.note(f"{regarding['kind']} {name}", message, many)

    def tell(self) -> None:
        """Log what was done since it was last told."""
        done, self._done = self._done, {}
        for (subject, many), (count, one) in done.items():
            log.info("%s: %s", subject, one if count == 1 else f"{count} {many}")
        if self._untold:
            log.info("and %d other things were done", self._untold)
        self._untold = 0

    async def tell_for_ever(self) -> None:
        try:
            while True:
                await asyncio.sleep(_GATHER_SECONDS)
                self.tell()
        finally:
            self.tell()
