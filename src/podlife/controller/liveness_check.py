"""Detects a server that has stopped responding.

The watches of an idle cluster are silent for a minute at a time, and so are those of a server that has frozen with
its connections open. If nothing was received for a while, a cheap request with a short deadline decides. A server
that sends data is never probed. Read deadlines of watches apply independently.
"""

from __future__ import annotations

import asyncio

from podlife.client import Client, Limiter
from podlife.errors import ApiError, PodlifeError

_SILENT_SECONDS = 30.0
_ANSWER_SECONDS = 10.0
_AGAIN_SECONDS = 5.0


class LivenessCheck:
    """`client` is shared with the controllers: any data it receives counts."""

    def __init__(self, client: Client, *, silent_seconds: float = _SILENT_SECONDS) -> None:
        self._client = client
        # With its own limiter: the probe must not wait behind requests that are not answered.
        self._probe_client = client.with_timeout(_ANSWER_SECONDS, limiter=Limiter())
        self._silent_seconds = silent_seconds
        self._failure = ""

    @property
    def complaint(self) -> str:
        """Why the server is considered gone; empty if it is not."""
        return self._failure if self._is_idle() else ""

    async def run(self) -> None:
        """Probe the server whenever it has been silent for too long. Run until cancelled."""
        while True:
            if self._is_idle():
                await self._probe()
                await asyncio.sleep(_AGAIN_SECONDS if self._failure else self._silent_seconds)
            else:
                self._failure = ""
                await asyncio.sleep(self._silent_seconds - self._client.silent_seconds)

    def _is_idle(self) -> bool:
        return self._client.silent_seconds >= self._silent_seconds

    async def _probe(self) -> None:
        try:
            await self._probe_client.request("GET", "/version")
        except PodlifeError as error:
            # An error response is a response.
            if not isinstance(error, ApiError):
                silent = f"{self._client.silent_seconds:.0f} s"
                self._failure = f"no response from the server for {silent}: {error}"
                return
        self._failure = ""
