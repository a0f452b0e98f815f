"""What an event about a pod, or one of its containers, regards."""

from __future__ import annotations

from podlife.kubelet.lifecycle.objects import Container, Pod, init_containers_of

__all__ = ["container_reference", "pod_reference"]


def pod_reference(pod: Pod) -> dict[str, str]:
    metadata = pod["metadata"]
    return {
        "kind": "Pod",
        "apiVersion": "v1",
        "namespace": metadata.get("namespace") or "",
        "name": metadata["name"],
        "uid": metadata["uid"],
    }


def container_reference(pod: Pod, container: Container) -> dict[str, str]:
    name = container["name"]
    is_init = any(each["name"] == name for each in init_containers_of(pod))
    place = "initContainers" if is_init else "containers"
    return {**pod_reference(pod), "fieldPath": f"spec.{place}{{{name}}}"}
