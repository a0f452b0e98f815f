"""NodeDeclaredFeatureValidator and PodResizeValidator: whether the node of a pod can make a resize at all."""

from __future__ import annotations

from podlife.api.codec import Object, decode_object
from podlife.api.pod_requests import amount, pod_requests
from podlife.apiserver.admission import AdmissionRequest, Reader
from podlife.apiserver.storage import Key

_POD_LEVEL = "InPlacePodLevelResourcesVerticalScaling"
_INIT_CONTAINERS = "InPlacePodVerticalScalingInitContainers"


def validate_pod_resize(attributes: AdmissionRequest, reader: Reader) -> None:
    """A resize of a pod on a node needs the node, its support for what changes, and as much as is requested."""
    new, old = attributes.new, attributes.old
    if (attributes.resource.key, attributes.subresource) != ("pods", "resize") or new is None or old is None:
        return
    name = new["spec"].get("nodeName")
    if not name or new["spec"] == old["spec"]:
        return
    record = reader(Key("nodes", "", name))
    if record is None:
        raise attributes.forbidden(f'node "{name}" not found')
    node = decode_object(record.value)
    status = node.get("status") or {}
    declared = status.get("declaredFeatures") or ()
    if missing := [each for each in _needed_features(new["spec"], old["spec"]) if each not in declared]:
        features = ", ".join(missing)
        raise attributes.forbidden(
            f'pod update requires features {features} which are not available on node "{name}"'
        )
    system = (node["metadata"].get("labels") or {}).get("kubernetes.io/os", "linux")
    if system != "linux":
        raise attributes.forbidden(
            f'pod resize is only supported on linux nodes, node "{name}" is "{system}"',
            causes=[{"reason": "UnsupportedPlatform"}],
        )
    if problem := _exceeded(new, status.get("allocatable") or {}):
        raise attributes.forbidden(problem, causes=[{"reason": "NodeCapacity"}])


def _needed_features(new: Object, old: Object) -> list[str]:
    needed = [_POD_LEVEL] if new.get("resources") != old.get("resources") else []
    init = zip(new.get("initContainers", ()), old.get("initContainers", ()), strict=True)
    if any(after != before and after.get("restartPolicy") != "Always" for after, before in init):
        needed.append(_INIT_CONTAINERS)
    return needed


def _exceeded(pod: Object, allocatable: Object) -> str:
    requested = pod_requests(pod)
    problems = [
        f"{name}, requested: {requested[name]}, allocatable: {available}"
        for name in ("cpu", "memory")
        if requested.get(name, 0) > (available := amount(name, allocatable.get(name, "0")))
    ]
    return f"node didn't have enough allocatable resources: {'; '.join(problems)}" if problems else ""
