"""Writes taints and labels to nodes: read, edit, patch with the resourceVersion that was read.

An edit never overwrites another: after a conflict it is made again on the newest state (TN-03, TN-07). A node
recreated under the same name is left alone, because the patch carries the UID.
"""

from __future__ import annotations

import asyncio
import random
from collections.abc import Callable, Iterable, Mapping, Sequence

from podlife.api.codec import Object
from podlife.client import NODES, Client
from podlife.clock import Clock
from podlife.errors import ConflictError, NotFoundError
from podlife.nodehealth.taints import TaintKey, has_taint, made_taint, with_taints, without_taints
from podlife.nodehealth.views import MonitoredNode

_TRIES = 5
_RETRY_SECONDS = 0.1
# The first attempt may read any version the server has cached (TN-05).
_ANY_VERSION = "0"

Edit = Callable[[Sequence[Object]], list[Object]]


class TaintWriter:
    def __init__(self, client: Client, clock: Clock) -> None:
        self._client = client
        self._clock = clock

    async def add(self, node: MonitoredNode, taints: Iterable[TaintKey]) -> None:
        """Raises NotFoundError if the node is gone or replaced (TN-04), ConflictError if overtaken every time."""
        now = self._clock.now()
        added = [made_taint(each, now) for each in taints]
        if added:
            await self._edit(node, lambda present: with_taints(present, added))

    async def remove(self, node: MonitoredNode, taints: Iterable[TaintKey]) -> bool:
        """As `add`. Return whether `node` had any of the taints; if not, no request is sent (TN-06)."""
        removed = [each for each in taints if has_taint(node.spec.taints, each)]
        if removed:
            await self._edit(node, lambda present: without_taints(present, removed))
        return bool(removed)

    async def swap(self, node: MonitoredNode, added: Iterable[TaintKey], removed: Iterable[TaintKey]) -> None:
        """Add before removing, so that the node always has one of them (NL-54)."""
        await self.add(node, added)
        await self.remove(node, removed)

    async def set_labels(self, node: MonitoredNode, labels: Mapping[str, str]) -> None:
        if labels:
            patch = {"metadata": {"uid": node.metadata.uid, "labels": dict(labels)}}
            await self._client.patch(NODES, node.metadata.name, patch)

    async def _edit(self, node: MonitoredNode, edit: Edit) -> None:
        for number in range(_TRIES):
            if number:
                # Jitter, so that two writers do not conflict again.
                await asyncio.sleep(_RETRY_SECONDS * (1 + random.random()))  # noqa: S311 - spreads, guards nothing
            try:
                await self._edit_once(node, edit, _ANY_VERSION if number == 0 else "")
            except ConflictError:
                if number == _TRIES - 1:
                    raise
            else:
                return

    async def _edit_once(self, node: MonitoredNode, edit: Edit, version: str) -> None:
        name, uid = node.metadata.name, node.metadata.uid
        found: Object = await self._client.get(NODES, name, resource_version=version)
        if found["metadata"]["uid"] != uid:
            raise NotFoundError(f'nodes "{name}" with UID {uid} not found')
        present = (found.get("spec") or {}).get("taints") or []
        taints = edit(present)
        if taints != present:
            about = {"uid": uid, "resourceVersion": found["metadata"]["resourceVersion"]}
            await self._client.patch(NODES, name, {"metadata": about, "spec": {"taints": taints}})
