"""A node that joins its cluster: the object it is created as, and what is set of one that was there already.

Labels and taints are given at creation. Of a node that exists, only the labels that a kubelet answers for are put
right; its taints, its provider's ID and everything else belong to whoever has set them since.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from podlife.api.codec import Object
from podlife.client import NODES, Client
from podlife.errors import AlreadyExistsError, ForbiddenError
from podlife.kubelet.node_status.machine import MachineFacts
from podlife.kubelet.node_status.settings import NodeSettings

_HOSTNAME = "kubernetes.io/hostname"
_OS, _ARCH = "kubernetes.io/os", "kubernetes.io/arch"
# What a kubelet sets again on a node that it finds, where it has a value for it.
_ANSWERED_FOR = (
    _HOSTNAME,
    "topology.kubernetes.io/zone",
    "topology.kubernetes.io/region",
    "failure-domain.beta.kubernetes.io/zone",
    "failure-domain.beta.kubernetes.io/region",
    "node.kubernetes.io/instance-type",
    "beta.kubernetes.io/instance-type",
    _OS,
    _ARCH,
    "beta.kubernetes.io/os",
    "beta.kubernetes.io/arch",
)


def _labels(settings: NodeSettings, facts: MachineFacts) -> dict[str, str]:
    return {
        "beta.kubernetes.io/arch": facts.architecture,
        "beta.kubernetes.io/os": facts.operating_system,
        _ARCH: facts.architecture,
        _HOSTNAME: settings.hostname or settings.name,
        _OS: facts.operating_system,
        **settings.labels,
    }


def initial_node(settings: NodeSettings, facts: MachineFacts, status: Mapping[str, Any]) -> Object:
    metadata: Object = {"name": settings.name, "labels": _labels(settings, facts)}
    if settings.annotations:
        metadata["annotations"] = dict(settings.annotations)
    spec: Object = {}
    if settings.taints:
        spec["taints"] = [dict(taint) for taint in settings.taints]
    if settings.provider_id:
        spec["providerID"] = settings.provider_id
    return {"apiVersion": "v1", "kind": "Node", "metadata": metadata, "spec": spec, "status": dict(status)}


def corrected_labels(node: Mapping[str, Any], settings: NodeSettings, facts: MachineFacts) -> dict[str, str]:
    """Which labels of a node that was found have to be set."""
    wanted = _labels(settings, facts)
    return _differing(node, {key: wanted[key] for key in _ANSWERED_FOR if key in wanted})


def required_labels(node: Mapping[str, Any], facts: MachineFacts) -> dict[str, str]:
    """Which labels have to be set that no node is ever without, whoever has changed them."""
    return _differing(node, {_OS: facts.operating_system, _ARCH: facts.architecture})


def _differing(node: Mapping[str, Any], wanted: Mapping[str, str]) -> dict[str, str]:
    has = node["metadata"].get("labels") or {}
    return {key: value for key, value in wanted.items() if has.get(key) != value}


async def create_or_get(client: Client, node: Object) -> tuple[Object, bool]:
    """The node as the server has it, and whether it was created just now. Raises what the client raises."""
    try:
        return await client.create(NODES, node), True
    except (AlreadyExistsError, ForbiddenError) as error:
        # Who may not create nodes may still be one that somebody else has created.
        refused = error
    try:
        return await client.get(NODES, node["metadata"]["name"]), False
    except ForbiddenError:
        raise refused from None
