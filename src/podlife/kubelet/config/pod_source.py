"""A source of pods: puts and removes pods, and says once that its first list is complete.

Pods are taken in the order of admission, the oldest first (ST-19), and none before the source is complete: a kubelet
that has just started must not give an old pod's place to a new one. Of several changes before they are taken, the
newest counts.
"""

from __future__ import annotations

import asyncio
from collections.abc import Iterable, Mapping
from typing import Any

from podlife.kubelet.admission import in_order_of_admission
from podlife.kubelet.pod import NodePod


class PodSource:
    """`wakeup` is set when there is something to take."""

    def __init__(self, wakeup: asyncio.Event) -> None:
        self.is_complete = False
        self._wakeup = wakeup
        # The pods of this source, as they were last put; for the rest of a list to be compared with.
        self._uids: set[str] = set()
        self._put: dict[str, NodePod] = {}
        self._removed: dict[str, None] = {}
        # As those were when they went: with how much grace, above all.
        self._last: dict[str, NodePod] = {}

    @property
    def uids(self) -> frozenset[str]:
        return frozenset(self._uids)

    def put(self, pod: Mapping[str, Any]) -> None:
        """It is there, or has changed. Raises KeyError for what has no name or UID."""
        node_pod = pod if isinstance(pod, NodePod) else NodePod(pod)
        uid = node_pod.uid
        self._uids.add(uid)
        self._put[uid] = node_pod
        self._removed.pop(uid, None)
        self._last.pop(uid, None)
        self._wakeup.set()

    def put_all(self, pods: Iterable[Mapping[str, Any]]) -> None:
        """These are all that there are."""
        unseen = set(self.uids)
        for pod in pods:
            self.put(pod)
            unseen.discard(pod["metadata"]["uid"])
        for uid in unseen:
            self.remove_uid(uid)
        self.complete()

    def remove(self, pod: Mapping[str, Any]) -> None:
        """It is gone; this was its last state."""
        last = pod if isinstance(pod, NodePod) else NodePod(pod)
        self.remove_uid(last.uid)
        self._last[last.uid] = last

    def remove_uid(self, uid: str) -> None:
        self._uids.discard(uid)
        self._put.pop(uid, None)
        self._removed[uid] = None
        self._wakeup.set()

    def complete(self) -> None:
        """All pods of the source were put; what is not known now is not wanted."""
        self.is_complete = True
        self._wakeup.set()

    def last_state(self, uid: str) -> NodePod | None:
        """Of one that was removed, where it is known; asked for once."""
        return self._last.pop(uid, None)

    def take(self) -> tuple[list[str], list[NodePod]]:
        if not self.is_complete:
            return [], []
        removed, put = list(self._removed), list(self._put.values())
        self._removed, self._put = {}, {}
        return removed, [each for each in in_order_of_admission(put) if isinstance(each, NodePod)]
