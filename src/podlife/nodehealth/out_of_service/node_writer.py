"""Writes taint and annotation to a node together: read, checked again, patched with the UID and revision that were
read.

A node that returned at the last moment is not tainted, a node recreated under the same name is left alone, and no other
edit is overwritten: a conflict writes nothing.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from podlife.api.codec import Object
from podlife.client import NODES, Client
from podlife.clock import Clock
from podlife.errors import NotFoundError
from podlife.nodehealth.out_of_service.record import (
    RecordState,
    TaintOwner,
    TaintRecord,
    made_taint,
    our_taint,
    read_record,
    taint_owner,
)
from podlife.nodehealth.out_of_service.views import ANNOTATION, FencedNode
from podlife.nodehealth.unknown_status import read_lease, read_node
from podlife.nodehealth.views import Lease


@dataclass(frozen=True, slots=True)
class _Found:
    whole: Object
    node: FencedNode
    record: TaintRecord | None

    @property
    def taints(self) -> list[Object]:
        return list((self.whole.get("spec") or {}).get("taints") or ())


class NodeWriter:
    """Methods return whether anything was written. They raise PodlifeError, ConflictError if overtaken."""

    def __init__(self, client: Client, clock: Clock) -> None:
        self._client = client
        self._clock = clock

    async def set(self, name: str, uid: str, is_dead: Callable[[FencedNode, Lease | None], bool]) -> bool:
        """Only if `is_dead` holds for the node and the lease that the server has now."""
        lease = await read_lease(self._client, name)
        found = await self._find(name, uid)
        if found is None or found.node.is_ready or not is_dead(found.node, lease):
            return False
        if taint_owner(found.node.spec.taints, found.record) is not TaintOwner.NONE:
            return False
        record = self._record(RecordState.TAINTED, uid)
        await self._patch(found, record, [*found.taints, made_taint(record.at)])
        return True

    async def remove(self, name: str, uid: str, *, only_if_ready: bool) -> bool:
        """Remove only the controller's own taint, not another one with the same key."""
        found = await self._find(name, uid)
        if found is None or (only_if_ready and not found.node.is_ready):
            return False
        rest = [
            whole
            for whole, taint in zip(found.taints, found.node.spec.taints, strict=True)
            if not our_taint(taint, found.record)
        ]
        if len(rest) == len(found.taints):
            return False
        state = RecordState.RETURNED if found.node.is_ready else RecordState.FREED
        await self._patch(found, self._record(state, uid), rest)
        return True

    async def note_return(self, name: str, uid: str) -> bool:
        found = await self._find(name, uid)
        if found is None or found.record is None or not found.node.is_ready:
            return False
        await self._patch(found, self._record(RecordState.RETURNED, uid), None)
        return True

    async def forget(self, name: str, uid: str) -> bool:
        found = await self._find(name, uid)
        if found is None or found.record is None or found.record.state is not RecordState.RETURNED:
            return False
        await self._patch(found, None, None)
        return True

    def _record(self, state: RecordState, uid: str) -> TaintRecord:
        return TaintRecord(state, self._clock.now().replace(microsecond=0), uid)

    async def _find(self, name: str, uid: str) -> _Found | None:
        try:
            whole: Object = await self._client.get(NODES, name)
        except NotFoundError:
            return None
        node = read_node(whole, FencedNode)
        if node.metadata.uid != uid:
            return None
        return _Found(whole, node, read_record(node.metadata.annotations.get(ANNOTATION), uid))

    async def _patch(self, found: _Found, record: TaintRecord | None, taints: list[Object] | None) -> None:
        metadata = found.whole["metadata"]
        about: Object = {
            "uid": metadata["uid"],
            "resourceVersion": metadata["resourceVersion"],
            "annotations": {ANNOTATION: None if record is None else record.text()},
        }
        patch: Object = {"metadata": about}
        if taints is not None:
            patch["spec"] = {"taints": taints}
        await self._client.patch(NODES, metadata["name"], patch)
