"""DefaultTolerationSeconds and Priority: what admission adds to a new pod."""

from __future__ import annotations

from podlife.api.codec import Object
from podlife.apiserver.admission import AdmissionRequest, Operation, Plugin, Reader
from podlife.errors import ForbiddenError

NOT_READY = "node.kubernetes.io/not-ready"
UNREACHABLE = "node.kubernetes.io/unreachable"
# The two classes every cluster has. User-defined priority classes are not served.
_SYSTEM_CLASSES = {"system-cluster-critical": 2_000_000_000, "system-node-critical": 2_000_001_000}


_FILLED_IN = ("priority", "preemptionPolicy")


def _is_pod(attributes: AdmissionRequest, *operations: Operation) -> bool:
    return (
        attributes.operation in operations
        and attributes.resource.key == "pods"
        and not attributes.subresource
    )


def default_toleration_seconds(not_ready: int = 300, unreachable: int = 300) -> Plugin:
    """DefaultTolerationSeconds: a pod without such tolerations stays that long on a failing node."""

    def plugin(attributes: AdmissionRequest, reader: Reader) -> None:
        if attributes.new is None or not _is_pod(attributes, Operation.CREATE, Operation.UPDATE):
            return
        spec = attributes.new.setdefault("spec", {})
        given = spec.get("tolerations", [])
        added = [
            _toleration(key, seconds)
            for key, seconds in ((NOT_READY, not_ready), (UNREACHABLE, unreachable))
            if not any(_tolerates(toleration, key) for toleration in given)
        ]
        if added:
            spec["tolerations"] = [*given, *added]

    return plugin


def _toleration(key: str, seconds: int) -> Object:
    return {"key": key, "operator": "Exists", "effect": "NoExecute", "tolerationSeconds": seconds}


def _tolerates(toleration: Object, key: str) -> bool:
    return toleration.get("key", "") in (key, "") and toleration.get("effect", "") in ("NoExecute", "")


def default_priority(attributes: AdmissionRequest, reader: Reader) -> None:
    """Priority: the class's value, 0 without a class; a pod cannot choose the value."""
    pod = attributes.new
    if pod is None or not _is_pod(attributes, Operation.CREATE, Operation.UPDATE):
        return
    spec = pod.setdefault("spec", {})
    if attributes.old is not None:
        # An update that omits what was filled in does not mean to remove it.
        before = attributes.old["spec"]
        spec.update({key: before[key] for key in _FILLED_IN if key in before and key not in spec})
        return
    name = spec.get("priorityClassName", "")
    if name and name not in _SYSTEM_CLASSES:
        raise ForbiddenError(
            f'pods "{attributes.shown_name}" is forbidden: no PriorityClass with name {name} was found',
            details={"name": attributes.shown_name, "kind": "pods"},
        )
    priority = _SYSTEM_CLASSES.get(name, 0)
    if spec.setdefault("priority", priority) != priority:
        raise ForbiddenError(
            f'pods "{attributes.shown_name}" is forbidden: the integer value of priority ({spec["priority"]}) must not '
            f"be provided in pod spec; priority admission controller computed {priority} from the given "
            "PriorityClass name",
            details={"name": attributes.shown_name, "kind": "pods"},
        )
    spec.setdefault("preemptionPolicy", "PreemptLowerPriority")
