"""A token bucket: `burst` at once, then `per_second`. Pure: it is told what time it is."""

from __future__ import annotations


class TokenBucket:
    """Full at first. The bucket may owe tokens: who reserves one that is not there waits until it is."""

    __slots__ = ("_at", "_burst", "_per_second", "_tokens")

    def __init__(self, per_second: float, burst: int) -> None:
        if per_second <= 0 or burst < 1:
            raise ValueError(f"a bucket of {burst} that fills with {per_second:g} per second never gives")
        self._per_second = per_second
        self._burst = burst
        self._tokens = float(burst)
        self._at: float | None = None

    def has_one(self, now: float) -> bool:
        """Whether there is a token to take."""
        self._fill(now)
        return self._tokens >= 1

    def take(self, now: float) -> bool:
        """Take a token if there is one."""
        self._fill(now)
        if self._tokens < 1:
            return False
        self._tokens -= 1
        return True

    def reserve(self, now: float) -> float:
        """Take a token, and say in how many seconds it may be used."""
        self._fill(now)
        self._tokens -= 1
        return max(0.0, -self._tokens / self._per_second)

    def _fill(self, now: float) -> None:
        # A clock that was turned back fills nothing and takes nothing.
        elapsed = 0.0 if self._at is None else max(0.0, now - self._at)
        self._at = now
        self._tokens = min(float(self._burst), self._tokens + elapsed * self._per_second)
