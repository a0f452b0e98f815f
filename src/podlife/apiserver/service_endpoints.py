"""Where the endpoints of a Service listen: no network translates a Service's own address here.

Upstream's resolver with endpoint routing, from the EndpointSlices of the Service; otherwise from the ready pods that it
selects: those of a local cluster may be on loopback, where the server allows no endpoint.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from podlife.api.codec import Object, decode_object, encode
from podlife.api.labels import selector_matches
from podlife.apiserver.storage import Key, Store

_SLICES = "endpointslices.discovery.k8s.io"
_SERVICE_NAME = "kubernetes.io/service-name"


class UnresolvedError(Exception):
    """The Service has no address: why, as upstream says to clients, and the reason and message of its conditions."""

    def __init__(self, why: str, reason: str, message: str) -> None:
        super().__init__(why)
        self.reason = reason
        self.message = message


def resolve(store: Store, namespace: str, name: str, port: int) -> Sequence[tuple[str, int]]:
    """Host and port of every ready endpoint, at least one; raises UnresolvedError."""
    shown = f'service/{name} in "{namespace}"'
    record = store.get(Key("services", namespace, name))
    if record is None:
        raise UnresolvedError(f'service "{name}" not found', "ServiceNotFound", f"{shown} is not present")
    spec = decode_object(record.value)["spec"]
    if spec.get("type") == "ExternalName":
        return [(spec.get("externalName", ""), port)]
    ports = [each for each in spec.get("ports") or () if each["port"] == port]
    if not ports:
        why = f'no service port {port} found for service "{name}"'
        raise UnresolvedError(why, "ServicePortError", f"{shown} is not listening on port {port}")
    slices = list(_slices_of(store, namespace, name))
    port_name = ports[0].get("name", "")
    found = [
        (endpoint["addresses"][0], each["port"])
        for one in slices
        for each in one.get("ports") or ()
        if each.get("name", "") == port_name and each.get("port")
        for endpoint in one.get("endpoints") or ()
        if (endpoint.get("conditions") or {}).get("ready", True)
    ]
    found = found or list(_of_pods(store, namespace, spec.get("selector") or {}, ports[0]))
    nowhere = f'no endpoints available for service "{name}"'
    if not (found or slices):
        raise UnresolvedError(nowhere, "EndpointsNotFound", f"cannot find endpointslices for {shown}")
    if not found:
        message = f'endpointslices for {shown} have no addresses with port name "{port_name}"'
        raise UnresolvedError(nowhere, "MissingEndpoints", message)
    return found


def _slices_of(store: Store, namespace: str, name: str) -> Iterator[Object]:
    # Their bytes tell sooner than their objects whose they are.
    mark = encode({_SERVICE_NAME: name})[1:-1]
    for record in store.list(_SLICES, namespace):
        if mark in record.value:
            found = decode_object(record.value)
            if (found["metadata"].get("labels") or {}).get(_SERVICE_NAME) == name:
                yield found


def pod_addresses(store: Store, namespace: str, name: str, port_name: str) -> Iterator[tuple[str, int]]:
    """Where the ready pods that a Service selects serve its port of this name."""
    if (record := store.get(Key("services", namespace, name))) is not None:
        spec = decode_object(record.value)["spec"]
        for port in spec.get("ports") or ():
            if port.get("name", "") == port_name:
                yield from _of_pods(store, namespace, spec.get("selector") or {}, port)


def _of_pods(
    store: Store, namespace: str, selector: dict[str, str], port: Object
) -> Iterator[tuple[str, int]]:
    if not selector:
        return
    for record in store.list("pods", namespace):
        # Most pods are not ready, or not meant: their bytes tell sooner than their objects.
        if b'"podIP"' not in record.value:
            continue
        pod = decode_object(record.value)
        status = pod.get("status") or {}
        labels = pod["metadata"].get("labels") or {}
        if not selector_matches({"matchLabels": selector}, labels) or not _is_ready(pod):
            continue
        if number := _target_port(pod, port):
            yield status["podIP"], number


def _is_ready(pod: Object) -> bool:
    conditions = pod.get("status", {}).get("conditions") or ()
    is_ready = any(each["type"] == "Ready" and each["status"] == "True" for each in conditions)
    return is_ready and "deletionTimestamp" not in pod["metadata"]


def _target_port(pod: Object, port: Object) -> int:
    """The number of the port that a service's port leads to; 0 if the pod has no port of that name."""
    target = port.get("targetPort") or port["port"]
    if isinstance(target, int):
        return target
    for container in pod["spec"].get("containers") or ():
        for each in container.get("ports") or ():
            if each.get("name") == target:
                return int(each["containerPort"])
    return 0
