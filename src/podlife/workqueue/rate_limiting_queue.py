"""A queue with rate-limited retries.

Add failed keys with `add_rate_limited`; call `forget` for keys that succeeded or were given up. Neither replaces
`done`.
"""

from __future__ import annotations

from podlife.workqueue.delaying_queue import DelayingQueue
from podlife.workqueue.queue import K
from podlife.workqueue.rate_limiters import BucketLimiter, ExponentialLimiter, LongestLimiter, RateLimiter


class RateLimitedQueue(DelayingQueue[K]):
    """Without a limiter, client-go's for controllers: exponential per key, and ten a second overall."""

    def __init__(self, name: str = "", *, limiter: RateLimiter[K] | None = None) -> None:
        super().__init__(name)
        self._limiter = limiter or LongestLimiter(ExponentialLimiter[K](), BucketLimiter[K]())

    def add_rate_limited(self, key: K) -> None:
        self.add_after(key, self._limiter.delay_seconds(key))

    def forget(self, key: K) -> None:
        self._limiter.forget(key)

    def retries(self, key: K) -> int:
        return self._limiter.retries(key)
