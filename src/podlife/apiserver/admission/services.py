"""Addresses for services: every service of a kind that has one gets an address that no other has.

There is no network behind them here. They are given out because clients, printers and controllers expect a
service to have one, and because a service that moves to a real cluster should look the same.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from ipaddress import IPv4Network
from itertools import islice

from podlife.apiserver.admission import Attributes, Operation, Plugin, Reader
from podlife.apiserver.storage.store import Store
from podlife.apiserver.strategies.services import assign_cluster_ip, needs_cluster_ip
from podlife.errors import ApiError

__all__ = ["allocate_cluster_ips"]

_SERVICES = "services"
# The range that kube-apiserver's manual suggests; its first address is the API server's own service.
_RANGE = IPv4Network("10.96.0.0/16")


def allocate_cluster_ips(store: Store) -> Plugin:
    """A plug-in that goes round the range, so that two requests at the same time get two addresses."""
    candidates = _round_and_round()

    def plugin(attributes: Attributes, reader: Reader) -> None:
        service = attributes.new
        if service is None or attributes.resource.key != _SERVICES or attributes.subresource:
            return
        if attributes.operation is Operation.CREATE and needs_cluster_ip(service):
            assign_cluster_ip(service, _first_free(candidates, store))

    return plugin


def _round_and_round() -> Iterator[str]:
    while True:
        yield from (str(address) for address in islice(_RANGE.hosts(), 1, None))


def _first_free(candidates: Iterable[str], store: Store) -> str:
    services = store.list(_SERVICES)
    for candidate in islice(candidates, _RANGE.num_addresses):
        mark = f'"{candidate}"'.encode()
        if not any(mark in record.value for record in services):
            return candidate
    raise ApiError("failed to allocate IP: range is full", code=500, reason="InternalError")
