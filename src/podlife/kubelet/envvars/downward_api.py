"""The downward API: what a container may know of its own pod and of the node's resources."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from podlife.api.quantity import parse_nanos
from podlife.errors import PodlifeError
from podlife.kubelet.pod_fields import Container, Pod, containers_of, init_containers_of

_SUBSCRIPTED = re.compile(r"(.*)\['(.*)'\]", re.DOTALL)
_RESOURCE = re.compile(r"(limits|requests)\.(.+)")


class ContainerConfigError(PodlifeError):
    """A container that cannot be made as its pod says: it waits with `CreateContainerConfigError`."""

    reason = "CreateContainerConfigError"


@dataclass(frozen=True, slots=True)
class DownwardContext:
    """What a pod does not say itself: addresses, and what the node has to give."""

    host_ips: tuple[str, ...] = ()
    pod_ips: tuple[str, ...] = ()
    allocatable: Mapping[str, str] = field(default_factory=dict)


def field_value(pod: Pod, path: str, context: DownwardContext) -> str:
    """Raises `ContainerConfigError` for a path that there is not."""
    metadata, spec = pod["metadata"], pod["spec"]
    plain = {
        "metadata.name": metadata.get("name"),
        "metadata.namespace": metadata.get("namespace"),
        "metadata.uid": metadata.get("uid"),
        "metadata.labels": format_map(metadata.get("labels") or {}),
        "metadata.annotations": format_map(metadata.get("annotations") or {}),
        "spec.nodeName": spec.get("nodeName"),
        "spec.serviceAccountName": spec.get("serviceAccountName"),
        "status.hostIP": next(iter(context.host_ips), ""),
        "status.hostIPs": ",".join(context.host_ips),
        "status.podIP": next(iter(context.pod_ips), ""),
        "status.podIPs": ",".join(context.pod_ips),
    }
    if path in plain:
        return str(plain[path] or "")
    match = _SUBSCRIPTED.fullmatch(path)
    if match is None:
        raise ContainerConfigError(f"unsupported fieldPath: {path}")
    if match[1] not in ("metadata.labels", "metadata.annotations"):
        raise ContainerConfigError(f'fieldPath "{path}" does not support subscript')
    return str((metadata.get(match[1].removeprefix("metadata.")) or {}).get(match[2], ""))


def format_map(values: Mapping[str, str]) -> str:
    """As a file shows labels: a line for each, sorted, its value quoted."""
    return "\n".join(f"{key}={json.dumps(values[key], ensure_ascii=False)}" for key in sorted(values))


def resource_value(pod: Pod, container: Container, ref: Mapping[str, Any], context: DownwardContext) -> str:
    """In units of the divisor, rounded up. A limit that is not set is what the node has."""
    name = ref.get("containerName")
    if name:
        container = _container(pod, name)
    resource = ref.get("resource") or ""
    match = _RESOURCE.fullmatch(resource)
    if match is None:
        raise ContainerConfigError(f"unsupported container resource : {resource}")
    amounts = (container.get("resources") or {}).get(match[1]) or {}
    default = context.allocatable.get(match[2], "0") if match[1] == "limits" else "0"
    nanos = parse_nanos(str(amounts.get(match[2], default)))
    # A divisor of nothing, as the API server fills in, is one.
    divisor = parse_nanos(str(ref.get("divisor") or "1")) or 10**9
    if match[2] == "cpu":
        # Counted in thousandths, as upstream: less than that of a CPU is one.
        nanos, divisor = -(-nanos // 10**6), -(-divisor // 10**6)
    return str(-(-nanos // divisor))


def _container(pod: Pod, name: str) -> Container:
    for each in (*containers_of(pod), *init_containers_of(pod)):
        if each["name"] == name:
            return each
    raise ContainerConfigError(f"container {name} not found")
