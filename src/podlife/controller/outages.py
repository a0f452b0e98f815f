"""What people are told of a server that cannot be followed: once when it is lost, ever more rarely while it stays away,
once when it is followed again.

Informers get over interruptions by themselves, and there are many of them: each says at debug what it meets, and this
says it for all. One that is over at the next look is not worth a line.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable

__all__ = ["Outage", "tell_of_outages"]

log = logging.getLogger(__name__)

# How often it is looked.
_LOOK_SECONDS = 1.0
# After this time comes the first reminder, and each further one after twice the time.
_REMIND_SECONDS = 60.0


class Outage:
    """`look` is given what is wrong, or nothing, and says what there is to tell of it."""

    def __init__(self) -> None:
        self._since: float | None = None
        self._is_told = False
        self._remind_after = _REMIND_SECONDS

    def look(self, complaint: str, now: float) -> tuple[int, str] | None:
        """The level and the text of what is to be told now, if there is anything."""
        if not complaint:
            return self._end(now)
        if self._since is None:
            self._since = now
            return None
        seconds = now - self._since
        if not self._is_told:
            self._is_told = True
            return (
                logging.WARNING,
                f"the server is not followed, and nothing is decided until it is: {complaint}",
            )
        if seconds >= self._remind_after:
            self._remind_after *= 2
            return logging.WARNING, f"the server is not followed for {seconds:.0f} s now: {complaint}"
        return None

    def _end(self, now: float) -> tuple[int, str] | None:
        since, is_told = self._since, self._is_told
        self._since, self._is_told, self._remind_after = None, False, _REMIND_SECONDS
        if since is None or not is_told:
            return None
        return logging.INFO, f"the server is followed again, after {now - since:.0f} s"


async def tell_of_outages(complaint: Callable[[], str]) -> None:
    """Look again and again, and log what there is to tell, until cancelled."""
    loop = asyncio.get_running_loop()
    outage = Outage()
    while True:
        if told := outage.look(complaint(), loop.time()):
            log.log(*told)
        await asyncio.sleep(_LOOK_SECONDS)
