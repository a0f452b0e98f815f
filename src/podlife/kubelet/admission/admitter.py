"""Which pods have a place on the node, and whether there is room for one more (ST-18).

A pod keeps its place until nothing of it runs any more; a rejected pod never had one.
"""

from __future__ import annotations

from collections.abc import Callable

from podlife.api.codec import Object
from podlife.kubelet.admission.predicates import AdmissionFailure, AllocatedResources, admission_failure
from podlife.kubelet.pod import NodePod


class Admitter:
    def __init__(self, node: Callable[[], Object]) -> None:
        self._node = node
        self._taken = AllocatedResources()
        self._pods: dict[str, NodePod] = {}

    @property
    def pods(self) -> frozenset[str]:
        """UIDs of the pods that have a place."""
        return frozenset(self._pods)

    def admit(self, pod: NodePod) -> AdmissionFailure | None:
        """Why it is refused; otherwise it has a place from now on."""
        if pod.uid in self._pods:
            return None
        refused = admission_failure(pod, self._node(), self._taken)
        if refused is None:
            self.take(pod)
        return refused

    def take(self, pod: NodePod) -> None:
        """It has a place without being asked: it takes up what it has until nothing of it runs (HC-17)."""
        if pod.uid not in self._pods:
            self._pods[pod.uid] = pod
            self._taken.add(pod)

    def release(self, uid: str) -> None:
        pod = self._pods.pop(uid, None)
        if pod is not None:
            self._taken.remove(pod)

    def keep_only(self, is_wanted: Callable[[str], bool]) -> None:
        """Pods that ended before they began were told of by nobody."""
        for uid in [each for each in self._pods if not is_wanted(each)]:
            self.release(uid)
