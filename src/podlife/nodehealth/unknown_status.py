"""Sets the conditions of an unresponsive node to Unknown.

The lease and the node are first read from the server and examined again: a stuck watch must not make a live node look
dead. If the server took long to respond it has not received heartbeats either: then nothing is written and all nodes
get more time. The write carries the UID and the revision that were examined.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import TypeVar

import msgspec

from podlife.api.codec import Object
from podlife.api.patch import create_two_way_merge_patch
from podlife.client import LEASES, NODES, BadAnswerError, Client, PatchType
from podlife.clock import Clock
from podlife.errors import NotFoundError, PodlifeError
from podlife.nodehealth.node_health import Examination, expired_conditions
from podlife.nodehealth.views import Lease, MonitoredNode

log = logging.getLogger(__name__)

N = TypeVar("N")

LEASE_NAMESPACE = "kube-node-lease"
# Attempts per write, and the delay between them (NL-03).
_TRIES = 5
_RETRY_SECONDS = 0.02


@dataclass(frozen=True, slots=True)
class ExaminedNode:
    node: MonitoredNode
    seen: Examination


Examine = Callable[[MonitoredNode, Lease | None], Examination]


class UnknownStatusWriter:
    """A response slower than `patience_seconds` sets `took_long`: nothing is concluded about nodes."""

    def __init__(self, client: Client, clock: Clock, *, patience_seconds: float) -> None:
        self._client = client
        self._clock = clock
        self._patience_seconds = patience_seconds
        self.took_long = False

    async def write(self, node: MonitoredNode, examine: Examine) -> ExaminedNode | None:
        """Return the node, either marked or still reporting. None if it is gone or its state cannot be determined: then
        this pass takes no action on it."""
        name = node.metadata.name
        failure: PodlifeError | None = None
        for number in range(_TRIES):
            if self.took_long:
                return None
            if number:
                await asyncio.sleep(_RETRY_SECONDS)
            try:
                return await self._write_once(node, examine)
            except NotFoundError:
                return None
            except PodlifeError as error:
                failure = error
        log.warning("node %s is unresponsive, status update failed: %s", name, failure)
        return None

    async def _write_once(self, node: MonitoredNode, examine: Examine) -> ExaminedNode | None:
        name = node.metadata.name
        loop = asyncio.get_running_loop()
        started = loop.time()
        try:
            lease = await read_lease(self._client, name)
            found: Object = await self._client.get(NODES, name)
        finally:
            took_long = loop.time() - started > self._patience_seconds
            self.took_long = self.took_long or took_long
        fresh = read_node(found, MonitoredNode)
        if took_long or fresh.metadata.uid != node.metadata.uid:
            return None
        seen = examine(fresh, lease)
        if not seen.must_write:
            return ExaminedNode(fresh, seen)
        written = await self._write_status(found)
        log.info("node %s stopped reporting, marked as not ready", name)
        return ExaminedNode(fresh, replace(seen, health=replace(seen.health, ready=written.ready)))

    async def _write_status(self, found: Object) -> MonitoredNode:
        old = (found.get("status") or {}).get("conditions") or []
        changed = {each["type"]: each for each in expired_conditions(found, self._clock.now())}
        new = [*(changed.pop(each.get("type"), each) for each in old), *changed.values()]
        patch = create_two_way_merge_patch(
            {"status": {"conditions": old}}, {"status": {"conditions": new}}, "v1", "Node"
        )
        metadata = found["metadata"]
        about = {"uid": metadata["uid"], "resourceVersion": metadata["resourceVersion"]}
        return await self._client.patch(
            NODES,
            metadata["name"],
            {**patch, "metadata": about},
            type=PatchType.STRATEGIC,
            subresource="status",
            view=MonitoredNode,
        )


async def read_lease(client: Client, name: str) -> Lease | None:
    try:
        return await client.get(LEASES, name, LEASE_NAMESPACE, view=Lease)
    except NotFoundError:
        return None


def read_node(found: Object, view: type[N]) -> N:
    """Raises BadAnswerError."""
    try:
        return msgspec.convert(found, view)
    except msgspec.ValidationError as error:
        raise BadAnswerError(f"node {found['metadata']['name']} cannot be read: {error}") from error
