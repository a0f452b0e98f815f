"""Sends one correlated event, with a bounded number of retries.

An event has its name before it is sent and its count is absolute, so it is safe to send twice: if it is unknown
whether it arrived it is sent again. A refusal (4xx) is final; overload and outages are retried, up to twelve attempts
as upstream.
"""

from __future__ import annotations

import asyncio
import logging
from enum import Enum, auto

from podlife.api.codec import Object
from podlife.client import EVENTS, Client, PatchType
from podlife.client.retry import backoff_seconds, is_transient
from podlife.errors import AlreadyExistsError, ApiError, NotFoundError, PodlifeError
from podlife.events.correlator import Correlated

log = logging.getLogger(__name__)

_MOST_TRIES = 12


class EventRejection(Enum):
    """Why an event was refused: its namespace is terminating or gone, which is expected, or another reason."""

    NAMESPACE_GONE = auto()
    FAILED = auto()


class Sink:
    def __init__(self, client: Client) -> None:
        self._client = client
        # Logged once, until an event is accepted or the reason changes.
        self._complaint = ""

    async def send(self, correlated: Correlated) -> Object | EventRejection:
        """The event as stored by the server, or why it was refused."""
        tries = 0
        while True:
            try:
                answer = await self._write(correlated)
            except AlreadyExistsError:
                # The previous attempt was stored after all.
                answer = correlated.event
            except PodlifeError as error:
                tries += 1
                if is_transient(error) and tries < _MOST_TRIES:
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

    def _refuse(self, event: Object, error: PodlifeError) -> EventRejection:
        if _is_namespace_gone(error):
            log.debug("event dropped, namespace is terminating: %s", error)
            return EventRejection.NAMESPACE_GONE
        complaint = f"{type(error).__name__} {error.code}" if isinstance(error, ApiError) else str(error)
        level = logging.DEBUG if complaint == self._complaint else logging.WARNING
        self._complaint = complaint
        about = event["involvedObject"]
        log.log(level, "no event about %s %s: %s", about.get("kind", ""), about.get("name", ""), error)
        return EventRejection.FAILED


def _is_namespace_gone(error: PodlifeError) -> bool:
    if isinstance(error, NotFoundError):
        return True
    causes = error.details.get("causes") if isinstance(error, ApiError) else None
    return isinstance(causes, list) and any(
        isinstance(cause, dict) and cause.get("reason") == "NamespaceTerminating" for cause in causes
    )
