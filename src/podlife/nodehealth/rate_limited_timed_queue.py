"""Nodes of one zone to be tainted: each once, ordered by time, at a limited rate. Pure.

A node remains known after it was handed out, so that it is not tainted again in every pass, until `remove`. Only a
node that is due uses the rate limit: one that has to wait does not delay the others (unlike upstream, RQ-06).
"""

from __future__ import annotations

from sortedcontainers import SortedDict

from podlife.workqueue import TokenBucket

_BURST = 1


class RateLimitedTimedQueue:
    def __init__(self, per_second: float) -> None:
        self._rate = per_second
        self._bucket = _bucket(per_second)
        # By node: its place in the queue; None after it was handed out.
        self._places: dict[str, tuple[float, int] | None] = {}
        self._waiting: SortedDict[tuple[float, int], str] = SortedDict()
        self._added = 0

    def __len__(self) -> int:
        """Number of waiting nodes."""
        return len(self._waiting)

    def __contains__(self, name: str) -> bool:
        return name in self._places

    @property
    def rate(self) -> float:
        return self._rate

    def is_waiting(self, name: str) -> bool:
        return self._places.get(name) is not None

    def add(self, name: str, now: float) -> bool:
        """Return whether it is new; a known node, even one already handed out, is not added again (RQ-01)."""
        if name in self._places:
            return False
        self._place(name, now)
        return True

    def remove(self, name: str) -> bool:
        """Forget a waiting or handed-out node; return whether it was known (RQ-02)."""
        if name not in self._places:
            return False
        if (place := self._places.pop(name)) is not None:
            del self._waiting[place]
        return True

    def clear(self) -> None:
        self._places.clear()
        self._waiting.clear()

    def take(self, now: float) -> str | None:
        """Hand out the next due node if the rate allows it; the node stays known (RQ-03)."""
        if not self._waiting or self._waiting.peekitem(0)[0][0] > now:
            return None
        if self._bucket is None or not self._bucket.take(now):
            return None
        name: str = self._waiting.popitem(0)[1]
        self._places[name] = None
        return name

    def retry(self, name: str, at: float) -> None:
        """Queue a handed-out node again, unless it was removed meanwhile (RQ-05)."""
        if name in self._places and self._places[name] is None:
            self._place(name, at)

    def set_rate(self, per_second: float, now: float) -> None:
        """0 stops the queue (RQ-07). A rate change allows no additional node (NL-77)."""
        if per_second == self._rate:
            return
        was_empty = self._bucket is None or not self._bucket.has_one(now)
        self._rate, self._bucket = per_second, _bucket(per_second)
        if self._bucket is not None and was_empty:
            self._bucket.take(now)

    def _place(self, name: str, at: float) -> None:
        self._added += 1
        place = (at, self._added)
        self._places[name] = place
        self._waiting[place] = name


def _bucket(per_second: float) -> TokenBucket | None:
    return TokenBucket(per_second, _BURST) if per_second > 0 else None
