"""The last result of each probe, by type and container, and the listener for changes.

A result outlives its prober until the pod is removed: a container about to terminate must not look as if it had never
started, and a new prober for a terminated container finds nothing new.
"""

from __future__ import annotations

from typing import Protocol

from podlife.kubelet.prober.state import ProbeResult, ProbeType

_Key = tuple[ProbeType, str]


class ResultChanged(Protocol):
    def __call__(self, uid: str, container_id: str, type_: ProbeType, result: ProbeResult) -> None: ...


class ProbeResults:
    def __init__(self, on_change: ResultChanged) -> None:
        self._on_change = on_change
        self._results: dict[_Key, ProbeResult] = {}
        self._of_pods: dict[str, set[_Key]] = {}

    def get(self, type_: ProbeType, container_id: str) -> ProbeResult | None:
        return self._results.get((type_, container_id))

    def set(self, type_: ProbeType, container_id: str, uid: str, result: ProbeResult) -> None:
        key = (type_, container_id)
        if self._results.get(key) is result:
            return
        self._results[key] = result
        self._of_pods.setdefault(uid, set()).add(key)
        self._on_change(uid, container_id, type_, result)

    def drop(self, type_: ProbeType, container_id: str, uid: str) -> None:
        """For a container that has been replaced."""
        self._results.pop((type_, container_id), None)
        self._of_pods.get(uid, set()).discard((type_, container_id))

    def drop_pod(self, uid: str) -> None:
        for key in self._of_pods.pop(uid, ()):
            self._results.pop(key, None)

    def pods(self) -> list[str]:
        return list(self._of_pods)
