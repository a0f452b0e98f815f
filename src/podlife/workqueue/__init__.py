"""Work queues with the guarantees of client-go's, in one event loop.

* One key, one worker: a key that is being worked on is given to nobody else until it is `done`.
* Collapsing: a key that is added many times before it is taken is worked on once.
* Nothing is missed: a key that is added while it is being worked on comes again after it is `done`.
* Order: keys that wait come out in the order they went in.
* A getter that is cancelled loses no key.

A queue holds keys, never objects, each at most once: it is bounded by the number of things there are. One layer
per module: `queue`, `delaying` (later, and a key only moves earlier), `rate_limited` (how much later, by
`limiters`). Each counts about itself in `metrics`, for whoever exports it. Times are the event loop's.
"""

from podlife.workqueue.delaying_queue import DelayingQueue
from podlife.workqueue.metrics import Distribution, QueueMetrics
from podlife.workqueue.queue import Queue, ShutDownError
from podlife.workqueue.rate_limiters import (
    BucketLimiter,
    ExponentialLimiter,
    LongestLimiter,
    RateLimiter,
    longest_of,
)
from podlife.workqueue.rate_limiting_queue import RateLimitedQueue
from podlife.workqueue.token_bucket import TokenBucket

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
    "longest_of",
]
