"""Kinds of core/v1 other than pods, and Leases.

Events are those of both groups: core/v1 and events.k8s.io/v1 name the same things differently.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from podlife.api.codec import Object
from podlife.apiserver.printers.cells import age, columns, format_labels, name, since
from podlife.apiserver.resource import Printer

_ROLE_PREFIX = "node-role.kubernetes.io/"
_ROLE_LABEL = "kubernetes.io/role"
_SHOWN_ENDPOINTS = 3
_CLASS_ANNOTATION = "volume.beta.kubernetes.io/storage-class"
_SHORT_MODES = {
    "ReadWriteOnce": "RWO",
    "ReadOnlyMany": "ROX",
    "ReadWriteMany": "RWX",
    "ReadWriteOncePod": "RWOP",
}


def _namespace(obj: Object, now: float) -> list[Any]:
    return [name(obj), obj.get("status", {}).get("phase", ""), age(obj, now)]


def _config_map(obj: Object, now: float) -> list[Any]:
    return [name(obj), len(obj.get("data", ())) + len(obj.get("binaryData", ())), age(obj, now)]


def _secret(obj: Object, now: float) -> list[Any]:
    return [name(obj), obj.get("type", ""), len(obj.get("data", ())), age(obj, now)]


def _service_account(obj: Object, now: float) -> list[Any]:
    return [name(obj), age(obj, now)]


def _node(obj: Object, now: float) -> list[Any]:
    status = obj.get("status", {})
    info = status.get("nodeInfo", {})
    kernel = info.get("kernelVersion") or "<unknown>"
    if architecture := info.get("architecture"):
        kernel += f" ({architecture})"
    return [
        name(obj),
        _node_status(obj),
        _node_roles(obj),
        age(obj, now),
        info.get("kubeletVersion", ""),
        _node_address(status, "InternalIP"),
        _node_address(status, "ExternalIP"),
        info.get("osImage") or "<unknown>",
        kernel,
        info.get("containerRuntimeVersion") or "<unknown>",
    ]


def _node_status(obj: Object) -> str:
    # Of several conditions of one type the last counts, unlike elsewhere.
    ready = "Unknown"
    for condition in obj.get("status", {}).get("conditions", ()):
        if condition.get("type") == "Ready":
            ready = "Ready" if condition.get("status") == "True" else "NotReady"
    return f"{ready},SchedulingDisabled" if obj.get("spec", {}).get("unschedulable") else ready


def _node_roles(obj: Object) -> str:
    roles = set()
    for key, value in obj["metadata"].get("labels", {}).items():
        if key.startswith(_ROLE_PREFIX):
            roles.add(key.removeprefix(_ROLE_PREFIX))
        elif key == _ROLE_LABEL:
            roles.add(value)
    return ",".join(sorted(roles - {""})) or "<none>"


def _node_address(status: Object, address_type: str) -> str:
    for address in status.get("addresses", ()):
        if address.get("type") == address_type:
            return str(address.get("address", ""))
    return "<none>"


def _lease(obj: Object, now: float) -> list[Any]:
    return [name(obj), obj.get("spec", {}).get("holderIdentity", ""), age(obj, now)]


def _service(obj: Object, now: float) -> list[Any]:
    spec = obj.get("spec", {})
    cluster_ips = spec.get("clusterIPs", ())
    return [
        name(obj),
        spec.get("type", ""),
        cluster_ips[0] if cluster_ips else "<none>",
        _external_ip(obj),
        ",".join(map(_service_port, spec.get("ports", ()))) or "<none>",
        age(obj, now),
        format_labels(spec.get("selector")),
    ]


def _external_ip(obj: Object) -> str:
    spec = obj.get("spec", {})
    external = ",".join(spec.get("externalIPs", ()))
    match spec.get("type"):
        case "ClusterIP" | "NodePort":
            return external or "<none>"
        case "LoadBalancer":
            balanced = _load_balancer(obj)
            return ",".join(filter(None, (balanced, external))) or "<pending>"
        case "ExternalName":
            return str(spec.get("externalName", ""))
    return "<unknown>"


def _load_balancer(obj: Object) -> str:
    ingress = obj.get("status", {}).get("loadBalancer", {}).get("ingress", ())
    addresses = {entry.get("ip") or entry.get("hostname") or "" for entry in ingress}
    return ",".join(sorted(addresses - {""}))


def _service_port(port: Object) -> str:
    node_port = f":{port['nodePort']}" if port.get("nodePort") else ""
    return f"{port.get('port', 0)}{node_port}/{port.get('protocol', '')}"


def _endpoints(obj: Object, now: float) -> list[Any]:
    return [name(obj), _endpoint_addresses(obj), age(obj, now)]


def _endpoint_addresses(obj: Object) -> str:
    subsets = obj.get("subsets", ())
    if not subsets:
        return "<none>"
    found = [
        _host_port(address.get("ip", ""), port)
        for subset in subsets
        # A headless service may have no ports at all: only its addresses are shown.
        for port in subset.get("ports", ()) or (None,)
        for address in subset.get("addresses", ())
    ]
    shown = ",".join(found[:_SHOWN_ENDPOINTS])
    more = len(found) - _SHOWN_ENDPOINTS
    return f"{shown} + {more} more..." if more > 0 else shown


def _host_port(address: str, port: Object | None) -> str:
    if port is None:
        return address
    host = f"[{address}]" if ":" in address else address
    return f"{host}:{port.get('port', 0)}"


def _volume(obj: Object, now: float) -> list[Any]:
    spec, status = obj.get("spec", {}), obj.get("status", {})
    claim = spec.get("claimRef")
    return [
        name(obj),
        spec.get("capacity", {}).get("storage", "0"),
        _access_modes(spec.get("accessModes", ())),
        spec.get("persistentVolumeReclaimPolicy", ""),
        _volume_phase(obj),
        f"{claim.get('namespace', '')}/{claim.get('name', '')}" if claim else "",
        _storage_class(obj),
        spec.get("volumeAttributesClassName", "<unset>"),
        status.get("reason", ""),
        age(obj, now),
        spec.get("volumeMode", "<unset>"),
    ]


def _claim(obj: Object, now: float) -> list[Any]:
    spec, status = obj.get("spec", {}), obj.get("status", {})
    # The granted size is shown once there is a volume; the requested size never is.
    is_bound = bool(spec.get("volumeName"))
    return [
        name(obj),
        _volume_phase(obj),
        spec.get("volumeName", ""),
        status.get("capacity", {}).get("storage", "0") if is_bound else "",
        _access_modes(status.get("accessModes", ())) if is_bound else "",
        _storage_class(obj),
        spec.get("volumeAttributesClassName", "<unset>"),
        age(obj, now),
        spec.get("volumeMode", "<unset>"),
    ]


def _volume_phase(obj: Object) -> str:
    deleting = obj["metadata"].get("deletionTimestamp")
    return "Terminating" if deleting else str(obj.get("status", {}).get("phase", ""))


def _storage_class(obj: Object) -> str:
    annotations = obj["metadata"].get("annotations", {})
    return str(annotations.get(_CLASS_ANNOTATION, obj.get("spec", {}).get("storageClassName", "")))


def _access_modes(modes: Sequence[str]) -> str:
    return ",".join(short for mode, short in _SHORT_MODES.items() if mode in modes)


def _event(obj: Object, now: float) -> list[Any]:
    target: Object = _either(obj, "involvedObject", "regarding") or {}
    first, last, count = _event_occurrence(obj, now)
    return [
        last,
        obj.get("type", ""),
        obj.get("reason", ""),
        _event_target(target),
        target.get("fieldPath", ""),
        _event_source(obj),
        (_either(obj, "message", "note") or "").strip(),
        first,
        count,
        name(obj),
    ]


def _either(obj: Object, core_name: str, events_name: str) -> Any:
    return obj.get(core_name) or obj.get(events_name)


def _event_occurrence(obj: Object, now: float) -> tuple[str, str, int]:
    """When it was first and last seen, and how often. A series takes precedence over the older fields."""
    first_time = _either(obj, "firstTimestamp", "deprecatedFirstTimestamp") or obj.get("eventTime")
    first = since(first_time, now)
    if series := obj.get("series"):
        return first, since(series.get("lastObservedTime"), now), series.get("count", 0)
    last_time = _either(obj, "lastTimestamp", "deprecatedLastTimestamp")
    count = _either(obj, "count", "deprecatedCount") or 1
    return first, since(last_time, now) if last_time else first, count


def _event_target(target: Object) -> str:
    kind: str = target.get("kind", "").lower()
    return f"{kind}/{target['name']}" if target.get("name") else kind


def _event_source(obj: Object) -> str:
    source: Object = _either(obj, "source", "deprecatedSource") or {}
    controller = _either(obj, "reportingComponent", "reportingController")
    component: str = source.get("component") or controller or ""
    instance = source.get("host") or obj.get("reportingInstance")
    return f"{component}, {instance}" if instance else component


def _resource_quota(obj: Object, now: float) -> list[Any]:
    status = obj.get("status", {})
    hard, used = status.get("hard", {}), status.get("used", {})
    shown: dict[bool, list[str]] = {False: [], True: []}
    for resource in sorted(hard):
        amounts = f"{resource}: {used.get(resource, '0')}/{hard[resource]}"
        shown[resource.startswith("limits.")].append(amounts)
    return [name(obj), ", ".join(shown[False]), ", ".join(shown[True]), age(obj, now)]


NAMESPACES = Printer(columns("namespaces"), _namespace)
CONFIG_MAPS = Printer(columns("configmaps"), _config_map)
SECRETS = Printer(columns("secrets"), _secret)
SERVICE_ACCOUNTS = Printer(columns("serviceaccounts"), _service_account)
NODES = Printer(columns("nodes"), _node)
LEASES = Printer(columns("leases.coordination.k8s.io"), _lease)
SERVICES = Printer(columns("services"), _service)
ENDPOINTS = Printer(columns("endpoints"), _endpoints)
PERSISTENT_VOLUMES = Printer(columns("persistentvolumes"), _volume)
PERSISTENT_VOLUME_CLAIMS = Printer(columns("persistentvolumeclaims"), _claim)
EVENTS = Printer(columns("events"), _event)
RESOURCE_QUOTAS = Printer(columns("resourcequotas"), _resource_quota)
