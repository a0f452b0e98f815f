"""Sends one correlated event, with patience but not for ever.

An event has its name before it is sent and its count is absolute, so sending it twice does no harm: what may or may
not have arrived is sent again. What the server refuses (4xx) is given up; what a full or ill server, or none
at all, keeps from arriving is tried again, twelve times in all as upstream.
"""

from __future__ import annotations

import asyncio
import logging
from enum import Enum, auto

from podlife.api.codec import Object
from podlife.client import EVENTS, Client, PatchType
from podlife.client.retry import backoff_seconds, is_passing
from podlife.errors import AlreadyExistsError, ApiError, NotFoundError, PodlifeError
from podlife.events.correlator import Correlated

__all__ = ["Refusal", "Sink"]

log = logging.getLogger(__name__)

_MOST_TRIES = 12


class Refusal(Enum):
    """Why an event was not taken: because its namespace goes or has gone, which is nobody's fault, or else."""

    NAMESPACE_GONE = auto()
    FAILED = auto()


class Sink:
    def __init__(self, client: Client) -> None:
        self._client = client
        # Said once and not for each event, until one gets through or another thing is wrong.
        self._complaint = ""

    async def send(self, correlated: Correlated) -> Object | Refusal:
        """The event as the server holds it now, or why it does not."""
        tries = 0
        while True:
            try:
                answer = await self._write(correlated)
            except AlreadyExistsError:
                # The try before has arrived after all.
                answer = correlated.event
            except PodlifeError as error:
                tries += 1
                if is_passing(error) and tries < _MOST_TRIES:
                    await asyncio.sleep(backoff_seconds(tries))
                    continue
                return self._refuse(correlated.event, error)
            self._complaint = ""
            return answer

    async def _write(self, correlated: Correlated) -> Object:
        event, patch = correlated.event, correlated.patch
        metadata = event["metadata"]
        if patch is not None:
            try:
                return await self._client.patch(
                    EVENTS, metadata["name"], patch, metadata["namespace"], type=PatchType.STRATEGIC
                )
            except NotFoundError:
                # Events live an hour: the first one has expired.
                pass
        return await self._client.create(EVENTS, event)

    def _refuse(self, event: Object, error: PodlifeError) -> Refusal:
        if _is_namespace_gone(error):
            log.debug("no event in a namespace that goes: %s", error)
            return Refusal.NAMESPACE_GONE
        complaint = f"{type(error).__name__} {error.code}" if isinstance(error, ApiError) else str(error)
        level = logging.DEBUG if complaint == self._complaint else logging.WARNING
        self._complaint = complaint
        about = event["involvedObject"]
        log.log(level, "no event about %s %s: %s", about.get("kind", ""), about.get("name", ""), error)
        return Refusal.FAILED


def _is_namespace_gone(error: PodlifeError) -> bool:
    if isinstance(error, NotFoundError):
        return True
    causes = error.details.get("causes") if isinstance(error, ApiError) else None
    return isinstance(causes, list) and any(
        isinstance(cause, dict) and cause.get("reason") == "NamespaceTerminating" for cause in causes
    )
