"""Which failures end an informer, and the delay before the next attempt after all others. Pure.

Before the first sync a refusal is final: the user has to fix a wrong address, a missing permission or an unknown
resource. Later the same response may come from a server that has just restarted and has not loaded its roles, so it
is final only if it persists. No outage ends an informer, however long.
"""

from __future__ import annotations

from podlife.client.retry import backoff_seconds, is_transient
from podlife.client.views import BadAnswerError
from podlife.errors import ApiError, ExpiredError, PodlifeError, UnreachableError

# How long a refusal must persist to be final, after the server had granted the same request.
_REFUSED_SECONDS = 60.0
# A stream that lived this long resets the number of consecutive failures.
_GOOD_SECONDS = 10.0


class RetryPolicy:
    def __init__(self) -> None:
        self._has_synced = False
        self._failures = 0
        # Start of the current stream; None between streams.
        self._synced_at: float | None = None
        self._refused_since: float | None = None

    def note_sync(self, now: float) -> None:
        self._has_synced = True
        self._synced_at = now
        self._refused_since = None

    def is_fatal(self, error: PodlifeError, now: float) -> bool:
        if is_transient(error) or isinstance(error, ExpiredError | BadAnswerError):
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
        if self._synced_at is not None and now - self._synced_at >= _GOOD_SECONDS:
            self._failures = 0
        self._synced_at = None
        self._failures += 1
        asked = error.retry_after_seconds if isinstance(error, ApiError) else None
        return max(backoff_seconds(self._failures), float(asked or 0))
