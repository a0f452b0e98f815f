"""Since when a node has been not ready and its agent silent, by own observation. Pure.

Times written by other machines are compared with each other and never with a local clock. An agent is alive whenever
its lease or the heartbeat of its Ready condition changes. A restarted controller therefore starts counting again, and
no node is declared dead that it has not observed.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from datetime import datetime

from podlife.nodehealth.out_of_service.views import FencedNode, FencedNodeCondition
from podlife.nodehealth.views import Lease

# The kubelet's default, for a lease that does not say.
_LEASE_SECONDS = 40
_MOST_LEASE_SECONDS = 600


@dataclass(frozen=True, slots=True)
class NodeObservation:
    """In the loop's time."""

    uid: str
    heard_at: float
    not_ready_at: float | None
    ready: FencedNodeCondition | None
    renewed: datetime | None
    # How long its lease is for; 0 where it never had one.
    lease_seconds: float = 0.0

    def without(self, seconds: float, now: float) -> NodeObservation:
        """Ignore the last `seconds`, in which no agent could report."""
        since = None if self.not_ready_at is None else min(now, self.not_ready_at + seconds)
        return replace(self, heard_at=min(now, self.heard_at + seconds), not_ready_at=since)

    def has_heard(self, node: FencedNode, lease: Lease | None) -> bool:
        """Whether the agent has said something since."""
        return _renewed(lease, self.renewed) != self.renewed or _heartbeat(node.ready) != _heartbeat(
            self.ready
        )


def observe(
    known: NodeObservation | None, node: FencedNode, lease: Lease | None, now: float
) -> NodeObservation:
    uid, ready = node.metadata.uid, node.ready
    since = None if node.is_ready else now
    if known is None or known.uid != uid:
        return NodeObservation(uid, now, since, ready, _renewed(lease, None), _length(lease, 0.0))
    if since is not None and known.not_ready_at is not None and not _was_away(known.ready, ready):
        since = known.not_ready_at
    heard_at = now if known.has_heard(node, lease) else known.heard_at
    renewed, length = _renewed(lease, known.renewed), _length(lease, known.lease_seconds)
    return NodeObservation(uid, heard_at, since, ready, renewed, length)


def _renewed(lease: Lease | None, known: datetime | None) -> datetime | None:
    """A lease that has gone says nothing."""
    return known if lease is None or lease.spec.renew_time is None else lease.spec.renew_time


def _length(lease: Lease | None, known: float) -> float:
    """An agent renews it several times within that; what a node says of itself keeps it from nothing for long."""
    if lease is None:
        return known
    return min(_MOST_LEASE_SECONDS, max(0, lease.spec.lease_duration_seconds or _LEASE_SECONDS))


def _heartbeat(ready: FencedNodeCondition | None) -> str | None:
    return None if ready is None else ready.last_heartbeat_time


def _was_away(known: FencedNodeCondition | None, ready: FencedNodeCondition | None) -> bool:
    """Whether the status changed in between unobserved: the same status with another transition time."""
    return (
        known is not None
        and ready is not None
        and known.status == ready.status
        and known.last_transition_time != ready.last_transition_time
    )
