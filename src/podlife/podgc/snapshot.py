"""A one-off snapshot of the cluster for the collector: lists, no watches.

Pods are listed before nodes and namespaces, because a pod's node and namespace existed before the pod.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence
from typing import TypeVar

import msgspec

from podlife.api.views import Node
from podlife.client import NAMESPACES, NODES, PODS, Client, ListOptions
from podlife.podgc.effective_settings import index_for, pod_view
from podlife.podgc.index import PodIndex
from podlife.podgc.settings import Selection, Settings
from podlife.podgc.views import Namespace, Pod

V = TypeVar("V")

_PAGE = 1000


class _Named(msgspec.Struct, gc=False):
    uid: str = ""


class _Chosen(msgspec.Struct, gc=False):
    metadata: _Named


async def read_index(client: Client, settings: Settings, namespace: str = "") -> PodIndex:
    """An index of all pods, nodes and, if the settings need them, namespaces; or of one namespace and its pods, without
    nodes. Raises ApiError or UnreachableError."""
    index = index_for(settings)
    options = ListOptions(limit=_PAGE)
    pods = await client.list_all(PODS, namespace, options=options, view=pod_view(settings))
    nodes = [] if namespace else (await client.list_all(NODES, options=options, view=Node)).items
    if settings.asks_namespaces:
        for each in await _namespaces(client, namespace):
            index.put_namespace(each)
    now = asyncio.get_running_loop().time()
    for node in nodes:
        index.put_node(node)
    for pod in pods.items:
        index.add_pod(pod, now)
    return index


async def _namespaces(client: Client, name: str) -> Sequence[Namespace]:
    # Who may read one namespace only may get it, but not list them.
    return [await client.get(NAMESPACES, name, view=Namespace)] if name else await list_namespaces(client)


async def list_namespaces(client: Client) -> Sequence[Namespace]:
    page = await client.list_all(NAMESPACES, options=ListOptions(limit=_PAGE), view=Namespace)
    return page.items


async def find_pod(client: Client, namespace: str, name: str, *, view: type[V] | None = None) -> V | None:
    """The pod of this name, which may have another UID by now. A list of one pod: RBAC for a sweep includes list, but
    not get."""
    options = ListOptions(field_selector=f"metadata.name={name}")
    page = await client.list(PODS, namespace, options=options, view=view)
    return next(iter(page.items), None)


async def chooser(client: Client, selection: Selection) -> Callable[[Pod], bool]:
    """A predicate for selected pods; the server evaluates label selectors."""
    if selection.label_selector:
        options = ListOptions(label_selector=selection.label_selector, limit=_PAGE)
        chosen = await client.list_all(PODS, selection.namespace, options=options, view=_Chosen)
        uids = {each.metadata.uid for each in chosen.items}
        return lambda pod: pod.metadata.uid in uids
    if selection.namespace:
        return lambda pod: pod.metadata.namespace == selection.namespace
    return lambda pod: True
