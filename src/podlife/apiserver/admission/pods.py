"""DefaultTolerationSeconds and Priority: what admission adds to a new pod, and which PriorityClass is the default."""

from __future__ import annotations

from podlife.api.codec import Object, decode_object
from podlife.apiserver.admission import AdmissionRequest, Operation, Plugin, Reader
from podlife.apiserver.storage import Key, Store
from podlife.apiserver.strategies.pod_classes import SYSTEM_CLASSES

_NOT_READY = "node.kubernetes.io/not-ready"
_UNREACHABLE = "node.kubernetes.io/unreachable"
_CLASSES = "priorityclasses.scheduling.k8s.io"
_SYSTEM_CLASSES = {each["metadata"]["name"]: each for each in SYSTEM_CLASSES}
_ANY_POLICY = "PreemptLowerPriority"
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


def default_priority(store: Store) -> Plugin:
    """Priority: a pod has the values of its class, or of the default one, and cannot choose others."""

    def plugin(attributes: AdmissionRequest, reader: Reader) -> None:
        if attributes.resource.key == _CLASSES:
            _check_default(attributes, store)
        elif (pod := _written_pod(attributes)) is not None:
            _set_priority(attributes, pod.setdefault("spec", {}), store)

    return plugin


def _set_priority(attributes: AdmissionRequest, spec: Object, store: Store) -> None:
    if attributes.old is not None:
        # An update that omits what was filled in does not mean to remove it.
        before = attributes.old["spec"]
        spec.update({key: before[key] for key in _FILLED_IN if key in before and key not in spec})
        return
    found = _class_of(attributes, spec.get("priorityClassName", ""), store)
    if found is not None:
        spec["priorityClassName"] = found["metadata"]["name"]
    source = found or {"value": 0}
    priority, policy = source["value"], source.get("preemptionPolicy", _ANY_POLICY)
    for field, value, what in (
        ("priority", priority, "integer value of priority"),
        ("preemptionPolicy", policy, "string value of PreemptionPolicy"),
    ):
        if (given := spec.setdefault(field, value)) != value:
            text = f"the {what} ({given}) must not be provided in pod spec"
            detail = f"priority admission controller computed {value} from the given PriorityClass name"
            raise attributes.forbidden(f"{text}; {detail}")


def _class_of(attributes: AdmissionRequest, name: str, store: Store) -> Object | None:
    if not name:
        return _default_class(store)
    if (record := store.get(Key(_CLASSES, "", name))) is not None:
        return decode_object(record.value)
    if (system := _SYSTEM_CLASSES.get(name)) is not None:
        return system
    raise attributes.forbidden(f"no PriorityClass with name {name} was found")


def _default_class(store: Store) -> Object | None:
    """The one with the lowest value, should there be several."""
    marked = [record for record in store.list(_CLASSES) if b'"globalDefault":true' in record.value]
    classes = [
        each for each in (decode_object(record.value) for record in marked) if each.get("globalDefault")
    ]
    return min(classes, key=lambda each: int(each["value"]), default=None)


def _check_default(attributes: AdmissionRequest, store: Store) -> None:
    if attributes.new is None or not attributes.new.get("globalDefault"):
        return
    found = _default_class(store)
    if found is None or (attributes.old is not None and found["metadata"]["name"] == attributes.name):
        return
    name = found["metadata"]["name"]
    raise attributes.forbidden(
        f"PriorityClass {name} is already marked as default. Only one default can exist"
    )
