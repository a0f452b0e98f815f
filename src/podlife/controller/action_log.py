"""Logs what controllers did: one line per object and kind of action, however often it happened within a second. A
thousand pods created by one ReplicaSet are one line at info level and a thousand at debug.

Actions are taken from the events that controllers record; a component that acts without an event adds its actions
here.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Mapping
from typing import Any

log = logging.getLogger(__name__)

# Actions within this time are logged as one line.
_GATHER_SECONDS = 1.0
# Beyond this many lines only the number of the rest is logged.
_MOST_LINES = 1000
# Prefixes of pod control events, and how several of them are summed up.
_SUMMARIES = {"Created pod: ": "pods created", "Deleted pod: ": "pods deleted"}
# Logged elsewhere: by the pod garbage collector for each pod, and by the reconcile loop for failures.
_LOGGED_ELSEWHERE = ("PodGarbageCollected", "Failed")


class ActionLog:
    def __init__(self) -> None:
        # Count and last message by subject and kind.
        self._done: dict[tuple[str, str], tuple[int, str]] = {}
        self._omitted = 0

    def note(self, subject: str, one: str, many: str) -> None:
        """Record `one` action of `subject`; several are logged as their number and `many`: "pods created"."""
        log.debug("%s: %s", subject, one)
        count, _ = self._done.get((subject, many), (0, ""))
        if not count and len(self._done) >= _MOST_LINES:
            self._omitted += 1
            return
        self._done[subject, many] = count + 1, one

    def note_event(self, regarding: Mapping[str, Any], reason: str, message: str) -> None:
        if reason.startswith(_LOGGED_ELSEWHERE):
            return
        name = f"{regarding.get('namespace', '')}/{regarding['name']}".removeprefix("/")
        many = next(
            (text for start, text in _SUMMARIES.items() if message.startswith(start)), f"times {reason}"
        )
        self.note(f"{regarding['kind']} {name}", message, many)

    def flush(self) -> None:
        done, self._done = self._done, {}
        for (subject, many), (count, one) in done.items():
            log.info("%s: %s", subject, one if count == 1 else f"{count} {many}")
        if self._omitted:
            log.info("%d more actions not listed", self._omitted)
        self._omitted = 0

    async def run(self) -> None:
        try:
            while True:
                await asyncio.sleep(_GATHER_SECONDS)
                self.flush()
        finally:
            self.flush()
