"""Since when a node is not ready and its agent silent, by what we have seen ourselves. Pure.

Times that others write are compared and never held against a clock of ours: clocks of other machines may be off. An
agent is heard whenever its lease or the heartbeat of its Ready condition is another than before. So who starts anew
begins to count anew, and nobody is declared dead by a controller that has not watched it die.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from datetime import datetime

from podlife.nodehealth.out_of_service.views import Node, NodeCondition
from podlife.nodehealth.views import Lease

__all__ = ["Watched", "watch"]

# The kubelet's default, for a lease that does not say.
_LEASE_SECONDS = 40
_MOST_LEASE_SECONDS = 600


@dataclass(frozen=True, slots=True)
class Watched:
    """In the loop's time."""

    uid: str
    heard_at: float
    not_ready_at: float | None
    ready: NodeCondition | None
    renewed: datetime | None
    # How long its lease is for; 0 where it never had one.
    lease_seconds: float = 0.0

    def without(self, seconds: float, now: float) -> Watched:
        """As if the last `seconds` had not been: nobody could be heard in them."""
        since = None if self.not_ready_at is None else min(now, self.not_ready_at + seconds)
        return replace(self, heard_at=min(now, self.heard_at + seconds), not_ready_at=since)

    def has_heard(self, node: Node, lease: Lease | None) -> bool:
        """Whether the agent has said something since."""
        return _renewed(lease, self.renewed) != self.renewed or _heartbeat(node.ready) != _heartbeat(
            self.ready
        )


def watch(known: Watched | None, node: Node, lease: Lease | None, now: float) -> Watched:
    """What is known of the node after this look at it."""
    uid, ready = node.metadata.uid, node.ready
    since = None if node.is_ready else now
    if known is None or known.uid != uid:
        return Watched(uid, now, since, ready, _renewed(lease, None), _length(lease, 0.0))
    if since is not None and known.not_ready_at is not None and not _was_away(known.ready, ready):
        since = known.not_ready_at
    heard_at = now if known.has_heard(node, lease) else known.heard_at
    renewed, length = _renewed(lease, known.renewed), _length(lease, known.lease_seconds)
    return Watched(uid, heard_at, since, ready, renewed, length)


def _renewed(lease: Lease | None, known: datetime | None) -> datetime | None:
    """A lease that has gone says nothing."""
    return known if lease is None or lease.spec.renew_time is None else lease.spec.renew_time


def _length(lease: Lease | None, known: float) -> float:
    """An agent renews it several times within that; what a node says of itself keeps it from nothing for long."""
    if lease is None:
        return known
    return min(_MOST_LEASE_SECONDS, max(0, lease.spec.lease_duration_seconds or _LEASE_SECONDS))


def _heartbeat(ready: NodeCondition | None) -> str | None:
    return None if ready is None else ready.last_heartbeat_time


def _was_away(known: NodeCondition | None, ready: NodeCondition | None) -> bool:
    """Whether it was something else in between, which nobody has seen: the same status since another time."""
    return (
        known is not None
        and ready is not None
        and known.status == ready.status
        and known.last_transition_time != ready.last_transition_time
    )
