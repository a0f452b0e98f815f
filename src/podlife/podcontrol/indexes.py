"""Pods by node, by controller and by namespace: indexers for an informer, and the pods of an owner from them.

informer = Informer(client, PODS, view=Pod, indexers=POD_INDEXERS)
pods = pods_of_owner(informer.cache, owner, with_orphans=True)
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import TypeVar

from podlife.api.views import OwnerReference, controller_of
from podlife.informer import CacheReader
from podlife.informer.indexes import Indexer
from podlife.podcontrol.errors import InvalidOwnerError
from podlife.podcontrol.owner import ControllerRef, Owner
from podlife.podcontrol.views import OwnedPod

BY_CONTROLLER = "podController"
BY_NAMESPACE = "namespace"
BY_NODE = "spec.nodeName"

T = TypeVar("T")


def controller_index_key(namespace: str, ref: ControllerRef | Owner | OwnerReference | None) -> str:
    """The index key of a controller's pods; None for pods of the namespace without one."""
    return namespace if ref is None else f"{namespace}/{ref.kind}/{ref.name}/{ref.uid}"


def _by_controller(pod: OwnedPod) -> Iterable[str]:
    return (controller_index_key(pod.metadata.namespace, controller_of(pod.metadata)),)


def _by_node(pod: OwnedPod) -> Iterable[str]:
    return (pod.spec.node_name,) if pod.spec.node_name else ()


def _by_namespace(pod: OwnedPod) -> Iterable[str]:
    return (pod.metadata.namespace,)


POD_INDEXERS: Mapping[str, Indexer[OwnedPod]] = {
    BY_CONTROLLER: _by_controller,
    BY_NAMESPACE: _by_namespace,
    BY_NODE: _by_node,
}


def pods_of_owner(cache: CacheReader[T], owner: Owner, *, with_orphans: bool = False) -> list[T]:
    """The pods that the owner controls, matched by UID; with orphans, also the pods of its namespace without a
    controller. Raises InvalidOwnerError for an owner without namespace, name, UID or kind."""
    for what in ("namespace", "name", "uid", "kind"):
        if not getattr(owner, what):
            raise InvalidOwnerError(f"no owner {what} provided")
    pods = list(cache.by_index(BY_CONTROLLER, controller_index_key(owner.namespace, owner)))
    if with_orphans:
        pods += cache.by_index(BY_CONTROLLER, controller_index_key(owner.namespace, None))
    return pods
