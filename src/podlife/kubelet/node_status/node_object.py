"""The Node object: how a kubelet creates it, what it corrects on an existing one, and its newest known state.

Labels and taints are set at creation. On an existing node, only the labels that a kubelet owns are corrected; taints,
provider ID and everything else belong to other components.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Mapping
from contextlib import aclosing
from typing import Any

from podlife.api.codec import Object
from podlife.client import NODES, Bookmark, Client, EventType, WatchOptions
from podlife.errors import AlreadyExistsError, ExpiredError, ForbiddenError, PodlifeError
from podlife.kubelet.node_status.machine import MachineFacts
from podlife.kubelet.node_status.settings import NodeSettings

log = logging.getLogger(__name__)

_FIRST_RETRY_SECONDS, _LAST_RETRY_SECONDS = 1.0, 30.0
_HOSTNAME = "kubernetes.io/hostname"
_OS, _ARCH = "kubernetes.io/os", "kubernetes.io/arch"
# Labels that a kubelet corrects on an existing node, if it has a value.
_KUBELET_LABELS = (
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
    """The labels of an existing node that have to be set."""
    wanted = _labels(settings, facts)
    return _differing(node, {key: wanted[key] for key in _KUBELET_LABELS if key in wanted})


def required_labels(node: Mapping[str, Any], facts: MachineFacts) -> dict[str, str]:
    """Required labels that have to be set again."""
    return _differing(node, {_OS: facts.operating_system, _ARCH: facts.architecture})


def _differing(node: Mapping[str, Any], wanted: Mapping[str, str]) -> dict[str, str]:
    has = node["metadata"].get("labels") or {}
    return {key: value for key, value in wanted.items() if has.get(key) != value}


async def create_or_get(client: Client, node: Object) -> tuple[Object, bool]:
    """The server's node, and whether it was created now. Raises the client's errors."""
    try:
        return await client.create(NODES, node), True
    except (AlreadyExistsError, ForbiddenError) as error:
        # A kubelet that may not create its Node may use an existing one.
        refused = error
    try:
        return await client.get(NODES, node["metadata"]["name"]), False
    except ForbiddenError:
        raise refused from None


class NodeRecord:
    """The newest known state, from responses and from the watch. `node` is None if it does not exist."""

    def __init__(self) -> None:
        self.node: Object | None = None

    @property
    def uid(self) -> str:
        return str(self.node["metadata"]["uid"]) if self.node is not None else ""

    def put(self, node: Object) -> None:
        """An older state is ignored: the response to a write may be newer than the next event of the watch."""
        if self.node is None or not _is_older(node, self.node):
            self.node = node

    def remove(self, uid: str) -> None:
        """The node with this UID was deleted; another one of the same name is kept."""
        if uid == self.uid:
            self.node = None


def _is_older(node: Object, than: Object) -> bool:
    one, other = node["metadata"], than["metadata"]
    versions = str(one.get("resourceVersion")), str(other.get("resourceVersion"))
    if one.get("uid") != other.get("uid") or not all(each.isdecimal() for each in versions):
        return False
    return int(versions[0]) < int(versions[1])


async def follow_node(client: Client, name: str, record: NodeRecord) -> None:
    """Keep the record up to date until cancelled."""
    delay = _FIRST_RETRY_SECONDS
    while True:
        try:
            await _follow_once(client, name, record)
        except ExpiredError:
            delay = _FIRST_RETRY_SECONDS
        except Exception as error:
            # Without this watch, the kubelet still learns of its node from its own requests.
            is_expected = isinstance(error, PodlifeError)
            level = logging.DEBUG if is_expected else logging.WARNING
            log.log(level, "watch of node %s ended, retrying: %s", name, error, exc_info=not is_expected)
            delay = min(_LAST_RETRY_SECONDS, delay * 2)
        await asyncio.sleep(delay)


async def _follow_once(client: Client, name: str, record: NodeRecord) -> None:
    options = WatchOptions(field_selector=f"metadata.name={name}", streams_list=False)
    known, listed = record.uid, ""
    async with aclosing(client.list_watch(NODES, options=options)) as events:
        async for event in events:
            if isinstance(event, Bookmark):
                if event.is_synced and not listed:
                    record.remove(known)
                continue
            node: Object = event.object
            if event.type is EventType.DELETED:
                record.remove(node["metadata"]["uid"])
            else:
                listed = node["metadata"]["uid"]
                record.put(node)
