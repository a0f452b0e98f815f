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
        # Of each node that waits, its place; of one that had its turn, none.
        self._places: dict[str, tuple[float, int] | None] = {}
        self._waiting: SortedDict[tuple[float, int], str] = SortedDict()
        self._added = 0

    def __len__(self) -> int:
        """How many wait."""
        return len(self._waiting)

    def __contains__(self, name: str) -> bool:
        return name in self._places

    @property
    def rate(self) -> float:
        return self._rate

    def is_waiting(self, name: str) -> bool:
        return self._places.get(name) is not None

    def add(self, name: str, now: float) -> bool:
        """Says whether it is new: one that is known, also one that had its turn, stays as it is (RQ-01)."""
        if name in self._places:
            return False
        self._place(name, now)
        return True

    def remove(self, name: str) -> bool:
        """Forget it, wherever it is; says whether it was known (RQ-02)."""
        if name not in self._places:
            return False
        if (place := self._places.pop(name)) is not None:
            del self._waiting[place]
        return True

    def clear(self) -> None:
        self._places.clear()
        self._waiting.clear()

    def take(self, now: float) -> str | None:
        """The next whose time has come, if the rate allows it; it is known still, but waits no longer (RQ-03)."""
        if not self._waiting or self._waiting.peekitem(0)[0][0] > now:
            return None
        if self._bucket is None or not self._bucket.take(now):
            return None
        name: str = self._waiting.popitem(0)[1]
        self._places[name] = None
        return name

    def retry(self, name: str, at: float) -> None:
        """It had its turn in vain. One that was removed meanwhile is not tried again (RQ-05)."""
        if name in self._places and self._places[name] is None:
            self._place(name, at)

    def set_rate(self, per_second: float, now: float) -> None:
        """0 lets nothing through (RQ-07). A change of the rate allows no additional node (NL-77)."""
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
