"""Lists deleted pods that finalizers hold: which finalizers, since when, set by whom, and whether the node exists.

Read-only. A pod is held once its grace period is over: before that, its kubelet may still be terminating it.
"""

from __future__ import annotations

from dataclasses import replace
from datetime import datetime
from typing import Any

from podlife.api.codec import Object, parse_time
from podlife.api.managed_fields import finalizer_setter
from podlife.api.views import MetadataOnly
from podlife.client import NODES, PODS, Client, ListOptions
from podlife.podgc.plan import Finalizer, HeldPod, NodeState
from podlife.podgc.views import controller_title

_PAGE = 500


async def held_pods(
    client: Client, now: datetime, namespace: str = "", *, label_selector: str = ""
) -> list[HeldPod]:
    """Held pods of a namespace or of all, longest held first. Raises ApiError or UnreachableError."""
    found: list[HeldPod] = []
    options = ListOptions(limit=_PAGE, label_selector=label_selector)
    async for page in client.pages(PODS, namespace, options=options):
        found += [held for pod in page.items if (held := held_pod(pod, now)) is not None]
    # After the pods, as in the collector: a pod's node existed before the pod.
    nodes = await read_nodes(client) if found else frozenset()
    known = (replace(each, node_state=_state(each.node, nodes)) for each in found)
    return sorted(known, key=lambda each: (each.since, each.key))


async def read_nodes(client: Client) -> frozenset[str]:
    options = ListOptions(limit=_PAGE, metadata_only=True)
    page = await client.list_all(NODES, options=options, view=MetadataOnly)
    return frozenset(each.metadata.name for each in page.items)


def held_pod(pod: Object, now: datetime) -> HeldPod | None:
    """None for a pod that is not held by finalizers alone. `node_state` is not set."""
    metadata: Object = pod.get("metadata") or {}
    since, names = _time(metadata.get("deletionTimestamp")), metadata.get("finalizers") or ()
    if since is None or not names or (since > now and metadata.get("deletionGracePeriodSeconds") != 0):
        return None
    finalizers = []
    for name in names:
        manager, set_at = finalizer_setter(metadata, name)
        finalizers.append(Finalizer(name, manager, _time(set_at)))
    namespace, own_name, uid = (str(metadata.get(field) or "") for field in ("namespace", "name", "uid"))
    node = str((pod.get("spec") or {}).get("nodeName") or "")
    return HeldPod(namespace, own_name, uid, node, since, tuple(finalizers), controller_title(metadata))


def _state(node: str, nodes: frozenset[str]) -> NodeState:
    if not node:
        return NodeState.NONE
    return NodeState.THERE if node in nodes else NodeState.GONE


def _time(value: Any) -> datetime | None:
    try:
        return parse_time(value) if isinstance(value, str) and value else None
    except ValueError:
        return None
