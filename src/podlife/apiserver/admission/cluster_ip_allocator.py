"""ClusterIP allocator: every service that needs an address gets a unique one.

No network uses these addresses. They are assigned because clients, printers and controllers expect a service to have
one, and because a service that moves to a real cluster should look the same.
"""

from __future__ import annotations

from collections.abc import Iterable
from ipaddress import IPv4Network
from itertools import count, islice

import msgspec

from podlife.apiserver.admission import AdmissionRequest, Operation, Plugin, Reader
from podlife.apiserver.storage import Store
from podlife.apiserver.strategies.core.services import assign_cluster_ip, needs_cluster_ip
from podlife.errors import ApiError

_SERVICES = "services"
# The range that kube-apiserver's documentation suggests; its first address belongs to the API server's own service.
_RANGE = IPv4Network("10.96.0.0/16")
API_SERVER_IP = str(_RANGE[1])


def allocate_cluster_ips(store: Store) -> Plugin:
    """A plug-in that cycles through the range, so that concurrent requests get different addresses."""
    # Iterators that several threads may use, which a generator does not allow.
    candidates = map(_nth_address, count())

    def plugin(attributes: AdmissionRequest, reader: Reader) -> None:
        service = attributes.new
        if service is None or attributes.resource.key != _SERVICES or attributes.subresource:
            return
        if attributes.operation is Operation.CREATE and needs_cluster_ip(service):
            assign_cluster_ip(service, _first_free(candidates, store))

    return plugin


def _nth_address(number: int) -> str:
    # Excludes the network's own address, the first host's and the broadcast address.
    return str(_RANGE[2 + number % (_RANGE.num_addresses - 3)])


class _Spec(msgspec.Struct):
    cluster_ips: list[str] = msgspec.field(name="clusterIPs", default_factory=list)


class _Service(msgspec.Struct):
    spec: _Spec


_decode = msgspec.json.Decoder(_Service).decode


def _first_free(candidates: Iterable[str], store: Store) -> str:
    services = store.list(_SERVICES)
    for candidate in islice(candidates, _RANGE.num_addresses):
        # Other text in a service may contain any address: only services that do are decoded.
        mark = f'"{candidate}"'.encode()
        holders = (_decode(record.value) for record in services if mark in record.value)
        if not any(candidate in holder.spec.cluster_ips for holder in holders):
            return candidate
    raise ApiError("failed to allocate IP: range is full", code=500, reason="InternalError")
