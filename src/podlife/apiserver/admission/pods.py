"""DefaultTolerationSeconds and Priority: what admission adds to a new pod."""

from __future__ import annotations

from podlife.api.codec import Object
from podlife.apiserver.admission import AdmissionRequest, Operation, Plugin, Reader
from podlife.errors import ForbiddenError

_NOT_READY = "node.kubernetes.io/not-ready"
_UNREACHABLE = "node.kubernetes.io/unreachable"
# The two classes every cluster has. User-defined priority classes are not served.
_SYSTEM_CLASSES = {"system-cluster-critical": 2_000_000_000, "system-node-critical": 2_000_001_000}
_FILLED_IN = ("priority", "preemptionPolicy")


def _written_pod(attributes: AdmissionRequest) -> Object | None:
    """The pod that the request creates or updates as a whole."""
    is_write = attributes.operation in (Operation.CREATE, Operation.UPDATE)
    is_pod = attributes.resource.key == "pods" and not attributes.subresource
    return attributes.new if is_write and is_pod else None


def default_toleration_seconds(not_ready: int = 300, unreachable: int = 300) -> Plugin:
    """DefaultTolerationSeconds: a pod without such tolerations stays that long on a failing node."""

    def plugin(attributes: AdmissionRequest, reader: Reader) -> None:
        if (pod := _written_pod(attributes)) is None:
            return
        spec = pod.setdefault("spec", {})
        given = spec.get("tolerations", [])
        added = [
            {"key": key, "operator": "Exists", "effect": "NoExecute", "tolerationSeconds": seconds}
            for key, seconds in ((_NOT_READY, not_ready), (_UNREACHABLE, unreachable))
            if not any(_tolerates(toleration, key) for toleration in given)
        ]
        if added:
            spec["tolerations"] = [*given, *added]

    return plugin


def _tolerates(toleration: Object, key: str) -> bool:
    return toleration.get("key", "") in (key, "") and toleration.get("effect", "") in ("NoExecute", "")


def default_priority(attributes: AdmissionRequest, reader: Reader) -> None:
    """Priority: the class's value, 0 without a class; a pod cannot choose the value."""
    if (pod := _written_pod(attributes)) is None:
        return
    spec = pod.setdefault("spec", {})
    if attributes.old is not None:
        # An update that omits what was filled in does not mean to remove it.
        before = attributes.old["spec"]
        spec.update({key: before[key] for key in _FILLED_IN if key in before and key not in spec})
        return
    name = spec.get("priorityClassName", "")
    if name and name not in _SYSTEM_CLASSES:
        raise _forbidden(attributes, f"no PriorityClass with name {name} was found")
    priority = _SYSTEM_CLASSES.get(name, 0)
    if spec.setdefault("priority", priority) != priority:
        detail = f"priority admission controller computed {priority} from the given PriorityClass name"
        text = f"the integer value of priority ({spec['priority']}) must not be provided in pod spec"
        raise _forbidden(attributes, f"{text}; {detail}")
    spec.setdefault("preemptionPolicy", "PreemptLowerPriority")


def _forbidden(attributes: AdmissionRequest, reason: str) -> ForbiddenError:
    name = attributes.shown_name
    return ForbiddenError(f'pods "{name}" is forbidden: {reason}', details={"name": name, "kind": "pods"})
