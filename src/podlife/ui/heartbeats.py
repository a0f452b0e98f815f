"""Which nodes are silent, by their leases. Pure.

A node becomes silent when its lease was not renewed for `SILENT_MS`, but only while leases are heard: when the API
server hangs nothing is concluded, and afterwards each node has that time again.
"""

from __future__ import annotations

from podlife.api.codec import Object
from podlife.explain.objects import moment, spec
from podlife.ui.life import milliseconds

SILENT_MS = 40_500


class Heartbeats:
    def __init__(self) -> None:
        self.leases: dict[str, Object] = {}
        # As of the last look at each.
        self.silent: set[str] = set()
        self._is_deaf = False
        self._hears_since = 0

    def drop(self, node: str) -> None:
        self.leases.pop(node, None)
        self.silent.discard(node)

    def listen(self, *, hears: bool, now: int) -> bool:
        """Note whether leases are heard. Returns whether they are heard again."""
        is_back = hears and self._is_deaf
        self._hears_since = now if is_back else self._hears_since
        self._is_deaf = not hears
        return is_back

    def silent_at(self, node: str) -> int | None:
        """When it becomes silent, or became so, if nothing more is heard of it; None without a lease."""
        heard_at = moment(spec(self.leases.get(node, {})).get("renewTime"))
        if heard_at is None:
            return None
        since = milliseconds(heard_at)
        return (since if node in self.silent else max(since, self._hears_since)) + SILENT_MS

    def is_silent(self, node: str, now: int) -> bool:
        at = self.silent_at(node)
        return at is not None and now >= at and (node in self.silent or not self._is_deaf)

    def look(self, node: str, now: int) -> None:
        (self.silent.add if self.is_silent(node, now) else self.silent.discard)(node)
