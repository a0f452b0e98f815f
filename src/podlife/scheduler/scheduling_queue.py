"""Queue of pending pods. Pure; times are parameters.

Active pods are ordered by priority, then by age. An unschedulable pod waits for an event that could make it
schedulable, at least for its backoff and at most for five minutes.
"""

from __future__ import annotations

import heapq
from dataclasses import dataclass, field

from podlife.scheduler.views import SchedulerPod

_FIRST_SECONDS = 1.0
_MOST_SECONDS = 10.0
_MOST_UNSCHEDULABLE_SECONDS = 300.0


@dataclass(slots=True)
class _Entry:
    pod: SchedulerPod
    attempts: int = 0
    # Next attempt; None while it waits for an event.
    due: float | None = 0.0
    failed_at: float = 0.0
    version: int = field(default=0)


class SchedulingQueue:
    def __init__(self) -> None:
        self._entries: dict[str, _Entry] = {}
        self._active: list[tuple[int, str, str, int]] = []
        self._timers: list[tuple[float, str, int]] = []

    def __len__(self) -> int:
        return len(self._entries)

    def put(self, pod: SchedulerPod, now: float) -> None:
        """Add a pod that is new or has a changed spec or labels: it is active at once."""
        entry = self._entries.setdefault(pod.metadata.uid, _Entry(pod))
        entry.pod = pod
        self._activate(entry, now)

    def refresh(self, pod: SchedulerPod) -> None:
        """Update a pod of which only the status changed."""
        if entry := self._entries.get(pod.metadata.uid):
            entry.pod = pod

    def remove(self, uid: str) -> None:
        self._entries.pop(uid, None)

    def failed(self, uid: str, now: float, *, is_waiting: bool) -> None:
        """No node is suitable (`is_waiting`: for an event), or the attempt failed for another reason."""
        entry = self._entries.get(uid)
        if entry is None:
            return
        entry.attempts += 1
        entry.failed_at = now
        entry.version += 1
        entry.due = None if is_waiting else now + _backoff(entry.attempts)
        when = now + _MOST_UNSCHEDULABLE_SECONDS if entry.due is None else entry.due
        heapq.heappush(self._timers, (when, uid, entry.version))

    def activate_unschedulable(self, now: float) -> None:
        """After a node was added or changed, or a pod left one."""
        for uid, entry in self._entries.items():
            if entry.due is None:
                entry.version += 1
                entry.due = max(now, entry.failed_at + _backoff(entry.attempts))
                heapq.heappush(self._timers, (entry.due, uid, entry.version))

    def next(self, now: float) -> SchedulerPod | None:
        """The next active pod. The caller then calls `remove` or `failed`."""
        while self._timers and self._timers[0][0] <= now:
            _, uid, version = heapq.heappop(self._timers)
            entry = self._entries.get(uid)
            if entry is not None and entry.version == version:
                self._activate(entry, now)
        while self._active:
            *_, uid, version = heapq.heappop(self._active)
            entry = self._entries.get(uid)
            if entry is not None and entry.version == version:
                return entry.pod
        return None

    def next_time(self) -> float | None:
        """When the next pod in backoff becomes due."""
        while self._timers:
            when, uid, version = self._timers[0]
            entry = self._entries.get(uid)
            if entry is not None and entry.version == version:
                return when
            heapq.heappop(self._timers)
        return None

    def _activate(self, entry: _Entry, now: float) -> None:
        entry.version += 1
        entry.due = now
        pod = entry.pod
        made = pod.metadata.creation_timestamp
        order = (-(pod.spec.priority or 0), f"{made.isoformat() if made else ''} {pod.metadata.name}")
        heapq.heappush(self._active, (*order, pod.metadata.uid, entry.version))


def _backoff(attempts: int) -> float:
    return min(_MOST_SECONDS, _FIRST_SECONDS * 2.0 ** (min(attempts, 10) - 1))
