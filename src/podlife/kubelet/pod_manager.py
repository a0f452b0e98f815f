"""The desired pods of a node, from the API server and from manifest files.

A static pod has a UID derived from its file; its mirror at the API server has the same name and another UID. The pod
workers know the state of each pod.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator

from podlife.kubelet.pod import NodePod
from podlife.kubelet.pod_fields import Pod, is_mirror, is_static


class PodManager:
    """`could_have_running_containers` asks the pod workers, by UID."""

    def __init__(self, could_have_running_containers: Callable[[str], bool]) -> None:
        self.could_have_running_containers = could_have_running_containers
        self._pods: dict[str, NodePod] = {}
        self._mirrors: dict[tuple[str, str], NodePod] = {}
        self._static: dict[tuple[str, str], str] = {}

    def __iter__(self) -> Iterator[NodePod]:
        """All pods except mirrors."""
        return iter(list(self._pods.values()))

    def __contains__(self, uid: object) -> bool:
        return uid in self._pods

    def __len__(self) -> int:
        return len(self._pods)

    def pod(self, uid: str) -> NodePod | None:
        return self._pods.get(uid)

    def by_name(self, namespace: str, name: str) -> NodePod | None:
        """Of two pods with the same name, the one that is not being deleted."""
        found = [each for each in self._pods.values() if each.key == (namespace, name)]
        alive = [each for each in found if each.metadata.deletion_timestamp is None]
        return next(iter(reversed(alive or found)), None)

    def mirror_of(self, pod: Pod) -> NodePod | None:
        metadata = pod["metadata"]
        return self._mirrors.get((metadata.get("namespace") or "", metadata["name"]))

    def mirrors(self) -> list[NodePod]:
        return list(self._mirrors.values())

    def static_of(self, mirror: NodePod) -> NodePod | None:
        uid = self._static.get(mirror.key)
        return None if uid is None else self._pods.get(uid)

    def put(self, pod: NodePod) -> None:
        if is_mirror(pod):
            self._mirrors[pod.key] = pod
            return
        self._pods[pod.uid] = pod
        if is_static(pod):
            self._static[pod.key] = pod.uid

    def remove(self, uid: str) -> NodePod | None:
        """Returns the removed pod or mirror, if any."""
        pod = self._pods.pop(uid, None)
        if pod is not None:
            if self._static.get(pod.key) == uid:
                del self._static[pod.key]
            return pod
        mirror = next((each for each in self._mirrors.values() if each.uid == uid), None)
        if mirror is not None:
            del self._mirrors[mirror.key]
        return mirror
