"""Whether and when a failed request may be sent again. Pure: `rest_client` acts on it.

Only requests that cannot be executed twice are repeated: reads, requests that were never sent, and requests that the
server refused with a Retry-After. A 429 caused by a disruption budget is a response and not overload: it is neither
repeated nor counted against the server.
"""

from __future__ import annotations

import random

from podlife.client.transport import DeadlineError, NotSentError
from podlife.errors import ApiError, PodlifeError, UnreachableError

_OVERLOAD = frozenset((429, 500, 502, 503, 504))
_MOST_ATTEMPTS = 4
_FIRST_SECONDS, _MOST_SECONDS = 0.1, 10.0


def _is_budget_refusal(error: ApiError) -> bool:
    causes = error.details.get("causes")
    return isinstance(causes, list) and any(
        isinstance(cause, dict) and cause.get("reason") == "DisruptionBudget" for cause in causes
    )


def is_trouble(error: PodlifeError) -> bool:
    """Whether the failure indicates an overloaded or failing server."""
    if isinstance(error, ApiError):
        return error.code in _OVERLOAD and not _is_budget_refusal(error)
    return isinstance(error, UnreachableError)


def is_transient(error: PodlifeError) -> bool:
    """Whether the failure is transient: the same request may succeed shortly after."""
    return is_trouble(error) and not (isinstance(error, NotSentError) and error.is_lasting)


def backoff_seconds(failures: int) -> float:
    """Delay after this many consecutive failures."""
    longest = min(_MOST_SECONDS, _FIRST_SECONDS * 2.0 ** min(failures - 1, 30))
    # Half of it is jitter, so that clients that failed together do not retry together.
    return longest * (0.5 + random.random() / 2)  # noqa: S311 - spreads load, guards nothing


def retry_seconds(method: str, error: PodlifeError, failures: int) -> float | None:
    """Delay before a retry after `failures` consecutive failures; None for no retry."""
    if not is_transient(error):
        return None
    if isinstance(error, ApiError) and error.code in (429, 503) and error.retry_after_seconds is not None:
        # A Retry-After of 0 still gets a delay, to avoid a busy loop.
        return float(error.retry_after_seconds) or backoff_seconds(failures)
    if failures >= _MOST_ATTEMPTS or isinstance(error, DeadlineError):
        return None
    if method == "GET" or isinstance(error, NotSentError):
        return backoff_seconds(failures)
    return None
