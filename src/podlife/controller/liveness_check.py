"""Whether a server that says nothing is still there.

A watch of a quiet cluster brings nothing for a minute, and a server that has frozen, with its connections open, is as
silent. So when nothing at all has come from it for a while, it is asked something cheap, with a short deadline. A
server that speaks is never asked. That a watch ends with its own read deadline is not changed by the answer.
"""

from __future__ import annotations

import asyncio

from podlife.client import Client, Limiter
from podlife.errors import ApiError, PodlifeError

__all__ = ["Pulse"]

_SILENT_SECONDS = 30.0
_ANSWER_SECONDS = 10.0
_AGAIN_SECONDS = 5.0


class Pulse:
    """`client` is the one that everybody else here uses: what it hears counts."""

    def __init__(
        self,
        client: Client,
        *,
        silent_seconds: float = _SILENT_SECONDS,
        answer_seconds: float = _ANSWER_SECONDS,
    ) -> None:
        self._client = client
        # In a line of its own: the question must not wait behind requests that nobody answers.
        self._asking = client.with_timeout(answer_seconds, limiter=Limiter())
        self._silent_seconds = silent_seconds
        self._failure = ""

    @property
    def complaint(self) -> str:
        """Why the server is taken to be gone; empty when it is not."""
        return self._failure if self._is_silent() else ""

    async def run(self) -> None:
        """Listen, and ask when it is too quiet, until cancelled."""
        while True:
            if self._is_silent():
                await self._ask()
                await asyncio.sleep(_AGAIN_SECONDS if self._failure else self._silent_seconds)
            else:
                self._failure = ""
                await asyncio.sleep(self._silent_seconds - self._client.silent_seconds)

    def _is_silent(self) -> bool:
        return self._client.silent_seconds >= self._silent_seconds

    async def _ask(self) -> None:
        try:
            await self._asking.request("GET", "/version")
        except ApiError:
            # No is an answer too.
            self._failure = ""
        except PodlifeError as error:
            self._failure = f"the server has been silent for {self._client.silent_seconds:.0f} s: {error}"
        else:
            self._failure = ""
