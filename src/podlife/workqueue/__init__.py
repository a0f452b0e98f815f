"""Work queues with client-go's guarantees, in one event loop.

* One key, one worker: a key that is being processed is not handed out again until it is `done`.
* Deduplication: a key that is added several times before it is taken is processed once.
* Nothing is missed: a key that is added while it is being processed is handed out again after `done`.
* Order: waiting keys are handed out in the order they were added.
* A cancelled getter loses no key.

A queue holds keys, never objects, each at most once, so its size is bounded by the number of objects. One layer per
module: `queue`, `delaying_queue` (later, and a key only moves earlier), `rate_limiting_queue` (how much later, by
`rate_limiters`). Times are the event loop's.
"""

from podlife.workqueue.delaying_queue import DelayingQueue
from podlife.workqueue.queue import Distribution, Queue, QueueMetrics, ShutDownError
from podlife.workqueue.rate_limiters import (
    BucketLimiter,
    ExponentialLimiter,
    LongestLimiter,
    RateLimiter,
    TokenBucket,
)
from podlife.workqueue.rate_limiting_queue import RateLimitedQueue

__all__ = [
    "BucketLimiter",
    "DelayingQueue",
    "Distribution",
    "ExponentialLimiter",
    "LongestLimiter",
    "Queue",
    "QueueMetrics",
    "RateLimitedQueue",
    "RateLimiter",
    "ShutDownError",
    "TokenBucket",
]
