"""Which failures end an informer, and how long it waits after the others. Pure: it decides, the informer acts.

Before the first sync a refusal is believed at once: a wrong address, a missing right or a resource that does not exist
is for the user to mend. Later the same words may be a server that has just been restarted and does not know its
own roles yet, so they are believed only when they last. No outage, however long, ends an informer.
"""

from __future__ import annotations

from podlife.client.retry import backoff_seconds, is_passing
from podlife.client.views import BadAnswerError
from podlife.errors import ApiError, ExpiredError, PodlifeError, UnreachableError

__all__ = ["Patience"]

# How long a refusal must last before it is believed, once the server had granted what it now refuses.
_REFUSED_SECONDS = 60.0
# A stream that lived for this long was a good one: what ends it is no further failure in a row.
_GOOD_SECONDS = 10.0


class Patience:
    def __init__(self) -> None:
        self._has_synced = False
        self._failures = 0
        # Since when there is a stream; None between two of them.
        self._synced_at: float | None = None
        self._refused_since: float | None = None

    def note_sync(self, now: float) -> None:
        self._has_synced = True
        self._synced_at = now
        self._refused_since = None

    def is_believed(self, error: PodlifeError, now: float) -> bool:
        """Whether the failure is to end the informer."""
        if is_passing(error) or isinstance(error, ExpiredError | BadAnswerError):
            self._refused_since = None
            return False
        if not self._has_synced:
            return True
        if isinstance(error, UnreachableError):
            self._refused_since = None
            return False
        if self._refused_since is None:
            self._refused_since = now
        return now - self._refused_since >= _REFUSED_SECONDS

    def next_delay(self, error: PodlifeError, now: float) -> float:
        """How long to wait before the next list."""
        if self._synced_at is not None and now - self._synced_at >= _GOOD_SECONDS:
            self._failures = 0
        self._synced_at = None
        self._failures += 1
        asked = error.retry_after_seconds if isinstance(error, ApiError) else None
        return max(backoff_seconds(self._failures), float(asked or 0))
