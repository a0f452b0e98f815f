"""Delays before a key is retried.

Limiters with state per key keep it until `forget`, which the caller calls when a key succeeded or was given up.
"""

from __future__ import annotations

import asyncio
from typing import Generic, Protocol, TypeVar

from podlife.workqueue.queue import K

K_contra = TypeVar("K_contra", contravariant=True)


class RateLimiter(Protocol[K_contra]):
    def delay_seconds(self, key: K_contra) -> float:
        """The next delay of this key; each call counts as a retry."""

    def forget(self, key: K_contra) -> None: ...

    def retries(self, key: K_contra) -> int:
        """Number of retries since `forget`."""


class ExponentialLimiter(Generic[K]):
    """Doubles the delay after each failure of a key, within bounds."""

    def __init__(self, base_seconds: float = 0.005, most_seconds: float = 1000.0) -> None:
        self._base_seconds = base_seconds
        self._most_seconds = most_seconds
        self._failures: dict[K, int] = {}

    def delay_seconds(self, key: K) -> float:
        failures = self._failures.get(key, 0)
        self._failures[key] = failures + 1
        # Larger exponents would overflow a float.
        return min(self._most_seconds, self._base_seconds * 2.0 ** min(failures, 1000))

    def forget(self, key: K) -> None:
        self._failures.pop(key, None)

    def retries(self, key: K) -> int:
        return self._failures.get(key, 0)


class TokenBucket:
    """`burst` at once, then `per_second`; initially full. `reserve` may take future tokens."""

    __slots__ = ("_at", "_burst", "_per_second", "_tokens")

    def __init__(self, per_second: float, burst: int) -> None:
        if per_second <= 0 or burst < 1:
            raise ValueError(f"burst ({burst}) and rate ({per_second:g} per second) must be positive")
        self._per_second = per_second
        self._burst = burst
        self._tokens = float(burst)
        self._at: float | None = None

    def has_one(self, now: float) -> bool:
        self._fill(now)
        return self._tokens >= 1

    def take(self, now: float) -> bool:
        self._fill(now)
        if self._tokens < 1:
            return False
        self._tokens -= 1
        return True

    def reserve(self, now: float) -> float:
        """Take a token; returns in how many seconds it may be used."""
        self._fill(now)
        self._tokens -= 1
        return max(0.0, -self._tokens / self._per_second)

    def _fill(self, now: float) -> None:
        # A clock that was set back neither adds nor removes tokens.
        elapsed = 0.0 if self._at is None else max(0.0, now - self._at)
        self._at = now
        self._tokens = min(float(self._burst), self._tokens + elapsed * self._per_second)


class BucketLimiter(Generic[K]):
    """Limits retries of all keys together: `burst` at once, then `per_second`."""

    def __init__(self, per_second: float = 10.0, burst: int = 100) -> None:
        self._bucket = TokenBucket(per_second, burst)

    def delay_seconds(self, key: K) -> float:
        return self._bucket.reserve(asyncio.get_running_loop().time())

    def forget(self, key: K) -> None:
        """No state per key."""

    def retries(self, key: K) -> int:
        return 0


class LongestLimiter(Generic[K]):
    """The longest delay of all limiters."""

    def __init__(self, *limiters: RateLimiter[K]) -> None:
        self._limiters = limiters

    def delay_seconds(self, key: K) -> float:
        return max((limiter.delay_seconds(key) for limiter in self._limiters), default=0.0)

    def forget(self, key: K) -> None:
        for limiter in self._limiters:
            limiter.forget(key)

    def retries(self, key: K) -> int:
        return max((limiter.retries(key) for limiter in self._limiters), default=0)
