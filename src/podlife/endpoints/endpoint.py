"""Which endpoint a pod is of a Service, in the form of an EndpointSlice, and when what it is changed. Pure."""

from __future__ import annotations

from collections.abc import Iterable
from datetime import datetime

from podlife.api.codec import Object, format_time
from podlife.endpoints.views import EndpointPod, Service, ServicePort
from podlife.informer.indexes import Key

HEADLESS = "service.kubernetes.io/headless"
TRIGGER_TIME = "endpoints.kubernetes.io/last-change-trigger-time"
ZONE = "topology.kubernetes.io/zone"
_CLOSE = ("PreferClose", "PreferSameZone", "PreferSameNode")


def endpoint_of(pod: EndpointPod, service: Service, family: str, zone: str) -> Object | None:
    """The endpoint, or None if the pod has no address of this family."""
    addresses = pod.addresses(family)
    if not addresses:
        return None
    is_ready = service.spec.publish_not_ready_addresses or (pod.is_ready and not pod.is_terminating)
    conditions = {"ready": is_ready, "serving": pod.is_ready, "terminating": pod.is_terminating}
    endpoint: Object = {
        "addresses": addresses,
        "conditions": conditions,
        "targetRef": target_of(pod),
        "hostname": hostname_of(pod, service),
        "nodeName": pod.spec.node_name,
        "zone": zone,
        "hints": _hints(pod, service, zone) if is_ready else {},
    }
    return {field: value for field, value in endpoint.items() if value}


def target_of(pod: EndpointPod) -> Object:
    meta = pod.metadata
    return {"kind": "Pod", "namespace": meta.namespace, "name": meta.name, "uid": meta.uid}


def hostname_of(pod: EndpointPod, service: Service) -> str:
    return pod.spec.hostname if pod.spec.subdomain == service.metadata.name else ""


def _hints(pod: EndpointPod, service: Service, zone: str) -> Object:
    distribution = service.spec.traffic_distribution
    if distribution not in _CLOSE:
        return {}
    hints: Object = {"forZones": [{"name": zone}]} if zone else {}
    if distribution == "PreferSameNode" and pod.spec.node_name:
        hints["forNodes"] = [{"name": pod.spec.node_name}]
    return hints


def ports_of(pod: EndpointPod, service: Service) -> list[Object]:
    """The ports of the Service that the pod has, with their numbers in the pod."""
    found = []
    for port in service.spec.ports:
        if (number := _number_of(port, pod)) is not None:
            entry: Object = {"name": port.name, "port": number, "protocol": port.protocol}
            if port.app_protocol is not None:
                entry["appProtocol"] = port.app_protocol
            found.append(entry)
    return found


def _number_of(port: ServicePort, pod: EndpointPod) -> int | None:
    if isinstance(port.target_port, int):
        return port.target_port or port.port
    sidecars = [each for each in pod.spec.init_containers if each.restart_policy == "Always"]
    for container in (*pod.spec.containers, *sidecars):
        for each in container.ports:
            if (each.name, each.protocol) == (port.target_port, port.protocol):
                return each.container_port
    return None


class TriggerTimes:
    """When that which a write of endpoints tells happened: of what changed since the last one, the earliest."""

    def __init__(self) -> None:
        self._known: dict[Key, dict[str, datetime]] = {}

    def update(self, service: Service, pods: Iterable[EndpointPod]) -> str | None:
        """The time to write; None if nothing changed at a known time. Of a new Service, its creation."""
        meta = service.metadata
        before = self._known.get((meta.namespace, meta.name))
        # No pod has an empty name.
        times = {"": meta.creation_timestamp} | {
            pod.metadata.name: pod.readiness.last_transition_time for pod in pods if pod.readiness is not None
        }
        known = {name: time for name, time in times.items() if time is not None}
        self._known[meta.namespace, meta.name] = known
        if before is None:
            return format_time(meta.creation_timestamp) if meta.creation_timestamp else None
        changed = [time for name, time in known.items() if name not in before or time > before[name]]
        return format_time(min(changed)) if changed else None

    def forget(self, key: Key) -> None:
        self._known.pop(key, None)
