"""On which nodes the pods of a DaemonSet run. Pure except for its cache.

Whether a node should run a pod and whether a running pod may stay are separate questions: a NoSchedule taint keeps
new pods away, only a NoExecute taint removes running ones.
"""

from __future__ import annotations

import asyncio
from collections.abc import Iterable
from dataclasses import dataclass
from enum import Enum

from podlife.api.node_requirement import NodeRequirement
from podlife.informer.indexes import Key
from podlife.workloads.daemonset.tolerations import (
    NO_EXECUTE,
    NO_SCHEDULE,
    has_untolerated,
    with_daemon_tolerations,
)
from podlife.workloads.daemonset.views import DaemonNode, DaemonSet
from podlife.workloads.views import Template

_AT_ONCE_SECONDS = 0.01


class NodeFit(Enum):
    """How a node suits the daemon."""

    SHOULD_RUN = "should run"
    # No new pods, but running ones may stay.
    MAY_STAY = "may stay"
    MUST_NOT = "must not"


class Placement:
    """Of one template: what it asks of nodes, read once."""

    def __init__(self, template: Template) -> None:
        spec = template.get("spec") or {}
        self._node_name: str = spec.get("nodeName") or ""
        self._requirement = NodeRequirement(spec)
        self._tolerations = with_daemon_tolerations(spec)

    def fit(self, node: DaemonNode) -> NodeFit:
        name = node.metadata.name
        if self._node_name not in ("", name) or not self._requirement.matches(name, node.metadata.labels):
            return NodeFit.MUST_NOT
        taints = node.spec.taints
        if not taints or not has_untolerated(taints, self._tolerations, NO_SCHEDULE, NO_EXECUTE):
            return NodeFit.SHOULD_RUN
        return (
            NodeFit.MUST_NOT if has_untolerated(taints, self._tolerations, NO_EXECUTE) else NodeFit.MAY_STAY
        )


async def all_fits(placement: Placement, nodes: Iterable[DaemonNode]) -> dict[str, NodeFit]:
    """By the names of the nodes. A template may name thousands of terms, and there are thousands of nodes: others have
    their turn while they are held against each other."""
    loop = asyncio.get_running_loop()
    fits = {}
    since = loop.time()
    for node in nodes:
        fits[node.metadata.name] = placement.fit(node)
        if loop.time() - since > _AT_ONCE_SECONDS:
            await asyncio.sleep(0)
            since = loop.time()
    return fits


@dataclass(frozen=True, slots=True)
class _Known:
    uid: str
    generation: int
    placement: Placement


class Placements:
    """Those of all DaemonSets, each read again only when its spec has changed: every event of a node asks them."""

    def __init__(self) -> None:
        self._known: dict[Key, _Known] = {}

    def of(self, daemon_set: DaemonSet) -> Placement:
        metadata = daemon_set.metadata
        key = (metadata.namespace, metadata.name)
        known = self._known.get(key)
        if known is None or (known.uid, known.generation) != (metadata.uid, metadata.generation):
            known = _Known(metadata.uid, metadata.generation, Placement(daemon_set.spec.template))
            self._known[key] = known
        return known.placement

    def forget(self, key: Key) -> None:
        self._known.pop(key, None)
