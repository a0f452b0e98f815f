"""Logs that the API server cannot be watched: once when the connection is lost, at growing intervals while it stays
lost, once when it is restored.

Informers recover on their own and log interruptions at debug level; this reports for all of them. An interruption
shorter than one check is not logged.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable

log = logging.getLogger(__name__)

# Check interval.
_LOOK_SECONDS = 1.0
# Delay of the first reminder; it doubles with each one.
_REMIND_SECONDS = 60.0


class OutageLog:
    """`look` takes the current complaint, or "", and returns what to log."""

    def __init__(self) -> None:
        self._since: float | None = None
        self._is_told = False
        self._remind_after = _REMIND_SECONDS

    def look(self, complaint: str, now: float) -> tuple[int, str] | None:
        """Level and text to log now, if any."""
        if not complaint:
            return self._end(now)
        if self._since is None:
            self._since = now
            return None
        seconds = now - self._since
        if not self._is_told:
            self._is_told = True
            return (logging.WARNING, f"API server unreachable, controllers paused: {complaint}")
        if seconds >= self._remind_after:
            self._remind_after *= 2
            return logging.WARNING, f"API server unreachable for {seconds:.0f} s: {complaint}"
        return None

    def _end(self, now: float) -> tuple[int, str] | None:
        since, is_told = self._since, self._is_told
        self._since, self._is_told, self._remind_after = None, False, _REMIND_SECONDS
        if since is None or not is_told:
            return None
        return logging.INFO, f"API server reachable again after {now - since:.0f} s"


async def log_outages(complaint: Callable[[], str]) -> None:
    """Check and log periodically until cancelled."""
    loop = asyncio.get_running_loop()
    outage = OutageLog()
    while True:
        if told := outage.look(complaint(), loop.time()):
            log.log(*told)
        await asyncio.sleep(_LOOK_SECONDS)
