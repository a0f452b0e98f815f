"""Counts what became of the pods of hollow nodes: how many are in each phase, and how long they took to run."""

from __future__ import annotations

from array import array
from collections import Counter
from collections.abc import Mapping
from typing import Any


def percentile(values: array[float], part: float) -> float:
    """The value that this part of all does not exceed; 0 where there is none."""
    ordered = sorted(values)
    return ordered[min(len(ordered) - 1, int(len(ordered) * part))] if ordered else 0.0


class HollowProgress:
    """Times are the event loop's. A pod's way to Running is counted once, from when it was asked for where that is
    known, and otherwise from when it was first seen."""

    def __init__(self) -> None:
        self.phases: Counter[str] = Counter()
        self.start_seconds: array[float] = array("d")
        self.restarts = 0
        self.seen = 0
        self.gone = 0
        self.away = 0
        self.outages = 0
        self._asked: dict[tuple[str, str], float] = {}
        # Of each pod that is there: its phase and the restarts of its containers.
        self._pods: dict[str, tuple[str, int]] = {}
        # Since when a pod that does not run yet is waited for.
        self._since: dict[str, float] = {}

    @property
    def there(self) -> int:
        return len(self._pods)

    def ask(self, namespace: str, name: str, now: float) -> None:
        """A pod of this name is about to be created."""
        self._asked[namespace, name] = now

    def put(self, pod: Mapping[str, Any], now: float) -> None:
        metadata, status = pod["metadata"], pod.get("status") or {}
        uid, phase = metadata["uid"], status.get("phase") or "Pending"
        restarts = sum(each.get("restartCount") or 0 for each in status.get("containerStatuses") or ())
        before = self._pods.get(uid)
        if before is None:
            self.seen += 1
            asked = self._asked.pop((metadata["namespace"], metadata["name"]), None)
            if asked is not None or phase != "Running":
                self._since[uid] = now if asked is None else asked
        else:
            self._leave(before[0])
            self.restarts += max(restarts - before[1], 0)
        self.phases[phase] += 1
        self._pods[uid] = (phase, restarts)
        if phase == "Running" and (since := self._since.pop(uid, None)) is not None:
            self.start_seconds.append(now - since)

    def remove(self, uid: str) -> None:
        before = self._pods.pop(uid, None)
        if before is not None:
            self.gone += 1
            self._leave(before[0])
            self._since.pop(uid, None)

    def _leave(self, phase: str) -> None:
        self.phases[phase] -= 1
        if not self.phases[phase]:
            del self.phases[phase]
