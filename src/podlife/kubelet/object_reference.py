"""Object references in events about a pod or one of its containers."""

from __future__ import annotations

from podlife.kubelet.pod_fields import Container, Pod

_CONTAINER_FIELDS = ("containers", "initContainers", "ephemeralContainers")


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
    """Includes the container's fieldPath if the pod has this container."""
    name = container["name"]
    for field in _CONTAINER_FIELDS:
        if any(each["name"] == name for each in pod["spec"].get(field) or ()):
            return {**pod_reference(pod), "fieldPath": f"spec.{field}{{{name}}}"}
    return pod_reference(pod)
