"""Labels and annotations of containers in the runtime, by which a restarted kubelet can stop a container (KC-02).

The keys are upstream's where it has one, because tools that inspect the runtime know them.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

from podlife.api.codec import Object
from podlife.kubelet.pod_fields import Container, Pod

_POD_NAME = "io.kubernetes.pod.name"
_POD_NAMESPACE = "io.kubernetes.pod.namespace"
_POD_UID = "io.kubernetes.pod.uid"
_NAME = "io.kubernetes.container.name"
HASH = "io.kubernetes.container.hash"
_RESTARTS = "io.kubernetes.container.restartCount"
_MESSAGE_PATH = "io.kubernetes.container.terminationMessagePath"
_MESSAGE_POLICY = "io.kubernetes.container.terminationMessagePolicy"
_DELETION_GRACE = "io.kubernetes.pod.deletionGracePeriod"
_GRACE = "io.kubernetes.pod.terminationGracePeriod"
_PRE_STOP = "io.kubernetes.container.preStopHandler"
_PORTS = "io.kubernetes.container.ports"


def pod_labels(pod: Pod) -> dict[str, str]:
    metadata = pod["metadata"]
    return {
        _POD_NAME: metadata["name"],
        _POD_NAMESPACE: metadata.get("namespace") or "",
        _POD_UID: metadata["uid"],
    }


def labels_of(pod: Pod, container: Container) -> dict[str, str]:
    return {**pod_labels(pod), _NAME: container["name"]}


def annotations_of(pod: Pod, container: Container, *, spec_hash: str, restart_count: int) -> dict[str, str]:
    numbers = {
        _DELETION_GRACE: pod["metadata"].get("deletionGracePeriodSeconds"),
        _GRACE: pod["spec"].get("terminationGracePeriodSeconds"),
    }
    objects = {_PRE_STOP: (container.get("lifecycle") or {}).get("preStop"), _PORTS: container.get("ports")}
    return {
        HASH: spec_hash,
        _RESTARTS: str(restart_count),
        _MESSAGE_PATH: container.get("terminationMessagePath") or "",
        _MESSAGE_POLICY: container.get("terminationMessagePolicy") or "",
        **{key: str(value) for key, value in numbers.items() if value is not None},
        **{key: json.dumps(value) for key, value in objects.items() if value},
    }


def restore(labels: Mapping[str, str], annotations: Mapping[str, str]) -> tuple[Object, Object]:
    """The pod and container, as far as a kill needs them. Unreadable labels are skipped, so that they prevent no
    kill."""
    hook = _read(annotations, _PRE_STOP, dict)
    container = _fields(
        name=labels.get(_NAME, ""),
        lifecycle=None if hook is None else {"preStop": hook},
        ports=_read(annotations, _PORTS, list),
    )
    metadata = _fields(
        name=labels.get(_POD_NAME, ""),
        namespace=labels.get(_POD_NAMESPACE, ""),
        uid=labels.get(_POD_UID, ""),
        deletionGracePeriodSeconds=_read(annotations, _DELETION_GRACE, int),
    )
    spec = _fields(containers=[container], terminationGracePeriodSeconds=_read(annotations, _GRACE, int))
    return {"metadata": metadata, "spec": spec}, container


def _fields(**fields: Any) -> Object:
    return {name: value for name, value in fields.items() if value is not None}


def _read(annotations: Mapping[str, str], key: str, type_: type) -> Any:
    try:
        value = json.loads(annotations[key])
    except (KeyError, ValueError):
        return None
    return value if isinstance(value, type_) else None
