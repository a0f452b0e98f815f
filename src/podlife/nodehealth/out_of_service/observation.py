"""Since when a node has been not ready and its kubelet silent, as observed by this process. Pure.

Times written by other machines are compared with each other and never with a local clock. A kubelet is alive whenever
its lease or the heartbeat of its Ready condition changes. A restarted controller therefore starts counting again, and
no node is declared dead that it has not observed.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from datetime import datetime

from podlife.nodehealth.out_of_service.views import FencedNode, FencedNodeCondition
from podlife.nodehealth.views import Lease

# The kubelet's default, for a lease without a duration.
_LEASE_SECONDS = 40
_MOST_LEASE_SECONDS = 600


@dataclass(frozen=True, slots=True)
class NodeObservation:
    """Times are the event loop's."""

    uid: str
    last_report_at: float
    not_ready_at: float | None
    ready: FencedNodeCondition | None
    renewed: datetime | None
    # Lease duration; 0 without a lease.
    lease_seconds: float = 0.0

    def without(self, seconds: float, now: float) -> NodeObservation:
        """Ignore the last `seconds`, in which no kubelet could report."""
        since = None if self.not_ready_at is None else min(now, self.not_ready_at + seconds)
        return replace(self, last_report_at=min(now, self.last_report_at + seconds), not_ready_at=since)

    def has_reported(self, node: FencedNode, lease: Lease | None) -> bool:
        """Whether the kubelet has reported since."""
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
    last_report_at = now if known.has_reported(node, lease) else known.last_report_at
    renewed, length = _renewed(lease, known.renewed), _length(lease, known.lease_seconds)
    return NodeObservation(uid, last_report_at, since, ready, renewed, length)


def _renewed(lease: Lease | None, known: datetime | None) -> datetime | None:
    """A deleted lease is not a report."""
    return known if lease is None or lease.spec.renew_time is None else lease.spec.renew_time


def _length(lease: Lease | None, known: float) -> float:
    """Bounded: a node must not be able to prevent its own taint with a long lease duration."""
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
