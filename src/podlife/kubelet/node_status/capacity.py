"""Capacity and allocatable of a node, as API quantities. Pure."""

from __future__ import annotations

from collections.abc import Mapping

from podlife.api.quantity import NANOS, Quantity, parse_quantity
from podlife.kubelet.node_status.machine import MachineFacts
from podlife.kubelet.node_status.settings import NodeSettings

HUGEPAGES = "hugepages-"


def _binary(amount: int) -> str:
    return str(Quantity(amount * NANOS, "binary"))


def capacity(facts: MachineFacts, settings: NodeSettings, known: Mapping[str, str]) -> dict[str, str]:
    """`known` is the capacity the node has now: what others have told of in it (devices) stays."""
    foreign = {name: amount for name, amount in known.items() if not name.startswith(HUGEPAGES)}
    return {
        **foreign,
        "cpu": str(facts.cores),
        "ephemeral-storage": _binary(facts.storage_bytes),
        **{f"{HUGEPAGES}{_binary(size)}": _binary(size * count) for size, count in facts.hugepages},
        "memory": _binary(facts.memory_bytes),
        "pods": str(settings.max_pods),
    }


def allocatable(amounts: Mapping[str, str], facts: MachineFacts, settings: NodeSettings) -> dict[str, str]:
    """The capacity without what is reserved; memory also without that which huge pages hold."""
    left = {name: parse_quantity(text) for name, text in amounts.items()}
    for name, kept in _kept_free(facts, settings).items():
        if name in left:
            left[name] = _less(left[name], kept)
    for name, text in settings.reserved.items():
        if name in left:
            left[name] = _less(left[name], parse_quantity(text))
    for size, count in facts.hugepages:
        left["memory"] = _less(left["memory"], Quantity(size * count * NANOS, "binary"))
    return {name: str(quantity) for name, quantity in left.items()}


def _kept_free(facts: MachineFacts, settings: NodeSettings) -> dict[str, Quantity]:
    thresholds = settings.thresholds
    kept: dict[str, Quantity] = {}
    if thresholds.memory_bytes is not None:
        kept["memory"] = Quantity(thresholds.memory_bytes * NANOS, "binary")
    if thresholds.storage_percent is not None:
        share = int(facts.storage_bytes * thresholds.storage_percent / 100)
        kept["ephemeral-storage"] = Quantity(share * NANOS, "binary")
    return kept


def _less(quantity: Quantity, other: Quantity) -> Quantity:
    return Quantity(max(0, quantity.nanos - other.nanos), quantity.style)
