"""Addresses of services: where the endpoints of a service listen.

Upstream's resolver with endpoint routing: no network translates a service's own address here. An Endpoints object is
used if there is one; otherwise the ready pods that the service selects.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from podlife.api.codec import Object, decode_object
from podlife.api.labels import selector_matches
from podlife.apiserver.storage import Key, Store


class UnresolvedError(Exception):
    """The service has no address; the text says why, in upstream's words."""


def resolve(store: Store, namespace: str, name: str, port: int) -> Sequence[tuple[str, int]]:
    """Host and port of every ready endpoint; raises UnresolvedError if there are none."""
    record = store.get(Key("services", namespace, name))
    if record is None:
        raise UnresolvedError(f'service "{name}" not found')
    spec = decode_object(record.value).get("spec") or {}
    if spec.get("type") == "ExternalName":
        return [(spec.get("externalName", ""), port)]
    service_port = next((each for each in spec.get("ports") or () if each.get("port") == port), None)
    if service_port is None:
        raise UnresolvedError(f'no service port {port} found for service "{name}"')
    endpoints = store.get(Key("endpoints", namespace, name))
    if endpoints is not None:
        found = list(_of_endpoints(decode_object(endpoints.value), service_port.get("name", "")))
    else:
        found = list(_of_pods(store, namespace, spec.get("selector") or {}, service_port))
    if not found:
        raise UnresolvedError(f'no endpoints available for service "{name}"')
    return found


def _of_endpoints(endpoints: Object, port_name: str) -> Iterator[tuple[str, int]]:
    for subset in endpoints.get("subsets") or ():
        for port in subset.get("ports") or ():
            if port.get("name", "") == port_name:
                yield from ((address["ip"], port["port"]) for address in subset.get("addresses") or ())


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
