"""A source of pods: pods are put and removed, and the source is complete after its first list.

Pods are taken in the order of admission, the oldest first (ST-19), and none before the source is complete: a restarted
kubelet must not give an old pod's place to a new one. Of several changes to a pod, only the newest is taken.
"""

from __future__ import annotations

import asyncio
from collections.abc import Iterable, Mapping
from typing import Any

from podlife.kubelet.admission import in_order_of_admission
from podlife.kubelet.pod import NodePod


class PodSource:
    """Sets `wakeup` when there is something to take."""

    def __init__(self, wakeup: asyncio.Event) -> None:
        self.is_complete = False
        self._wakeup = wakeup
        # UIDs of all pods in this source, to compare the next list with.
        self._uids: set[str] = set()
        self._put: dict[str, NodePod] = {}
        self._removed: dict[str, None] = {}
        # The last state of removed pods, above all their grace period.
        self._last: dict[str, NodePod] = {}

    @property
    def uids(self) -> frozenset[str]:
        return frozenset(self._uids)

    def put(self, pod: Mapping[str, Any]) -> None:
        """Add or update a pod. Raises KeyError for an object without name or UID."""
        node_pod = pod if isinstance(pod, NodePod) else NodePod(pod)
        uid = node_pod.uid
        self._uids.add(uid)
        self._put[uid] = node_pod
        self._removed.pop(uid, None)
        self._last.pop(uid, None)
        self._wakeup.set()

    def put_all(self, pods: Iterable[Mapping[str, Any]]) -> None:
        """Replace the contents by this list."""
        unseen = set(self.uids)
        for pod in pods:
            self.put(pod)
            unseen.discard(pod["metadata"]["uid"])
        for uid in unseen:
            self.remove_uid(uid)
        self.complete()

    def remove(self, pod: Mapping[str, Any]) -> None:
        """Remove a pod; `pod` is its last state."""
        last = pod if isinstance(pod, NodePod) else NodePod(pod)
        self.remove_uid(last.uid)
        self._last[last.uid] = last

    def remove_uid(self, uid: str) -> None:
        self._uids.discard(uid)
        self._put.pop(uid, None)
        self._removed[uid] = None
        self._wakeup.set()

    def complete(self) -> None:
        """All pods of the source have been put; unknown pods are not wanted."""
        self.is_complete = True
        self._wakeup.set()

    def last_state(self, uid: str) -> NodePod | None:
        """The last state of a removed pod, if known; returned once."""
        return self._last.pop(uid, None)

    def take(self) -> tuple[list[str], list[NodePod]]:
        if not self.is_complete:
            return [], []
        removed, put = list(self._removed), list(self._put.values())
        self._removed, self._put = {}, {}
        return removed, [each for each in in_order_of_admission(put) if isinstance(each, NodePod)]
